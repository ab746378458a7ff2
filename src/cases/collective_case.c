#include "cases/collective_case.h"

#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/random.h"
#include "base/stats.h"
#include "dist/ring.h"
#include "ops/ops.h"

// draw integers, and compare with them
enum { PACK = 16 };                      /* integers of 4 bits in 64 */

static void add_integers(int *sums, uint64_t bits)
{
	for (int k = 0; k < PACK; k++)
		sums[k] += (int)(bits >> 4 * k & 7) - 4;
}

void integers_draw(real *to, size_t at, size_t n, uint64_t salt, int first,
	int end)
{
	#pragma omp parallel for schedule(static)
	for (size_t block = at / PACK; block < (at + n + PACK - 1) / PACK; block++) {
		int sums[PACK] = { 0 };
		for (int rank = first; rank < end; rank++)
			add_integers(sums, random_bits(salt, rank, block));
		for (size_t k = 0; k < PACK; k++) {
			size_t i = block * PACK + k;
			if (at <= i && i < at + n)
				to[i - at] = sums[k];
		}
	}
}

// count elements that are wrong
size_t integers_wrong(const real *x, size_t at, size_t n, uint64_t salt,
	int first, int end)
{
	size_t wrong = 0;
	real *want = need(malloc(n * sizeof *want));
	integers_draw(want, at, n, salt, first, end);
	for (size_t i = 0; i < n; i++)
		wrong += !(x[i] == want[i]);
	free(want);
	return wrong;
}

// give each rank its part of a case
enum { PIECE = 1 << 22 };

typedef struct ElementRange { size_t from, to; } ElementRange;

static size_t piece_length(size_t at, size_t to)
{
	return to - at < PIECE ? to - at : PIECE;
}

/* the elements that a rank has before the collective: its shard, if it gathers */
static ElementRange elements_before(const CollectiveCase *c, int rank)
{
	int ranks = comm_ranks(c->comm);
	if (c->collective == BROADCASTS)
		return (ElementRange){ 0, rank == 0 ? c->n : 0 };
	if (c->collective != ALL_GATHERS)
		return (ElementRange){ 0, c->n };
	return (ElementRange){ shard_begin(c->n, rank, ranks),
		shard_begin(c->n, rank + 1, ranks) };
}

// draw what a rank has before a collective
static void draw_array(const CollectiveCase *c, Array x)
{
	int rank = comm_rank(c->comm);
	ElementRange span = elements_before(c, rank);
	real *piece = need(malloc(PIECE * sizeof *piece));
	ops_for(c->device)->fill(c->device, x, NAN, c->n);
	for (size_t at = span.from; at < span.to; at += PIECE) {
		size_t n = piece_length(at, span.to);
		integers_draw(piece, at, n, c->salt, rank, rank + 1);
		array_write(c->device, array_part(c->device, x, at), piece, n);
	}
	free(piece);
}

// queue the collective of a case
static Event queue_collective(const CollectiveCase *c)
{
	static const char what[] = "integers";
	switch (c->collective) {
	case ALL_REDUCES:
		return comm_all_reduce(c->comm, c->x, c->n, what, 0);
	case REDUCE_SCATTERS:
		return comm_reduce_scatter(c->comm, c->x, c->n, what, 0);
	case ALL_GATHERS:
		return comm_all_gather(c->comm, c->x, c->n, what, 0);
	default:
		return comm_broadcast(c->comm, c->x, c->n, 0, what, 0);
	}
}

// check a collective
/* ends the program unless elements from ... to - 1 are sums over ranks first ...
 * end - 1 */
static void check_elements(const CollectiveCase *c, ElementRange span,
	int first, int end)
{
	size_t wrong = 0;
	real *piece = need(malloc(PIECE * sizeof *piece));
	for (size_t at = span.from; at < span.to; at += PIECE) {
		size_t n = piece_length(at, span.to);
		array_read(c->device, piece, array_part(c->device, c->x, at), n);
		wrong += integers_wrong(piece, at, n, c->salt, first, end);
	}
	free(piece);
	if (wrong > 0)
		die("rank %d: %s of %zu elements: %zu of %zu are wrong",
			comm_rank(c->comm), collective_name(c->collective), c->n, wrong,
			span.to - span.from);
}

// draw, run a collective and check its elements
static void check_collective(CollectiveCase *c)
{
	int rank = comm_rank(c->comm), ranks = comm_ranks(c->comm);
	c->salt++;
	draw_array(c, c->x);
	device_wait(c->device, COMM, device_event(c->device, COMPUTE));
	device_wait(c->device, COMPUTE, queue_collective(c));
	ElementRange all = { 0, c->n }, own = { shard_begin(c->n, rank, ranks),
		shard_begin(c->n, rank + 1, ranks) };
	if (c->collective == BROADCASTS)
		check_elements(c, all, 0, 1);
	for (int r = 0; r < ranks && c->collective == ALL_GATHERS; r++)
		check_elements(c, elements_before(c, r), r, r + 1);
	if (c->collective == ALL_REDUCES || c->collective == REDUCE_SCATTERS)
		check_elements(c, c->collective == ALL_REDUCES ? all : own, 0, ranks);
}

