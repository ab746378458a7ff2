/* naive_ddp: weights after training on several ranks, against one process that
 * sums the gradients of the same batches, and one that has them as one batch */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/stats.h"
#include "cases/ddp_steps.h"

// list the options of naive_ddp
static long given_ranks, steps = 20, context = 8, batch = 2;
static int transport, wire = -1;
static const Option options[] = {
	RANKS_OPTION_IN(&given_ranks, "0..16",
		"processes of a job; 0: 2, on a CPU also 3"),
	TRANSPORT_OPTION(&transport),
	WIRE_OPTION(&wire, "gradients that travel"),
	STEPS_OPTION_IN(&steps, "2..10000", "steps of training"),
	CONTEXT_OPTION_IN(&context, "1..1024", "tokens in a sequence"),
	BATCH_OPTION_IN(&batch, "1..1024", "sequences of a rank"),
	{ 0 }
};

// describe a row of naive_ddp
typedef struct NaiveDdpConfig {
	int kind, wire, transport;
	long ranks;
} NaiveDdpConfig;
static const Key keys[] = { KEY(NaiveDdpConfig, kind, DDP_KINDS),
	KEY(NaiveDdpConfig, wire, COMMON_TYPES),
	KEY(NaiveDdpConfig, transport, TRANSPORTS),
	KEY(NaiveDdpConfig, ranks), { 0 } };

// list what is compared with one process
static int ranks_of(const void *config)
{
	return (int)((const NaiveDdpConfig *)config)->ranks;
}

static void plan_kinds(Plan *plan, int format, int which, long ranks)
{
	if ((given_ranks && ranks != given_ranks) || (wire >= 0 && format != wire))
		return;
	for (int kind = 0; kind < NDDP; kind++)
		plan_add(plan, &(NaiveDdpConfig){ kind, format,
			transport ? transport : which,
			ranks });
}

// plan wires, transports and numbers of ranks
static void plan(Plan *plan)
{
	int usual = harness_on_gpu() ? TRANSPORT_AUTO : TRANSPORT_RING;
	long ranks = given_ranks ? given_ranks : 2;
	plan_kinds(plan, FP32, usual, ranks);
	plan_kinds(plan, BF16, usual, ranks);
	if (given_ranks || harness_on_gpu() || transport)
		return;
	plan_kinds(plan, FP32, TRANSPORT_OWNER, 3);
	plan_kinds(plan, FP32, TRANSPORT_RING, 3);
}

// train on several ranks
typedef struct TrainedWeights {
	real *weights;                   /* (extent) */
	real *gradients;                 /* (extent): the first step's, or NULL */
	double first, last;              /* losses, means over all parts */
} TrainedWeights;

static Model *new_model(Device *d, int rank)
{
	Shape shape = scaled_down(model_sizes[SIZE_SMALL].shape);
	shape.context = context;
	Model *m = model_new(d, &shape, &policies[POLICY_FP32],
		harness_seed + rank);
	model_fuse(m);
	return m;
}

static Batch batch_of(const Model *m, int rank, long step)
{
	return batch_random(batch, context, m->shape.vocab,
		harness_seed + 1000 * step + rank);
}

static TrainedWeights weights_of(Model *m, double first, double last)
{
	TrainedWeights t = { need(malloc(m->extent * sizeof *t.weights)), NULL,
		first, last };
	array_read(m->device, t.weights, m->weights, m->extent);
	return t;
}

// train with the other ranks
static TrainedWeights train_together(Device *d, Comm *comm,
	const NaiveDdpConfig *c)
{
	int ranks = comm_ranks(comm), rank = comm_rank(comm);
	Model *m = new_model(d, rank);
	Ddp *ddp = ddp_new(m, comm, &(DdpSettings){ .kind = c->kind,
		.bucket_mb = 0.2, .wire = c->wire });
	Optimizer adamw = adamw_new(m, 1e-3, 0.9, 0.999, 1e-8, 0.01);
	double first = 0, last = 0;
	for (long step = 0; step < steps; step++) {
		Batch b = batch_of(m, rank, step);
		last = comm_sum(comm, timed_step(m, &adamw, &b, MODE_TRAIN).loss) / ranks;
		first = step ? first : last;
		batch_free(&b);
	}
	TrainedWeights t = weights_of(m, first, last);
	ddp_free(&ddp);
	optimizer_free(&adamw);
	model_free(&m);
	return t;
}

// train in one process
/* computes the gradients of all ranks' parts of a step; returns the mean loss */
typedef double FindGradients(Model *m, int ranks, long step, Type format);

static double sum_gradients(Model *m, int ranks, long step, Type format)
{
	real *sum = need(calloc(2 * m->extent, sizeof *sum)),
		*part = sum + m->extent;
	double loss = 0;
	m->share = 1.0 / ranks;
	for (int r = 0; r < ranks; r++) {
		Batch b = batch_of(m, r, step);
		loss += model_forward(m, b.tokens, b.targets, b.B, b.T, true) / ranks;
		model_backward(m, false);
		array_read(m->device, part, m->gradients, m->extent);
		round_array(format, part, m->extent);
		for (size_t i = 0; i < m->extent; i++)
			sum[i] = r ? sum[i] + part[i] : part[i];
		batch_free(&b);
	}
	round_array(format, sum, m->extent);
	array_write(m->device, m->gradients, sum, m->extent);
	free(sum);
	return loss;
}

