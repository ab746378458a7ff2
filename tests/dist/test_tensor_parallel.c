/* a model in parts is the model; links the f64 build */
#include "model/sizes.h"
#include "tests/dist/parts.h"

enum { B = 2, T = 6 };
/*                           vocab context d_model d_ff layers heads d_head */
static const Shape odd = { 31, T, 12, 11, 3, 5, 4, 10000 };

// test that slices cover a model
static void cover(const Shape *whole, int ranks, int i)
{
	Parameter p = shape_parameter(whole, i);
	unsigned char *seen = need(calloc(p.count, 1));
	for (int r = 0; r < ranks; r++) {
		RankGroup g = { .rank = r, .ranks = ranks };
		ParameterSlice s = group_slice(whole, &g, i);
		assert_true(s.whole_rows == p.rows && s.whole_columns == p.columns);
		for (size_t k = 0; k < s.rows * s.columns; k++)
			seen[(s.row + k / s.columns) * p.columns + s.column
				+ k % s.columns]++;
	}
	for (size_t k = 0; k < p.count; k++)
		assert_int_equal(seen[k], p.gain ? ranks : 1);
	free(seen);
}

static void slices_cover_every_element_once(void **state)
{
	for (int ranks = 1; ranks <= 5; ranks++)
		for (int i = 0; i < shape_nparameters(&odd); i++)
			cover(&odd, ranks, i);
	Shape xl = model_sizes[SIZE_XL].shape;
	RankGroup g = { .rank = 1, .ranks = 2 };
	assert_int_equal(group_shape(&xl, &g).heads, 13);
}

// test groups of several sizes
static void groups_train_as_one_rank_does(void **state)
{
	// list jobs of groups
	static const Parts jobs[] = {
		{ 1, 1, .B = B, .T = T },
		{ 2, 1, .B = B, .T = T, .delay_us = 100 },
		{ 2, 1, .B = B, .T = T, .naive = true, .passes = 2,
			.plan = { 5, 1, 3 } },
		{ 3, 1, .B = B, .T = T, .sgd = true, .clip = 0.5 },
		{ 3, 1, .B = 1, .T = 3, .recompute = 1 },
		{ 4, 1, .B = B, .T = T, .recompute = 2, .passes = 2 },
		{ 2, 1, .B = B, .T = T, .replayed = true, .clip = 0.5,
			.plan = { 7, 2, 1 } },
		{ 3, 1, .B = B, .T = T, .plan = { 0, 3, 3 } },
		{ 4, 1, .B = 4, .T = 5, .recompute = 1, .nested = true, .naive = true },
		{ 2, 2, .B = B, .T = T, .sgd = true, .tolerance = 0x1p-18,
			.clip = 0.5 },
		{ 2, 2, .B = B, .T = T, .sgd = true, .tolerance = 0x1p-18,
			.clip = 0.5, .exchange = true },
		{ 2, 2, .B = 1, .T = T, .sgd = true, .tolerance = 0x1p-18,
			.passes = 2, .recompute = 1 },
	};
	for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
		Parts p = jobs[i];
		p.shape = odd;
		p.steps = 4;
		p.keep_norms = i % 2;
		p.passes += p.passes == 0;
		p.tolerance += p.tolerance == 0 ? 1e-10 : 0;
		compare_job(&p);
	}
}

// test bf16 in parts
static double error_of(const real *x, const real *exact, size_t n)
{
	double squares = 0;
	for (size_t i = 0; i < n; i++)
		squares += (x[i] - exact[i]) * (x[i] - exact[i]);
	return sqrt(squares);
}

static double error_of_parts(Parts p, int ranks)
{
	double sum = 0;
	p.ranks = ranks;
	p.squares = shared(MOST * sizeof(double));
	run_well(ranks, be_part, &p);
	for (int r = 0; r < ranks; r++)
		sum += p.squares[r];
	munmap(p.squares, MOST * sizeof(double));
	return sqrt(sum);
}

