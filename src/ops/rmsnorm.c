#include "ops/rmsnorm.h"

#include <math.h>

#include "ops/norm_plan.h"
#include "ops/ops.h"
#include "ops/outside_calls.h"

// refuse norms that are not supported
static Type type_of(const RmsnormShape *s)
{
	static const Type types[] = { TYPE_REAL, BF16, FP16 };
	return types[s->type];
}

static bool takes(const RmsnormShape *s, bool backward)
{
	const int pack = s->type == RMSNORM_FP32 ? 4 : 8;
	return s->version >= 0 && s->version < NORM_VERSIONS
		&& norm_plan(s->version, backward, s->width, pack).threads
		&& norm_plan(s->version, backward, s->width, 1).threads;
}

static int32_t refusal(const RmsnormShape *s, bool backward,
	const void *const *arrays, int n)
{
	if (s == NULL)
		return RMSNORM_NULL;
	if (s->rows < 1 || s->rows > INT32_MAX || s->width < 1
		|| s->x_row < s->width || s->y_row < s->width
		|| s->width > INT32_MAX || !isfinite(s->eps) || s->eps < 0)
		return RMSNORM_BAD_SHAPE;
	if (s->type < RMSNORM_FP32 || s->type > RMSNORM_FP16
		|| (!s->on_gpu && s->type != RMSNORM_FP32))
		return RMSNORM_BAD_TYPE;
	if (!takes(s, backward))
		return RMSNORM_BAD_VERSION;
	for (int i = 0; i < n; i++)
		if (arrays[i] == NULL)
			return RMSNORM_NULL;
	return RMSNORM_OK;
}

static const int32_t status_of[] = { [CALLER_OK] = RMSNORM_OK,
	[CALLER_NO_GPU] = RMSNORM_NO_GPU, [CALLER_NO_MEMORY] = RMSNORM_NO_MEMORY,
	[CALLER_CAPTURES] = RMSNORM_CAPTURES };

static int32_t enter(Caller *c, const RmsnormShape *s, bool backward,
	const void *const *arrays, int n)
{
	int32_t status = refusal(s, backward, arrays, n);
	if (status != RMSNORM_OK)
		return status;
	return status_of[caller_enter(c, s->on_gpu, s->gpu)];
}

static CallerStatus queue(Caller *c, const RmsnormShape *s, size_t nbytes)
{
	return caller_queue(c, s->stream, (CallerScratch){ s->scratch,
		s->scratch_owner }, nbytes);
}

// pass a norm's rows on, forward
int32_t rmsnorm_forward(const RmsnormShape *s, void *y, float *rho,
	const void *x, const float *g)
{
	const void *const all[] = { y, x, g };
	Caller c;
	int32_t status = enter(&c, s, false, all, 3);
	if (status != RMSNORM_OK)
		return status;
	Type type = type_of(s);
	queue(&c, s, 0);
	ops_for(c.device)->fused_rmsnorm_forward(c.device, (NormForward){
		.y = { y, type }, .rho = { rho, TYPE_REAL }, .x = { (void *)x, type },
		.g = { (void *)g, TYPE_REAL }, .x_row = s->x_row, .y_row = s->y_row,
		.eps = s->eps, .version = s->version }, s->rows, s->width);
	caller_leave(&c);
	return RMSNORM_OK;
}

// pass a norm's rows on, backward
int32_t rmsnorm_backward(const RmsnormShape *s, void *dx, float *dg,
	const void *dy, const void *x, const float *g, const float *rho)
{
	const void *const all[] = { dx, dg, dy, x, g };
	Caller c;
	int32_t status = enter(&c, s, true, all, 5);
	if (status != RMSNORM_OK)
		return status;
	const Ops *o = ops_for(c.device);
	Type type = type_of(s);
	const NormBackward b = { .dsum = { dx, type }, .fresh = true,
		.dg = { dg, TYPE_REAL }, .dy = { (void *)dy, type },
		.sum = { (void *)x, type }, .g = { (void *)g, TYPE_REAL },
		.rho = { (void *)rho, TYPE_REAL }, .eps = s->eps, .x_row = s->x_row,
		.dy_row = s->y_row, .version = s->version };
	CallerStatus ready = queue(&c, s, o->rmsnorm_scratch(c.device, &b, s->rows,
		s->width));
	if (ready == CALLER_OK)
		o->fused_rmsnorm_backward(c.device, b, s->rows, s->width);
	caller_leave(&c);
	return status_of[ready];
}

// say what a norm's status means
const char *rmsnorm_status(int32_t status)
{
	static const char *const texts[] = {
		CALLER_TEXTS(RMSNORM),
		[RMSNORM_BAD_SHAPE] = "bad sizes, or eps is negative or not finite",
		[RMSNORM_BAD_VERSION] = "there is no such kernel for rows of this width",
	};
	return caller_text(texts, sizeof texts / sizeof *texts, status);
}
