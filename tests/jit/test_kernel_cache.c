/* the cache on disk: damage, other sources, two processes; no compiler */
#define _GNU_SOURCE
#include <omp.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "jit/compiler.h"
#include "jit/jit.h"
#include "jit/kernel_cache.h"
#include "tests/base/exits.h"
#include "tests/base/folder.h"
#include "tests/ops/compare.h"

static char file[256];

// one cached kernel, and its file
static const char source[] = "void fused(void) { }";
static Bytes kernel = { (unsigned char *)"\1\2\3\0 bytes of a kernel", 23 };

static void find_file(void)
{
	char command[256];
	snprintf(command, sizeof command, "ls %s/*.kernel", folder);
	FILE *f = popen(command, "r");
	assert_non_null(f);
	assert_non_null(fgets(file, sizeof file, f));
	file[strcspn(file, "\n")] = '\0';
	assert_null(fgets(command, sizeof command, f));
	pclose(f);
}

static void put_file(const unsigned char *at, size_t n)
{
	FILE *f = fopen(file, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(at, 1, n, f), n);
	fclose(f);
}

static bool is_read(void)
{
	Bytes b = cache_read(folder, "cc 1", source);
	bool same = b.at && b.n == kernel.n && memcmp(b.at, kernel.at, b.n) == 0;
	if (b.at)
		assert_true(same);
	free(b.at);
	return same;
}

// test that damage is noticed
static void damage_is_noticed(void **state)
{
	unsigned char whole[512];
	assert_false(is_read());
	assert_true(cache_write(folder, "cc 1", source, kernel));
	assert_true(is_read());
	find_file();
	FILE *f = fopen(file, "r");
	size_t n = fread(whole, 1, sizeof whole, f);
	fclose(f);
	assert_true(n > 60 && n < sizeof whole);
	for (size_t cut = 0; cut < n; cut++) {
		put_file(whole, cut);
		assert_false(is_read());
	}
	for (size_t bit = 0; bit < 8 * n; bit++) {
		whole[bit / 8] ^= 1 << bit % 8;
		put_file(whole, n);
		assert_false(is_read());
		whole[bit / 8] ^= 1 << bit % 8;
	}
	whole[n] = 0;
	put_file(whole, n + 1);
	assert_false(is_read());
	put_file(whole, n);
	assert_true(is_read());
}

// test that entries of other sources are told apart
/* puts another kernel's file in the place of ours, the only one */
static void expect_other_refused(const char *compiler, const char *text)
{
	char ours[sizeof file];
	find_file();
	strcpy(ours, file);
	assert_int_equal(remove(ours), 0);
	assert_true(cache_write(folder, compiler, text, kernel));
	find_file();
	assert_string_not_equal(file, ours);
	assert_int_equal(rename(file, ours), 0);
	assert_false(is_read());
}

static void others_are_told_apart(void **state)
{
	static const char other[] = "void fused(void) {;}";      /* as long */
	assert_true(cache_write(folder, "cc 1", source, kernel));
	Bytes b = cache_read(folder, "cc 2", source);
	assert_null(b.at);
	b = cache_read(folder, "cc 1", other);
	assert_null(b.at);
	expect_other_refused("cc 2", source);
	expect_other_refused("cc 1", other);
	assert_true(cache_write(folder, "cc 1", source, kernel));
	assert_true(cache_write(folder, "cc 2", source, kernel));
	assert_true(is_read());
}

// test folders that cannot be written
/* no file may be longer than 20 bytes: a write fails as on a full disk */
static void write_on_full_disk(void *unused)
{
	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &(struct rlimit){ 20, 20 });
	exit(cache_write(folder, "cc 3", source, kernel) ? 9 : 10);
}

static void unwritable_folders_do_no_harm(void **state)
{
	assert_false(cache_write("/proc/nowhere", "cc 1", source, kernel));
	assert_false(cache_write("/dev/null", "cc 1", source, kernel));
	assert_int_equal(exit_status(write_on_full_disk, NULL), 10);
	Bytes b = cache_read("/proc/nowhere", "cc 1", source);
	assert_null(b.at);
	b = cache_read(folder, "cc 3", source);
	assert_null(b.at);
	if (chmod(folder, 0500) == 0 && geteuid() != 0)
		assert_false(cache_write(folder, "cc 3", source, kernel));
	chmod(folder, 0700);
}

