#define _GNU_SOURCE
#include "jit/jit.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/grow.h"
#include "jit/compiler.h"
#include "jit/kernel_cache.h"
#include "ops/array.h"
#include "ops/elementary.h"
#include "ops/naive_attention.h"

// the state of the recorder
typedef struct LoadedKernel {
	char *source;
	void *loaded;
} LoadedKernel;

typedef struct LazyScratch {
	char *at;                       /* the address that operations were given */
	size_t nbytes;
	const char *what;
	void *real;                     /* NULL: there is no memory yet */
	bool freed;                     /* but the open group reads it */
} LazyScratch;

typedef struct Jit {
	Deferral deferral;
	Device *device;
	const Ops *eager;
	Ops ops;
	const Compiler *compiler;
	JitSettings settings;
	char *identity;
	FusionGroup open;
	char *text;                     /* the source written last */
	size_t ntext;
	/* by hash of the source, the capacity a power of two */
	LoadedKernel *kernels;
	size_t nkernels, capacity;
	LazyScratch *scratch;
	size_t nscratch;
	char *next;                     /* address of the next scratch */
	bool begins;                    /* a formula, with the next operation */
	void **freed;                   /* when the open group is done */
	size_t nfreed;
	JitCounts counts;
} Jit;

// find the recorder of a device, and begin a group
static void jit_release(Device *d, void *kept);

static Jit *jit_of(Device *d)
{
	return device_keep(d, sizeof(Jit), jit_release);
}

static void begin_group(Jit *j)
{
	fusion_init(&j->open, j->device->backend->width,
		j->device->backend->width(BF16) == sizeof(real) ? TYPE_REAL : FP32);
}

// scratch memory that may never be made
#define NOWHERE ((char *)(UINT64_C(1) << 60))

/* does a formula still hold scratch memory that it has not freed? */
static bool holds_scratch(const Jit *j)
{
	for (size_t k = 0; k < j->nscratch; k++)
		if (!j->scratch[k].freed)
			return true;
	return false;
}

static void *promise_scratch(Deferral *self, size_t nbytes, const char *what)
{
	Jit *j = (Jit *)self;
	j->begins |= !holds_scratch(j);
	j->scratch = grow(j->scratch, j->nscratch, sizeof *j->scratch);
	j->scratch[j->nscratch++] = (LazyScratch){ .at = j->next, .nbytes = nbytes,
		.what = what };
	void *at = j->next;
	j->next += (nbytes + 127) / 64 * 64;
	return at;
}

// make scratch memory when a group stores to it
static LazyScratch *scratch_of(const Jit *j, const void *p)
{
	for (size_t k = j->nscratch; k-- > 0;) {
		LazyScratch *s = &j->scratch[k];
		if ((char *)p >= s->at && (char *)p < s->at + s->nbytes)
			return s;
	}
	return NULL;
}

/* the real address of p; makes the scratch array's memory if p lies in one */
static void *real_address(Jit *j, void *p)
{
	LazyScratch *s = scratch_of(j, p);
	if (s == NULL)
		return p;
	if (s->real == NULL)
		s->real = device_alloc(j->device, s->nbytes, MEM_TEMPORARY, s->what);
	return (char *)s->real + ((char *)p - s->at);
}

// free what the open group may still read
static void free_later(Jit *j, void *p)
{
	j->freed = grow(j->freed, j->nfreed, sizeof *j->freed);
	j->freed[j->nfreed++] = p;
}

static void drop_scratch(Jit *j, LazyScratch *s)
{
	void *real = s->real;
	*s = j->scratch[--j->nscratch];
	device_free(j->device, real);
}

static bool free_or_delay(Deferral *self, void *p, size_t nbytes)
{
	Jit *j = (Jit *)self;
	LazyScratch *s = scratch_of(j, p);
	if (s == NULL) {
		bool touched = fusion_drop(&j->open, p, nbytes);
		if (touched)
			free_later(j, p);
		return touched;
	}
	s->freed = true;
	if (!fusion_drop(&j->open, s->at, s->nbytes))
		drop_scratch(j, s);
	return true;
}

static void free_delayed(Jit *j)
{
	for (size_t k = 0; k < j->nfreed; k++)
		device_free(j->device, j->freed[k]);
	j->nfreed = 0;
	for (size_t k = j->nscratch; k-- > 0;)
		if (j->scratch[k].freed)
			drop_scratch(j, &j->scratch[k]);
}

