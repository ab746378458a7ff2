#include "dist/fp8_ranks.h"

#include "model/fp8.h"

void fp8_ranks_join(Model *m, Comm *c)
{
	if (!fp8_delays(m))
		return;
	size_t n = comm_ranks(c) * m->fp8->sites;
	Array seen = comm_array(c, n, TYPE_REAL, MEM_PARAMETER, "fp8 maxima");
	m->ops->fill(m->device, seen, 0, n);
	fp8_share(m, seen, comm_rank(c), comm_ranks(c));
}

void fp8_ranks_leave(Model *m)
{
	if (fp8_delays(m))
		fp8_share(m, (Array){ NULL, TYPE_REAL }, 0, 1);
}

void fp8_ranks_gather(Model *m, Comm *c)
{
	if (!fp8_delays(m))
		return;
	device_wait(m->device, COMM, device_event(m->device, COMPUTE));
	device_wait(m->device, COMPUTE, comm_all_gather(c, m->fp8->seen,
		comm_ranks(c) * m->fp8->sites, "fp8 maxima", 0));
}
