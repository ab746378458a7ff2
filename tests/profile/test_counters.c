/* what ncu prints: values with units, launches of a kernel, stalls, damage */
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/counters.h"
#include "tests/base/program.h"

#define STALL(reason) \
	"\"smsp__average_warps_issue_stalled_" reason "_per_issue_active.ratio\""

// a sheet with a column for each kind of counter
static const char head[] = "\"ID\",\"Kernel Name\",\"gpu__time_duration.sum\","
	"\"smsp__cycles_elapsed.avg.per_second\","
	"\"sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_active\","
	"\"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active\","
	"\"sm__pipe_tensor_op_imma_cycles_active.avg.pct_of_peak_sustained_active\","
	"\"dram__bytes.sum.per_second\",\"launch__registers_per_thread\","
	STALL("barrier") "," STALL("wait") "," STALL("wait_not_issued") ","
	STALL("selected") "," STALL("long_scoreboard") "," STALL("drain") "\n";
static const char units[] = "\"\",\"\",\"us\",\"Ghz\",\"%\",\"%\",\"%\","
	"\"Tbyte/second\",\"register/thread\",\"inst\",\"inst\",\"inst\",\"inst\","
	"\"inst\",\"inst\"\n";
static const char row[] = "\"0\",\"attend\",\"1,234.5\",\"1.755\",\"70\","
	"\"71.5\",\"0\",\"2.5\",\"168\",\"1\",\"5\",\"9\",\"2\",\"2\",\"0\"\n";

// parse a sheet of counters
enum { MOST = 4 };
static KernelCounters kernels[MOST];
static char why[160];

/* the parts one after the other, the last is NULL */
static int parsed(const char *first, ...)
{
	char text[8192] = "";
	va_list parts;
	va_start(parts, first);
	for (const char *part = first; part; part = va_arg(parts, const char *))
		strncat(text, part, sizeof text - strlen(text) - 1);
	va_end(parts);
	memset(kernels, 0xff, sizeof kernels);
	strcpy(why, "nothing");
	return counters_parse(kernels, MOST, text, why, sizeof why);
}

static double value(int kernel, const char *column)
{
	for (int i = 0; i < NCOUNTERS; i++)
		if (strcmp(counter_columns[i], column) == 0)
			return kernels[kernel].values[i];
	fail_msg("there is no column %s", column);
	return NAN;
}

static void assert_near(double x, double y)
{
	if (!(fabs(x - y) <= 1e-9 * fabs(y)))
		fail_msg("%.12g is not %.12g", x, y);
}

// test what a row of counters holds
static void a_row_is_read(void **state)
{
	assert_int_equal(parsed("==PROF== Connected\nhello\n", head, units, row,
		"==PROF== Disconnected\n", NULL), 1);
	assert_string_equal(kernels[0].name, "attend");
	assert_int_equal(kernels[0].launches, 1);
	assert_near(kernels[0].us, 1234.5);
	assert_near(value(0, "launch_us"), 1234.5);
	assert_near(value(0, "SM_GHz"), 1.755);
	assert_near(value(0, "tensor_pct"), 71.5);
	assert_near(value(0, "dram_GBps"), 2500);
	assert_near(value(0, "registers"), 168);
	assert_true(isnan(value(0, "xu_pct")));
	assert_string_equal(kernels[0].stalls[0].reason, "wait");
	assert_near(kernels[0].stalls[0].pct, 50);
	assert_string_equal(kernels[0].stalls[1].reason, "long_scoreboard");
	assert_near(kernels[0].stalls[1].pct, 20);
	assert_string_equal(kernels[0].stalls[2].reason, "barrier");
	assert_near(kernels[0].stalls[2].pct, 10);
}

