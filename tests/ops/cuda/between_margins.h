/* between_margins.h: the arrays of a problem of attention on the GPU */
#ifndef TESTS_OPS_CUDA_BETWEEN_MARGINS_H
#define TESTS_OPS_CUDA_BETWEEN_MARGINS_H

#include "tests/ops/attention_reference.h"
#include "tests/ops/cuda/both.h"

// put arrays on the GPU between margins
typedef struct OnGpu {
	Array whole[ARRAYS + 1], at[ARRAYS + 1];    /* with margins; the last: L */
	Array angles[2];
	size_t n[ARRAYS + 1];
} OnGpu;

/* poison, but for the inputs */
static void upload_between_margins(OnGpu *g, int a, const Array *host)
{
	Array image = poisoned(g->n[a] + 2 * MARGIN);
	if (a < INPUTS)
		memcpy(reals(image) + MARGIN, host[a].at, g->n[a] * sizeof(real));
	array_write(gpu, g->whole[a], image.at, g->n[a] + 2 * MARGIN);
}

static OnGpu problem_on_gpu(const Problem *p, Type type)
{
	OnGpu g;
	for (int a = 0; a <= ARRAYS; a++) {
		Type stored = a < ARRAYS ? type : FP32;
		g.n[a] = a < ARRAYS ? length_of(p, a) : p->B * p->H * p->seqlen_q;
		g.whole[a] = array_new(gpu, g.n[a] + 2 * MARGIN, stored, MEM_TEMPORARY,
			"test");
		g.at[a] = array_part(gpu, g.whole[a], MARGIN);
		held[a] = g.whole[a].at;
	}
	Array angles[2];
	fill_angles(p, angles);
	size_t n = angles_of(p);
	g.angles[0] = array_new(gpu, 2 * n + 1, FP32, MEM_TEMPORARY, "test");
	g.angles[1] = array_part(gpu, g.angles[0], n);
	held[ARRAYS + 1] = g.angles[0].at;
	for (int part = 0; part < 2; part++)
		array_write(gpu, g.angles[part], angles[part].at, n);
	return g;
}

/* what became of it; the margins must be poison as before */
static Array download_checked(const OnGpu *g, int a)
{
	Array image = poisoned(g->n[a] + 2 * MARGIN), part = poisoned(g->n[a]);
	array_read(gpu, image.at, g->whole[a], g->n[a] + 2 * MARGIN);
	for (size_t i = 0; i < MARGIN; i++)
		if (!isnan(reals(image)[i])
			|| !isnan(reals(image)[MARGIN + g->n[a] + i]))
			fail_msg("array %d: its margin was written", a);
	memcpy(part.at, reals(image) + MARGIN, g->n[a] * sizeof(real));
	return part;
}
#endif
