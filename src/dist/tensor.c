#include "dist/tensor.h"

static void start(void *self, const GroupOp *op, GroupSlot slot)
{
	static Event (*const collectives[])(Comm *c, Array x, size_t n,
		const char *what, int index) = { [GROUP_GATHER] = comm_all_gather,
		[GROUP_SCATTER] = comm_reduce_scatter,
		[GROUP_REDUCE] = comm_all_reduce };
	TensorGroup *t = self;
	device_wait(t->device, COMM, device_event(t->device, COMPUTE));
	t->ends[slot] = collectives[op->kind](t->comm, op->x, op->n, op->what, 0);
}

static void join(void *self, GroupSlot slot)
{
	TensorGroup *t = self;
	device_wait(t->device, COMPUTE, t->ends[slot]);
}

void tensor_group(TensorGroup *t, Device *device, Comm *comm)
{
	*t = (TensorGroup){ .group = { .self = t, .rank = comm_rank(comm),
		.ranks = comm_ranks(comm), .start = start, .join = join },
		.device = device, .comm = comm };
}
