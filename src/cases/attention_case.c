#include "cases/attention_case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "ops/array.h"

// make and free a case of attention
static Array drawn_array(AttentionCase *a, const char *what, uint64_t seed,
	int which)
{
	size_t n = a->B * a->n * a->H * a->D;
	Array x = array_new(a->device, n, a->type, MEM_PARAMETER, what);
	a->ops->draw(a->device, x, n, 1, 4, seed, which, 0);
	return x;
}

static Array new_result(AttentionCase *a, Category category, const char *what)
{
	return array_new(a->device, a->B * a->n * a->H * a->D, a->type, category,
		what);
}

AttentionCase attention_case(Device *device, size_t B, size_t H, size_t n,
	size_t D, bool causal, Type type, uint64_t seed)
{
	AttentionCase a = { .device = device, .ops = ops_for(device), .B = B,
		.H = H, .n = n, .D = D, .causal = causal, .type = type };
	a.kernel = a.ops->attention_kernels;
	a.q = drawn_array(&a, "queries", seed, 1);
	a.k = drawn_array(&a, "keys", seed, 2);
	a.v = drawn_array(&a, "values", seed, 3);
	a.o = new_result(&a, MEM_ACTIVATION, "output");
	return a;
}

void attention_case_gradients(AttentionCase *a, uint64_t seed)
{
	a->dO = drawn_array(a, "d output", seed, 4);
	a->dq = new_result(a, MEM_GRADIENT, "d queries");
	a->dk = new_result(a, MEM_GRADIENT, "d keys");
	a->dv = new_result(a, MEM_GRADIENT, "d values");
}

// free a case of attention
void attention_case_free(AttentionCase *a)
{
	Array *const all[] = { &a->q, &a->k, &a->v, &a->o, &a->dO, &a->dq, &a->dk,
		&a->dv, &a->P, &a->L };
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		device_free(a->device, all[i]->at);
		all[i]->at = NULL;
	}
}

// compute attention by a kernel
static Heads heads(const AttentionCase *a, Array x)
{
	size_t row = a->H * a->D;
	return (Heads){ x, a->n * row, row, a->D };
}

static Attention attention_of(const AttentionCase *a)
{
	return (Attention){ .B = a->B, .H = a->H, .seqlen_q = a->n,
		.seqlen_k = a->n, .D = a->D, .group = 1, .scale = 1 / sqrt(a->D),
		.causal = a->causal,
		.q = heads(a, a->q), .k = heads(a, a->k), .v = heads(a, a->v),
		.o = heads(a, a->o), .L = a->L, .P = a->P };
}

void attention_case_forward(void *attention)
{
	AttentionCase *a = attention;
	size_t rows = a->B * a->H * a->n;
	if (a->kernel->saves_P && a->P.at == NULL)
		a->P = array_new(a->device, rows * a->n, a->type, MEM_ACTIVATION, "P");
	if (!a->kernel->saves_P && a->L.at == NULL)
		a->L = array_new(a->device, rows, TYPE_REAL, MEM_ACTIVATION,
			"logsumexp");
	a->kernel->forward(a->device, attention_of(a));
}

void attention_case_backward(void *attention)
{
	AttentionCase *a = attention;
	a->kernel->backward(a->device, attention_of(a),
		(AttentionGradient){ .d_o = heads(a, a->dO),
		.dq = heads(a, a->dq), .dk = heads(a, a->dk), .dv = heads(a, a->dv),
		.deterministic = a->deterministic });
}

// compute attention by a variant
const char *const attention_variants[] = {
	CHOICE_NAMES(ATTENTION_VARIANTS_OF) };

bool attention_case_take(AttentionCase *a, const char *variant)
{
	const char *dash = strchr(variant, '-');
	size_t length = dash ? (size_t)(dash - variant) : strlen(variant);
	a->deterministic = dash == NULL;
	a->kernel = NULL;
	bool any = strncmp(variant, "chosen", length) == 0;     /* the last of them */
	Attention asked = attention_of(a);
	for (const AttentionKernel *k = a->ops->attention_kernels; k->name; k++)
		if ((any ? !k->saves_P : strlen(k->name) == length
				&& memcmp(k->name, variant, length) == 0)
				&& k->supports(a->device, &asked, NULL))
			a->kernel = k;
	return a->kernel != NULL;
}

// read rows of a head to the host
/* the head that is checked */
typedef struct ReferenceHead {
	const AttentionCase *of;
	size_t batch, head;
	real *k, *v;                     /* (n, D) */
	double worst;                    /* difference of an element, as a fraction */
} ReferenceHead;

