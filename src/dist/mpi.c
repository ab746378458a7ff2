/* MPI as a link and as a transport; without it, the question whether it is
 * missed */
#include "dist/link.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"

// ask the environment whether a launcher started us
static int number_in(const char *name)
{
	const char *text = getenv(name);
	return text ? atoi(text) : -1;
}

/* do the variables of Slurm belong to the shell that started us? */
static bool typed_in_shell(void)
{
	return getenv("SLURM_PTY_PORT") && number_in("SLURM_TASK_PID") != getpid();
}

bool link_launched(int *rank, int *ranks)
{
	static const char *const names[][2] = {
		{ "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE" },
		{ "PMI_RANK", "PMI_SIZE" },
		{ "SLURM_PROCID", "SLURM_STEP_NUM_TASKS" },
	};
	size_t n = sizeof names / sizeof *names - typed_in_shell();
	for (size_t i = 0; i < n; i++) {
		*rank = number_in(names[i][0]);
		*ranks = number_in(names[i][1]);
		if (*rank >= 0 && *ranks > 0)
			return *ranks > 1;
	}
	return false;
}
#ifdef HAVE_MPI
#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "base/grow.h"
#include "dist/host_transport.h"
#include "dist/ring.h"
#include "dist/transport.h"

// carry the messages of a link by MPI
typedef struct MpiLink {
	Link link;
	MPI_Comm comm;
} MpiLink;

enum { PIECE = 1 << 30, TAGS = 1 << 15 };

static int piece_of(size_t n)
{
	return n < PIECE ? (int)n : PIECE;
}

// check the messages of MPI
/* made from the collective's number and name, so that another collective shows */
static int tag_of(const Link *l)
{
	const char *name = l->doing ? l->doing : "";
	uint64_t hash = hash_bytes(HASH_START, &l->number, sizeof l->number);
	return (int)(hash_bytes(hash, name, strlen(name)) % TAGS);
}

/* error, status: of the receipt of a message of n bytes from that rank */
static void check_message(const Link *l, int error, const MPI_Status *status,
	int from, int n)
{
	const char *doing = l->doing ? l->doing : "a message";
	int got = 0;
	bool came = n > 0 && error == MPI_SUCCESS;
	if (came)
		MPI_Get_count(status, MPI_BYTE, &got);
	if (came && status->MPI_TAG != tag_of(l))
		die("rank %d: rank %d is in another collective, this one in %s", l->rank,
			from, doing);
	if (n > 0 && (got != n || error == MPI_ERR_TRUNCATE))
		die("rank %d: rank %d sends another number of bytes than %d in %s",
			l->rank, from, n, doing);
	if (error != MPI_SUCCESS)
		die("rank %d: MPI failed in %s (error %d)", l->rank, doing, error);
}

// exchange messages by MPI
static void mpi_exchange(Link *l, int to, const void *out, size_t nout,
	int from, void *in, size_t nin)
{
	MPI_Comm comm = ((MpiLink *)l)->comm;
	while (nout > 0 || nin > 0) {
		MPI_Status status;
		int o = piece_of(nout), i = piece_of(nin);
		int error = MPI_Sendrecv(out, o, MPI_BYTE, o ? to : MPI_PROC_NULL,
			tag_of(l), in, i, MPI_BYTE, i ? from : MPI_PROC_NULL,
			MPI_ANY_TAG, comm, &status);
		check_message(l, error, &status, from, i);
		out = (const char *)out + o, nout -= o;
		in = (char *)in + i, nin -= i;
	}
}

// start MPI, and end it
static int mpi_links;

static void mpi_close(Link *l)
{
	MPI_Comm_free(&((MpiLink *)l)->comm);
	free(l);
	if (--mpi_links == 0)
		MPI_Finalize();
}

// start MPI once
static void expect_pmix(int ranks)
{
#ifdef OPEN_MPI
	if (getenv("SLURM_PROCID") && getenv("PMIX_RANK") == NULL)
		usage_error("srun started %d tasks without PMIx, by which Open MPI joins "
			"them: srun --mpi=pmix", ranks);
#endif
}

static void start_mpi(int ranks)
{
	int level, seen;
	if (mpi_links++ > 0)
		return;
	expect_pmix(ranks);
	MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level);
	if (level < MPI_THREAD_MULTIPLE)
		die("this MPI does not let two threads call it");
	MPI_Comm_size(MPI_COMM_WORLD, &seen);
	if (seen != ranks)
		die("%d processes were started, and MPI sees %d: is the launcher that of "
			"this MPI (srun --mpi=pmix)?", ranks, seen);
}

