#define _GNU_SOURCE
#include <stdbool.h>
#include <string.h>

#include "base/choices.h"
#include "base/options.h"
#include "tests/base/exits.h"
#include "tests/base/program.h"

static long context;
static double rate;
static const char *file;
static bool force;
static int precision;
static const Option table[] = {
	{ "context", OPT_INT, &context, "1..65536", "tokens" },
	{ "rate", OPT_REAL, &rate, "R", "learning rate" },
	{ "file", OPT_TEXT, &file, "FILE", "a file" },
	{ "force", OPT_FLAG, &force, "", "a flag" },
	{ "precision", OPT_CHOICE, &precision, "fp32|bf16|fp16", "number format" },
	{ 0 }
};

// parse one command line, given as text
static int parse(const char *line)
{
	static char words[256];
	char *argv[16] = { "program" };
	int argc = 1;
	snprintf(words, sizeof words, "%s", line);
	for (char *w = strtok(words, " "); w; w = strtok(NULL, " "))
		argv[argc++] = w;
	return options_parse(table, argc, argv, "a test") - argc;
}

static void parse_void(void *line)
{
	parse(line);
}

// test that values arrive
static void values_arrive(void **state)
{
	assert_int_equal(parse("--context 2K --rate=1e-3 --file a.tsv --force "
		"--precision bf16 rest"), -1);
	assert_int_equal(context, 2048);
	assert_true(rate == 1e-3);
	assert_string_equal(file, "a.tsv");
	assert_true(force);
	assert_int_equal(precision, 1);
	assert_int_equal(parse("--context=7 -- --rate"), -1);
	assert_int_equal(context, 7);
}

static void options_stand_anywhere(void **state)
{
	char *argv[] = { "program", "a", "--context", "9", "b", "--force", "-c",
		"--rate=2", "--", "d", "--file" };
	char *rest[] = { "a", "b", "-c", "d", "--file" };
	force = false;
	assert_int_equal(options_parse(table, 11, argv, "a test"), 6);
	assert_true(context == 9 && force && rate == 2);
	for (int i = 0; i < 5; i++)
		assert_string_equal(argv[6 + i], rest[i]);
}

// test that bad options exit 2
static void bad_options_exit_2(void **state)
{
	char *lines[] = {
		"--unknown 1", "--context", "--context 0", "--context 65537",
			"--context 12x", "--context 1T",
		"--context 99999999999999999999", "--context 9007199254740993G",
			"--context=", "--rate fast",
		"--rate nan", "--force=yes", "--precision fp8", "--precision fp",
			"--contex 3", "--context \t5", "--context=\v5", "--rate \t5",
			"rest --context", "rest --unknown",
	};
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
		if (exit_status(parse_void, lines[i]) != 2)
			fail_msg("'%s' was not refused", lines[i]);
	assert_int_equal(exit_status(parse_void, "--context 65536"), 0);
}

// test that choices come of one list
#define FRUITS_OF(FIRST, NEXT) FIRST(APPLE, "apple") NEXT(PEAR, "a pear", 2) \
	NEXT(FIG, "fig")
enum { CHOICE_IDS(FRUITS_OF) NFRUITS };

static void choices_come_of_one_list(void **state)
{
	static const char *const names[] = { CHOICE_NAMES(FRUITS_OF) };
	assert_string_equal(CHOICES(FRUITS_OF), "apple|a pear|fig");
	assert_true(APPLE == 0 && PEAR == 1 && FIG == 2 && NFRUITS == 3);
	assert_int_equal(sizeof names / sizeof *names, NFRUITS);
	for (int i = 0; i < NFRUITS; i++)
		assert_int_equal(options_choice(CHOICES(FRUITS_OF), names[i]), i);
}

TESTS(
	cmocka_unit_test(values_arrive),
	cmocka_unit_test(options_stand_anywhere),
	cmocka_unit_test(choices_come_of_one_list),
	cmocka_unit_test(bad_options_exit_2))