// find or compile a kernel
/* the kernel of this source, or the empty slot where it belongs */
static LoadedKernel *kernel_slot(LoadedKernel *kernels, size_t capacity,
	const char *source)
{
	size_t k = hash_bytes(HASH_START, source, strlen(source)) % capacity;
	while (kernels[k].source && strcmp(kernels[k].source, source) != 0)
		k = (k + 1) % capacity;
	return &kernels[k];
}

static void grow_table(Jit *j)
{
	if (2 * (j->nkernels + 1) <= j->capacity)
		return;
	size_t capacity = j->capacity ? 2 * j->capacity : 64;
	LoadedKernel *more = need(calloc(capacity, sizeof *more));
	for (size_t k = 0; k < j->capacity; k++)
		if (j->kernels[k].source)
			*kernel_slot(more, capacity, j->kernels[k].source) = j->kernels[k];
	free(j->kernels);
	j->kernels = more;
	j->capacity = capacity;
}

// read a kernel from disk, or compile it
static void *load_from_disk(Jit *j, const char *source)
{
	double start = clock_ms();
	if (j->settings.cache == NULL)
		return NULL;
	Bytes b = cache_read(j->settings.cache, j->identity, source);
	void *loaded = b.at ? j->compiler->load(b) : NULL;
	free(b.at);
	j->counts.read += loaded != NULL;
	j->counts.load_ms += clock_ms() - start;
	return loaded;
}

static void *compile(Jit *j, const char *source)
{
	char *complaint = NULL;
	double start = clock_ms();
	Bytes b = j->compiler->compile(j->device, source, &complaint);
	void *loaded = b.at ? j->compiler->load(b) : NULL;
	if (loaded == NULL)
		compiler_failed(source, complaint);
	j->counts.compiled++;
	j->counts.compile_ms += clock_ms() - start;
	if (j->settings.cache)
		cache_write(j->settings.cache, j->identity, source, b);
	free(b.at);
	return loaded;
}

// look a kernel up by its source
/* the kernel of the source, which is freed or kept */
static void *kernel_for(Jit *j, char *source)
{
	grow_table(j);
	LoadedKernel *k = kernel_slot(j->kernels, j->capacity, source);
	if (k->source) {
		free(source);
		return k->loaded;
	}
	k->loaded = load_from_disk(j, source);
	if (k->loaded == NULL)
		k->loaded = compile(j, source);
	k->source = source;
	j->nkernels++;
	return k->loaded;
}

// explain a group
static void explain(const Jit *j, const KernelPlan *p, const char *why,
	const char *source)
{
	static const char *const shapes[] = { [FLAT] = "flat",
		[HELD_ROW] = "held rows", [LOOPED_ROW] = "looped rows" };
	JitGroup g = { p->g.noperations, shapes[p->shape], p->C ? p->rows : p->g.n,
		p->C, p->g.bytes, plan_bytes(p), why, strstr(source, "fused") };
	if (j->settings.explain)
		j->settings.explain(j->settings.arg, &g);
}

// launch a group
/* points stores of sums of columns to new slabs, and keeps their old
 * accesses */
static void redirect_columns(Jit *j, KernelPlan *p, Access columns[MOST_STORES])
{
	size_t slabs = p->columns ? row_slabs(p->rows, p->C) : 0;
	for (int s = 0; s < p->g.nstores; s++) {
		Store *made = &p->g.stores[s];
		if (!made->columns || made->dead)
			continue;
		columns[s] = made->to;
		made->to.at = array_new(j->device, slabs * p->C, TYPE_REAL,
			MEM_TEMPORARY, "sums of columns").at;
	}
}

static void add_slabs(Jit *j, const KernelPlan *p, const Access *columns)
{
	size_t slabs = p->columns ? row_slabs(p->rows, p->C) : 0;
	for (int s = 0; s < p->g.nstores; s++) {
		const Store *made = &p->g.stores[s];
		if (!made->columns || made->dead)
			continue;
		Array y = { real_address(j, columns[s].at), columns[s].type };
		j->counts.kernels++;
		j->compiler->add_slabs(j->device, y, made->to.at, slabs, p->C);
		device_free(j->device, made->to.at);
	}
}

