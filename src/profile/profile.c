#define _GNU_SOURCE
#include "profile/profile.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#ifdef HAVE_CUPTI
#include "profile/cuda/recorder.h"
#endif

static double now_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e6 + t.tv_nsec * 1e-3;
}

enum { RESERVED = 8, MARKED = (NMARKS - RESERVED) / 2 };

static void mark(Profile *p, int span, int end)
{
	if (span < MARKED)
		device_mark(p->device, NMARKS - 1 - 2 * span - end);
}

static void begin_span(Profile *p, const char *name)
{
	if ((p->nspans & (p->nspans - 1)) == 0)
		p->spans = need(realloc(p->spans, (p->nspans ? 2 * p->nspans : 1)
			* sizeof *p->spans));
	p->spans[p->nspans] = (Span){ .name = name, .parent = p->open,
		.start_us = now_us() };
	p->open = p->nspans++;
	if (!p->sees_work)
		mark(p, p->open, 0);
#ifdef HAVE_CUPTI
	else
		recorder_begin(p->open);
#endif
}

static void end_span(Profile *p)
{
	assert(p->open >= 0);
	if (!p->sees_work)
		mark(p, p->open, 1);
#ifdef HAVE_CUPTI
	else
		recorder_end();
#endif
	p->spans[p->open].end_us = now_us();
	p->open = p->spans[p->open].parent;
}

static void watch(void *watcher, const char *name)
{
	if (name)
		begin_span(watcher, name);
	else
		end_span(watcher);
}
Profile *profile_start(Device *d, bool works)
{
	assert(d->watch == NULL && "one profile at a time");
	Profile *p = need(calloc(1, sizeof *p));
	p->device = d;
	p->open = -1;
#ifdef HAVE_CUPTI
	p->sees_work = works && strcmp(d->backend->name, "cuda") == 0
		&& recorder_start();
#endif
	(void)works;
	d->watch = watch, d->watcher = p;
	return p;
}

void profile_stop(Profile *p)
{
	assert(p->open < 0 && "a range ends in the profile that it began in");
	p->device->watch = NULL;
	p->device->backend->synchronize();
#ifdef HAVE_CUPTI
	if (p->sees_work)
		recorder_stop(p);
#endif
	for (int s = 0; s < p->nspans && s < MARKED && !p->sees_work; s++)
		p->spans[s].device_us = 1e3 * device_between_ms(p->device,
			NMARKS - 1 - 2 * s, NMARKS - 2 - 2 * s);
}

void profile_free(Profile **profile)
{
	Profile *p = *profile;
	if (p == NULL)
		return;
	free(p->spans);
	free(p->works);
	free(p);
	*profile = NULL;
}

int profile_within(const Profile *p, int s, const char *name)
{
	while (s >= 0 && strcmp(p->spans[s].name, name) != 0)
		s = p->spans[s].parent;
	return s;
}
