/* FlashAttention on the GPU against its formulas */
#include "tests/ops/cuda/between_margins.h"

static const Type types[] = { FP32, TF32, BF16, FP16 };
static const double bounds[] = { 4e-6, 2e-3, 8e-3, 1.5e-3 };
static const double scores[] = { 2e-6, 1e-3, 2e-6, 2e-6 };  /* of scores */
static const double stored_scores[] = { 4e-6, 1e-3, 8e-3, 1e-3 }; /* in memory */
static const size_t widths[] = { 16, 32, 64, 80, 96, 128, 256 };
static const size_t lengths[][2] = { { 1, 1 }, { 63, 65 }, { 64, 64 },
	{ 129, 191 }, { 193, 64 }, { 17, 300 }, { 37, 37 }, { 1000, 1000 } };
enum { NTYPES_HERE = 4, NWIDTHS = 7, NLENGTHS = 8 };

static Array no_angles[2] = { { NULL, FP32 }, { NULL, FP32 } };
static Array on_gpu_of_rows[2][ARRAYS + 1];     /* packed sequences, twice; L */

// run every kernel that supports a problem
static Array poisoned_P(const Problem *p, Type type)
{
	size_t n = p->B * p->H * p->seqlen_q * p->seqlen_k;
	Array P = array_new(gpu, n, type, MEM_TEMPORARY, "P");
	array_write(gpu, P, poisoned(n).at, n);
	return P;
}

static void run_attention(const AttentionKernel *kernel, const Problem *p,
	OnGpu *g, const Array *host, Array *got, bool deterministic)
{
	for (int a = 0; a <= ARRAYS; a++)
		upload_between_margins(g, a, host);
	Attention a = attention_on(p, g->at, g->at[ARRAYS]);
	AttentionGradient gradient = gradient_on(p, g->at, g->angles);
	gradient.deterministic = deterministic;
	if (kernel->saves_P)
		a.P = poisoned_P(p, p->gap ? a.q.x.type : FP32);
	kernel->forward(gpu, a);
	kernel->backward(gpu, a, gradient);
	device_free(gpu, a.P.at);
	for (int i = 0; i <= ARRAYS; i++)
		got[i] = download_checked(g, i);
}

/* a kernel that saves P has no L */
static void expect_all(const char *label, const AttentionKernel *kernel,
	const Problem *p, const Reference *r, const Array *got, double bound,
	double score)
{
	Array L = got[ARRAYS];
	for (size_t i = 0; kernel->saves_P && i < p->B * p->H * p->seqlen_q; i++) {
		assert_true(isnan(reals(L)[i]));
		reals(L)[i] = (real)r->L[i];
	}
	expect_attention(label, p, r, got, L, bound, score);
}

/* does a kernel that splits fp32 have lost keys and others in one tile? Then the
 * others are too small for the tile's unit. Naive attention makes NaN of them */
static bool loses_more(const AttentionKernel *kernel, const Problem *p)
{
	return (kernel->saves_P && p->lost > 0)
		|| (strcmp(kernel->name, "split_fp16") == 0 && p->lost % 64 > 0
		&& p->lost < p->seqlen_k);
}