// test that a second process compiles nothing
static void run_once(void *counts)
{
	Device *d = device_open("cpu");
	Array x = drawn(100, 1, 0, 1), y = poisoned(100);
	jit_start(d, (JitSettings){ .cache = folder });
	ops_for(d)->relu_forward(d, y, x, 100);
	ops_for(d)->add(d, y, y, x, 100);
	jit_stop(d);
	for (int i = 0; i < 100; i++)
		if (reals(y)[i] != fmaxf(0, (float)reals(x)[i]) + reals(x)[i])
			exit(3);
	JitCounts c = jit_counts(d);
	if (counts)
		*(JitCounts *)counts = c;
	device_close(&d);
	if (c.compiled + c.read != 1)
		exit(4);
}

static void two_processes_fill_one_folder(void **state)
{
	JitCounts counts;
	pid_t child[2];
	for (int k = 0; k < 2; k++)
		if ((child[k] = fork()) == 0) {
			run_once(NULL);
			_exit(0);
		}
	for (int k = 0; k < 2; k++) {
		int status;
		waitpid(child[k], &status, 0);
		assert_int_equal(status, 0);
	}
	run_once(&counts);
	assert_int_equal(counts.compiled, 0);
	assert_int_equal(counts.read, 1);
	char command[256];
	snprintf(command, sizeof command, "! ls %s | grep partial", folder);
	assert_int_equal(system(command), 0);
}

/* as a process that was ended while it wrote does */
static void leave_partial(const char *in)
{
	char path[96];
	snprintf(path, sizeof path, "%s/0123.77.partial", in);
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	fclose(f);
}

static void forgotten_kernels_are_read(void **state)
{
	Device *d = device_open("cpu");
	Array x = drawn(100, 1, 0, 1), y = poisoned(100);
	char other[64];
	snprintf(other, sizeof other, "%s/other", folder);
	assert_true(jit_start(d, (JitSettings){ .cache = other }));
	for (int k = 0; k < 2; k++) {
		ops_for(d)->add(d, y, x, x, 100);
		jit_forget(d);
		assert_true(reals(y)[7] == 2 * reals(x)[7]);
	}
	JitCounts c = jit_counts(d);
	assert_true(c.compiled == 1 && c.read == 1 && c.kernels == 2);
	assert_true(c.compile_ms > 0 && c.load_ms > 0);
	cache_remove(other);
	ops_for(d)->add(d, y, x, x, 100);
	device_close(&d);
	assert_int_equal(access(other, F_OK), 0);
	leave_partial(other);
	cache_remove(other);
	assert_int_equal(access(other, F_OK), -1);
}

// test machines without a compiler
static void without_compiler(void *unused)
{
	Device *d = device_open("cpu");
	c_compiler_command = "/nowhere/cc";
	if (jit_start(d, (JitSettings){ 0 }))
		exit(5);
	Array x = drawn(10, 1, 0, 1), y = poisoned(10);
	ops_for(d)->add(d, y, x, x, 10);
	exit(reals(y)[3] == 2 * reals(x)[3] ? 6 : 7);
}

static void no_compiler(void **state)
{
	assert_int_equal(exit_status(without_compiler, NULL), 6);
}

/* a compiler that finds an error in whatever it is given */
static void with_bad_compiler(void *out)
{
	char path[300];
	static char command[320];
	snprintf(path, sizeof path, "%s/bad cc", folder);
	snprintf(command, sizeof command, "'%s' -m64", path);
	FILE *f = fopen(path, "w");
	fprintf(f, "#!/bin/sh\n[ \"$1\" = -m64 ] || exit 2\n"
		"[ \"$2\" = --version ] && echo bad cc && exit 0\n"
		"echo '<stdin>:3:1: error: nonsense'\nexit 1\n");
	fclose(f);
	chmod(path, 0700);
	c_compiler_command = command;
	if (freopen(out, "w", stderr) == NULL)
		exit(8);
	Device *d = device_open("cpu");
	jit_start(d, (JitSettings){ 0 });
	Array x = drawn(10, 1, 0, 1), y = poisoned(10);
	ops_for(d)->add(d, y, x, x, 10);
	jit_stop(d);
}

static void no_program(void **state)
{
	char out[300], command[700];
	snprintf(out, sizeof out, "%s/said", folder);
	assert_int_equal(exit_status(with_bad_compiler, out), 1);
	snprintf(command, sizeof command, "grep -q 'op_ADD(v0' %s && "
		"tail -n 1 %s | grep -q 'no program: <stdin>:3:1: error: nonsense'", out,
		out);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		checked(damage_is_noticed), checked(others_are_told_apart),
		checked(unwritable_folders_do_no_harm),
		checked(two_processes_fill_one_folder),
		checked(forgotten_kernels_are_read), checked(no_compiler),
		checked(no_program),
	};
	omp_set_num_threads(1);         /* a child has no other threads */
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
