/* record.h: what a profile holds */
#ifndef PROFILE_RECORD_H
#define PROFILE_RECORD_H

#include "device/device.h"

// declare what is kept of a range and of a kernel
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
	int nranges, open;             /* open: the innermost open range; -1: none */
	Activity *activities;          /* in the order in which they began */
	size_t nactivities;
	bool sees_activities;          /* false: only ranges are recorded */
	size_t lost;              /* activities, or times of ranges, without room */
} Profile;

#endif
