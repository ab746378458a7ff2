/* profile.h: a record of what the program did, and the device for it */
#ifndef PROFILE_PROFILE_H
#define PROFILE_PROFILE_H

#include "device/device.h"

typedef struct Range {
	const char *name;              /* of the range */
	int parent;                    /* the range around it, or -1 */
	double start_us, end_us;       /* on the host */
	double device_us;              /* between its ends on the device */
} Range;

typedef enum { ACTIVITY_KERNEL, ACTIVITY_COPY, ACTIVITY_FILL } ActivityKind;
typedef struct Activity {
	ActivityKind kind;
	const char *name;              /* of the kernel, shortened */
	int range;                     /* in which it was queued, or -1 */
	double start_us, end_us;       /* on the device, by the host's clock */
	unsigned stream, grid[3], block[3], registers;
	size_t shared_bytes;           /* of a block */
	size_t nbytes;                 /* of a copy or fill */
} Activity;

typedef struct Profile {
	Device *device;
	Range *ranges;                 /* in the order in which they began */
	int nranges, open;             /* open: the innermost range, or -1 */
	Activity *activities;          /* in the order in which they began */
	size_t nactivities;
	bool sees_activities;          /* else only ranges are recorded */
	size_t lost;              /* activities, or times of ranges, without room */
} Profile;

/* records from now on; one profile at a time. activities: what the device does,
 * if it can be seen; else how long ranges take there */
Profile *profile_start(Device *device, bool activities);
/* waits for the device; afterwards the profile is complete */
void     profile_stop(Profile *profile);
void     profile_free(Profile **profile);

/* the innermost range of this name that s lies in or is, or -1 */
int      profile_within(const Profile *profile, int s, const char *name);
/* the number of ranges that s lies in */
int      profile_depth(const Profile *profile, int s);
/* from the start of the first activity queued in range s to the end of the
 * last; of a range without activities, its own times on the host */
void     profile_interval(const Profile *profile, int s, double *start_us,
	double *end_us);

#endif
