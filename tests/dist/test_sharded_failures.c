/* files that all ranks write: what ends a save or a load, and what is left */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/file.h"
#include "tests/dist/versions.h"

// save pieces that do not tile
typedef enum { SHORT, LONG, OTHER_SHAPE, LOST, NFAULTS } FaultKind;
typedef struct ShardedFault {
	FaultKind kind;
	int deal;
	size_t element;                  /* of tensor FAULTY; the piece has it */
} ShardedFault;
enum { FAULTY = 4, RANKS = 3 };

/* the piece of tensor FAULTY that has the fault's element; returns its rank */
static int find_piece(const ShardedFault *f, Piece *found)
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
	const ShardedFault *f = arg;
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
static const char *fault_text(const ShardedFault *f)
{
	static char text[200];
	Piece p;
	ShardedFault after = *f;
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
	all_refuse(ranks, work, arg, status, said);
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
			ShardedFault f = { kind, 5, i ? elements_of(FAULTY) - 1 : 1000 };
			expect_failure(RANKS, save_with_fault, &f, 1, fault_text(&f), 1);
		}
}

// save where it cannot be written
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

// save where rank 0 alone fails
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

static void names_of_folders_are_refused(void **state)
{
	char said[160], name[80], partial[96];
	snprintf(name, sizeof name, "%s/taken", folder);
	snprintf(partial, sizeof partial, "%s.partial", name);
	snprintf(said, sizeof said, "rank 0 cannot write %s: %s", name,
		strerror(EISDIR));
	assert_int_equal(mkdir(name, 0777), 0);
	for (int ranks = 1; ranks <= 3; ranks += 2)
		all_refuse(ranks, save_version, &(Version){ 1, 2, name }, 1, said);
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
		all_refuse(ranks, save_version, &(Version){ 1, 2, other }, 2, said);
		assert_int_equal(access(partial, F_OK), 0);
	}
	fclose(held);
	assert_int_equal(remove(partial), 0);
}

// load files that do not fit
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

static void files_that_do_not_fit_are_refused(void **state)
{
	static const int cuts[] = { 1, 5000 };
	for (int i = 0; i < 2; i++) {
		size_t nbytes;
		write_version(path, 1);
		free(contents(path, &nbytes));
		assert_int_equal(truncate(path, nbytes - cuts[i]), 0);
		all_refuse(2, load_any, NULL, 2, "offset");
	}
	write_one("F32", 40, 50);
	in_ranks(2, by_ring, load_one, NULL);
	all_refuse(2, load_any, NULL, 2, "has no tensor");
	write_one("F32", 50, 40);
	all_refuse(2, load_one, NULL, 2, "expected shape (40, 50)");
	write_one("F32", 40, 49);
	all_refuse(2, load_one, NULL, 2, "expected 2000 of F32");
	write_one("F64", 40, 50);
	all_refuse(2, load_one, NULL, 2, "elements of F64");
}

TESTS_BETWEEN(make_folder, NULL,
	cmocka_unit_test(pieces_that_do_not_tile_are_refused),
	cmocka_unit_test(failures_leave_the_old_file),
	cmocka_unit_test(folders_that_cannot_be_written_are_refused),
	cmocka_unit_test(long_headers_that_cannot_be_written_are_noticed),
	cmocka_unit_test(names_of_folders_are_refused),
	cmocka_unit_test(files_that_another_program_writes_are_refused),
	cmocka_unit_test(files_that_do_not_fit_are_refused),
	cmocka_unit_test(no_other_file_is_left))
