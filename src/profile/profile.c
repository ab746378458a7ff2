#define _GNU_SOURCE
#include "profile/profile.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/grow.h"
#ifdef HAVE_CUPTI
#include "profile/cuda/recorder.h"
#endif

// keep ranges
static double now_us(void)
{
	return clock_ms() * 1e3;
}

enum { RESERVED = 8, MOST_TIMED = (NSTAMPS - RESERVED) / 2 };

static void record_event(Profile *p, int range, int end)
{
	if (range < MOST_TIMED)
		device_stamp(p->device, COMPUTE, NSTAMPS - 1 - 2 * range - end);
}

static void begin_range(Profile *p, const char *name)
{
	p->ranges = grow(p->ranges, p->nranges, sizeof *p->ranges);
	p->ranges[p->nranges] = (Range){ .name = name, .parent = p->open,
		.start_us = now_us() };
	p->open = p->nranges++;
	if (!p->sees_activities)
		record_event(p, p->open, 0);
#ifdef HAVE_CUPTI
	else
		recorder_begin(p->open);
#endif
}

static void end_range(Profile *p)
{
	assert(p->open >= 0);
	if (!p->sees_activities)
		record_event(p, p->open, 1);
#ifdef HAVE_CUPTI
	else
		recorder_end();
#endif
	p->ranges[p->open].end_us = now_us();
	p->open = p->ranges[p->open].parent;
}

/* the device's callback; name NULL: the innermost range ends */
static void on_range(void *watcher, const char *name)
{
	if (name)
		begin_range(watcher, name);
	else
		end_range(watcher);
}

// start and stop a profile
Profile *profile_start(Device *d, bool activities)
{
	assert(d->watch == NULL && "one profile at a time");
	Profile *p = need(calloc(1, sizeof *p));
	p->device = d;
	p->open = -1;
#ifdef HAVE_CUPTI
	p->sees_activities = activities && strcmp(d->backend->name, "cuda") == 0
		&& recorder_start();
#endif
	(void)activities;
	d->watch = on_range, d->watcher = p;
	return p;
}

void profile_stop(Profile *p)
{
	assert(p->open < 0 && "a range ends in the profile that it began in");
	p->device->watch = NULL;
	device_now_ms(p->device);
#ifdef HAVE_CUPTI
	if (p->sees_activities)
		recorder_stop(p);
#endif
	if (!p->sees_activities && p->nranges > MOST_TIMED)
		p->lost = p->nranges - MOST_TIMED;
	// read the stamps of the ranges
	for (int s = 0; s < p->nranges && s < MOST_TIMED && !p->sees_activities;
		s++)
		p->ranges[s].device_us = 1e3 * device_stamped_ms(p->device,
			NSTAMPS - 1 - 2 * s, NSTAMPS - 2 - 2 * s);
}

// start and stop a profile
void profile_free(Profile **profile)
{
	Profile *p = *profile;
	if (p == NULL)
		return;
	free(p->ranges);
	free(p->activities);
	free(p);
	*profile = NULL;
}

int profile_within(const Profile *p, int s, const char *name)
{
	while (s >= 0 && strcmp(p->ranges[s].name, name) != 0)
		s = p->ranges[s].parent;
	return s;
}

// find how deep a range lies, and when its kernels ran
int profile_depth(const Profile *p, int s)
{
	int depth = 0;
	for (s = p->ranges[s].parent; s >= 0; s = p->ranges[s].parent)
		depth++;
	return depth;
}

void profile_interval(const Profile *p, int s, double *start, double *end)
{
	*start = p->ranges[s].start_us, *end = p->ranges[s].end_us;
	bool any = false;
	for (size_t i = 0; i < p->nactivities; i++) {
		const Activity *w = &p->activities[i];
		int in = w->range;
		while (in > s)
			in = p->ranges[in].parent;
		if (in != s)
			continue;
		*start = any && *start < w->start_us ? *start : w->start_us;
		*end = any && *end > w->end_us ? *end : w->end_us;
		any = true;
	}
}