static void parts_in_bf16_are_about_as_exact(void **state)
{
	Parts exact = { 1, 1, odd, 8, T, .passes = 1, .steps = 1 }, low = exact;
	size_t n = shape_count(&odd);
	low.policy = POLICY_BF16;
	new_results(&exact);
	new_results(&low);
	run_well(1, be_whole, &exact);
	run_well(1, be_whole, &low);
	double alone = error_of(low.gradients, exact.gradients, n);
	free_results(&low);
	exact.policy = POLICY_BF16;
	for (int ranks = 2; ranks <= MOST; ranks++) {
		double together = error_of_parts(exact, ranks);
		if (!(together <= 2 * alone))
			fail_msg("%d ranks are off by %g, one by %g", ranks, together, alone);
	}
	free_results(&exact);
}

// test what cannot be split
static void what_cannot_be_split_is_refused(void **state)
{
	Parts p = { 3, 1, odd, 2, 5, .passes = 1, .steps = 1 };
	new_results(&p);
	all_end(3, be_part, &p, 1, "does not split evenly");
	free_results(&p);
	Shape narrow = odd;
	assert_null(group_error(&odd, &policies[POLICY_BF16], 5));
	assert_non_null(strstr(group_error(&odd, &policies[POLICY_BF16], 6),
		"heads"));
	assert_non_null(strstr(group_error(&odd, &policies[POLICY_FP16], 2),
		"fp16"));
	narrow.d_ff = 4;
	assert_non_null(strstr(group_error(&narrow, &policies[POLICY_BF16], 5),
		"d_ff"));
}

// test the loss of a cut row
enum { ROWS = 7, CUTS = 4 };

/* columns begin to end of each row */
static Array columns_of(Array z, size_t V, size_t begin, size_t end)
{
	Array part = poisoned(ROWS * (end - begin));
	for (size_t i = 0; i < ROWS; i++)
		memcpy(reals(part) + i * (end - begin), reals(z) + i * V + begin,
			(end - begin) * sizeof(real));
	return part;
}

/* makes the logits of one rank, another in each row, -inf; none is a target */
static void lose_columns(Array z, int32_t *target, size_t V,
	const size_t cuts[CUTS + 1])
{
	for (size_t i = 0; i < ROWS; i++) {
		size_t lost = i % CUTS;
		for (size_t v = cuts[lost]; v < cuts[lost + 1]; v++)
			reals(z)[i * V + v] = (real)-INFINITY;
		target[i] = (int32_t)cuts[(lost + 1) % CUTS];
	}
}

static void try_cuts(Device *d, size_t V, const size_t cuts[CUTS + 1],
	double sd, bool lost)
{
	const Ops *ops = ops_for(d);
	Array z = drawn(ROWS * V, 40, 0, sd), want = poisoned(ROWS),
		dwant = poisoned(ROWS * V), terms = poisoned(CUTS * 3 * ROWS),
		parts[CUTS];
	int32_t *target = drawn_tokens(ROWS, 41, V), own[CUTS][ROWS];
	if (lost)
		lose_columns(z, target, V, cuts);
	ops->fused_cross_entropy(d, want, dwant, z, target, 0.25, ROWS, V);
	// find the terms of each rank's columns
	for (int r = 0; r < CUTS; r++) {
		parts[r] = columns_of(z, V, cuts[r], cuts[r + 1]);
		for (int i = 0; i < ROWS; i++)
			own[r][i] = target[i] >= (int)cuts[r]
				&& target[i] < (int)cuts[r + 1] ? target[i] - (int)cuts[r] : -1;
		ops->partial_cross_entropy(d, array_at(terms, r * 3 * ROWS), parts[r],
			own[r], ROWS, cuts[r + 1] - cuts[r]);
	}
	// compare losses and gradients of each rank
	for (int r = 0; r < CUTS; r++) {
		size_t n = cuts[r + 1] - cuts[r];
		Array got = poisoned(ROWS), slice = columns_of(dwant, V, cuts[r],
			cuts[r + 1]);
		ops->joined_cross_entropy(d, got, parts[r], parts[r], terms, CUTS,
			own[r], 0.25, ROWS, n);
		for (int i = 0; i < ROWS; i++)
			assert_true(fabs(reals(got)[i] - reals(want)[i]) <= 1e-12 * sd);
		for (size_t i = 0; i < ROWS * n; i++)
			assert_true(fabs(reals(parts[r])[i] - reals(slice)[i]) <= 1e-12 * sd);
	}
}