static double gradients_of_whole(Model *m, int ranks, long step, Type format)
{
	size_t n = batch * context;
	Batch whole = { batch * ranks, context, need(malloc(ranks * n
		* sizeof *whole.tokens)), need(malloc(ranks * n
		* sizeof *whole.targets)) };
	for (int r = 0; r < ranks; r++) {
		Batch b = batch_of(m, r, step);
		memcpy(whole.tokens + r * n, b.tokens, n * sizeof *b.tokens);
		memcpy(whole.targets + r * n, b.targets, n * sizeof *b.targets);
		batch_free(&b);
	}
	double loss = model_forward(m, whole.tokens, whole.targets, whole.B, whole.T,
		true);
	model_backward(m, false);
	batch_free(&whole);
	return loss;
}

// train on the parts of all ranks
static TrainedWeights train_alone(Device *d, int ranks, Type format,
	FindGradients *find)
{
	Model *m = new_model(d, 0);
	Optimizer adamw = adamw_new(m, 1e-3, 0.9, 0.999, 1e-8, 0.01);
	real *gradients = need(malloc(m->extent * sizeof *gradients));
	double first = 0, last = 0;
	for (long step = 0; step < steps; step++) {
		last = find(m, ranks, step, format);
		first = step ? first : last;
		if (step == 0)
			array_read(m->device, gradients, m->gradients, m->extent);
		update_weights(m, &adamw);
	}
	TrainedWeights t = weights_of(m, first, last);
	t.gradients = gradients;
	optimizer_free(&adamw);
	model_free(&m);
	return t;
}

// compare the two trainings
static void set_difference(Row *row, Comm *comm, const TrainedWeights *a,
	const TrainedWeights *b, const Shape *shape)
{
	double differ = 0, most = 0;
	for (int i = 0; i < shape_nparameters(shape); i++) {
		Parameter p = shape_parameter(shape, i);
		for (size_t k = p.offset; k < p.offset + p.count; k++) {
			differ += memcmp(&a->weights[k], &b->weights[k], sizeof(real)) != 0;
			most = max_or_nan(most,
				fabs((double)a->weights[k] - b->weights[k]));
		}
	}
	row_set(row, "differ", "%.0f", comm_max(comm, differ));
	row_set(row, "most_difference", "%.3g", comm_max(comm, most));
	row_set(row, "parameters", "%zu", shape_count(shape));
}

static void set_whole(Row *row, const TrainedWeights *parts,
	const TrainedWeights *whole, const TrainedWeights *many, const Shape *shape)
{
	double off = 0, norm = 0, most = 0;
	for (int i = 0; i < shape_nparameters(shape); i++) {
		Parameter p = shape_parameter(shape, i);
		for (size_t k = p.offset; k < p.offset + p.count; k++) {
			double g = whole->gradients[k], d = parts->gradients[k] - g;
			off += d * d;
			norm += g * g;
			most = max_or_nan(most,
				fabs((double)many->weights[k] - whole->weights[k]));
		}
	}
	row_set(row, "whole_gradient", "%.3g", sqrt(off / norm));
	row_set(row, "whole_difference", "%.3g", most);
	row_set(row, "whole_last", "%.6f", whole->last);
	row_set(row, "tokens", "%ld", batch * context);
}

// count ranks with other weights
/* the number of ranks whose weights differ from this rank's */
static int count_unequal_ranks(Comm *comm, const TrainedWeights *t, size_t n)
{
	int ranks = comm_ranks(comm), differ = 0;
	real *all = need(calloc(ranks * n, sizeof *all)),
		*mine = all + comm_rank(comm) * n;
	memcpy(mine, t->weights, n * sizeof *mine);
	comm_gather_host(comm, all, n * sizeof *all);
	for (int r = 0; r < ranks; r++)
		differ += memcmp(all + r * n, mine, n * sizeof *all) != 0;
	free(all);
	return differ;
}

// train both ways and compare
static void run(Row *row, const void *config)
{
	const NaiveDdpConfig *c = config;
	Device *d = harness_device();
	Comm *comm = ddp_comm(row, d, &(DdpConfig){ .transport = c->transport });
	TrainedWeights many = train_together(d, comm, c),
		one = train_alone(d, comm_ranks(comm), c->wire, sum_gradients),
		whole = train_alone(d, comm_ranks(comm), c->wire, gradients_of_whole);
	Shape shape = scaled_down(model_sizes[SIZE_SMALL].shape);
	shape.context = context;
	set_difference(row, comm, &many, &one, &shape);
	row_set(row, "steps", "%ld", steps);
	row_set(row, "strangers", "%.0f",
		comm_sum(comm, count_unequal_ranks(comm, &many,
		shape_extent(&shape))));
	row_set(row, "loss_first", "%.6f", many.first);
	row_set(row, "loss_last", "%.6f", many.last);
	row_set(row, "alone_first", "%.6f", one.first);
	row_set(row, "alone_last", "%.6f", one.last);
	set_whole(row, &one, &whole, &many, &shape);
	row_set(row, "via", "%s", comm_transport(comm));
	free(many.weights);
	free(one.weights);
	free(one.gradients);
	free(whole.weights);
	free(whole.gradients);
	comm_close(&comm);
	device_close(&d);
}

// describe the comparison to the harness
const Experiment experiment = {
	.about = "trains on several ranks and in one process, and compares",
	.options = options, .sweeps = SWEEPS(
		{ "kinds", keys, plan, run,
			.ranks = ranks_of }),
};
