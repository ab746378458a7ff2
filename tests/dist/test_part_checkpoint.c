/* checkpoints of a model in parts */
#define _GNU_SOURCE
#include <stdlib.h>

#include "dist/resume.h"
#include "tests/dist/parts.h"
#include "tests/base/folder.h"

enum { POSITION = 42 };
static char first[64], other[64], whole[64];

// run a job that saves or loads
typedef struct Keeping {
	Parts parts;
	uint64_t seed;
	bool grouped;                    /* else one process, with no group */
	const char *from, *to;           /* from NULL: trains */
	double *loss;                    /* shared; of the last forward pass */
} Keeping;

static void load_or_train(Model *m, Optimizer *o, const Keeping *k)
{
	Replay replay = { 0 };
	if (k->from == NULL) {
		for (int step = 0; step < k->parts.steps; step++)
			step_of(m, o, &replay, &k->parts, step, 0);
		replay_free(&replay, m->device);
		return;
	}
	TensorFile *f = tensorfile_open(k->from);
	long position = k->grouped ? part_load(m, o, f, k->from)
		: replica_load(m, o, f, k->from);
	tensorfile_close(&f);
	if (position != POSITION || o->t != k->parts.steps)
		die("position %ld and step %ld, not %d and %d", position, o->t, POSITION,
			k->parts.steps);
}

static void keep(Device *d, Comm *c, void *keeping)
{
	const Keeping *k = keeping;
	const Parts *p = &k->parts;
	TensorGroup t;
	tensor_group(&t, d, c);
	Model *m = model_new_part(d, &p->shape, &policies[p->policy], k->seed,
		k->grouped ? &t.group : NULL);
	model_fuse(m);
	Optimizer o = optimizer_of(m, p);
	load_or_train(m, &o, k);
	// compare the loss of a forward pass
	Batch b = batch_random(p->B, p->T, p->shape.vocab, 1000);
	double loss = model_forward(m, b.tokens, b.targets, b.B, b.T, false);
	if (k->from == NULL)
		*k->loss = loss;
	else if (!(fabs(loss - *k->loss) <= p->tolerance * loss))
		die("the loss is %.9g, not %.9g", loss, *k->loss);
	batch_free(&b);
	if (k->to && k->grouped)
		part_save(m, &o, c, k->to, POSITION);
	else if (k->to)
		replica_save(m, &o, c, k->to, POSITION);
	optimizer_free(&o);
	model_free(&m);
}

// run a job that saves or loads
static void run_keeping(Keeping *k)
{
	in_ranks(k->parts.ranks, (CommSettings){ 0 }, keep, k);
}

// compare files of checkpoints
static void same_bytes(const char *a, const char *b)
{
	FILE *f = fopen(a, "rb"), *g = fopen(b, "rb");
	assert_true(f && g);
	for (int x = 0, y; x != EOF;) {
		x = getc(f), y = getc(g);
		if (x != y)
			fail_msg("%s and %s differ at byte %ld", a, b, ftell(f) - 1);
	}
	fclose(f);
	fclose(g);
}

static void near_tensor(const TensorFile *f, const TensorFile *g,
	const char *name, size_t n)
{
	const float *a = tensorfile_expect(f, name, "F32", n)->data,
		*b = tensorfile_expect(g, name, "F32", n)->data;
	double most = 0;
	for (size_t i = 0; i < n; i++)
		most = fabs(b[i]) > most ? fabs(b[i]) : most;
	assert_true(most > 0);
	for (size_t i = 0; i < n; i++)
		if (!(fabs(a[i] - b[i]) <= 0x1p-16 * most))
			fail_msg("%s: element %zu is %g, not %g", name, i, a[i], b[i]);
}

static void near_tensors(const char *a, const char *b, const Shape *s)
{
	TensorFile *f = tensorfile_open(a), *g = tensorfile_open(b);
	for (int i = 0; i < shape_nparameters(s); i++) {
		char state[96];
		Parameter p = shape_parameter(s, i);
		near_tensor(f, g, p.name, p.count);
		snprintf(state, sizeof state, "optimizer.velocity.%s", p.name);
		near_tensor(f, g, state, p.count);
	}
	assert_int_equal(tensorfile_count(f), 2 * shape_nparameters(s));
	tensorfile_close(&f);
	tensorfile_close(&g);
}

// save in parts and load in others
static Keeping keeping(int ranks, const char *from, const char *to)
{
	static double *loss;
	loss = loss ? loss : shared(sizeof *loss);
	return (Keeping){ .parts = { .ranks = ranks,
		.shape = { 31, 6, 20, 11, 3, 5, 4, 10000 }, .B = 4, .T = 6,
		.policy = POLICY_FP32, .steps = 2, .tolerance = 1e-6 },
		.seed = from ? 8 : 7, .grouped = true, .from = from, .to = to,
		.loss = loss };
}

static void parts_are_saved_as_a_whole(void **state)
{
	Keeping k = keeping(1, NULL, whole);
	k.grouped = false;
	k.parts.sgd = true;
	run_keeping(&k);
	for (int ranks = 1; ranks <= MOST; ranks++) {
		Keeping own = keeping(ranks, NULL, first);
		own.parts.sgd = true;
		run_keeping(&own);
		near_tensors(first, whole, &k.parts.shape);
	}
}

static void any_group_reads_what_another_wrote(void **state)
{
	for (int ranks = 1; ranks <= MOST; ranks++) {
		Keeping writer = keeping(ranks, NULL, first);
		writer.parts.policy = ranks % 2 ? POLICY_BF16 : POLICY_FP32;
		run_keeping(&writer);
		for (int readers = 0; readers <= MOST; readers++) {
			Keeping reader = keeping(readers ? readers : 1, first, other);
			reader.grouped = readers > 0;
			reader.parts.policy = writer.parts.policy;
			reader.parts.tolerance = ranks % 2 ? 1e-2 : 1e-6;
			run_keeping(&reader);
			same_bytes(first, other);
		}
	}
}

static void files_of_other_models_are_refused(void **state)
{
	Keeping k = keeping(2, NULL, first), more = keeping(2, first, NULL);
	run_keeping(&k);
	more.parts.shape.d_ff = 12;
	all_refuse(2, keep, &more, 2, "'d_ff' is 11");
	more = keeping(2, first, NULL);
	more.parts.sgd = true;
	all_refuse(2, keep, &more, 2, "adamw");
}

static int name_files(void **state)
{
	int failed = make_folder(state);
	snprintf(first, sizeof first, "%s/first", folder);
	snprintf(other, sizeof other, "%s/other", folder);
	snprintf(whole, sizeof whole, "%s/whole", folder);
	return failed;
}

TESTS_BETWEEN(name_files, remove_folder,
	cmocka_unit_test(parts_are_saved_as_a_whole),
	cmocka_unit_test(any_group_reads_what_another_wrote),
	cmocka_unit_test(files_of_other_models_are_refused))
