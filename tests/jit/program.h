/* program.h: random programs of elementary operations */
#ifndef TESTS_JIT_PROGRAM_H
#define TESTS_JIT_PROGRAM_H

#include "jit/kernel_plan.h"

enum { MOST_STEPS = 40, POOL = 1 << 14 };

/* one line of a program: an operation, or the freeing of n elements at `at` */
typedef struct Line {
	bool frees;
	Elementary e;
	real *at;
	size_t n;
} Line;

typedef struct Program {
	size_t rows, C;
	int n;
	Line line[MOST_STEPS];
	bool left_out[MOST_STEPS];      /* lines that are not run */
	int32_t targets[64];
	real first[POOL], pool[POOL];   /* memory at the beginning, and now */
	bool dead[POOL];                /* elements that were freed */
} Program;

void program_draw(Program *p, uint64_t seed);
void program_print(const Program *p);
/* runs the program one operation at a time */
void program_eager(Program *p);
/* runs it in double precision: sets each element's value and a bound on the
 * error that program_eager may make; an infinite bound allows anything */
void program_exact(const Program *p, double *value, double *error);
/* runs it in groups: calls run(arg, plan) for each group */
void program_fused(Program *p, void (*run)(void *arg, const KernelPlan *plan),
	void *arg);
/* runs a plan element by element, as its kernel would; a value that the
 * kernel would not have at hand is NaN */
void plan_interpret(const KernelPlan *p);

#endif