static void follow_the_formulas(const Problem *p, int t)
{
	Type type = types[t];
	Array host[ARRAYS], got[ARRAYS + 1], again[ARRAYS + 1];
	Reference r = reference_of(p, type, host);
	OnGpu g = problem_on_gpu(p, type);
	char label[200];
	int end = snprintf(label, sizeof label, "%s, %zu of %zu x %zu, %zu wide, %s, "
		"gap %zu", type_names[type], p->B * p->H, p->seqlen_q, p->seqlen_k,
		p->D, p->causal ? "causal" : "full", p->gap);
	Attention asked = attention_on(p, g.at, g.at[ARRAYS]);
	AttentionGradient gradient = gradient_on(p, g.at, g.angles);
	bool supported = false;
	for (const AttentionKernel *kernel = ops_for(gpu)->attention_kernels;
		kernel->name; kernel++) {
		if (!kernel->supports(gpu, &asked, &gradient))
			continue;
		supported = true;
		if (loses_more(kernel, p))
			continue;
		snprintf(label + end, sizeof label - end, ", %s", kernel->name);
		double score = kernel->saves_P ? stored_scores[t] : scores[t];
		run_attention(kernel, p, &g, host, got, false);
		expect_all(label, kernel, p, &r, got, bounds[t], score);
		run_attention(kernel, p, &g, host, got, true);
		run_attention(kernel, p, &g, host, again, true);
		expect_all(label, kernel, p, &r, got, bounds[t], score);
		for (int a = 0; a < ARRAYS + !kernel->saves_P; a++)
			expect_same(label, again[a], got[a], g.n[a]);
	}
	assert_true(supported);
	assert_int_equal(release_both(NULL), 0);
}

// test: problems of all kinds
static void attention_follows_the_formulas(void **state)
{
	for (int i = 0; i < NTYPES_HERE * NWIDTHS * NLENGTHS * 2; i++) {
		size_t t = i % NTYPES_HERE, l = i / NTYPES_HERE % NLENGTHS,
			w = i / NTYPES_HERE / NLENGTHS % NWIDTHS;
		bool causal = i / NTYPES_HERE / NLENGTHS / NWIDTHS;
		static const size_t gaps[] = { 0, 8, 3 };
		Problem p = { .B = 2, .H = 1 + l % 2, .seqlen_q = lengths[l][0],
			.seqlen_k = lengths[l][1], .D = widths[w], .causal = causal,
			.size = 1, .gap = gaps[(l + w) % 3], .heads_first = w % 2,
			.rotated = (l + t) % 2 };
		if (p.seqlen_k < 1000 || (p.D == 64 && getenv("QUICK") == NULL))
			follow_the_formulas(&p, (int)t);
	}
}

/* two or four heads share one of K and V, and masks are aligned at the end */
static void shapes_of_decoders_follow_the_formulas(void **state)
{
	static const Problem shapes[] = {
		{ 2, 4, 129, 191, .group = 2 }, { 1, 8, 300, 300, .group = 4 },
		{ 2, 4, 129, 191, .causal = true, .group = 2, .gap = 8 },
		{ 2, 2, 130, 400, .causal = true, .bottom_right = true },
		{ 1, 4, 1, 300, .causal = true, .group = 4, .bottom_right = true },
		{ 1, 4, 193, 257, .causal = true, .group = 2, .bottom_right = true,
			.heads_first = true, .gap = 3 },
		{ 2, 2, 300, 130, .causal = true, .bottom_right = true } };
	for (int i = 0; i < 7 * NTYPES_HERE * NWIDTHS; i++) {
		Problem p = shapes[i / NTYPES_HERE / NWIDTHS];
		p.D = widths[i / NTYPES_HERE % NWIDTHS];
		p.size = 1, p.rotated = i % 2;
		if (p.D >= 64 || getenv("QUICK") == NULL)
			follow_the_formulas(&p, i % NTYPES_HERE);
	}
}

/* rows of sequence b, without what lies between, are zeros */
static void clear_sequence(const Problem *p, Array x, int which, int b)
{
	const int *starts = of_keys(which) ? starts_k : starts_q;
	const size_t width = heads_in(p, which) * p->D;
	for (int row = starts[b]; row < starts[b + 1]; row++)
		for (size_t i = 0; i < width; i++)
			reals(x)[row * heads_of(p, which).row + i] = 0;
}