// open a link of MPI
static Link *open_mpi(int ranks)
{
	MpiLink *m = need(calloc(1, sizeof *m));
	MPI_Comm host;
	start_mpi(ranks);
	m->link = (Link){ .name = "mpi", .ranks = ranks, .exchange = mpi_exchange,
		.close = mpi_close };
	MPI_Comm_dup(MPI_COMM_WORLD, &m->comm);
	MPI_Comm_set_errhandler(m->comm, MPI_ERRORS_RETURN);
	MPI_Comm_rank(m->comm, &m->link.rank);
	MPI_Comm_split_type(m->comm, MPI_COMM_TYPE_SHARED, m->link.rank,
		MPI_INFO_NULL, &host);
	MPI_Comm_rank(host, &m->link.local_rank);
	MPI_Comm_size(host, &m->link.local_ranks);
	MPI_Comm_free(&host);
	return &m->link;
}

// let MPI do the collectives
static MPI_Comm comm_of(const Link *l)
{
	return ((const MpiLink *)l)->comm;
}

static void mpi_expect(const Link *l, int error)
{
	if (error != MPI_SUCCESS)
		die("rank %d: MPI failed in %s (error %d)", l->rank, l->doing, error);
}

// sum and broadcast by MPI
static void mpi_all_reduce(Link *l, void *x, size_t n, Type type, void *scratch)
{
	if (type != FP32) {
		link_all_reduce(l, x, n, type, scratch);
		return;
	}
	for (size_t i = 0; i < n; i += PIECE)
		mpi_expect(l, MPI_Allreduce(MPI_IN_PLACE, (float *)x + i,
			piece_of(n - i), MPI_FLOAT, MPI_SUM, comm_of(l)));
}

static void mpi_broadcast(Link *l, void *x, size_t nbytes, int root)
{
	for (size_t i = 0; i < nbytes; i += PIECE)
		mpi_expect(l, MPI_Bcast((char *)x + i, piece_of(nbytes - i), MPI_BYTE,
			root, comm_of(l)));
}

// list shards for MPI
enum { MOST_MPI_RANKS = 1024 };
typedef struct Shards { int n[MOST_MPI_RANKS], begin[MOST_MPI_RANKS]; } Shards;

static const Shards *shards_of(const Link *l, size_t n)
{
	static Shards s;
	if (n > INT_MAX)
		die("rank %d: %zu elements are too many for MPI in %s", l->rank, n,
			l->doing);
	for (int r = 0; r < l->ranks; r++) {
		s.begin[r] = (int)shard_begin(n, r, l->ranks);
		s.n[r] = (int)shard_begin(n, r + 1, l->ranks) - s.begin[r];
	}
	return &s;
}

// reduce and gather shards by MPI
static void mpi_reduce_scatter(Link *l, void *x, size_t n, Type type,
	void *scratch)
{
	if (type != FP32) {
		link_reduce_scatter(l, x, n, type, scratch);
		return;
	}
	const Shards *s = shards_of(l, n);
	mpi_expect(l, MPI_Reduce_scatter(x, scratch, s->n, MPI_FLOAT, MPI_SUM,
		comm_of(l)));
	memcpy((float *)x + s->begin[l->rank], scratch,
		s->n[l->rank] * sizeof(float));
}

static void mpi_all_gather(Link *l, void *x, size_t n, Type type)
{
	const Shards *s = shards_of(l, n);
	mpi_expect(l, MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, x, s->n,
		s->begin, type == FP32 ? MPI_FLOAT : MPI_UINT16_T, comm_of(l)));
}

// describe MPI as a transport
static const char *mpi_why_unavailable(const Link *link, const Device *device)
{
	return strcmp(link->name, "mpi") == 0 && link->ranks <= MOST_MPI_RANKS ? NULL
		: "the ranks were not started by mpirun or srun";
}

static void *open_mpi_transport(Link *link, Device *device,
	const CommSettings *settings)
{
	return host_open(link, device, (HostCollectives){ mpi_all_reduce,
		mpi_reduce_scatter, mpi_all_gather, mpi_broadcast });
}

static const char *mpi_library(void)
{
	static char text[MPI_MAX_LIBRARY_VERSION_STRING];
	int n;
	MPI_Get_library_version(text, &n);
	text[strcspn(text, ",\n")] = '\0';
	return text;
}

const Transport mpi_transport = { .name = "mpi",
	.why_unavailable = mpi_why_unavailable,
	.open = open_mpi_transport, .close = host_close, .queue = host_queue,
	.library = mpi_library, .exchanges = host_exchanges };
#endif

// open the link of a launched job
Link *link_mpi(void)
{
	int rank, ranks;
	if (!link_launched(&rank, &ranks))
		return NULL;
#ifdef HAVE_MPI
	return open_mpi(ranks);
#else
	usage_error("started as one of %d processes, but built without MPI "
		"(install libopenmpi-dev, then make again)", ranks);
#endif
}
