/* files that all ranks write: contents, and ranks that are killed */
#define _GNU_SOURCE
#include "base/clock.h"
#include "tests/dist/versions.h"

// save at each number of ranks and load at each
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

// kill a rank while it saves
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
	Job saves = { "cpu", by_ring, save_for_ever, k };
	Place place = { 0, ranks, meeting_here(), &saves };
	pid_t pid[MOST];
	FILE *said = memory_file();
	*k->version = 0;
	// fork the ranks of the job
	for (int r = 0; r < ranks; r++) {
		place.rank = r;
		pid[r] = fork_rank(be_rank, &place, said);
	}
	meeting_close(&place.meeting);
	// kill one of them while they save
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

// kill a rank while it saves
static void a_killed_rank_leaves_a_whole_file(void **state)
{
	enum { JOBS = 50, RANKS = 3 };
	char whole[80], partial[80];
	int left = 0;
	Kills k = { 1, shared(sizeof(int)) };
	snprintf(whole, sizeof whole, "%s/whole", folder);
	snprintf(partial, sizeof partial, "%s.partial", path);
	for (int job = 0; job < JOBS; job++) {
		// check that the file is one whole version
		run_and_kill(&k, job, RANKS);
		TensorFile *f = tensorfile_open(path);
		int version = atoi(tensorfile_meta(f, "version"));
		tensorfile_close(&f);
		assert_true(k.first <= version && version <= *k.version);
		write_version(whole, version);
		expect_equal_files(path, whole);
		remove(whole);
		left += access(partial, F_OK) == 0;
		assert_true(only_one_file() || access(partial, F_OK) == 0);
		k.first = *k.version + 1;
	}
	assert_true(left > 0);
	in_ranks(RANKS, by_ring, save_version, &(Version){ .version = 1 });
	assert_true(only_one_file());
	munmap((void *)k.version, sizeof(int));
}

TESTS_BETWEEN(make_folder, NULL,
	cmocka_unit_test(any_number_of_ranks_reads_what_any_wrote),
	cmocka_unit_test(a_killed_rank_leaves_a_whole_file),
	cmocka_unit_test(no_other_file_is_left))
