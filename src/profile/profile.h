/* profile.h: a record of what the program did, and the device for it */
#ifndef PROFILE_PROFILE_H
#define PROFILE_PROFILE_H

#include "profile/record.h"

/* records from now on; one profile at a time. activities: record what the device
 * does, where it can be seen; otherwise how long ranges take on the device */
Profile *profile_start(Device *device, bool activities);
/* waits for the device; afterwards the profile is complete */
void     profile_stop(Profile *profile);
void     profile_free(Profile **profile);

/* the innermost range of this name that is s, or that s lies in; -1: none */
int      profile_within(const Profile *profile, int s, const char *name);
/* the number of ranges that s lies in */
int      profile_depth(const Profile *profile, int s);
/* the time from the start of the first activity that was queued in range s to
 * the end of the last; for a range without activities, its own times on the
 * host */
void     profile_interval(const Profile *profile, int s, double *start_us,
	double *end_us);

#endif
