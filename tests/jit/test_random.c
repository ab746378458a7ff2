/* random programs: one operation at a time, in double, in groups, compiled */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <omp.h>
#include <sys/mman.h>
#include <unistd.h>

#include "jit/compiler.h"
#include "jit/source.h"
#include "tests/ops/compare.h"
#include "tests/jit/program.h"

static Program program;
static real eager[POOL];

// compare two runs of a program
static void interpret(void *unused, const KernelPlan *p)
{
	plan_interpret(p);
}

/* the first element that differs between the two runs; -1: none */
static long difference(const Program *p)
{
	for (long i = 0; i < POOL; i++)
		if (!p->dead[i] && memcmp(&p->pool[i], &eager[i], sizeof(real)) != 0
			&& !(isnan(p->pool[i]) && isnan(eager[i])))
			return i;
	return -1;
}

static long run_twice(Program *p, void (*run)(void *arg,
	const KernelPlan *plan),
	void *arg)
{
	program_eager(p);
	memcpy(eager, p->pool, sizeof eager);
	program_fused(p, run, arg);
	return difference(p);
}

// compare the reference with double precision
/* fails if an element is further off than its bound; returns how many
 * elements have a useful bound */
static size_t close_to_exact(Program *p)
{
	static double value[POOL], error[POOL];
	size_t known = 0;
	program_eager(p);
	program_exact(p, value, error);
	for (long i = 0; i < POOL; i++) {
		known += error[i] < 1e-2 * fabs(value[i]);
		if (error[i] == INFINITY || fabs(p->pool[i] - value[i]) <= error[i])
			continue;
		program_print(p);
		fail_msg("element %ld is %g, not %g within %g", i, (double)p->pool[i],
			value[i], error[i]);
	}
	return known;
}

// make a failure smaller
static void shrink(Program *p, void (*run)(void *arg, const KernelPlan *plan),
	void *arg)
{
	for (bool smaller = true; smaller;) {
		smaller = false;
		for (int k = 0; k < p->n; k++) {
			if (p->left_out[k])
				continue;
			p->left_out[k] = true;
			p->left_out[k] = run_twice(p, run, arg) >= 0;
			smaller |= p->left_out[k];
		}
	}
}

static void expect_agreement(Program *p, uint64_t seed,
	void (*run)(void *arg, const KernelPlan *plan), void *arg)
{
	if (run_twice(p, run, arg) < 0)
		return;
	shrink(p, run, arg);
	long i = run_twice(p, run, arg);
	program_print(p);
	fail_msg("seed %llu: element %ld is %g in groups and %g eagerly",
		(unsigned long long)seed, i, (double)p->pool[i], (double)eager[i]);
}

// test that grouped programs do what they say
enum { SEEDS = 10000 };

typedef struct Counts {
	long groups, operations, folds, held;
} Counts;

static void count(void *counts, const KernelPlan *p)
{
	Counts *n = counts;
	n->groups++;
	n->operations += p->g.noperations;
	n->folds += p->nloops > 1;
	n->held += p->held != 0;
}

// test programs in groups
static void grouped_programs_agree(void **state)
{
	size_t known = 0, all = 0;
	Counts counts = { 0 };
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		memset(&program, 0, sizeof program);
		program_draw(&program, seed);
		expect_agreement(&program, seed, interpret, NULL);
		if (seed % 4 > 0)
			continue;
		known += close_to_exact(&program);
		program_fused(&program, count, &counts);
		all += program.rows * program.C;
	}
	assert_true(counts.operations > 3 * counts.groups);
	assert_true(counts.folds > SEEDS / 8 && counts.held > SEEDS / 40);
	assert_true(known > 4 * all);           /* of some eight arrays each */
}

// test programs whose rows are looped
static void interpret_looped(void *arg, const KernelPlan *p)
{
	static KernelPlan looped;
	looped = *p;
	if (p->shape == HELD_ROW && !p->columns)
		plan_make_looped(&looped, &p->g);
	plan_interpret(&looped);
}