/* what the kernel stored for packed sequences, and for each alone, is the same */
static void expect_packed(const AttentionKernel *kernel, const Problem *p,
	const int *starts)
{
	Array *at = on_gpu_of_rows[1], *alone = on_gpu_of_rows[0], part[ARRAYS];
	for (int i = 0; i < 2; i++)
		for (int o = O; o < ARRAYS; o++)
			array_write(gpu, on_gpu_of_rows[i][o], poisoned(length_of(p, o)).at,
				length_of(p, o));
	Attention a = packed_on(p, at, at[ARRAYS], starts, starts + SEQUENCES + 1);
	kernel->forward(gpu, a);
	kernel->backward(gpu, a, gradient_on(p, at, no_angles));
	for (int b = 0; b < SEQUENCES; b++) {
		Problem one = one_of_packed(gpu, p, b, alone, part);
		Attention own = attention_on(&one, part, array_part(gpu, alone[ARRAYS],
			p->H * starts_q[b]));
		if (one.seqlen_q == 0 || one.seqlen_k == 0)
			continue;
		kernel->forward(gpu, own);
		kernel->backward(gpu, own, gradient_on(&one, part, no_angles));
	}
	for (int o = O; o < ARRAYS; o++) {
		Array got = poisoned(length_of(p, o)), want = poisoned(length_of(p, o));
		array_read(gpu, got.at, at[o], length_of(p, o));
		array_read(gpu, want.at, alone[o], length_of(p, o));
		clear_sequence(p, want, o, of_keys(o) ? 1 : 2);
		expect_same(array_names[o], got, want, length_of(p, o));
	}
}

/* twice what a problem needs, in few blocks, with the inputs */
static void place_rows(const Problem *p, Type type)
{
	size_t n = 0, offset[ARRAYS];
	Array host[ARRAYS];
	for (int a = 0; a < ARRAYS; a++)
		offset[a] = n, n += (length_of(p, a) + 63) / 64 * 64;
	reference_of(p, type, host);
	for (int i = 0; i < 2; i++) {
		Array all = array_new(gpu, n, type, MEM_TEMPORARY, "test"),
			L = array_new(gpu, p->H * p->seqlen_q, FP32, MEM_TEMPORARY, "test");
		held[1 + 2 * i] = all.at, held[2 + 2 * i] = L.at;
		for (int a = 0; a < ARRAYS; a++)
			on_gpu_of_rows[i][a] = array_part(gpu, all, offset[a]);
		for (int a = 0; a < INPUTS; a++)
			array_write(gpu, on_gpu_of_rows[i][a], host[a].at, length_of(p, a));
		on_gpu_of_rows[i][ARRAYS] = L;
	}
}

static void try_packed(const Problem *p, Type type)
{
	int both[2 * (SEQUENCES + 1)], tried = 0;
	memcpy(both, starts_q, sizeof starts_q);
	memcpy(both + SEQUENCES + 1, starts_k, sizeof starts_k);
	int *starts = held[0] = device_alloc(gpu, sizeof both, MEM_TEMPORARY, "test");
	device_upload(gpu, starts, both, sizeof both);
	place_rows(p, type);
	Attention a = packed_on(p, on_gpu_of_rows[1], on_gpu_of_rows[1][ARRAYS],
		starts, starts + SEQUENCES + 1);
	AttentionGradient g = gradient_on(p, on_gpu_of_rows[1], no_angles);
	for (const AttentionKernel *kernel = ops_for(gpu)->attention_kernels;
		kernel->name; kernel++)
		if (kernel->supports(gpu, &a, &g)) {
			tried++;
			expect_packed(kernel, p, starts);
		}
	assert_true(tried > 0);
	assert_int_equal(release_both(NULL), 0);
}

static void packed_sequences_are_as_alone(void **state)
{
	for (int i = 0; i < 3 * NTYPES_HERE * NWIDTHS; i++) {
		const int mask = i / NTYPES_HERE / NWIDTHS;
		const Problem p = packed_rows((Problem){ .H = 4, .size = 1, .group = 2,
			.D = widths[i / NTYPES_HERE % NWIDTHS], .gap = i % 2 * 8,
			.causal = mask > 0, .bottom_right = mask > 1 });
		try_packed(&p, types[i % NTYPES_HERE]);
	}
}

