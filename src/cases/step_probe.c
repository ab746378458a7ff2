#include "cases/step_probe.h"

#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "ops/array.h"

// count the FLOPs of a part
const char *const step_parts[NPARTS_OF_STEP] = { CHOICE_NAMES(STEP_PARTS_OF) };

double step_part_flops(const Shape *s, size_t batch, int part)
{
	double C = s->d_model, F = s->d_ff, T = s->context, N = batch * T,
		L = s->layers;
	switch (part) {
	case GEMM_HEAD:      return 6 * N * C * s->vocab;
	case FLASH_FORWARD:  return 2 * L * N * T * C;
	case FLASH_BACKWARD: return 5 * L * N * T * C;
	case COPIES:         return 0;
	default:             return 2 * N * L * (4 * C * C + 3 * C * F);
	}
}

// declare the probe's buffers
/* (N, C): x, y, o, dy, d_o, dx; (N, 3C): qkv, dqkv; (N, 2F): gate_up, whose first
 * half is SwiGLU's output too; (N, F): dh; dw: as large as the largest weight */
enum { X, Y, O, DY, D_O, DX, QKV, DQKV, GATE_UP, DH, LOGITS, LSE, W_QKV, W_OUTPUT,
	W_GATE_UP, W_DOWN, W_HEAD, DW, DW_HEAD, NBUFFERS };

struct StepProbe {
	Device *device;
	const Ops *ops;
	Shape shape;
	size_t B, N, C, F, chunk;
	ProbeSettings settings;
	Array buffers[NBUFFERS];
	/* the work between stamps i and i + 1 belongs to part[i] */
	int nstamps;
	unsigned char part[NSTAMPS];
};

// make and free the probe
/* allocates a buffer; sd > 0: and draws it; 0: it is written before it is read */
static void make(StepProbe *p, int which, size_t n, Type type, double sd,
	uint64_t seed)
{
	Array a = array_new(p->device, n, type, MEM_TEMPORARY, "probe");
	if (sd > 0)
		p->ops->draw(p->device, a, n, sd, 4, seed, which, 0);
	p->buffers[which] = a;
}

// allocate the buffers of the probe
static void make_buffers(StepProbe *p, Type type, uint64_t seed)
{
	size_t N = p->N, C = p->C, F = p->F, V = p->shape.vocab;
	static const int narrow[] = { X, Y, O, DY, D_O, DX };
	for (int i = 0; i < 6; i++)
		make(p, narrow[i], N * C, type, narrow[i] == X || narrow[i] == DY, seed);
	make(p, QKV, 3 * N * C, type, 0, seed);
	make(p, DQKV, 3 * N * C, type, 0, seed);
	make(p, GATE_UP, 2 * N * F, type, 0, seed);
	make(p, DH, N * F, type, 0, seed);
	make(p, LOGITS, p->chunk * V, type, 0, seed);
	make(p, LSE, N * p->shape.heads, TYPE_REAL, 0, seed);
	make(p, W_QKV, 3 * C * C, type, 1 / sqrt(C), seed);
	make(p, W_OUTPUT, C * C, type, 1 / sqrt(C), seed);
	make(p, W_GATE_UP, 2 * F * C, type, 1 / sqrt(C), seed);
	make(p, W_DOWN, C * F, type, 1 / sqrt(F), seed);
	make(p, W_HEAD, V * C, type, 1 / sqrt(C), seed);
	make(p, DW, (2 * F > 3 * C ? 2 * F : 3 * C) * C, type, 0, seed);
	make(p, DW_HEAD, V * C, FP32, 0, seed);
}

// make and free a probe for a shape
StepProbe *step_probe(Device *d, const Shape *s, const ProbeSettings *settings)
{
	StepProbe *p = need(calloc(1, sizeof *p));
	size_t N = settings->batch * s->context, chunk = settings->chunk;
	*p = (StepProbe){ .device = d, .ops = ops_for(d), .shape = *s,
		.B = settings->batch, .N = N, .C = s->d_model, .F = s->d_ff,
		.chunk = chunk < N ? chunk : N, .settings = *settings };
	make_buffers(p, settings->type, settings->seed);
	return p;
}

void step_probe_free(StepProbe **p)
{
	for (int i = 0; i < NBUFFERS; i++)
		device_free((*p)->device, (*p)->buffers[i].at);
	free(*p);
	*p = NULL;
}