static void looped_programs_agree(void **state)
{
	for (uint64_t seed = SEEDS; seed < SEEDS + SEEDS / 4; seed++) {
		memset(&program, 0, sizeof program);
		program_draw(&program, seed);
		expect_agreement(&program, seed, interpret_looped, NULL);
	}
}

// test that compiled programs do what they say
typedef void KernelFunction(size_t first, size_t last, size_t rows,
	size_t slabs,
	void *const *at, const double *numbers, float (*round)(int, float));
enum { PROGRAMS = 60 };

typedef struct KernelBatch {
	FILE *f;                        /* or the kernels are run */
	void *library;
	int n;
} KernelBatch;

// write and run the kernels of a batch
static void write_kernel(void *arg, const KernelPlan *p)
{
	KernelBatch *b = arg;
	char name[32];
	snprintf(name, sizeof name, "k%d", b->n++);
	source_c(b->f, p, name);
	plan_interpret(p);
}

static float round_as(int type, float x)
{
	return round_to((Type)type, x);
}

// run a compiled kernel of a batch
static void run_kernel(void *arg, const KernelPlan *plan)
{
	KernelBatch *b = arg;
	char name[32];
	KernelPlan *p = need(malloc(sizeof *p));
	void *at[MOST_POINTERS];
	double numbers[MOST_NODES];
	Access columns[MOST_STORES];
	*p = *plan;
	size_t slabs = p->columns ? row_slabs(p->rows, p->C) : 0;
	for (int s = 0; s < p->g.nstores; s++)
		if (p->g.stores[s].columns) {
			columns[s] = p->g.stores[s].to;
			p->g.stores[s].to.at = need(malloc(slabs * p->C * sizeof(real)));
		}
	plan_pointers(p, at);
	plan_numbers(p, numbers);
	snprintf(name, sizeof name, "k%d", b->n++);
	KernelFunction *run;
	*(void **)&run = dlsym(b->library, name);
	run(0, p->shape == FLAT ? p->g.n : p->columns ? slabs : p->rows, p->rows,
		slabs, at, numbers, round_as);
	for (int s = 0; s < p->g.nstores; s++)
		if (p->g.stores[s].columns) {
			if (!p->g.stores[s].dead)
				cpu_add_slabs((Array){ columns[s].at, columns[s].type },
					(real *)p->g.stores[s].to.at, slabs, p->C);
			free(p->g.stores[s].to.at);
		}
	free(p);
}

// compile a batch of kernels
static void *load_batch(const char *source)
{
	char *complaint = NULL, path[64];
	Bytes b = c_compiler.compile(NULL, source, &complaint);
	if (b.at == NULL)
		fail_msg("%s", complaint);
	int fd = memfd_create("batch", 0);
	assert_true(write(fd, b.at, b.n) == (ssize_t)b.n);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	void *library = dlopen(path, RTLD_NOW);
	close(fd);
	free(b.at);
	assert_non_null(library);
	return library;
}

// test compiled programs
static void compiled_programs_agree(void **state)
{
	char *source = NULL;
	size_t n;
	KernelBatch writing = { .f = open_memstream(&source, &n) };
	source_c_prelude(writing.f);
	for (uint64_t seed = 0; seed < PROGRAMS; seed++) {
		memset(&program, 0, sizeof program);
		program_draw(&program, seed);
		program_fused(&program, write_kernel, &writing);
	}
	fclose(writing.f);
	KernelBatch running = { .library = load_batch(source) };
	for (uint64_t seed = 0; seed < PROGRAMS; seed++) {
		memset(&program, 0, sizeof program);
		program_draw(&program, seed);
		if (run_twice(&program, run_kernel, &running) >= 0) {
			program_print(&program);
			fail_msg("seed %llu: element %ld differs", (unsigned long long)seed,
				difference(&program));
		}
	}
	assert_int_equal(running.n, writing.n);
	dlclose(running.library);
	free(source);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(grouped_programs_agree),
		cmocka_unit_test(looped_programs_agree),
		cmocka_unit_test(compiled_programs_agree),
	};
	omp_set_num_threads(1);         /* tiny loops */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
