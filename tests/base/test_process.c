/* the file of a program, a folder for a while, words of a shell */
#define _GNU_SOURCE
#include "base/process.h"

#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/base/exits.h"
#include "tests/base/folder.h"

// test that words pass a shell
static void words_pass_a_shell(void **state)
{
	char text[256] = "", said[256], *command;
	for (int i = 0; i < 255; i++)
		text[i] = (char)(1 + i * 38 % 255);
	char *word = process_word(text);
	assert_true(asprintf(&command, "printf %%s %s", word) > 0);
	FILE *from = popen(command, "r");
	said[fread(said, 1, 255, from)] = '\0';
	assert_int_equal(pclose(from), 0);
	assert_string_equal(said, text);
	free(command);
	free(word);
}

// test where folders are made
static void folders_are_made_where_asked(void **state)
{
	char in[64];
	snprintf(in, sizeof in, "%s/o'brien & co", folder);
	assert_int_equal(mkdir(in, 0777), 0);
	setenv("TMPDIR", in, 1);
	char *made = process_folder("x");
	assert_memory_equal(made, in, strlen(in));
	assert_string_equal(getenv("TMPDIR"), in);
	assert_int_equal(rmdir(made), 0);
	free(made);
	assert_int_equal(rmdir(in), 0);
}

static void ask_for_nothing(void *unused)
{
	setenv("TMPDIR", "/nonexistent", 1);
	char *made = process_folder("x");
	bool there = strncmp(made, "/tmp/x.", 7) == 0;
	_exit(rmdir(made) != 0 ? 3 : !there ? 4
		: strcmp(getenv("TMPDIR"), "/tmp") != 0);
}

static void without_a_folder_there_is_another(void **state)
{
	if (access("/tmp", W_OK) != 0)
		skip();
	assert_int_equal(exit_status(ask_for_nothing, NULL), 0);
}

// test that a program finds itself
static void programs_find_themselves(void **state)
{
	char want[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", want, sizeof want - 1);
	assert_true(n > 0);
	want[n] = '\0';
	char *self = process_file(), *beside = process_beside("%s", "some");
	assert_string_equal(self, want);
	strcpy(strrchr(want, '/'), "/some");
	assert_string_equal(beside, want);
	free(self);
	free(beside);
}

TESTS_BETWEEN(make_folder, remove_folder,
	cmocka_unit_test(words_pass_a_shell),
	cmocka_unit_test(folders_are_made_where_asked),
	cmocka_unit_test(without_a_folder_there_is_another),
	cmocka_unit_test(programs_find_themselves))
