/* resume.h: checkpoints from which training goes on, at any number of ranks */
#ifndef DIST_RESUME_H
#define DIST_RESUME_H

#include "dist/ddp.h"
#include "dist/sharded_model.h"
#include "dist/zero.h"
#include "train/checkpoint.h"

// declare saving and loading of every strategy
/* All ranks call these, between steps. position: of the data that come next, as
 * the caller counts it, 0 to MOST_POSITION; loading returns it. The optimizer's
 * settings stay as they are. A file of another model or optimizer exits 2 */
#define MOST_POSITION (1L << 53)
/* replica: each rank has the whole model and its optimizer's state, under data
 * parallelism; or there is one process, which may load without a communicator */
void replica_save(Model *m, Optimizer *o, Comm *c, const char *path,
	long position);
long replica_load(Model *m, Optimizer *o, const TensorFile *f, const char *path);
/* checks that a run can go on: the file is of this model, but for the context,
 * and has this optimizer's state; else exit 2. Returns the last step's number */
long resume_step(const TensorFile *f, const char *path, const Shape *shape,
	const OptimizerKind *kind);
/* part: each rank of a group has a part of the model (dist/tensor.h). All
 * ranks of the group call part_save; where there are several copies of the
 * group, one copy does */
void part_save(Model *m, Optimizer *o, Comm *group, const char *path,
	long position);
long part_load(Model *m, Optimizer *o, const TensorFile *f, const char *path);

// declare a trainer of any strategy
/* a rank's model and what trains it: zero, or ddp with an optimizer that is
 * sharded or its own */
typedef struct Trainer {
	Model *m;
	Zero *zero;                      /* NULL: ddp trains */
	Ddp *ddp;
	ShardedModel *sharded;           /* NULL: own updates */
	Optimizer own, *o;               /* o: the one of the three that is used */
} Trainer;
void trainer_save(Trainer *t, Comm *c, const char *path, long position);
long trainer_load(Trainer *t, const char *path);
void trainer_free(Trainer *t);

#endif
