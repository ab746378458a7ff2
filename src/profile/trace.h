/* trace.h: a profile as files for other tools */
#ifndef PROFILE_TRACE_H
#define PROFILE_TRACE_H

#include <stdio.h>

#include "profile/profile.h"

/* events for chrome://tracing and ui.perfetto.dev; memory from the device's log.
 * rank: the process among several, from 0. Replaces the file, or ends the
 * program */
void trace_write(const Profile *profile, int rank, const char *path);
/* what several ranks did, a track for each name of a rank's tracks */
typedef struct TraceSpan {
	int rank, track;
	double start_us, end_us;
	char class[16], name[64];
} TraceSpan;
void trace_write_spans(const TraceSpan *spans, int n, const char *const *tracks,
	const char *path);
bool trace_recognised(FILE *file);     /* for file_try */
/* a line "forward;layer;norm;KERNEL NANOSECONDS" for each activity, or, where
 * activities are not seen, a line without KERNEL for each range, with its time
 * less that of the ranges inside */
void folded_write(const Profile *profile, FILE *file);
bool folded_recognised(FILE *file);

#endif