static void units_have_prefixes(void **state)
{
	static const struct { const char *unit, *cell; double us; } times[] = {
		{ "ns", "1500", 1.5 }, { "nsecond", "1500", 1.5 }, { "us", "2", 2 },
		{ "usecond", "2", 2 }, { "msecond", "0.5", 500 }, { "s", "1", 1e6 },
		{ "second", "1e-3", 1e3 }, { "ns", "1,234,500", 1234.5 },
		{ "ns", "n/a", NAN }, { "ns", "", NAN } };
	for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
		char lines[256];
		snprintf(lines, sizeof lines, "\"Kernel Name\",\"gpu__time_duration.sum\""
			"\r\n\"\",\"%s\"\r\n\"a \"\"b\"\", c\",\"%s\"\r\n", times[i].unit,
			times[i].cell);
		assert_int_equal(parsed(lines, NULL), 1);
		assert_string_equal(kernels[0].name, "a \"b\", c");
		if (isnan(times[i].us))
			assert_true(isnan(value(0, "launch_us")));
		else
			assert_near(value(0, "launch_us"), times[i].us);
	}
}

// test launches of several kernels
static void launches_are_gathered(void **state)
{
	static const char times[] = "\"Kernel Name\",\"gpu__time_duration.sum\"\n"
		"\"\",\"ns\"\n\"short\",\"1000\"\n\"long\",\"5000\"\n\"short\",\"1200\"\n"
		"\"long\",\"n/a\"\n\"short\",\"9000\"\n\"tiny\",\"1\"\n";
	assert_int_equal(parsed(times, NULL), 3);
	assert_string_equal(kernels[0].name, "short");
	assert_int_equal(kernels[0].launches, 3);
	assert_near(value(0, "launch_us"), 1.2);
	assert_near(kernels[0].us, 11.2);
	assert_string_equal(kernels[1].name, "long");
	assert_int_equal(kernels[1].launches, 2);
	assert_near(value(1, "launch_us"), 5);
	assert_string_equal(kernels[2].name, "tiny");
	assert_string_equal(kernels[0].stalls[0].reason, "");
}

// test damaged sheets of counters
static void refused(const char *text, const char *reason)
{
	assert_int_equal(parsed(text, NULL), -1);
	if (strstr(why, reason) == NULL)
		fail_msg("'%s' does not say '%s'", why, reason);
}

static void damage_is_named(void **state)
{
#define NAMES "\"Kernel Name\",\"gpu__time_duration.sum\"\n"
	refused("", "printed no table");
	refused("==PROF== Connected\n", "printed no table");
	refused("==ERROR== ERR_NVGPUCTRPERM - no permission\n", "ERR_NVGPUCTRPERM");
	refused("\"ID\",\"Name\"\n\"\",\"\"\n\"1\",\"k\"\n", "printed no table");
	refused(NAMES, "no row of units");
	refused(NAMES "\"k\",\"12\"\n", "no row of units");
	refused(NAMES "\"\",\"ns\"\n", "counted no kernel");
	refused(NAMES "\"\",\"ns\"\n\"k\"\n", "line 3 of ncu's table has 1 cells");
	refused(NAMES "\"\",\"ns\"\n\"k\",\"12\n", "line 3 of ncu's table is dam");
	refused(NAMES "\"\",\"ns\"\n\"k\" \"12\"\n", "line 3 of ncu's table is");
	refused(NAMES "\"\",\"ns\"\n\"k\",\"12\",\n", "line 3 of ncu's table is");
	refused(NAMES "\"\",\"parsec\"\n\"k\",\"12\"\n", "unit 'parsec'");
	refused(NAMES "\"\",\"%\"\n\"k\",\"12\"\n", "unit '%'");
#define CELL_REFUSED(CELL) \
	refused(NAMES "\"\",\"ns\"\n\"k\",\"" CELL "\"\n", "'" CELL "'")
	CELL_REFUSED("12x");
	CELL_REFUSED("1,2");
	CELL_REFUSED("inf");
	CELL_REFUSED("-");
}

TESTS(
	cmocka_unit_test(a_row_is_read),
	cmocka_unit_test(units_have_prefixes),
	cmocka_unit_test(launches_are_gathered),
	cmocka_unit_test(damage_is_named))