/* rows first ... of x on the host, (count, D) */
static real *read_rows(const ReferenceHead *h, Array x, size_t first,
	size_t count)
{
	const AttentionCase *a = h->of;
	size_t row = a->H * a->D, at = (h->batch * a->n + first) * row
		+ h->head * a->D, at_once = a->H == 1 ? count : 1;
	real *rows = need(malloc(count * a->D * sizeof *rows));
	for (size_t i = 0; i < count; i += at_once)
		array_read(a->device, rows + i * a->D, array_part(a->device, x,
			at + i * row), at_once * a->D);
	return rows;
}

static double dot(const real *x, const real *y, size_t n)
{
	double sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += (double)x[i] * y[i];
	return sum;
}

// expect rows to be what is wanted
/* size: a lower bound of what the tolerance is a fraction of */
static void expect_element(ReferenceHead *h, const real *got,
	const double *want, double size,
	double tolerance, const char *what, size_t row)
{
	size_t D = h->of->D;
	for (size_t d = 0; d < D; d++)
		size = fmax(size, fabs(want[d]));
	for (size_t d = 0; d < D; d++) {
		if (!(fabs(got[d] - want[d]) <= tolerance * size))
			die("%s of row %zu: element %zu is %g, not %g", what, row, d,
				(double)got[d], want[d]);
		h->worst = fmax(h->worst, fabs(got[d] - want[d]) / size);
	}
}

static void expect_row(ReferenceHead *h, Array got, const double *want,
	double size,
	double tolerance, const char *what, size_t row)
{
	real *x = read_rows(h, got, row, 1);
	expect_element(h, x, want, size, tolerance, what, row);
	free(x);
}

// check the gradients of a row
/* p: (keys), the probabilities of row i, whose query is q, (D) */
static void check_gradients(ReferenceHead *h, size_t i, const double *p,
	const real *q, double tolerance)
{
	const AttentionCase *a = h->of;
	size_t D = a->D, keys = a->causal ? i + 1 : a->n, n = a->n;
	double delta = 0, terms = 0, *want = need(calloc(3 * D, sizeof *want));
	real *dO = read_rows(h, a->dO, i, 1);
	// sum the gradient of the query over its keys
	for (size_t j = 0; j < keys; j++)
		delta += p[j] * dot(dO, h->v + j * D, D);
	for (size_t j = 0; j < keys; j++) {
		double dP = dot(dO, h->v + j * D, D),
			dS = p[j] * (dP - delta) / sqrt(D);
		terms += p[j] * (fabs(dP) + fabs(delta)) / sqrt(D);
		for (size_t d = 0; d < D; d++) {
			want[D + d] += dS * h->k[j * D + d];
			want[2 * D + d] = dS * q[d];
			want[d] = p[j] * dO[d];
		}
	}
	if (a->causal && i == n - 1) {  /* key i is seen by query i alone */
		expect_row(h, a->dk, want + 2 * D, 0.05, tolerance, "d keys", i);
		expect_row(h, a->dv, want, 0.05, tolerance, "d values", i);
	}
	expect_row(h, a->dq, want + D, terms, tolerance, "d queries", i);
	free(dO);
	free(want);
}

// check a row
static void check_row(ReferenceHead *h, size_t i, bool gradients,
	double tolerance)
{
	const AttentionCase *a = h->of;
	size_t D = a->D, keys = a->causal ? i + 1 : a->n;
	double *p = need(malloc(keys * sizeof *p)), most = -INFINITY, sum = 0,
		*want = need(calloc(D, sizeof *want));
	real *q = read_rows(h, a->q, i, 1);
	for (size_t j = 0; j < keys; j++) {
		p[j] = dot(q, h->k + j * D, D) / sqrt(D);
		most = fmax(most, p[j]);
	}
	for (size_t j = 0; j < keys; j++)
		sum += p[j] = exp(p[j] - most);
	for (size_t j = 0; j < keys; j++) {
		p[j] /= sum;
		for (size_t d = 0; d < D; d++)
			want[d] += p[j] * h->v[j * D + d];
	}
	expect_row(h, a->o, want, 0.05, tolerance, "output", i);
	if (gradients)
		check_gradients(h, i, p, q, tolerance);
	free(q);
	free(p);
	free(want);
}

// check three rows of one head
double attention_case_check(const AttentionCase *a, bool gradients,
	double tolerance)
{
	size_t rows[] = { 0, a->n / 3, a->n - 1 };
	ReferenceHead h = { a, a->B - 1, a->H / 2, NULL, NULL, 0 };
	h.k = read_rows(&h, a->k, 0, a->n);
	h.v = read_rows(&h, a->v, 0, a->n);
	for (int i = 0; i < 3; i++)
		check_row(&h, rows[i], gradients, tolerance);
	free(h.k);
	free(h.v);
	return h.worst;
}