static void large_scores_do_no_harm(void **state)
{
	for (int t = 0; t < NTYPES_HERE; t++) {
		const Problem p = { .B = 1, .H = 2, .seqlen_q = 130, .seqlen_k = 130,
			.D = 64, .causal = true, .size = 100 };
		follow_the_formulas(&p, t);
	}
}

static void lost_keys_count_nothing(void **state)
{
	static const Problem lost[] = {
		{ 1, 2, 40, 200, .lost = 64 }, { 1, 2, 40, 200, .lost = 200 },
		{ 1, 1, 5, 200, .lost = 199 },
		{ 2, 2, 70, 70, .causal = true, .lost = 5 },
		{ 1, 1, 131, 130, .causal = true, .lost = 129 },
		{ 1, 1, 330, 330, .causal = true, .lost = 128 } };
	for (int i = 0; i < 6 * NTYPES_HERE * NWIDTHS; i++) {
		int t = i % NTYPES_HERE;
		Problem p = lost[i / NTYPES_HERE / NWIDTHS];
		p.D = widths[i / NTYPES_HERE % NWIDTHS];
		p.size = 1;
		p.far = types[t] == FP16 ? -110 : -3e38;
		follow_the_formulas(&p, t);
	}
}

static void expect_finite(const char *label, Array x, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!isfinite(reals(x)[i]))
			fail_msg("%s: element %zu is %g", label, i, (double)reals(x)[i]);
}

static void expect_finite_results(const Problem *p, Type type)
{
	Array host[ARRAYS], got[ARRAYS + 1];
	OnGpu g = problem_on_gpu(p, type);
	reference_of(p, type, host);
	Attention asked = attention_on(p, g.at, g.at[ARRAYS]);
	AttentionGradient gradient = gradient_on(p, g.at, g.angles);
	for (const AttentionKernel *kernel = ops_for(gpu)->attention_kernels;
		kernel->name; kernel++) {
		if (!kernel->supports(gpu, &asked, &gradient))
			continue;
		run_attention(kernel, p, &g, host, got, false);
		for (int a = 0; a <= ARRAYS; a++)
			expect_finite(kernel->name, got[a], g.n[a]);
	}
	assert_int_equal(release_both(NULL), 0);
}

static void huge_scores_are_finite(void **state)
{
	static const double far[] = { 1e5, -7e10, 3e20 };
	for (int i = 0; i < 3 * NTYPES_HERE * NWIDTHS; i++) {
		const Type type = types[i / 3 % NTYPES_HERE];
		const Problem p = { .B = 1, .H = 2, .seqlen_q = 150, .seqlen_k = 200,
			.D = widths[i / 3 / NTYPES_HERE], .causal = i % 2, .size = 1,
			.lost = 200, .far = type == FP16 ? 6e4 : far[i % 3] };
		expect_finite_results(&p, type);
	}
}

/* persistent blocks have more than one tile each, of 64 queries or of 192 */
static void persistent_blocks_take_tiles(void **state)
{
	for (int i = 0; i < 2 * NWIDTHS; i++) {
		const Problem p = { .B = 4, .H = 18, .seqlen_q = 200, .seqlen_k = 330,
			.D = widths[i / 2], .causal = i % 2, .size = 1 };
		if (p.D == 64 || getenv("QUICK") == NULL)
			follow_the_formulas(&p, 2);
	}
}

/* gradients of two sections of heads, whose tiles of keys add in turn */
static void sections_of_heads_follow_the_formulas(void **state)
{
	for (int causal = 0; causal < 2; causal++) {
		const Problem p = { .B = 2, .H = 3, .seqlen_q = 6011, .seqlen_k = 260,
			.D = 128, .causal = causal, .size = 1 };
		if (getenv("QUICK") == NULL)
			follow_the_formulas(&p, 2);
	}
}

// test: a thousand runs are the same
enum { HEADS = 24, N = 1000 };

