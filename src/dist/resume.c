#include "dist/resume.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "dist/pieces.h"
#include "dist/ring.h"
#include "dist/zero_state.h"
#include "model/fp8.h"

// list the pieces of weights and states
/* pieces of a rank, and the names of those that are states */
typedef struct PieceList {
	Piece *pieces;
	char (*names)[96];               /* weights have names of their own */
	int n;
} PieceList;

static PieceList list_pieces(const Optimizer *o, const ZeroPiece *owned, int n)
{
	size_t most = (size_t)n * (1 + MOST_STATES) + 1;
	PieceList l = { need(malloc(most * sizeof *l.pieces)),
		need(malloc(most * sizeof *l.names)), 0 };
	for (int i = 0; i < n; i++) {
		const Parameter *about = owned[i].about;
		Piece p = { about->name, about->gain ? 0 : about->rows, about->columns,
			owned[i].begin, owned[i].n, owned[i].master };
		l.pieces[l.n++] = p;
		// list the states of a parameter
		for (int s = 0; optimizer_state_name(o, s); s++) {
			if (owned[i].state[s].at == NULL)
				continue;
			p.name = l.names[l.n];
			p.at = owned[i].state[s];
			snprintf(l.names[l.n], sizeof *l.names, "optimizer.%s.%s",
				optimizer_state_name(o, s), about->name);
			l.pieces[l.n++] = p;
		}
	}
	return l;
}

static void free_list(PieceList *l)
{
	free(l->pieces);
	free(l->names);
}

// list the pieces of weights and states
static void add_history(PieceList *l, const Model *m, bool own)
{
	if (fp8_delays(m))
		l->pieces[l->n++] = (Piece){ "fp8.history", FP8_WINDOW, m->fp8->sites,
			.n = own ? FP8_WINDOW * m->fp8->sites : 0, .at = m->fp8->history };
}

// describe a run in metadata
static const char *optimizer_name(const OptimizerKind *kind)
{
	return kind == &adamw_kind ? "adamw" : "sgd";
}

// save what a rank owns
static void save_owned(const char *path, Comm *c, const Model *m,
	const Optimizer *o, const ZeroPiece *owned, int n, long position)
{
	Metadata meta = { 0 };
	PieceList l = list_pieces(o, owned, n);
	add_history(&l, m, comm_rank(c) == 0);
	// fill in the metadata of a run
	metadata_shape(&meta, &m->whole);
	metadata_text(&meta, "optimizer", optimizer_name(o->kind));
	metadata_number(&meta, "step", o->t);
	metadata_number(&meta, "position", position);
	metadata_number(&meta, "lr", o->settings.lr);
	metadata_number(&meta, "beta1", o->settings.beta1);
	metadata_number(&meta, "beta2", o->settings.beta2);
	metadata_number(&meta, "eps", o->settings.eps);
	metadata_number(&meta, "weight_decay", o->settings.decay);
	metadata_number(&meta, "momentum", o->settings.momentum);
	metadata_number(&meta, "clip", o->settings.clip);
	pieces_save(path, c, m->device, l.pieces, l.n, meta.pairs);
	free_list(&l);
}

// check that a file is of this run
static void expect_equal(const char *path, const char *key, double has,
	double want)
{
	if (has != want)
		usage_error("%s: '%s' is %g, expected %g", path, key, has, want);
}

static void expect_shape(const TensorFile *f, const char *path,
	const Shape *want)
{
	Shape s = checkpoint_shape(f, path);
	expect_equal(path, "vocab_size", s.vocab, want->vocab);
	expect_equal(path, "d_model", s.d_model, want->d_model);
	expect_equal(path, "d_ff", s.d_ff, want->d_ff);
	expect_equal(path, "num_layers", s.layers, want->layers);
	expect_equal(path, "num_heads", s.heads, want->heads);
	expect_equal(path, "rope_theta", s.theta, want->theta);
}

static void expect_states(const TensorFile *f, const Shape *shape,
	const OptimizerKind *kind)
{
	const Optimizer o = { .kind = kind };
	char name[96];
	for (int i = 0; i < shape_nparameters(shape); i++) {
		Parameter p = shape_parameter(shape, i);
		for (int s = 0; optimizer_state_name(&o, s); s++) {
			snprintf(name, sizeof name, "optimizer.%s.%s",
				optimizer_state_name(&o, s), p.name);
			checkpoint_expect(f, name, &p);
		}
	}
}