// queue the matmuls of a linear layer
/* work that is queued from now on belongs to this part */
static void begin_part(StepProbe *p, int part)
{
	if (p->nstamps + 1 >= NSTAMPS)
		die("a step has more parts than there are stamps");
	device_stamp(p->device, COMPUTE, p->nstamps);
	p->part[p->nstamps++] = (unsigned char)part;
}

// queue the three matmuls of a layer
static void forward(StepProbe *p, Array y, Array x, int w, size_t N,
	size_t rows, size_t columns)
{
	p->ops->matmul(p->device, y, x, p->buffers[w], (Matmul){ .m = N, .n = rows,
		.k = columns, .trans_b = true, .lda = columns, .ldb = columns,
		.ldc = rows, .alpha = 1 });
}

static void backward_input(StepProbe *p, Array dx, Array dy, int w, size_t N,
	size_t rows, size_t columns)
{
	p->ops->matmul(p->device, dx, dy, p->buffers[w], (Matmul){ .m = N,
		.n = columns, .k = rows, .lda = rows, .ldb = columns, .ldc = columns,
		.alpha = 1 });
}

static void backward_weight(StepProbe *p, Array dw, double beta, Array dy,
	Array x, size_t N, size_t rows, size_t columns)
{
	p->ops->matmul(p->device, dw, dy, x, (Matmul){ .m = rows, .n = columns,
		.k = N, .trans_a = true, .lda = rows, .ldb = columns, .ldc = columns,
		.alpha = 1, .beta = beta });
}

// copy as much as other operations move
/* stands for operations that read or write n elements */
static void copy(StepProbe *p, size_t n)
{
	size_t most = p->N * p->C;
	if (!p->settings.copies)
		return;
	begin_part(p, COPIES);
	for (n /= 2; n > 0; n -= n < most ? n : most)
		p->ops->cast(p->device, p->buffers[D_O], p->buffers[DY],
			n < most ? n : most);
}

static Heads heads_of(const StepProbe *p, int buffer, size_t part, size_t width)
{
	Array x = array_part(p->device, p->buffers[buffer], part * p->C);
	return (Heads){ x, p->shape.context * width, width,
		p->C / p->shape.heads };
}

static Attention attention(const StepProbe *p)
{
	size_t C = p->C, T = p->shape.context, H = p->shape.heads, D = C / H;
	return (Attention){ .B = p->B, .H = H, .seqlen_q = T, .seqlen_k = T,
		.D = D, .group = 1, .scale = 1 / sqrt(D), .causal = true,
		.q = heads_of(p, QKV, 0, 3 * C), .k = heads_of(p, QKV, 1, 3 * C),
		.v = heads_of(p, QKV, 2, 3 * C), .o = heads_of(p, O, 0, C),
		.L = p->buffers[LSE] };
}

// queue a block forward
static void block_forward(StepProbe *p)
{
	Array *b = p->buffers;
	size_t N = p->N, C = p->C, F = p->F;
	begin_part(p, GEMM_FORWARD);
	forward(p, b[QKV], b[X], W_QKV, N, 3 * C, C);
	begin_part(p, FLASH_FORWARD);
	p->ops->attention_forward(p->device, attention(p));
	begin_part(p, GEMM_FORWARD);
	forward(p, b[Y], b[O], W_OUTPUT, N, C, C);
	forward(p, b[GATE_UP], b[X], W_GATE_UP, N, 2 * F, C);
	forward(p, b[Y], b[GATE_UP], W_DOWN, N, C, F);
	copy(p, N * (12 * C + 3 * F));
}

