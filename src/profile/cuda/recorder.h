/* recorder.h: activities of a profile, by CUPTI's activity records */
#ifndef PROFILE_CUDA_RECORDER_H
#define PROFILE_CUDA_RECORDER_H

#include "profile/record.h"

/* false: CUPTI does not let this process record, because another tool does */
bool recorder_start(void);
/* activities that are queued between these two belong to the range */
void recorder_begin(int range);
void recorder_end(void);
/* gives the activities to p, with their ranges, and forgets them */
void recorder_stop(Profile *p);

#endif
