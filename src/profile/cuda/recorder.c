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
#include "profile/cuda/kernel_names.h"

#define CUPTI(call) cupti_expect((call), #call, __LINE__)

// end the program when a call to CUPTI fails
static void cupti_expect(CUptiResult result, const char *call, int line)
{
	const char *why = "unknown error";
	if (result == CUPTI_SUCCESS)
		return;
	cuptiGetResultString(result, &why);
	die("%s:%d: %s: %s", __FILE__, line, call, why);
}

// keep activity records
/* the range in which a call was made */
typedef struct CallRange {
	unsigned call;                  /* CUPTI's number of the call */
	int range;
} CallRange;

static struct {
	pthread_mutex_t lock;
	Activity *activities;           /* range: the call that queued it */
	CallRange *calls;
	size_t nactivities, ncalls, lost;
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

static void keep_call_range(CallRange l)
{
	if (kept.ncalls == MOST_ACTIVITIES) {
		kept.lost++;
		return;
	}
	kept.calls = grow(kept.calls, kept.ncalls, sizeof *kept.calls);
	kept.calls[kept.ncalls++] = l;
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

// name what copies and fills have in common
/* what records of copies and of fills have in common */
#define MOVED(r) .range = (int)(r)->correlationId, \
	.start_us = (r)->start * 1e-3, .end_us = (r)->end * 1e-3, \
	.stream = (r)->streamId, .nbytes = (r)->bytes

// read a buffer of activity records
static void keep_record(const CUpti_Activity *record)
{
	const CUpti_ActivityMemcpy6 *copy = (const void *)record;
	const CUpti_ActivityMemset4 *fill = (const void *)record;
	const CUpti_ActivityExternalCorrelation *link = (const void *)record;
	// keep the record by its kind
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
		keep_call_range((CallRange){ link->correlationId, (int)link->externalId });
		break;
	default:
		break;                      /* the calls themselves */
	}
}

// read a buffer of activity records
static void CUPTIAPI take_buffer(CUcontext context, uint32_t stream,
	uint8_t *buffer, size_t nbytes, size_t valid)
{
	(void)nbytes;
	CUpti_Activity *record = NULL;
	size_t lost = 0;
	pthread_mutex_lock(&kept.lock);
	CUptiResult next;
	// read all records of the buffer
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

// start, stop and join
static int by_call(const void *a, const void *b)
{
	unsigned x = ((const CallRange *)a)->call, y = ((const CallRange *)b)->call;
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
	qsort(kept.calls, kept.ncalls, sizeof *kept.calls, by_call);
	// give each activity the range of its launch
	for (size_t i = 0; i < kept.nactivities; i++) {
		CallRange wanted = { (unsigned)kept.activities[i].range, -1 };
		const CallRange *found = kept.ncalls ? bsearch(&wanted, kept.calls,
			kept.ncalls, sizeof *kept.calls, by_call) : NULL;
		kept.activities[i].range = found ? found->range : -1;
	}
	qsort(kept.activities, kept.nactivities, sizeof *kept.activities, by_start);
	// hand the activities over, and start anew
	p->activities = kept.activities, p->nactivities = kept.nactivities,
		p->lost = kept.lost;
	free(kept.calls);
	kept.activities = NULL, kept.calls = NULL;
	kept.nactivities = kept.ncalls = kept.lost = 0;
	pthread_mutex_unlock(&kept.lock);
}
