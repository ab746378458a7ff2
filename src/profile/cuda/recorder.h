/* recorder.h: activities of a profile, by CUPTI's activity records */
#ifndef PROFILE_CUDA_RECORDER_H
#define PROFILE_CUDA_RECORDER_H

#include "profile/record.h"

/* false: CUPTI does not let this process record, as where another tool records */
bool recorder_start(void);
void recorder_begin(int range);
void recorder_end(void);
/* gives the activities to p */
void recorder_stop(Profile *p);

#endif
