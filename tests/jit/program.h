/* program.h: random programs of elementary operations */
#ifndef TESTS_JIT_PROGRAM_H
#define TESTS_JIT_PROGRAM_H

#include "jit/plan.h"

enum { MOST_STEPS = 40, POOL = 1 << 14 };

/* an operation, or the end of an array */
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
	bool left_out[MOST_STEPS];      /* while a failure is made smaller */
	int32_t targets[64];
	real first[POOL], pool[POOL];   /* memory at the beginning; memory */
	bool dead[POOL];                /* was freed */
} Program;

void program_draw(Program *p, uint64_t seed);
void program_print(const Program *p);
/* one operation at a time */
void program_eager(Program *p);
/* in double precision: the value of each element, and a bound on the error that
 * program_eager may make; infinite: it may be anything */
void program_exact(const Program *p, double *value, double *error);
/* in groups: calls run(arg, plan) for each of them */
void program_fused(Program *p, void (*run)(void *arg, const Plan *plan),
	void *arg);
/* a plan element by element, as its kernel would do it; what a kernel would not
 * have at hand is NaN */
void plan_interpret(const Plan *p);

#endif
