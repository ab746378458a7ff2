#include "dist/tensor.h"

static void follow_compute(const TensorGroup *t)
{
	device_wait(t->device, COMM, device_event(t->device, COMPUTE));
}

static void all_gather(void *self, Array x, size_t n, const char *what)
{
	TensorGroup *t = self;
	follow_compute(t);
	device_wait(t->device, COMPUTE, comm_all_gather(t->comm, x, n, what, 0));
}

static void reduce_scatter(void *self, Array x, size_t n, const char *what)
{
	TensorGroup *t = self;
	follow_compute(t);
	device_wait(t->device, COMPUTE, comm_reduce_scatter(t->comm, x, n, what, 0));
}

static void all_reduce(void *self, Array x, size_t n, const char *what)
{
	TensorGroup *t = self;
	follow_compute(t);
	device_wait(t->device, COMPUTE, comm_all_reduce(t->comm, x, n, what, 0));
}

void tensor_group(TensorGroup *t, Device *device, Comm *comm)
{
	*t = (TensorGroup){ .group = { t, comm_rank(comm), comm_ranks(comm),
		all_gather, reduce_scatter, all_reduce }, .device = device,
		.comm = comm };
}