/* more blocks than multiprocessors, so that the order of their work varies */
static Problem drawn_heads(Array *at, size_t D, bool causal)
{
	for (int a = 0; a <= ARRAYS; a++) {
		at[a] = array_new(gpu, HEADS * N * D, a < ARRAYS ? BF16 : FP32,
			MEM_TEMPORARY, "test");
		held[a] = at[a].at;
		ops_for(gpu)->draw(gpu, at[a], HEADS * N * D, 1, 4, 5, a, 0);
	}
	return (Problem){ .B = 1, .H = HEADS, .seqlen_q = N, .seqlen_k = N,
		.D = D, .causal = causal, .size = 1 };
}

static void expect_same_runs(size_t D, bool causal, int runs)
{
	const size_t size = HEADS * N * D;
	Array at[ARRAYS + 1], first[ARRAYS + 1], now = poisoned(size);
	const Problem p = drawn_heads(at, D, causal);
	for (int a = 0; a <= ARRAYS; a++)
		first[a] = poisoned(size);
	Attention a = attention_on(&p, at, at[ARRAYS]);
	for (int run = 0; run < runs; run++) {
		ops_for(gpu)->attention_forward(gpu, a);
		ops_for(gpu)->attention_backward(gpu, a,
			gradient_on(&p, at, no_angles));
		for (int i = INPUTS; i <= ARRAYS; i++) {
			size_t n = i < ARRAYS ? size : HEADS * N;
			array_read(gpu, run == 0 ? first[i].at : now.at, at[i], n);
			if (run > 0)
				expect_same("a run of many", now, first[i], n);
		}
	}
	assert_int_equal(release_both(NULL), 0);
}

static void a_thousand_runs_are_the_same(void **state)
{
	for (int i = 0; i < 4; i++)
		expect_same_runs(i / 2 ? 128 : 64, i % 2, getenv("QUICK") ? 20 : 250);
}

// test: parts of dQ in any order are all added
/* rows of D in `now` and in `fixed`: the root mean square of the difference */
static void expect_close_rows(const Array now, const Array fixed, size_t rows,
	size_t D)
{
	for (size_t r = 0; r < rows; r++) {
		double apart = 0, all = 0;
		for (size_t i = r * D; i < (r + 1) * D; i++) {
			apart += pow(reals(now)[i] - reals(fixed)[i], 2);
			all += pow(reals(fixed)[i], 2);
		}
		if (!(sqrt(apart / D) <= 0.05 * sqrt(all / D) + 2e-3))
			fail_msg("row %zu of dQ: %g from one of %g", r, sqrt(apart / D),
				sqrt(all / D));
	}
}

static void add_in_any_order(size_t D, bool causal, int runs)
{
	const size_t size = HEADS * N * D;
	Array at[ARRAYS + 1];
	const Array fixed = poisoned(size), now = poisoned(size);
	const Problem p = drawn_heads(at, D, causal);
	Attention a = attention_on(&p, at, at[ARRAYS]);
	AttentionGradient g = gradient_on(&p, at, no_angles);
	ops_for(gpu)->attention_forward(gpu, a);
	for (int run = 0; run <= runs; run++) {
		g.deterministic = run == 0;
		ops_for(gpu)->attention_backward(gpu, a, g);
		array_read(gpu, g.deterministic ? fixed.at : now.at, at[DQ], size);
		if (run > 0)
			expect_close_rows(now, fixed, HEADS * N, D);
	}
	assert_int_equal(release_both(NULL), 0);
}

static void parts_in_any_order_are_all_added(void **state)
{
	for (int i = 0; i < 2 * NWIDTHS; i++)
		add_in_any_order(widths[i / 2], i % 2, getenv("QUICK") ? 3 : 20);
}

// run forward passes in quick succession
typedef struct Rush {
	Type type;
	const char *kernel;
	size_t B, H, N, D;
	bool causal;
} Rush;

