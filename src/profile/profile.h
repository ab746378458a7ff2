/* profile.h: a record of what the program did, and the device for it */
#ifndef PROFILE_PROFILE_H
#define PROFILE_PROFILE_H

#include "device/device.h"

typedef struct Span {
	const char *name;              /* of the range */
	int parent;                    /* the span around it, or -1 */
	double start_us, end_us;       /* on the host */
	double device_us;              /* between its ends on the device */
} Span;

typedef enum { WORK_KERNEL, WORK_COPY, WORK_FILL } WorkKind;
typedef struct Work {
	WorkKind kind;
	const char *name;              /* of the kernel, shortened */
	int span;                      /* in which it was queued, or -1 */
	double start_us, end_us;       /* on the device, by the host's clock */
	unsigned stream, grid[3], block[3], registers;
	size_t shared_bytes;           /* of a block */
	size_t nbytes;                 /* of a copy or fill */
} Work;

typedef struct Profile {
	Device *device;
	Span *spans;                   /* in the order in which they began */
	int nspans, open;              /* open: the innermost span, or -1 */
	Work *works;                   /* in the order in which they began */
	size_t nworks;
	bool sees_work;                /* else only spans are recorded */
	size_t lost;                   /* works that there was no room to record */
} Profile;

/* records from now on; one profile at a time. works: what the device does, if it
 * can be seen; else how long spans take there */
Profile *profile_start(Device *device, bool works);
/* waits for the device; afterwards the profile is complete */
void     profile_stop(Profile *profile);
void     profile_free(Profile **profile);

/* the innermost span of this name that s lies in or is, or -1 */
int      profile_within(const Profile *profile, int s, const char *name);

#endif
