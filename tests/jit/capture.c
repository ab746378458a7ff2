#include "tests/jit/capture.h"

#include <assert.h>
#include <stdlib.h>

#include "ops/formulas.h"

// close a captured group
static void close_capture(Deferral *self, const char *why)
{
	Capture *c = (Capture *)self;
	if (c->open.noperations == 0)
		return;
	plan_make(&c->last, &c->open);
	c->why = c->groups == 0 ? why : c->why;
	c->groups += c->last.live != 0;
	if (c->see && c->last.live)
		c->see(c, &c->last);
	fusion_init(&c->open, type_size, FP32);
}

// capture an operation
static void take(Deferral *self, const Elementary *e)
{
	Capture *c = (Capture *)self;
	const char *why = fusion_join(&c->open, e);
	if (why == NULL)
		return;
	close_capture(self, why);
	if (fusion_join(&c->open, e))
		c->groups += 1000;              /* it cannot be joined at all */
}

// give out scratch memory that is nowhere
static void *new_scratch(Deferral *self, size_t nbytes, const char *what)
{
	Capture *c = (Capture *)self;
	assert(c->n < 64);
	c->nbytes[c->n] = nbytes;
	c->scratch[c->n++] = c->next;
	c->next += nbytes + 64 - nbytes % 64;
	return c->scratch[c->n - 1];
}

// notice freed scratch memory
static bool frees(Deferral *self, void *p, size_t nbytes)
{
	Capture *c = (Capture *)self;
	for (int k = 0; k < c->n; k++)
		if (c->scratch[k] == p)
			fusion_drop(&c->open, p, c->nbytes[k]);
	return true;
}

// open a device that captures
void capture_begin(Capture *c, void (*see)(Capture *c, const KernelPlan *plan))
{
	*c = (Capture){ .deferral = { close_capture, frees, take, new_scratch,
		NULL }, .device = device_open("cpu"), .see = see,
		.next = (char *)(UINT64_C(1) << 60) };
	c->backend = *c->device->backend;
	c->backend.width = type_size;
	c->device->backend = &c->backend;
	c->device->deferral = &c->deferral;
	fusion_init(&c->open, type_size, FP32);
}

void capture_flush(Capture *c)
{
	close_capture(&c->deferral, "the test ends");
}

void capture_end(Capture *c)
{
	c->device->deferral = NULL;
	device_close(&c->device);
}

Array capture_array(Capture *c, size_t n, Type type)
{
	Array a = { c->next, type };
	c->next += n * type_size(type) + 64 - n * type_size(type) % 64;
	return a;
}

// record an operation of the model
const char *const recorded_names[NRECORDED] = { CHOICE_NAMES(RECORDED_OF) };

static void record_norm(Capture *c, bool backward, size_t rows, size_t C,
	Type type)
{
	size_t n = rows * C;
	Array x = capture_array(c, n, FP32), y = capture_array(c, n, type),
		dx = capture_array(c, n, FP32), g = capture_array(c, C, FP32),
		dg = capture_array(c, C, FP32), rho = capture_array(c, rows, FP32);
	if (backward)
		formula_rmsnorm_backward(c->device, dx, dg, y, x, g, rho, rows, C);
	else
		formula_rmsnorm_forward(c->device, y, rho, x, g, rows, C, 1e-5);
}

static void record_loss(Capture *c, size_t rows, size_t C, Type type)
{
	Array z = capture_array(c, rows * C, type),
		dz = capture_array(c, rows * C, type),
		losses = capture_array(c, rows, FP32), lse = capture_array(c, rows, FP32);
	int32_t *targets = capture_array(c, rows, FP32).at;
	formula_cross_entropy_forward(c->device, losses, lse, z, targets, rows, C);
	formula_cross_entropy_backward(c->device, dz, z, lse, targets, 0.1, rows, C);
}

// record an operation by its number
void record(Capture *c, int what, size_t rows, size_t C, Type type)
{
	size_t n = rows * C;
	Array a[5];
	Device *d = c->device;
	for (int k = 0; k < 5; k++)
		a[k] = capture_array(c, n, what == ADAMW ? FP32 : type);
	AdamWStep *step = capture_array(c, 64, FP32).at;
	int32_t *skip = capture_array(c, 64, FP32).at;
	switch (what) {
	case NORM_FORWARD: record_norm(c, false, rows, C, type); break;
	case NORM_BACKWARD: record_norm(c, true, rows, C, type); break;
	case SOFTMAX_FORWARD:
		formula_softmax_forward(d, a[0], a[0], 0.5, rows / C, C);
		break;
	case SOFTMAX_BACKWARD:
		formula_softmax_backward(d, a[0], a[0], a[1], 0.5, rows / C, C);
		break;
	case SWIGLU_FORWARD: formula_swiglu_forward(d, a[0], a[1], a[2], n); break;
	case SWIGLU_BACKWARD:
		formula_swiglu_backward(d, a[0], a[3], a[0], a[1], a[2], n);
		break;
	case ROTATION: formula_rope(d, a[0], a[0], capture_array(c, n, FP32),
		capture_array(c, n, FP32), rows / 64, 4, 16, C, 1); break;
	case LOSS: record_loss(c, rows, C, type); break;
	case ADAMW:
		formula_adamw(d, a[0], (Array){ NULL, FP32 }, a[1], a[2], a[3], n, step,
			skip);
		break;
	}
}