long resume_step(const TensorFile *f, const char *path, const Shape *shape,
	const OptimizerKind *kind)
{
	const char *name = tensorfile_meta(f, "optimizer");
	expect_shape(f, path, shape);
	if (name == NULL || strcmp(name, optimizer_name(kind)) != 0)
		usage_error("%s: the optimizer is %s, expected %s", path,
			name ? name : "absent", optimizer_name(kind));
	expect_states(f, shape, kind);
	metadata_integer(f, path, "position", 0, MOST_POSITION);
	return metadata_integer(f, path, "step", 0, MOST_POSITION);
}

// load what a rank owns
static long load_owned(const TensorFile *f, const char *path, Model *m,
	Optimizer *o, const ZeroPiece *owned, int n)
{
	long t = resume_step(f, path, &m->whole, o->kind),
		position = metadata_integer(f, path, "position", 0, MOST_POSITION);
	PieceList l = list_pieces(o, owned, n);
	add_history(&l, m, true);
	pieces_load(f, m->device, l.pieces, l.n);
	free_list(&l);
	if (fp8_delays(m))
		fp8_history_changed(m);
	o->t = t;
	return position;
}

// save and load a sharded model
static void zero_save(Zero *z, const char *path, long position)
{
	ZeroPiece *owned = need(malloc(shape_nparameters(&z->m->shape)
		* sizeof *owned));
	int n = zero_pieces(z, owned);
	for (int i = 0; i < n; i++)
		if (owned[i].replicated && z->rank > 0)
			owned[i].n = 0;
	save_owned(path, z->comm, z->m, &z->optimizer, owned, n, position);
	free(owned);
}

static long zero_load(Zero *z, const TensorFile *f, const char *path)
{
	ZeroPiece *owned = need(malloc(shape_nparameters(&z->m->shape)
		* sizeof *owned));
	int n = zero_pieces(z, owned);
	long position = load_owned(f, path, z->m, &z->optimizer, owned, n);
	zero_weights_changed(z);
	free(owned);
	return position;
}

// save and load a model that every rank has
static ZeroPiece *own_share(const Model *m, const Optimizer *o, int rank,
	int ranks)
{
	int n = shape_nparameters(&m->shape);
	size_t before = 0;
	ZeroPiece *owned = need(calloc(n, sizeof *owned));
	// own an equal share of each parameter
	for (int i = 0; i < n; i++) {
		const Parameter *p = &m->params[i].about;
		size_t begin = shard_begin(p->count, rank, ranks),
			end = shard_begin(p->count, rank + 1, ranks);
		owned[i] = (ZeroPiece){ .about = p, .begin = begin, .n = end - begin,
			.master = array_part(m->device, model_weight(m, i), begin) };
		for (int s = 0; optimizer_state_name(o, s); s++)
			owned[i].state[s] = array_part(m->device, o->state[s],
				before + begin);
		before += p->count;
	}
	return owned;
}

// save and load a model that every rank has
void replica_save(Model *m, Optimizer *o, Comm *c, const char *path,
	long position)
{
	assert(o->kind != NULL);
	ZeroPiece *owned = own_share(m, o, comm_rank(c), comm_ranks(c));
	save_owned(path, c, m, o, owned, shape_nparameters(&m->shape), position);
	free(owned);
}

long replica_load(Model *m, Optimizer *o, const TensorFile *f, const char *path)
{
	assert(o->kind != NULL);
	ZeroPiece *owned = own_share(m, o, 0, 1);
	long position = load_owned(f, path, m, o, owned,
		shape_nparameters(&m->shape));
	model_weights_changed(m);
	free(owned);
	return position;
}

// save and load a model whose state has owners
static ZeroPiece *own_parameters(const Model *m, const ShardedModel *sharded)
{
	const ShardedOptimizer *o = sharded_model_shares(sharded);
	int n = shape_nparameters(&m->shape);
	ZeroPiece *owned = need(calloc(n, sizeof *owned));
	for (int i = 0; i < n; i++) {
		owned[i] = (ZeroPiece){ .about = &m->params[i].about,
			.n = m->params[i].about.count, .master = model_weight(m, i) };
		for (int s = 0; s < MOST_STATES; s++)
			owned[i].state[s] = sharded_state(o, i, s);
	}
	return owned;
}

static Optimizer with_kind(ShardedModel *s)
{
	Optimizer o = *sharded_model_optimizer(s);
	o.kind = sharded_kind(sharded_model_shares(s), 0);
	return o;
}

/* each rank has the whole model, and owners have the state; m and c are those
 * of the sharded model */
