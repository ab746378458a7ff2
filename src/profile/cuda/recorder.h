/* recorder.h: activities of a profile, by CUPTI's activity records */
#ifndef PROFILE_CUDA_RECORDER_H
#define PROFILE_CUDA_RECORDER_H

#include "profile/record.h"

/* false: this process may not record, because another tool does */
bool recorder_start(void);
void recorder_begin(int range);
void recorder_end(void);
/* gives the activities to p */
void recorder_stop(Profile *p);

#endif