static const AttentionKernel *kernel_named(const char *name)
{
	const AttentionKernel *kernel = ops_for(gpu)->attention_kernels;
	while (kernel->name && strcmp(kernel->name, name) != 0)
		kernel++;
	return kernel->name ? kernel : NULL;
}

static void run_in_succession(const Rush *r, int runs)
{
	const Ops *ops = ops_for(gpu);
	size_t n = r->B * r->H * r->N * r->D;
	const Problem p = { .B = r->B, .H = r->H, .seqlen_q = r->N,
		.seqlen_k = r->N, .D = r->D, .causal = r->causal, .size = 1 };
	Array at[ARRAYS + 1];
	for (int a = 0; a <= ARRAYS; a++) {
		at[a] = array_new(gpu, n, a <= O ? r->type : FP32, MEM_TEMPORARY,
			"test");
		held[a] = at[a].at;
		if (a < INPUTS)
			ops->draw(gpu, at[a], n, 1, 4, 5, a, 0);
	}
	const Array first = at[DQ], difference = at[DK], sum = at[DV];
	Attention a = attention_on(&p, at, at[ARRAYS]);
	const AttentionKernel *kernel = kernel_named(r->kernel);
	if (kernel && kernel->supports(gpu, &a, NULL)) {
		// run the kernel many times, and expect equal outputs
		Array host = poisoned(n);
		kernel->forward(gpu, a);
		array_read(gpu, host.at, a.o.x, n);
		for (size_t i = 0; i < n; i++)
			reals(host)[i] = -reals(host)[i];
		array_write(gpu, first, host.at, n);
		ops->fill(gpu, sum, 0, n);
		for (int run = 0; run < runs; run++) {
			kernel->forward(gpu, a);
			ops->add(gpu, difference, a.o.x, first, n);
			ops->add(gpu, sum, sum, difference, n);
		}
		array_read(gpu, host.at, sum, n);
		for (size_t i = 0; i < n; i++)
			if (reals(host)[i] != 0)
				fail_msg("%s: element %zu of O was not always the same: %g",
					r->kernel, i, (double)reals(host)[i]);
	}
	assert_int_equal(release_both(NULL), 0);
}

// run forward passes in quick succession
static void rings_never_skip_a_round(void **state)
{
	static const Rush rushes[] = {
		{ FP32, "split_fp16", 36, 4, 512, 128, true },
		{ BF16, "split_kv", 36, 4, 320, 128, false },
		{ BF16, "split_kv", 36, 8, 640, 64, true },
		{ BF16, "multi_warpgroup", 36, 4, 640, 128, false },
		{ BF16, "m64", 36, 4, 320, 64, false },
	};
	for (size_t i = 0; i < sizeof rushes / sizeof *rushes; i++)
		run_in_succession(&rushes[i], getenv("QUICK") ? 20 : 20000);
}

static void other_heads_are_declined(void **state)
{
	bool (*supported)(Device *, Type, size_t) = ops_for(gpu)->supports_attention;
	assert_true(supported(gpu, BF16, 80) && supported(gpu, FP32, 128)
		&& supported(gpu, BF16, 256) && supported(gpu, TF32, 96));
	assert_false(supported(gpu, BF16, 48) || supported(gpu, FP32, 0)
		|| supported(gpu, FP64, 64));
}

TESTS_BETWEEN(open_both, close_both,
	on_gpu(attention_follows_the_formulas),
	on_gpu(shapes_of_decoders_follow_the_formulas),
	on_gpu(packed_sequences_are_as_alone),
	on_gpu(large_scores_do_no_harm),
	on_gpu(lost_keys_count_nothing),
	on_gpu(huge_scores_are_finite),
	on_gpu(persistent_blocks_take_tiles),
	on_gpu(sections_of_heads_follow_the_formulas),
	on_gpu(a_thousand_runs_are_the_same),
	on_gpu(parts_in_any_order_are_all_added),
	on_gpu(rings_never_skip_a_round),
	on_gpu(other_heads_are_declined))