// test the loss of a cut row
static void terms_of_a_cut_row_give_its_loss(void **state)
{
	Device *d = device_open("cpu");
	for (int lost = 0; lost < 2; lost++) {
		try_cuts(d, 31, (size_t[]){ 0, 1, 9, 20, 31 }, 1, lost);
		try_cuts(d, 64, (size_t[]){ 0, 16, 32, 48, 64 }, 900, lost);
		try_cuts(d, 4, (size_t[]){ 0, 1, 2, 3, 4 }, 30, lost);
	}
	device_close(&d);
}

// test where a recorded step is cut
enum { MOST_NOTES = 4096 };
typedef struct Note {
	/* [ ] graph; L launch; G S R start; J join */
	char kind;
	const void *at;
	size_t n;
} Note;
static Note notes[MOST_NOTES];
static int nnotes;

static void note(char kind, const void *at, size_t n)
{
	assert_true(nnotes < MOST_NOTES);
	notes[nnotes++] = (Note){ kind, at, n };
}

static void note_start(void *self, const GroupOp *op, GroupSlot slot)
{
	const char kinds[] = "GSR";
	note(kinds[op->kind], op->x.at, op->n + 1000000 * slot);
}

static void note_join(void *self, GroupSlot slot)
{
	note('J', NULL, slot);
}

static void pretend_begin(void *state)
{
	note('[', NULL, 0);
}

static void *pretend_end(void *state, int *kernels)
{
	note(']', NULL, 0);
	*kernels = 1;
	return need(calloc(1, 1));
}

static void pretend_launch(void *state, void *graph)
{
	note('L', graph, 0);
}

static void pretend_destroy(void *state, void *graph)
{
	free(graph);
}

/* those of the kinds, to another place; the others are left out */
static int notes_of(const char *kinds, Note *to)
{
	int n = 0;
	for (int i = 0; i < nnotes; i++)
		if (strchr(kinds, notes[i].kind))
			to[n++] = notes[i];
	nnotes = 0;
	return n;
}

static void same_notes(const Note *a, int na, const Note *b, int nb, bool places)
{
	assert_int_equal(na, nb);
	for (int i = 0; i < na; i++) {
		assert_int_equal(a[i].kind, b[i].kind);
		assert_true(a[i].n == b[i].n && (!places || a[i].at == b[i].at));
	}
}

static void recorded_steps_are_cut_at_collectives(void **state)
{
	static Note plain[MOST_NOTES], recorded[MOST_NOTES], replayed[MOST_NOTES];
	RankGroup one = { NULL, 0, 1, 0, false, note_start, note_join };
	Parts p = { .shape = odd, .B = B, .T = T, .clip = 0.5 };
	Device *d = device_open("cpu");
	// let the device pretend to have graphs
	Backend pretends = *d->backend;
	pretends.graph_begin = pretend_begin;
	pretends.graph_end = pretend_end;
	pretends.graph_launch = pretend_launch;
	pretends.graph_destroy = pretend_destroy;
	d->backend = &pretends;
	Model *m = part_of(d, &p, &one);
	Optimizer o = optimizer_of(m, &p);
	Replay replay = { 0 };
	// compare a recorded step with its replays
	step_of(m, &o, &replay, &p, 0, 0);
	int n = notes_of("GSRJ", plain);
	assert_int_equal(n, 2 * (10 * odd.layers + 3 + 2 + 1 + 2 * odd.layers + 1
		+ 1));
	step_of(m, &o, &replay, &p, 1, 0);
	for (int i = 0, open = 0; i < nnotes; i++) {
		open += notes[i].kind == '[' ? 1 : notes[i].kind == ']' ? -1 : 0;
		assert_int_equal(open, notes[i].kind == '[');
	}
	int all = notes_of("LGSRJ", recorded);
	step_of(m, &o, &replay, &p, 2, 0);
	same_notes(recorded, all, notes, nnotes, true);
	same_notes(plain, n, replayed, notes_of("GSRJ", replayed), false);
	assert_int_equal(all - n, n + 1);
	replay_free(&replay, d);
	optimizer_free(&o);
	model_free(&m);
	device_close(&d);
}

TESTS(
	cmocka_unit_test(slices_cover_every_element_once),
	cmocka_unit_test(groups_train_as_one_rank_does),
	cmocka_unit_test(parts_in_bf16_are_about_as_exact),
	cmocka_unit_test(what_cannot_be_split_is_refused),
	checked(terms_of_a_cut_row_give_its_loss),
	cmocka_unit_test(recorded_steps_are_cut_at_collectives))
