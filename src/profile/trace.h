/* trace.h: a profile as files for other tools */
#ifndef PROFILE_TRACE_H
#define PROFILE_TRACE_H

#include <stdio.h>

#include "profile/profile.h"

/* writes events for chrome://tracing and ui.perfetto.dev, with the memory of the
 * device's log. rank: the process among several, from 0. Replaces the file, or
 * ends the program */
void trace_write(const Profile *profile, int rank, const char *path);
/* a range of time on a track of a rank */
typedef struct TraceSpan {
	int rank, track;
	double start_us, end_us;
	char class[16], name[64];
} TraceSpan;
/* writes what several ranks did; tracks: names of a rank's tracks */
void trace_write_spans(const TraceSpan *spans, int n, const char *const *tracks,
	const char *path);
bool trace_recognised(FILE *file);     /* is it a trace? For file_try */
/* writes a line "forward;layer;norm;KERNEL NANOSECONDS" for each activity; where
 * activities are not seen, a line without KERNEL for each range, with its time
 * less the time of the ranges inside it */
void folded_write(const Profile *profile, FILE *file);
bool folded_recognised(FILE *file);

#endif
