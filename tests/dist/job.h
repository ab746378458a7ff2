/* job.h: work that ranks do in one communicator */
#ifndef TESTS_JOB_H
#define TESTS_JOB_H

#include <cblas.h>
#include <omp.h>
#include <sys/mman.h>

#include "dist/comm.h"
#include "model/model.h"
#include "tests/dist/ranks.h"

// share memory among ranks
static inline void *shared(size_t nbytes)
{
	void *p = mmap(NULL, nbytes, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(p != MAP_FAILED);
	return p;
}

/* one parameter after the other */
static inline void read_weights(Model *m, real *to)
{
	for (int i = 0; i < shape_nparameters(&m->shape); i++) {
		array_read(m->device, to, model_weight(m, i), m->params[i].about.count);
		to += m->params[i].about.count;
	}
}

// join and leave a communicator
static inline void use_one_thread(void)
{
	omp_set_num_threads(1);
	openblas_set_num_threads(1);
}

static inline Device *open_device(const char *name, int rank)
{
	char numbered[32];
	snprintf(numbered, sizeof numbered, "%s%d", name, rank);
	use_one_thread();
	return device_open(strchr(name, ':') ? numbered : name);
}

static inline Link *meet_all(const Place *p, const Device *d)
{
	return link_tcp(p->rank, p->ranks, &p->meeting,
		strcmp(d->backend->name, "cpu") == 0 ? 20 : 60);
}

static inline Comm *join(const Place *p, const char *device,
	const CommSettings *settings, Device **d)
{
	*d = open_device(device, p->rank);
	return comm_open(meet_all(p, *d), *d, settings);
}

static inline void leave(Comm *c, Device *d)
{
	comm_close(&c);
	device_close(&d);
}

// do a job in every rank
typedef void Work(Device *d, Comm *c, void *arg);

typedef struct Job {
	const char *device;
	CommSettings settings;
	Work *work;
	void *arg;
} Job;

static const CommSettings by_ring = { .transport = "ring" },
	by_owner = { .transport = "owner" };

static inline void be_rank(const Place *place)
{
	const Job *job = place->context;
	Device *d;
	Comm *c = join(place, job->device, &job->settings, &d);
	job->work(d, c, job->arg);
	leave(c, d);
}

static inline void in_ranks(int ranks, CommSettings settings, Work *work,
	void *arg)
{
	run_well(ranks, be_rank, &(Job){ "cpu", settings, work, arg });
}

/* over the ring all ranks end with this status, and say these words */
static inline void all_refuse(int ranks, Work *work, void *arg, int status,
	const char *words)
{
	all_end(ranks, be_rank, &(Job){ "cpu", by_ring, work, arg }, status, words);
}

// look for GPUs
static inline void open_gpus(void *count)
{
	for (int i = 0; i < *(int *)count; i++) {
		Device *d = open_device("cuda:", i);
		device_close(&d);
	}
}

static inline bool have_gpus(int count)
{
	int status = exit_status(open_gpus, &count);
	assert_true(status == 0 || status == 2);       /* 2: fewer GPUs */
	return status == 0;
}

#endif
