#include "dist/tensor.h"

// start and join a collective on the queues
static void start_collective(void *self, const GroupOp *op, GroupSlot slot)
{
	static Event (*const collectives[])(Comm *c, Array x, size_t n,
		const char *what, int index) = { [GROUP_GATHER] = comm_all_gather,
		[GROUP_SCATTER] = comm_reduce_scatter,
		[GROUP_REDUCE] = comm_all_reduce };
	TensorGroup *t = self;
	device_wait(t->device, COMM, device_event(t->device, COMPUTE));
	t->ends[slot] = collectives[op->kind](t->comm, op->x, op->n, op->what, 0);
}

static void join_collective(void *self, GroupSlot slot)
{
	TensorGroup *t = self;
	device_wait(t->device, COMPUTE, t->ends[slot]);
}

// fill in the group
void tensor_group(TensorGroup *t, Device *device, Comm *comm)
{
	*t = (TensorGroup){ .group = { .self = t, .rank = comm_rank(comm),
		.ranks = comm_ranks(comm), .start = start_collective,
		.join = join_collective },
		.device = device, .comm = comm };
}
