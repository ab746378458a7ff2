#define _GNU_SOURCE
#include "profile/cuda/recorder.h"

#include <cupti.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/grow.h"
#include "profile/cuda/names.h"

#define CUPTI(call) cupti_expect((call), #call, __LINE__)

static void cupti_expect(CUptiResult result, const char *call, int line)
{
	const char *why = "unknown error";
	if (result == CUPTI_SUCCESS)
		return;
	cuptiGetResultString(result, &why);
	die("%s:%d: %s: %s", __FILE__, line, call, why);
}

// keep activity records
typedef struct Link {
	unsigned call;                  /* CUPTI's number of a call */
	int range;
} Link;

static struct {
	pthread_mutex_t lock;
	Activity *activities;           /* range: the call that queued it */
	Link *links;
	size_t nactivities, nlinks, lost;
} kept = { .lock = PTHREAD_MUTEX_INITIALIZER };

enum { MOST_ACTIVITIES = 1 << 21 };

static void keep_activity(Activity w)
{
	if (kept.nactivities == MOST_ACTIVITIES) {
		kept.lost++;
		return;
	}
	kept.activities = grow(kept.activities, kept.nactivities,
		sizeof *kept.activities);
	kept.activities[kept.nactivities++] = w;
}

static void keep_link(Link l)
{
	if (kept.nlinks == MOST_ACTIVITIES) {
		kept.lost++;
		return;
	}
	kept.links = grow(kept.links, kept.nlinks, sizeof *kept.links);
	kept.links[kept.nlinks++] = l;
}

// read a buffer of activity records
enum { BUFFER = 8 << 20 };

static void CUPTIAPI lend_buffer(uint8_t **buffer, size_t *nbytes,
	size_t *records)
{
	*buffer = need(aligned_alloc(8, BUFFER));
	*nbytes = BUFFER;
	*records = 0;                   /* as many as fit */
}

// keep the record of a kernel
static void keep_kernel(const CUpti_ActivityKernel10 *k)
{
	keep_activity((Activity){ .kind = ACTIVITY_KERNEL,
		.name = short_name(k->name),
		.range = (int)k->correlationId, .start_us = k->start * 1e-3,
		.end_us = k->end * 1e-3, .stream = k->streamId,
		.grid = { (unsigned)k->gridX, (unsigned)k->gridY, (unsigned)k->gridZ },
		.block = { (unsigned)k->blockX, (unsigned)k->blockY,
			(unsigned)k->blockZ },
		.registers = k->registersPerThread,
		.shared_bytes = (size_t)k->staticSharedMemory
			+ (size_t)k->dynamicSharedMemory });
}

/* what records of copies and of fills have in common */
#define MOVED(r) .range = (int)(r)->correlationId, \
	.start_us = (r)->start * 1e-3, .end_us = (r)->end * 1e-3, \
	.stream = (r)->streamId, .nbytes = (r)->bytes

static void keep_record(const CUpti_Activity *record)
{
	const CUpti_ActivityMemcpy6 *copy = (const void *)record;
	const CUpti_ActivityMemset4 *fill = (const void *)record;
	const CUpti_ActivityExternalCorrelation *link = (const void *)record;
	switch (record->kind) {
	case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
		keep_kernel((const void *)record);
		break;
	case CUPTI_ACTIVITY_KIND_MEMCPY:
		keep_activity((Activity){ .kind = ACTIVITY_COPY, .name = "copy",
			MOVED(copy) });
		break;
	case CUPTI_ACTIVITY_KIND_MEMSET:
		keep_activity((Activity){ .kind = ACTIVITY_FILL, .name = "fill",
			MOVED(fill) });
		break;
	case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
		keep_link((Link){ link->correlationId, (int)link->externalId });
		break;
	default:
		break;                      /* the calls themselves */
	}
}

static void CUPTIAPI take_buffer(CUcontext context, uint32_t stream,
	uint8_t *buffer, size_t nbytes, size_t valid)
{
	(void)nbytes;
	CUpti_Activity *record = NULL;
	size_t lost = 0;
	pthread_mutex_lock(&kept.lock);
	CUptiResult next;
	while ((next = cuptiActivityGetNextRecord(buffer, valid, &record))
		== CUPTI_SUCCESS)
		keep_record(record);
	if (next != CUPTI_ERROR_MAX_LIMIT_REACHED)      /* that is the end */
		CUPTI(next);
	if (cuptiActivityGetNumDroppedRecords(context, stream, &lost)
		== CUPTI_SUCCESS)
		kept.lost += lost;
	pthread_mutex_unlock(&kept.lock);
	free(buffer);
}

// start, stop and join
static const CUpti_ActivityKind kinds[] = {
	CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
	CUPTI_ACTIVITY_KIND_MEMSET, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
	CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_DRIVER,
};
enum { NKINDS = sizeof kinds / sizeof *kinds };

static uint64_t CUPTIAPI clock_ns(void)
{
	return llrint(clock_ms() * 1e6);
}

bool recorder_start(void)
{
	CUPTI(cuptiActivityRegisterTimestampCallback(clock_ns));
	CUPTI(cuptiActivityRegisterCallbacks(lend_buffer, take_buffer));
	for (int i = 0; i < NKINDS; i++)
		if (cuptiActivityEnable(kinds[i]) != CUPTI_SUCCESS) {
			while (i-- > 0)
				CUPTI(cuptiActivityDisable(kinds[i]));
			return false;
		}
	return true;
}

// tell CUPTI which range is open
void recorder_begin(int range)
{
	CUPTI(cuptiActivityPushExternalCorrelationId(
		CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, (uint64_t)range));
}

void recorder_end(void)
{
	uint64_t range;
	CUPTI(cuptiActivityPopExternalCorrelationId(
		CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &range));
}

static int by_call(const void *a, const void *b)
{
	unsigned x = ((const Link *)a)->call, y = ((const Link *)b)->call;
	return x < y ? -1 : x > y;
}

static int by_start(const void *a, const void *b)
{
	double x = ((const Activity *)a)->start_us,
		y = ((const Activity *)b)->start_us;
	return x < y ? -1 : x > y;
}

void recorder_stop(Profile *p)
{
	CUPTI(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
	for (int i = 0; i < NKINDS; i++)
		CUPTI(cuptiActivityDisable(kinds[i]));
	pthread_mutex_lock(&kept.lock);
	qsort(kept.links, kept.nlinks, sizeof *kept.links, by_call);
	// give each activity the range of its launch
	for (size_t i = 0; i < kept.nactivities; i++) {
		Link wanted = { (unsigned)kept.activities[i].range, -1 };
		const Link *found = kept.nlinks ? bsearch(&wanted, kept.links,
			kept.nlinks, sizeof *kept.links, by_call) : NULL;
		kept.activities[i].range = found ? found->range : -1;
	}
	qsort(kept.activities, kept.nactivities, sizeof *kept.activities, by_start);
	p->activities = kept.activities, p->nactivities = kept.nactivities,
		p->lost = kept.lost;
	free(kept.links);
	kept.activities = NULL, kept.links = NULL;
	kept.nactivities = kept.nlinks = kept.lost = 0;
	pthread_mutex_unlock(&kept.lock);
}