// time a collective
enum { WARMUP = 2, MOST_BATCH = 20, LEAST_RUNS = 3 };
enum { BATCH_MS = 2, LONG_MS = 20, ROW_MS = 1500 };

typedef struct CallBatch {
	bool led;                        /* a collective before it is not timed */
	int n;
} CallBatch;

/* returns the milliseconds of one collective on this rank */
static double run_batch(const CollectiveCase *c, CallBatch batch)
{
	Device *d = c->device;
	ops_for(d)->cast(d, c->x, c->drawn, c->n);
	device_wait(d, COMM, device_event(d, COMPUTE));
	device_now_ms(d);
	comm_barrier(c->comm);
	if (batch.led)
		queue_collective(c);
	device_stamp(d, COMM, 0);
	Event last = { COMM, 0 };
	for (int i = 0; i < batch.n; i++)
		last = queue_collective(c);
	device_stamp(d, COMM, 1);
	device_wait(d, COMPUTE, last);
	return device_stamped_ms(d, 0, 1) / batch.n;
}

static int within(double x, int least, int most)
{
	return x < least ? least : x > most ? most : (int)ceil(x);
}

// take the slowest rank's time of each run
static CollectiveTime time_collective(CollectiveCase *c)
{
	enum { MOST_RUNS = 1000 };
	double mine[MOST_RUNS], slowest[MOST_RUNS], ms = 0;
	int ranks = comm_ranks(c->comm);
	c->salt++;
	draw_array(c, c->drawn);
	for (int i = 0; i < WARMUP; i++)
		ms = comm_max(c->comm, run_batch(c, (CallBatch){ true, 1 }));
	CallBatch batch = { ms < LONG_MS, within(BATCH_MS / ms, 1, MOST_BATCH) };
	int least = c->runs < LEAST_RUNS ? c->runs : LEAST_RUNS;
	int runs = within(ROW_MS / (batch.n * ms), least, c->runs);
	for (int i = 0; i < runs; i++)
		mine[i] = run_batch(c, batch);
	// gather the times of all ranks, and keep the largest
	double *all = need(malloc(ranks * runs * sizeof *all));
	for (int i = 0; i < runs; i++)
		all[comm_rank(c->comm) * runs + i] = mine[i];
	comm_gather_host(c->comm, all, runs * sizeof *all);
	for (int i = 0; i < runs; i++) {
		slowest[i] = 0;
		for (int r = 0; r < ranks; r++)
			slowest[i] = fmax(slowest[i], all[r * runs + i]);
	}
	free(all);
	return (CollectiveTime){ stats_of(slowest, runs), batch.n };
}

// make the rows of a case
const char *collective_name(int collective)
{
	static const char *const names[] = { CHOICE_NAMES(COLLECTIVES_OF) };
	return names[collective];
}

double collective_factor(int collective, int ranks)
{
	double part = (ranks - 1.0) / ranks;
	return collective == BROADCASTS ? 1
		: collective == ALL_REDUCES ? 2 * part : part;
}

void collective_row(Row *row, double bytes, const CollectiveTime *t,
	double factor)
{
	double GBps = bytes / t->ms.median * 1e-6;
	row_set(row, "bytes", "%.0f", bytes);
	row_set(row, "time_ms", "%.5g", t->ms.median);
	row_set(row, "time_sd_ms", isnan(t->ms.sd) ? "-" : "%.3g", t->ms.sd);
	row_set(row, "time_min_ms", isnan(t->ms.min) ? "-" : "%.5g", t->ms.min);
	row_set(row, "algbw_GBps", "%.5g", GBps);
	row_set(row, "busbw_GBps", "%.5g", GBps * factor);
	row_set(row, "batch", "%d", t->batch);
	row_set(row, "runs", "%d", t->ms.n);
	row_emit(row);
}

// check, time and check again
static void make_row(Row *row, CollectiveCase *c, double bytes)
{
	check_collective(c);
	CollectiveTime t = time_collective(c);
	check_collective(c);
	collective_row(row, bytes, &t, collective_factor(c->collective,
		comm_ranks(c->comm)));
}

// make a row for each size
void collective_rows(Row *row, CollectiveCase *c, const long *sizes, int nsizes)
{
	size_t width = c->type == BF16 ? 2 : 4, most = 0;
	for (int i = 0; i < nsizes; i++)
		most = (size_t)sizes[i] > most ? (size_t)sizes[i] : most;
	c->x = comm_array(c->comm, most / width, c->type, MEM_TEMPORARY, "integers");
	c->drawn = array_new(c->device, most / width, c->type, MEM_TEMPORARY,
		"integers as drawn");
	for (int i = 0; i < nsizes; i++) {
		c->n = sizes[i] / width;
		make_row(row, c, (double)c->n * width);
	}
	device_free(c->device, c->drawn.at);
}
