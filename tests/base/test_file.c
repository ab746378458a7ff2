/* files where none can be locked */
#define _GNU_SOURCE
#include "base/file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

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

TESTS_BETWEEN(make_folder, NULL,
	cmocka_unit_test(files_are_written_without_locks),
	cmocka_unit_test(no_other_file_is_left))