static void owners_save(ShardedModel *s, Model *m, Comm *c, const char *path,
	long position)
{
	Optimizer o = with_kind(s);
	int n = shape_nparameters(&m->shape);
	ZeroPiece *owned = own_parameters(m, s);
	for (int i = 0; i < n; i++)
		if (sharded_owner(sharded_model_shares(s), i) != comm_rank(c))
			owned[i].n = 0;
	save_owned(path, c, m, &o, owned, n, position);
	free(owned);
}

static long owners_load(ShardedModel *s, Model *m, const TensorFile *f,
	const char *path)
{
	Optimizer o = with_kind(s);
	ZeroPiece *owned = own_parameters(m, s);
	long position = load_owned(f, path, m, &o, owned,
		shape_nparameters(&m->shape));
	sharded_model_set_step(s, o.t);
	model_weights_changed(m);
	free(owned);
	return position;
}

// save and load the part of a model
/* the pieces of a rank of a group */
typedef struct OwnedSlices {
	Parameter *whole;                /* the whole model's parameters */
	ZeroPiece *pieces;
	int n;
} OwnedSlices;

/* how many elements of a slice lie together in the whole parameter */
static size_t contiguous_elements(const ParameterSlice *s)
{
	return s->columns < s->whole_columns ? s->columns : s->rows * s->columns;
}

/* adds the pieces of parameter i; before: elements of the rank's states that
 * belong to other parameters */
static void own_slice(OwnedSlices *all, const Model *m, const Optimizer *o,
	int i, size_t before)
{
	ParameterSlice s = group_slice(&m->whole, m->group, i);
	size_t run = contiguous_elements(&s);
	for (size_t at = 0; at < m->params[i].about.count; at += run) {
		ZeroPiece *p = &all->pieces[all->n++];
		*p = (ZeroPiece){ .about = &all->whole[i], .n = run,
			.begin = (s.row + at / s.columns) * s.whole_columns + s.column,
			.replicated = m->params[i].about.gain,
			.master = array_part(m->device, model_weight(m, i), at) };
		for (int k = 0; optimizer_state_name(o, k); k++)
			p->state[k] = array_part(m->device, o->state[k], before + at);
	}
}

static OwnedSlices own_slices(const Model *m, const Optimizer *o)
{
	int n = shape_nparameters(&m->whole);
	size_t runs = 0, before = 0;
	for (int i = 0; i < n; i++) {
		ParameterSlice s = group_slice(&m->whole, m->group, i);
		runs += m->params[i].about.count / contiguous_elements(&s);
	}
	OwnedSlices all = { need(malloc(n * sizeof *all.whole)),
		need(malloc(runs * sizeof *all.pieces)), 0 };
	for (int i = 0; i < n; i++) {
		all.whole[i] = shape_parameter(&m->whole, i);
		own_slice(&all, m, o, i, before);
		before += m->params[i].about.count;
	}
	return all;
}

static void free_slices(OwnedSlices *all)
{
	free(all->whole);
	free(all->pieces);
}

void part_save(Model *m, Optimizer *o, Comm *group, const char *path,
	long position)
{
	OwnedSlices own = own_slices(m, o);
	for (int i = 0; i < own.n; i++)
		if (own.pieces[i].replicated && comm_rank(group) > 0)
			own.pieces[i].n = 0;
	save_owned(path, group, m, o, own.pieces, own.n, position);
	free_slices(&own);
}

long part_load(Model *m, Optimizer *o, const TensorFile *f, const char *path)
{
	OwnedSlices own = own_slices(m, o);
	long position = load_owned(f, path, m, o, own.pieces, own.n);
	model_weights_changed(m);
	free_slices(&own);
	return position;
}

// save, load and free what trains a model
void trainer_save(Trainer *t, Comm *c, const char *path, long position)
{
	if (t->zero)
		zero_save(t->zero, path, position);
	else if (t->sharded)
		owners_save(t->sharded, t->m, c, path, position);
	else
		replica_save(t->m, t->o, c, path, position);
}

long trainer_load(Trainer *t, const char *path)
{
	TensorFile *f = tensorfile_open(path);
	long position = t->zero ? zero_load(t->zero, f, path)
		: t->sharded ? owners_load(t->sharded, t->m, f, path)
		: replica_load(t->m, t->o, f, path);
	tensorfile_close(&f);
	return position;
}

void trainer_free(Trainer *t)
{
	if (t->zero)
		zero_free(&t->zero);
	else if (t->sharded)
		sharded_model_free(&t->sharded);
	else
		optimizer_free(&t->own);
	if (t->ddp)
		ddp_free(&t->ddp);
	model_free(&t->m);
}
