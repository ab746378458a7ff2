/* files that all ranks write: contents, errors, and ranks that are killed */
#define _GNU_SOURCE
#include <cblas.h>
#include <dirent.h>
#include <errno.h>
#include <omp.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "dist/pieces.h"
#include "dist/ring.h"
#include "tests/ops/compare.h"
#include "tests/dist/ranks.h"
#include "train/checkpoint.h"

static char folder[] = "/tmp/test_sharded.XXXXXX";
static char path[64];

typedef void Work(Device *d, Comm *c, void *arg);

static void *shared(size_t nbytes)
{
	void *p = mmap(NULL, nbytes, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(p != MAP_FAILED);
	return p;
}

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

static const CommSettings by_ring = { .transport = "ring" };

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
static const Shape small_shape = { 31, 6, 12, 10, 2, 3, 4, 10000 };

static void save_model(Device *d, Comm *c, void *arg)
{
	Model *m = model_new(d, &small_shape, &policies[POLICY_FP32], 3);
	Metadata meta = { 0 };
	char names[MOST_PIECES][80];
	Piece p[2 * MOST_PIECES];
	int n = shape_nparameters(&m->shape), rank = comm_rank(c);
	assert_true(n <= MOST_PIECES);
	for (int i = 0; i < n; i++) {
		const Parameter *about = &m->params[i].about;
		size_t begin = shard_begin(about->count, rank, comm_ranks(c)),
			end = shard_begin(about->count, rank + 1, comm_ranks(c));
		p[i] = (Piece){ about->name, about->gain ? 0 : about->rows,
			about->columns, begin, end - begin,
			array_part(d, model_weight(m, i), begin) };
		snprintf(names[i], sizeof names[i], "optimizer.m.%s", about->name);
		p[n + i] = p[i];
		p[n + i].name = names[i];
	}
	metadata_shape(&meta, &m->shape);
	pieces_save(path, c, d, p, 2 * n, meta.pairs);
	model_free(&m);
}

static void load_model(Device *d, Comm *c, void *arg)
{
	TensorFile *f = tensorfile_open(path);
	Shape shape = checkpoint_shape(f, path);
	Model *m = model_new(d, &shape, &policies[POLICY_FP32], 4),
		*want = model_new(d, &small_shape, &policies[POLICY_FP32], 3);
	checkpoint_load(m, f);
	if (memcmp(m->weights.at, want->weights.at, m->extent * sizeof(real)) != 0)
		die("the weights are others");
	tensorfile_close(&f);
	model_free(&m);
	model_free(&want);
}

static void one_process_reads_the_weights(void **state)
{
	in_ranks(3, by_ring, save_model, NULL);
	in_ranks(1, by_ring, load_model, NULL);
}
typedef enum { SHORT, LONG, OTHER_SHAPE, LOST, NFAULTS } FaultKind;
typedef struct Fault {
	FaultKind kind;
	int deal;
	size_t element;                  /* of tensor FAULTY; the piece has it */
} Fault;
enum { FAULTY = 4, RANKS = 3 };

/* the piece of tensor FAULTY that has the fault's element; returns its rank */
static int find_piece(const Fault *f, Piece *found)
{
	for (int r = 0; r < RANKS; r++) {
		Piece p[2 * MOST];
		int n = deal_tensor(f->deal, FAULTY, r, RANKS, p);
		for (int k = 0; k < n; k++)
			if (p[k].begin <= f->element && f->element < p[k].begin + p[k].n) {
				*found = p[k];
				return r;
			}
	}
	fail_msg("no rank has element %zu", f->element);
	return -1;
}

static void save_with_fault(Device *d, Comm *c, void *arg)
{
	const Fault *f = arg;
	Piece p[MOST_PIECES], found;
	int n = deal_pieces(d, f->deal, comm_rank(c), comm_ranks(c), 2, p),
		rank = find_piece(f, &found);
	for (int k = 0; k < n && rank == comm_rank(c); k++)
		if (tensor_of(&p[k]) == FAULTY && p[k].n > 0
			&& p[k].begin == found.begin) {
			p[k].n += (f->kind == LONG) - (f->kind == SHORT);
			if (f->kind == LOST)
				p[k].n = 0;
			else if (f->kind == OTHER_SHAPE)
				p[k].rows = 50, p[k].columns = 40;
		}
	pieces_save(path, c, d, p, n, NULL);
}

/* what the line must say */
static const char *fault_text(const Fault *f)
{
	static char text[200];
	Piece p;
	Fault after = *f;
	int rank = find_piece(f, &p);
	size_t end = p.begin + p.n, first = f->kind == LOST ? p.begin : end - 1;
	bool last = end == elements_of(FAULTY);
	after.element = end;
	if (f->kind == OTHER_SHAPE)
		snprintf(text, sizeof text, "(50, 40) on rank %d", rank);
	else if (f->kind != LONG)
		snprintf(text, sizeof text, "no rank has elements %zu to %zu of %s",
			first, end - 1, p.name);
	else if (last)
		snprintf(text, sizeof text, "rank %d has element %zu of %s, which has "
			"%zu", rank, end, p.name, end);
	else
		snprintf(text, sizeof text, "rank %d and rank %d both have element %zu "
			"of %s", rank, find_piece(&after, &p), end, tensors[FAULTY].name);
	return text;
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

/* all ranks end with this status, and say this; the file is that version */
static void expect_failure(int ranks, Work *work, void *arg, int status,
	const char *said, int version)
{
	char whole[80];
	Job job = { by_ring, work, arg };
	Ended ended[MOST];
	run_ranks(ranks, ended, be_rank, &job);
	for (int r = 0; r < ranks; r++) {
		if (ended[r].status != status || !strstr(ended[r].said, said))
			fail_msg("rank %d ends with %d, not %d: '%s', not '%s'", r,
				ended[r].status, status, ended[r].said, said);
		assert_ptr_equal(strchr(ended[r].said, '\n') + 1,
			ended[r].said + strlen(ended[r].said));
	}
	assert_true(only_one_file());
	snprintf(whole, sizeof whole, "%s/whole", folder);
	write_version(whole, version);
	expect_equal_files(path, whole);
	remove(whole);
}

static void pieces_that_do_not_tile_are_refused(void **state)
{
	write_version(path, 1);
	for (FaultKind kind = 0; kind < NFAULTS; kind++)
		for (int i = 0; i < 2; i++) {
			Fault f = { kind, 5, i ? elements_of(FAULTY) - 1 : 1000 };
			expect_failure(RANKS, save_with_fault, &f, 1, fault_text(&f), 1);
		}
}
typedef struct Limit { int rank; size_t nbytes; } Limit;

static void save_under_limit(Device *d, Comm *c, void *arg)
{
	const Limit *limit = arg;
	signal(SIGXFSZ, SIG_IGN);
	if (comm_rank(c) == limit->rank)
		setrlimit(RLIMIT_FSIZE, &(struct rlimit){ limit->nbytes,
			limit->nbytes });
	save_version(d, c, &(Version){ .deal = 3, .version = 2 });
}

static void failures_leave_the_old_file(void **state)
{
	write_version(path, 1);
	for (int rank = 0; rank < 3; rank++) {
		Limit limits[] = { { rank, 200 }, { rank, 3000 } };
		char said[120];
		snprintf(said, sizeof said, "rank %d cannot write %s: %s", rank, path,
			strerror(EFBIG));
		for (int i = 0; i < 2; i++)
			expect_failure(3, save_under_limit, &limits[i], 1, said, 1);
	}
	in_ranks(3, by_ring, save_version, &(Version){ .deal = 3, .version = 2 });
}

static void folders_that_cannot_be_written_are_refused(void **state)
{
	static const char *const names[] = { "/dev/null/state", "/nowhere/at/all" };
	write_version(path, 1);
	for (int i = 0; i < 2; i++)
		expect_failure(2, save_version, &(Version){ .deal = 1, .version = 2,
			.name = names[i] }, 2, names[i], 1);
}
static void load_any(Device *d, Comm *c, void *arg)
{
	Piece p[MOST_PIECES];
	int n = deal_pieces(d, 1, comm_rank(c), comm_ranks(c), -1, p);
	pieces_load(tensorfile_open(path), d, p, n);
}

/* the file has one tensor, in the place of tensor 4 */
static void write_one(const char *dtype, size_t rows, size_t columns)
{
	static const double zeros[4000];
	const TensorView view = { .name = tensors[4].name, .ndim = 2,
		.shape = { rows, columns }, .count = rows * columns, .data = zeros };
	TensorView typed = view;
	snprintf(typed.dtype, sizeof typed.dtype, "%s", dtype);
	tensorfile_write(path, &typed, 1, NULL);
}

static void load_one(Device *d, Comm *c, void *arg)
{
	Array x = array_new(d, 2000, TYPE_REAL, MEM_PARAMETER, "x");
	Piece p = { tensors[4].name, tensors[4].rows, tensors[4].columns, 10, 20, x };
	pieces_load(tensorfile_open(path), d, &p, 1);
	device_free(d, x.at);
}

static void expect_refused(Work *work, const char *said)
{
	Job job = { by_ring, work, NULL };
	Ended ended[MOST];
	run_ranks(2, ended, be_rank, &job);
	for (int r = 0; r < 2; r++) {
		assert_int_equal(ended[r].status, 2);
		if (!strstr(ended[r].said, said))
			fail_msg("rank %d says %s", r, ended[r].said);
	}
}

static void files_that_do_not_fit_are_refused(void **state)
{
	static const int cuts[] = { 1, 5000 };
	for (int i = 0; i < 2; i++) {
		size_t nbytes;
		write_version(path, 1);
		free(contents(path, &nbytes));
		assert_int_equal(truncate(path, nbytes - cuts[i]), 0);
		expect_refused(load_any, "offset");
	}
	write_one("F32", 40, 50);
	in_ranks(2, by_ring, load_one, NULL);
	expect_refused(load_any, "has no tensor");
	write_one("F32", 50, 40);
	expect_refused(load_one, "expected shape (40, 50)");
	write_one("F32", 40, 49);
	expect_refused(load_one, "expected 2000 of F32");
	write_one("F64", 40, 50);
	expect_refused(load_one, "elements of F64");
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
	enum { JOBS = 50 };
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
		cmocka_unit_test(one_process_reads_the_weights),
		cmocka_unit_test(pieces_that_do_not_tile_are_refused),
		cmocka_unit_test(failures_leave_the_old_file),
		cmocka_unit_test(folders_that_cannot_be_written_are_refused),
		cmocka_unit_test(files_that_do_not_fit_are_refused),
		cmocka_unit_test(a_killed_rank_leaves_a_whole_file),
	};
	if (mkdtemp(folder) == NULL)
		return 1;
	snprintf(path, sizeof path, "%s/state.safetensors", folder);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	remove(path);
	return rmdir(folder) != 0 || failed;
}
