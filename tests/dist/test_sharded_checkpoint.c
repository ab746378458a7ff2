/* files that all ranks write: contents, and ranks that are killed */
#define _GNU_SOURCE
#include <cblas.h>
#include <dirent.h>
#include <omp.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "dist/pieces.h"
#include "tests/ops/compare.h"
#include "tests/dist/ranks.h"

static char folder[] = "/tmp/test_sharded.XXXXXX";
static char path[64];

static void *shared(size_t nbytes)
{
	void *p = mmap(NULL, nbytes, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(p != MAP_FAILED);
	return p;
}

typedef void Work(Device *d, Comm *c, void *arg);

typedef struct Job {
	CommSettings settings;
	Work *work;
	void *arg;
} Job;

static void be_rank(const Place *place)
{
	const Job *job = place->context;
	alarm(60);
	omp_set_num_threads(1);
	openblas_set_num_threads(1);
	Device *d = device_open("cpu");
	Comm *c = comm_open(link_tcp(place->rank, place->ranks, &place->meeting, 20),
		d, &job->settings);
	job->work(d, c, job->arg);
	comm_close(&c);
	device_close(&d);
}

static void in_ranks(int ranks, CommSettings settings, Work *work, void *arg)
{
	Job job = { settings, work, arg };
	Ended ended[MOST];
	run_ranks(ranks, ended, be_rank, &job);
	for (int r = 0; r < ranks; r++)
		if (ended[r].status != 0)
			fail_msg("rank %d of %d ends with %d: %s", r, ranks, ended[r].status,
				ended[r].said);
}
typedef struct Tensor { const char *name; size_t rows, columns; } Tensor;
static const Tensor tensors[] = {
	{ "one", 0, 1 }, { "layers.0.weight", 7, 13 }, { "three", 0, 3 },
	{ "a.single", 1, 1 }, { "optimizer.m.layers.0.weight", 40, 50 },
	{ "z", 0, 64 }, { "layers.10.weight", 3, 700 },
};
enum { NTENSORS = sizeof tensors / sizeof *tensors, MOST_PIECES = 64 };

static size_t elements_of(int t)
{
	return (tensors[t].rows ? tensors[t].rows : 1) * tensors[t].columns;
}

static float value(int version, int t, size_t i)
{
	return (float)random_truncated(version, t, i, 3);
}

static int by_size(const void *a, const void *b)
{
	const size_t *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

/* of tensor t, those that the deal gives to this rank; in no order */
static int deal_tensor(int deal, int t, int rank, int ranks, Piece *p)
{
	size_t count = elements_of(t), cuts[2 * MOST + 1] = { 0 };
	int n = 0, parts = 2 * ranks;
	for (int k = 1; k <= parts; k++)
		cuts[k] = k == parts ? count
			: random_bits(deal, t, k) % (count + 1);
	qsort(cuts, parts + 1, sizeof *cuts, by_size);
	for (int k = parts - 1; k >= 0; k--)
		if (random_bits(deal, t, 100 + k) % ranks == (unsigned)rank)
			p[n++] = (Piece){ tensors[t].name, tensors[t].rows,
				tensors[t].columns, cuts[k], cuts[k + 1] - cuts[k],
				{ NULL, FP32 } };
	return n;
}

static int tensor_of(const Piece *p)
{
	int t = 0;
	while (strcmp(tensors[t].name, p->name) != 0)
		t++;
	return t;
}

/* version < 0: of NaN */
static int deal_pieces(Device *d, int deal, int rank, int ranks, int version,
	Piece *p)
{
	int n = 0;
	for (int t = 0; t < NTENSORS; t++)
		n += deal_tensor(deal, t, rank, ranks, p + n);
	for (int k = 0; k < n; k++) {
		p[k].at = array_new(d, p[k].n + 1, TYPE_REAL, MEM_PARAMETER, "piece");
		for (size_t i = 0; i < p[k].n; i++)
			reals(p[k].at)[i] = version < 0 ? NAN
				: value(version, tensor_of(&p[k]), p[k].begin + i);
	}
	return n;
}

static void free_pieces(Device *d, Piece *p, int n)
{
	for (int k = 0; k < n; k++)
		device_free(d, p[k].at.at);
}

typedef struct Version {
	int deal, version;
	const char *name;                /* of the file; NULL: path */
} Version;

static const CommSettings by_ring = { .transport = "ring" };

static void save_version(Device *d, Comm *c, void *arg)
{
	const Version *v = arg;
	Piece p[MOST_PIECES];
	char text[16];
	snprintf(text, sizeof text, "%d", v->version);
	int n = deal_pieces(d, v->deal, comm_rank(c), comm_ranks(c), v->version, p);
	pieces_save(v->name ? v->name : path, c, d, p, n,
		(const char *const[]){ "version", text, NULL });
	free_pieces(d, p, n);
}
static int by_name(const void *a, const void *b)
{
	return strcmp(((const TensorView *)a)->name, ((const TensorView *)b)->name);
}

/* by one process, from whole tensors */
static void write_version(const char *to, int version)
{
	TensorView views[NTENSORS];
	char text[16];
	snprintf(text, sizeof text, "%d", version);
	for (int t = 0; t < NTENSORS; t++) {
		size_t count = elements_of(t);
		float *data = malloc(count * sizeof *data);
		for (size_t i = 0; i < count; i++)
			data[i] = value(version, t, i);
		views[t] = (TensorView){ tensors[t].name, "F32", 2, { tensors[t].rows,
			tensors[t].columns }, count, data };
		if (tensors[t].rows == 0)
			views[t].ndim = 1, views[t].shape[0] = count;
	}
	qsort(views, NTENSORS, sizeof *views, by_name);
	tensorfile_write(to, views, NTENSORS, (const char *const[]){ "version", text,
		NULL });
	for (int t = 0; t < NTENSORS; t++)
		free((void *)views[t].data);
}

static void *contents(const char *name, size_t *nbytes)
{
	FILE *f = fopen(name, "r");
	assert_non_null(f);
	void *bytes = malloc(1 << 20);
	*nbytes = fread(bytes, 1, 1 << 20, f);
	assert_true(*nbytes < 1 << 20);
	fclose(f);
	return bytes;
}

static void expect_equal_files(const char *a, const char *b)
{
	size_t na, nb;
	void *x = contents(a, &na), *y = contents(b, &nb);
	assert_int_equal(na, nb);
	assert_memory_equal(x, y, na);
	free(x);
	free(y);
}

static bool only_one_file(void)
{
	int files = 0;
	DIR *d = opendir(folder);
	for (struct dirent *e; (e = readdir(d));)
		files += e->d_name[0] != '.';
	closedir(d);
	return files == 1;
}
static void load_version(Device *d, Comm *c, void *arg)
{
	const Version *v = arg;
	Piece p[MOST_PIECES];
	int n = deal_pieces(d, v->deal, comm_rank(c), comm_ranks(c), -1, p);
	TensorFile *f = tensorfile_open(path);
	pieces_load(f, d, p, n);
	tensorfile_close(&f);
	for (int k = 0; k < n; k++)
		for (size_t i = 0; i < p[k].n; i++) {
			float want = value(v->version, tensor_of(&p[k]), p[k].begin + i);
			if (reals(p[k].at)[i] != want)
				die("%s, element %zu: %g, not %g", p[k].name, p[k].begin + i,
					reals(p[k].at)[i], want);
		}
	free_pieces(d, p, n);
}

static void any_number_of_ranks_reads_what_any_wrote(void **state)
{
	char whole[80];
	snprintf(whole, sizeof whole, "%s/whole", folder);
	for (int ranks = 1; ranks <= MOST; ranks++) {
		Version v = { .deal = ranks, .version = 10 + ranks };
		in_ranks(ranks, by_ring, save_version, &v);
		write_version(whole, v.version);
		expect_equal_files(path, whole);
		for (int others = 1; others <= MOST; others++) {
			v.deal = 10 * ranks + others;
			in_ranks(others, by_ring, load_version, &v);
		}
	}
	remove(whole);
}
typedef struct Kills {
	int first;                       /* version of the next job */
	volatile int *version;           /* that rank 0 is about to save; shared */
} Kills;

static void save_for_ever(Device *d, Comm *c, void *arg)
{
	const Kills *k = arg;
	for (int v = k->first;; v++) {
		if (comm_rank(c) == 0)
			*k->version = v;
		save_version(d, c, &(Version){ .deal = v, .version = v });
	}
}

static void run_and_kill(Kills *k, int job, int ranks)
{
	Job saves = { by_ring, save_for_ever, k };
	Place place = { 0, ranks, meeting_here(), &saves };
	pid_t pid[MOST];
	FILE *said = tmpfile();
	*k->version = 0;
	for (int r = 0; r < ranks; r++) {
		place.rank = r;
		pid[r] = fork_rank(be_rank, &place, said);
	}
	meeting_close(&place.meeting);
	double start = clock_ms();
	while (*k->version < k->first + 1 && clock_ms() - start < 20e3)
		usleep(100);
	assert_true(*k->version > k->first);
	usleep(random_bits(1, 2, job) % 8000);
	kill(pid[random_bits(3, 4, job) % ranks], SIGKILL);
	for (int r = 0; r < ranks; r++)
		waitpid(pid[r], NULL, 0);
	fclose(said);
}

static void a_killed_rank_leaves_a_whole_file(void **state)
{
	enum { JOBS = 50, RANKS = 3 };
	char whole[80], partial[80];
	int left = 0, least = 0;
	Kills k = { 1, shared(sizeof(int)) };
	snprintf(whole, sizeof whole, "%s/whole", folder);
	snprintf(partial, sizeof partial, "%s.partial", path);
	for (int job = 0; job < JOBS; job++) {
		run_and_kill(&k, job, RANKS);
		TensorFile *f = tensorfile_open(path);
		int version = atoi(tensorfile_meta(f, "version"));
		tensorfile_close(&f);
		assert_in_range(version, k.first, *k.version);
		write_version(whole, version);
		expect_equal_files(path, whole);
		remove(whole);
		left += access(partial, F_OK) == 0;
		assert_true(only_one_file() || access(partial, F_OK) == 0);
		assert_true(version >= least);
		least = version;
		k.first = *k.version + 1;
	}
	assert_true(left > 0);
	in_ranks(RANKS, by_ring, save_version, &(Version){ .version = 1 });
	assert_true(only_one_file());
	munmap((void *)k.version, sizeof(int));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_number_of_ranks_reads_what_any_wrote),
		cmocka_unit_test(a_killed_rank_leaves_a_whole_file),
	};
	if (mkdtemp(folder) == NULL)
		return 1;
	snprintf(path, sizeof path, "%s/state.safetensors", folder);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	remove(path);
	return rmdir(folder) != 0 || failed;
}