// give scratch memory its real addresses
static void resolve_addresses(Jit *j, KernelPlan *p)
{
	for (int v = 0; v < p->g.nnodes; v++)
		if (plan_has(p->live, v) && p->g.nodes[v].kind == LOAD)
			p->g.nodes[v].from.at = real_address(j, p->g.nodes[v].from.at);
	for (int s = 0; s < p->g.nstores; s++)
		if (!p->g.stores[s].dead)
			p->g.stores[s].to.at = real_address(j, p->g.stores[s].to.at);
}

// write the source of a group, and launch its kernel
/* the kernel's source, which the caller frees */
static char *text_of_kernel(Jit *j, const KernelPlan *p)
{
	FILE *f = need(open_memstream(&j->text, &j->ntext));
	j->compiler->write(f, p);
	if (fclose(f) != 0)
		die("out of host memory");
	return j->text;
}

static void launch(Jit *j, KernelPlan *p, const char *why)
{
	void *at[MOST_POINTERS];
	double numbers[MOST_NODES];
	Access columns[MOST_STORES];
	redirect_columns(j, p, columns);
	resolve_addresses(j, p);
	plan_pointers(p, at);
	plan_numbers(p, numbers);
	char *source = text_of_kernel(j, p);
	explain(j, p, why, source);
	void *kernel = kernel_for(j, source);
	j->compiler->launch(j->device, kernel, p, at, numbers);
	j->counts.kernels++;
	add_slabs(j, p, columns);
}

// close the open group
static void close_group(Jit *j, const char *why)
{
	if (j->open.noperations == 0)
		return;
	KernelPlan *p = need(malloc(sizeof *p));
	plan_make(p, &j->open);
	j->counts.operations += j->open.noperations;
	j->counts.bytes_eager += j->open.bytes;
	j->counts.bytes += p->live ? plan_bytes(p) : 0;
	begin_group(j);
	if (p->live) {
		j->counts.groups++;
		launch(j, p, why);
	}
	free(p);
	free_delayed(j);
}

static void flush(Deferral *self, const char *why)
{
	close_group((Jit *)self, why);
}

// take an operation
/* does at once an operation that no group takes */
static void run_alone(Jit *j, const Elementary *e)
{
	Elementary here = *e;
	here.y.at = real_address(j, e->y.at);
	for (int k = 0; k < opcode_operands(e->op); k++)
		if (e->in[k].kind == MEMORY)
			here.in[k].a.at = real_address(j, e->in[k].a.at);
	j->eager->elementary(j->device, &here);
	j->counts.operations++;
	j->counts.kernels += e->fold == FOLD_COLUMNS ? 2 : 1;
}

static void record_operation(Deferral *self, const Elementary *e)
{
	Jit *j = (Jit *)self;
	if (j->begins && !fusion_shares(&j->open, e))
		close_group(j, "a formula follows that shares nothing with it");
	j->begins = false;
	const char *why = fusion_join(&j->open, e);
	if (why) {
		close_group(j, why);
		if (fusion_join(&j->open, e))
			run_alone(j, e);
	}
	if (j->settings.alone)
		close_group(j, "no other may join it");
}

// operations that end a group
/* queues all that was recorded, and returns the eager operations; what: the
 * reason */
static const Ops *flushed_ops(Device *d, const char *what)
{
	Jit *j = jit_of(d);
	close_group(j, what);
	return j->eager;
}

static void jit_draw(Device *d, Array y, size_t n, double sd, double bound,
	uint64_t seed, uint64_t stream, uint64_t first)
{
	flushed_ops(d, "a draw follows")->draw(d, y, n, sd, bound, seed, stream,
		first);
}

static void jit_mean(Device *d, Array mean, int32_t *nonfinite, Array x,
	size_t n)
{
	flushed_ops(d, "a mean follows")->mean(d, mean, nonfinite, x, n);
}

static void jit_count_nonfinite(Device *d, int32_t *count, Array x, size_t n)
{
	flushed_ops(d, "a count follows")->count_nonfinite(d, count, x, n);
}

static void jit_matmul(Device *d, Array C, Array A, Array B, Matmul shape)
{
	flushed_ops(d, "a matmul follows")->matmul(d, C, A, B, shape);
}

static void jit_embedding_forward(Device *d, Array x, Array table,
	const int32_t *tokens, size_t N, size_t C)
{
	flushed_ops(d, "an embedding follows")->embedding_forward(d, x, table,
		tokens, N,
		C);
}

