/* files where none can be locked */
#define _GNU_SOURCE
#include "base/file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/base/exits.h"
#include "tests/base/folder.h"

// test that files are written without locks
int flock(int fd, int operation)
{
	errno = ENOLCK;
	return -1;
}

static void write_twice(void *said)
{
	dup2(fileno(said), STDERR_FILENO);
	for (int i = 0; i < 2; i++) {
		FILE *f = file_begin(path);
		fprintf(f, "%d", i);
		file_end(f, path);
	}
}

static void files_are_written_without_locks(void **state)
{
	char line[256];
	size_t n;
	FILE *said = memory_file();
	assert_int_equal(exit_status(write_twice, said), 0);
	char *text = file_read(path, &n);
	assert_string_equal(text, "1");
	free(text);
	rewind(said);
	assert_non_null(fgets(line, sizeof line, said));
	assert_non_null(strstr(line, "no file can be locked here ("));
	assert_null(fgets(line, sizeof line, said));
	fclose(said);
}

// test that a trial removes its file while it holds it
static int removed, held;

static bool is_open(const char *name)
{
	struct stat wanted, open;
	if (stat(name, &wanted) != 0)
		return false;
	for (int fd = 3; fd < 64; fd++)
		if (fstat(fd, &open) == 0 && open.st_ino == wanted.st_ino
			&& open.st_dev == wanted.st_dev)
			return true;
	return false;
}

int remove(const char *name)
{
	removed++;
	held += is_open(name);
	return unlink(name);
}

static void a_trial_removes_what_it_holds(void **state)
{
	removed = held = 0;
	file_try(path, NULL, false);
	assert_int_equal(removed, 1);
	assert_int_equal(held, 1);
}

// test that a refused path leaves no folder
static void try_path(void *at)
{
	file_try(at, NULL, false);
}

static void a_refused_path_leaves_no_folder(void **state)
{
	static const struct { const char *before; int length; const char *after; }
		paths[] = { { "new/", 0, "" }, { "new/.", 0, "" }, { "a/b/..", 0, "" },
			{ "a/b/", 250, "" }, { "a/b/", 256, "" }, { "a/", 256, "/b" },
			{ "", 256, "" }, { "", 256, "/a" } };
	char name[257] = "", at[400];
	memset(name, 'n', sizeof name - 1);
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
		snprintf(at, sizeof at, "%s/%s%.*s%s", folder, paths[i].before,
			paths[i].length, name, paths[i].after);
		assert_int_equal(exit_status(try_path, at), 2);
	}
}

TESTS_BETWEEN(make_folder, NULL,
	cmocka_unit_test(files_are_written_without_locks),
	cmocka_unit_test(a_trial_removes_what_it_holds),
	cmocka_unit_test(a_refused_path_leaves_no_folder),
	cmocka_unit_test(no_other_file_is_left))