// queue a block backward
static void block_backward(StepProbe *p)
{
	Array *b = p->buffers;
	size_t N = p->N, C = p->C, F = p->F;
	begin_part(p, GEMM_INPUT);
	backward_input(p, b[DH], b[DY], W_DOWN, N, C, F);
	backward_input(p, b[DX], b[GATE_UP], W_GATE_UP, N, 2 * F, C);
	begin_part(p, GEMM_WEIGHT);
	backward_weight(p, b[DW], 0, b[DY], b[DH], N, C, F);
	backward_weight(p, b[DW], 0, b[GATE_UP], b[X], N, 2 * F, C);
	begin_part(p, GEMM_INPUT);
	backward_input(p, b[D_O], b[DY], W_OUTPUT, N, C, C);
	begin_part(p, FLASH_BACKWARD);
	p->ops->attention_backward(p->device, attention(p), (AttentionGradient){
		.d_o = heads_of(p, D_O, 0, C), .dq = heads_of(p, DQKV, 0, 3 * C),
		.dk = heads_of(p, DQKV, 1, 3 * C), .dv = heads_of(p, DQKV, 2, 3 * C),
		.deterministic = p->settings.deterministic });
	begin_part(p, GEMM_INPUT);
	backward_input(p, b[DX], b[DQKV], W_QKV, N, 3 * C, C);
	begin_part(p, GEMM_WEIGHT);
	backward_weight(p, b[DW], 0, b[DY], b[O], N, C, C);
	backward_weight(p, b[DW], 0, b[DQKV], b[X], N, 3 * C, C);
	copy(p, N * (10 * C + 6 * F));
}

// queue the head by chunks
static void head(StepProbe *p)
{
	Array *b = p->buffers;
	size_t C = p->C, V = p->shape.vocab;
	begin_part(p, GEMM_HEAD);
	for (size_t first = 0; first < p->N; first += p->chunk) {
		size_t n = p->N - first < p->chunk ? p->N - first : p->chunk;
		Array x = array_part(p->device, b[X], first * C),
			dx = array_part(p->device, b[DX], first * C);
		forward(p, b[LOGITS], x, W_HEAD, n, V, C);
		backward_input(p, dx, b[LOGITS], W_HEAD, n, V, C);
		backward_weight(p, b[DW_HEAD], first > 0, b[LOGITS], x, n, V, C);
	}
	copy(p, 3 * p->N * V);
}

// queue a step, and read its times
double step_probe_run(StepProbe *p, double ms[NPARTS_OF_STEP])
{
	p->nstamps = 0;
	for (long layer = 0; layer < p->shape.layers; layer++)
		block_forward(p);
	head(p);
	for (long layer = 0; layer < p->shape.layers; layer++)
		block_backward(p);
	copy(p, 8 * shape_count(&p->shape) / p->settings.ranks);
	device_stamp(p->device, COMPUTE, p->nstamps);
	for (int part = 0; part < NPARTS_OF_STEP; part++)
		ms[part] = 0;
	for (int i = 0; i < p->nstamps; i++)
		ms[p->part[i]] += device_stamped_ms(p->device, i, i + 1);
	return device_stamped_ms(p->device, 0, p->nstamps);
}

// check what the probe computed
static void check_element(const StepProbe *p, size_t i, size_t j)
{
	size_t F = p->F, C = p->C;
	real *h = need(malloc(F * sizeof *h)), *w = need(malloc(F * sizeof *w)), y;
	array_read(p->device, h, array_part(p->device, p->buffers[GATE_UP], i * F),
		F);
	array_read(p->device, w, array_part(p->device, p->buffers[W_DOWN], j * F),
		F);
	array_read(p->device, &y, array_part(p->device, p->buffers[Y], i * C + j), 1);
	double sum = 0;
	for (size_t k = 0; k < F; k++)
		sum += (double)h[k] * w[k];
	double allowed = 4 * type_spacing(p->buffers[Y].type, 1) + 1e-3;
	if (!(fabs(y - sum) <= allowed))
		die("element %zu, %zu of a matmul is %g, not %g", i, j, (double)y, sum);
	free(h);
	free(w);
}

// check that results are finite, and some elements
void step_probe_check(const StepProbe *p)
{
	const struct { int which; size_t n; } results[] = { { DX, p->N * p->C },
		{ DW, 3 * p->C * p->C }, { DW_HEAD, p->shape.vocab * p->C } };
	int32_t count = 0,
		*at = device_alloc(p->device, sizeof *at, MEM_TEMPORARY, "count");
	device_upload(p->device, at, &count, sizeof count);
	for (int i = 0; i < 3; i++)
		p->ops->count_nonfinite(p->device, at, p->buffers[results[i].which],
			results[i].n);
	device_download(p->device, &count, at, sizeof count);
	device_free(p->device, at);
	if (count != 0)
		die("%d results of a step's matmuls are not finite", count);
	check_element(p, 0, 0);
	check_element(p, p->N / 2, p->C / 3);
	check_element(p, p->N - 1, p->C - 1);
}