static void jit_embedding_backward(Device *d, Array dtable, double beta,
	Array dx, const int32_t *tokens, size_t N, size_t C, size_t V)
{
	flushed_ops(d, "an embedding follows")->embedding_backward(d, dtable, beta,
		dx,
		tokens, N, C, V);
}

static void jit_layernorm_forward(Device *d, Array y, Array mean, Array rstd,
	Array x, Array g, Array b, size_t rows, size_t C, double eps)
{
	flushed_ops(d, "LayerNorm follows")->layernorm_forward(d, y, mean, rstd, x,
		g, b,
		rows, C, eps);
}

static void jit_layernorm_backward(Device *d, Array dx, Array dg, Array db,
	Array dy, Array x, Array g, Array mean, Array rstd, size_t rows, size_t C)
{
	flushed_ops(d, "LayerNorm follows")->layernorm_backward(d, dx, dg, db, dy,
		x, g,
		mean, rstd, rows, C);
}

static void jit_sgd(Device *d, Array w, Array low, Gradients g, Array velocity,
	size_t n, const SgdStep *step, const int32_t *skip)
{
	flushed_ops(d, "SGD follows")->sgd(d, w, low, g, velocity, n, step, skip);
}

static void jit_add_squares(Device *d, Array sum, Gradients g, size_t n)
{
	flushed_ops(d, "a norm of gradients follows")->add_squares(d, sum, g, n);
}

static void jit_clip(Device *d, real *factor, Array squares, double most)
{
	flushed_ops(d, "a clip follows")->clip(d, factor, squares, most);
}

// start and stop recording
/* of the kernels of attention, the one that consists of recorded operations */
static const AttentionKernel recorded_kernels[] = {
	{ "naive", naive_attention_supports, naive_attention_forward,
		naive_attention_backward, naive_attention_scratch, true },
	{ 0 }
};

static Ops recorded_ops(const Ops *eager)
{
	Ops ops = { .reads = eager->reads, .elementary = eager->elementary,
		.draw = jit_draw, .mean = jit_mean,
		.count_nonfinite = jit_count_nonfinite, .matmul = jit_matmul,
		.embedding_forward = jit_embedding_forward,
		.embedding_backward = jit_embedding_backward,
		.layernorm_forward = jit_layernorm_forward,
		.layernorm_backward = jit_layernorm_backward, .sgd = jit_sgd,
		.add_squares = jit_add_squares, .clip = jit_clip,
		.attention_kernels = recorded_kernels };
	ops_by_formulas(&ops);
	return ops;
}

bool jit_start(Device *d, JitSettings settings)
{
	Jit *j = jit_of(d);
	const char *why = NULL;
	assert(d->deferral == NULL);
	j->settings = settings;
	j->compiler = compiler_for(d, &why);
	if (j->compiler && j->identity == NULL)
		j->identity = j->compiler->identify(d, &why);
	if (j->identity == NULL) {
		fprintf(stderr, "%s: nothing is compiled at run time: %s\n",
			program_name, why);
		return false;
	}
	j->device = d;
	j->eager = ops_for(d);
	j->ops = recorded_ops(j->eager);
	j->next = j->next ? j->next : NOWHERE;
	j->deferral = (Deferral){ flush, free_or_delay, record_operation,
		promise_scratch, &j->ops };
	begin_group(j);
	d->deferral = &j->deferral;
	return true;
}

void jit_stop(Device *d)
{
	Jit *j = jit_of(d);
	if (d->deferral != &j->deferral)
		return;
	close_group(j, "recording ends");
	d->deferral = NULL;
}

JitCounts jit_counts(Device *d)
{
	return jit_of(d)->counts;
}

// forget all kernels
static void unload_all(Jit *j)
{
	for (size_t k = 0; k < j->capacity; k++)
		if (j->kernels[k].source) {
			j->compiler->unload(j->kernels[k].loaded);
			free(j->kernels[k].source);
		}
	free(j->kernels);
	j->kernels = NULL;
	j->capacity = j->nkernels = 0;
}

void jit_forget(Device *d)
{
	assert(d->graphs == 0);
	device_now_ms(d);               /* no kernel runs any more */
	unload_all(jit_of(d));
}

static void jit_release(Device *d, void *kept)
{
	Jit *j = kept;
	assert(j->nscratch == 0 && "scratch memory is freed");
	unload_all(j);
	free(j->scratch);
	free(j->freed);
	free(j->identity);
	d->deferral = NULL;
}
