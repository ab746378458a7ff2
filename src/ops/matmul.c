#include "ops/matmul.h"

// reorder the batch so that few calls do it
static void swap_steps(size_t step[2])
{
	size_t first = step[0];
	step[0] = step[1];
	step[1] = first;
}

Matmul matmul_with_few_calls(Matmul s)
{
	s.outer = s.outer ? s.outer : 1;
	s.inner = s.inner ? s.inner : 1;
	if (s.step_a[0] == s.inner * s.step_a[1]
		&& s.step_b[0] == s.inner * s.step_b[1]
		&& s.step_c[0] == s.inner * s.step_c[1]) {
		s.inner *= s.outer;
		s.outer = 1;
	} else if (s.inner < s.outer) {
		size_t outer = s.outer;
		s.outer = s.inner;
		s.inner = outer;
		swap_steps(s.step_a);
		swap_steps(s.step_b);
		swap_steps(s.step_c);
	}
	return s;
}
