/* files that all ranks write: what ends a save or a load, and what is left */
#define _GNU_SOURCE
#include <cblas.h>
#include <dirent.h>
#include <errno.h>
#include <omp.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/file.h"
#include "dist/pieces.h"
#include "tests/ops/compare.h"
#include "tests/dist/ranks.h"

static char folder[] = "/tmp/test_sharded.XXXXXX";
static char path[64];

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
static void save_many(Device *d, Comm *c, void *arg)
{
	enum { MANY = 200 };
	static char names[MANY][32];
	Piece p[MANY];
	Array x = array_new(d, MANY, TYPE_REAL, MEM_PARAMETER, "x");
	memset(x.at, 0, MANY * sizeof(real));
	for (int i = 0; i < MANY; i++) {
		snprintf(names[i], sizeof names[i], "tensor.%d", i);
		p[i] = (Piece){ names[i], 0, 1, 0, 1, array_part(d, x, i) };
	}
	signal(SIGXFSZ, SIG_IGN);
	if (comm_rank(c) == 0)
		setrlimit(RLIMIT_FSIZE, &(struct rlimit){ 200, 200 });
	pieces_save(path, c, d, p, comm_rank(c) == 1 ? MANY : 0, NULL);
	device_free(d, x.at);
}

static void long_headers_that_cannot_be_written_are_noticed(void **state)
{
	char said[120];
	write_version(path, 1);
	snprintf(said, sizeof said, "rank 0 cannot write %s: %s", path,
		strerror(EFBIG));
	expect_failure(3, save_many, NULL, 1, said, 1);
}

/* all ranks end with this status, and say this and nothing else */
static void expect_all_say(int ranks, const char *name, int status,
	const char *said)
{
	Job job = { by_ring, save_version, &(Version){ .deal = 1, .version = 2,
		.name = name } };
	Ended ended[MOST];
	run_ranks(ranks, ended, be_rank, &job);
	for (int r = 0; r < ranks; r++) {
		const char *end = strchr(ended[r].said, '\n');
		if (ended[r].status != status || !strstr(ended[r].said, said) || !end
			|| end[1])
			fail_msg("rank %d ends with %d: %s", r, ended[r].status,
				ended[r].said);
	}
}

static void names_of_folders_are_refused(void **state)
{
	char said[160], name[80], partial[96];
	snprintf(name, sizeof name, "%s/taken", folder);
	snprintf(partial, sizeof partial, "%s.partial", name);
	snprintf(said, sizeof said, "rank 0 cannot write %s: %s", name,
		strerror(EISDIR));
	assert_int_equal(mkdir(name, 0777), 0);
	for (int ranks = 1; ranks <= 3; ranks += 2)
		expect_all_say(ranks, name, 1, said);
	assert_int_equal(access(partial, F_OK), -1);
	assert_int_equal(rmdir(name), 0);
}

static void files_that_another_program_writes_are_refused(void **state)
{
	char said[160], other[80], partial[96];
	snprintf(other, sizeof other, "%s.other", path);
	snprintf(partial, sizeof partial, "%s.partial", other);
	snprintf(said, sizeof said, "rank 0 cannot write %s: another program is "
		"writing it", other);
	FILE *held = file_begin(other);
	for (int ranks = 1; ranks <= 3; ranks += 2) {
		expect_all_say(ranks, other, 2, said);
		assert_int_equal(access(partial, F_OK), 0);
	}
	fclose(held);
	assert_int_equal(remove(partial), 0);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pieces_that_do_not_tile_are_refused),
		cmocka_unit_test(failures_leave_the_old_file),
		cmocka_unit_test(folders_that_cannot_be_written_are_refused),
		cmocka_unit_test(long_headers_that_cannot_be_written_are_noticed),
		cmocka_unit_test(names_of_folders_are_refused),
		cmocka_unit_test(files_that_another_program_writes_are_refused),
		cmocka_unit_test(files_that_do_not_fit_are_refused),
	};
	if (mkdtemp(folder) == NULL)
		return 1;
	snprintf(path, sizeof path, "%s/state.safetensors", folder);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	remove(path);
	return rmdir(folder) != 0 || failed;
}
