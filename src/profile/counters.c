#define _GNU_SOURCE
#include "profile/counters.h"

#include <ctype.h>
#include <fnmatch.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/stats.h"

// list counters with their names and units
enum { NPATTERNS = 3, NSPELLINGS = 3 };
typedef struct UnitSpellings {
	const char *spellings[NSPELLINGS];
} UnitSpellings;
static const UnitSpellings seconds = { { "s", "second" } },
	hertz = { { "hz", "cycle/s", "cycle/second" } },
	bytes_a_second = { { "byte/s", "byte/second", "B/s" } },
	percent = { { "%" } }, registers = { { "register/thread", "" } };

typedef struct Counter {
	const UnitSpellings *quantity;   /* its unit, in the spellings of ncu */
	double scale;                    /* from that unit to our column's */
	const char *patterns[NPATTERNS]; /* names, the preferred first */
} Counter;

// list the patterns of each column
#define ACTIVE ".avg.pct_of_peak_sustained_active"
#define ELAPSED ".avg.pct_of_peak_sustained_elapsed"

// list the counters of the columns
static const Counter counters[NCOUNTERS] = {
	[LAUNCH_US] = { &seconds, 1e6, { "gpu__time_duration.sum",
		"gpu__time_duration.avg" } },
	[SM_GHZ] = { &hertz, 1e-9, { "smsp__cycles_elapsed.avg.per_second",
		"sm__cycles_elapsed.avg.per_second",
		"gpc__cycles_elapsed.avg.per_second" } },
	[TENSOR_PCT] = { &percent, 1, { "sm__pipe_tensor*_cycles_active" ACTIVE,
		"sm__inst_executed_pipe_tensor*" ACTIVE } },
	[FP32_PCT] = { &percent, 1, { "sm__inst_executed_pipe_fma" ACTIVE,
		"sm__pipe_fma_cycles_active" ACTIVE } },
	[XU_PCT] = { &percent, 1, { "sm__inst_executed_pipe_xu" ACTIVE,
		"sm__pipe_xu_cycles_active" ACTIVE } },
	[SMEM_PCT] = { &percent, 1, {
		"l1tex__data_pipe_lsu_wavefronts_mem_shared" ELAPSED,
		"l1tex__data_bank_*" ELAPSED } },
	[L2_PCT] = { &percent, 1, { "lts__throughput" ELAPSED,
		"lts__t_sectors" ELAPSED } },
	[DRAM_PCT] = { &percent, 1, { "gpu__dram_throughput" ELAPSED,
		"dram__throughput" ELAPSED } },
	[DRAM_GBPS] = { &bytes_a_second, 1e-9, { "dram__bytes.sum.per_second" } },
	[OCCUPANCY_PCT] = { &percent, 1, { "sm__warps_active" ACTIVE } },
	[REGISTERS] = { &registers, 1, { "launch__registers_per_thread" } },
};
const char *const counter_columns[NCOUNTERS] = { CHOICE_NAMES(COUNTERS_OF) };

// describe a sheet of cells
enum { HEAD, UNITS, FIRST };         /* rows: names, units, the first launch */
typedef struct Sheet {
	char *text;                      /* holds all cells */
	char **cells;                    /* rows of `columns` */
	int columns, rows, name;         /* name: column of the kernel's name */
	char *why;                       /* why[size]: the reason of a refusal */
	size_t size;
} Sheet;

static char *cell(const Sheet *s, int row, int column)
{
	return s->cells[(size_t)row * s->columns + column];
}

static bool sheet_error(Sheet *s, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* says why the sheet is refused; returns false */
static bool sheet_error(Sheet *s, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(s->why, s->size, format, args);
	va_end(args);
	return false;
}

// take a line of quoted cells apart
/* cuts a line into at most `most` cells; returns how many, -1: it is damaged */
static int split_csv_line(char *line, char **cells, int most)
{
	for (int n = 0; n < most && *line++ == '"'; line++) {
		char *to = cells[n++] = line;
		for (; *line != '"' || line[1] == '"'; line++) {
			line += *line == '"';
			if (*line == '\0')
				return -1;
			*to++ = *line;
		}
		line++;
		*to = '\0';
		if (*line == '\0')
			return n;
		if (*line != ',')
			return -1;
	}
	return -1;
}

// read the lines of a sheet
enum { MOST_COLUMNS = 4096 };

static void add_row(Sheet *s, char **cells)
{
	size_t n = s->columns;
	s->cells = grow(s->cells, s->rows, n * sizeof *s->cells);
	memcpy(s->cells + s->rows++ * n, cells, n * sizeof *cells);
}

static bool take_line(Sheet *s, char *line, int number)
{
	static char *cells[MOST_COLUMNS];
	int n = split_csv_line(line, cells, MOST_COLUMNS);
	if (n < 0)
		return sheet_error(s, "line %d of ncu's table is damaged", number);
	if (s->rows == HEAD)
		s->columns = n;
	if (n != s->columns)
		return sheet_error(s, "line %d of ncu's table has %d cells, not %d",
			number, n, s->columns);
	add_row(s, cells);
	return true;
}

// read all lines of a sheet
static bool read_sheet(Sheet *s)
{
	const char *error = NULL, *mark = "==ERROR==";
	int number = 1;
	for (char *line = s->text, *end; *line; line = end, number++) {
		end = line + strcspn(line, "\n");
		end += *end == '\n' ? (*end = '\0', 1) : 0;
		line[strcspn(line, "\r")] = '\0';
		if (*line == '"' && !take_line(s, line, number))
			return false;
		if (error == NULL && strncmp(line, mark, strlen(mark)) == 0)
			error = line + strlen(mark);
	}
	// fail unless the sheet has a head, units and kernels
	if (error)
		return sheet_error(s, "ncu: %s", error + strspn(error, " "));
	for (s->name = 0; s->name < s->columns; s->name++)
		if (strcmp(cell(s, HEAD, s->name), "Kernel Name") == 0)
			break;
	if (s->rows == 0 || s->name == s->columns)
		return sheet_error(s, "ncu printed no table of kernels");
	if (s->rows == UNITS || *cell(s, UNITS, s->name) != '\0')
		return sheet_error(s, "ncu's table has no row of units");
	if (s->rows == FIRST)
		return sheet_error(s, "ncu counted no kernel");
	return true;
}

// read numbers and units
/* the unit, as a multiple of the quantity's own; 0: a unit of something else */
static double unit_factor(const char *unit, const UnitSpellings *q)
{
	static const char letters[] = "num" "kKMGT";
	static const double powers[] = { 1e-9, 1e-6, 1e-3, 1e3, 1e3, 1e6, 1e9,
		1e12 };
	for (int i = 0; i < NSPELLINGS && q->spellings[i]; i++) {
		const char *letter = *unit ? strchr(letters, *unit) : NULL;
		if (strcasecmp(unit, q->spellings[i]) == 0)
			return 1;
		if (letter && strcasecmp(unit + 1, q->spellings[i]) == 0)
			return powers[letter - letters];
	}
	return 0;
}

/* false: the text is no number. *x NaN: it was not counted */
static bool read_number(const char *text, double *x)
{
	char plain[64], *to = plain, *end;
	*x = NAN;
	if (*text == '\0' || strcasecmp(text, "n/a") == 0 || strcasestr(text, "nan"))
		return true;
	if (strlen(text) >= sizeof plain)
		return false;
	for (const char *at = text; *at; at++) {
		bool grouped = *at == ',' && at > text && isdigit(at[-1])
			&& strspn(at + 1, "0123456789") == 3;
		if (!grouped)
			*to++ = *at;
	}
	*to = '\0';
	*x = strtod(plain, &end);
	return end > plain && *end == '\0' && isfinite(*x);
}

// check all numbers of a sheet
static const char stall_begins[] = "smsp__average_warps_issue_stalled_",
	stall_ends[] = "_per_issue_active.ratio";

/* the length of the reason in the name of a counter of stalls, or 0 */
static int reason_length(const char *name)
{
	size_t n = strlen(name), begin = strlen(stall_begins),
		end = strlen(stall_ends);
	if (n <= begin + end || strncmp(name, stall_begins, begin) != 0
		|| strcmp(name + n - end, stall_ends) != 0
		|| strstr(name, "_not_issued"))
		return 0;
	return (int)(n - begin - end);
}

static bool matches_pattern(const char *name, const Counter *c)
{
	for (int p = 0; p < NPATTERNS && c->patterns[p]; p++)
		if (fnmatch(c->patterns[p], name, 0) == 0)
			return true;
	return false;
}

// check every column that may be used
static bool check_column(Sheet *s, int column, const UnitSpellings *q)
{
	double x;
	const char *name = cell(s, HEAD, column), *unit = cell(s, UNITS, column);
	if (q && unit_factor(unit, q) == 0)
		return sheet_error(s, "ncu's unit '%s' of %s is not known", unit, name);
	for (int row = FIRST; row < s->rows; row++)
		if (!read_number(cell(s, row, column), &x))
			return sheet_error(s, "ncu's value '%s' of %s is no number",
				cell(s, row, column), name);
	return true;
}

static bool check_sheet(Sheet *s)
{
	for (int column = 0; column < s->columns; column++) {
		const char *name = cell(s, HEAD, column);
		if (reason_length(name) && !check_column(s, column, NULL))
			return false;
		for (int i = 0; i < NCOUNTERS; i++)
			if (matches_pattern(name, &counters[i])
				&& !check_column(s, column, counters[i].quantity))
				return false;
	}
	return true;
}

// find the value of a counter in a row
static double value_of(const Sheet *s, int row, const Counter *c)
{
	double most = NAN, x;
	for (int p = 0; p < NPATTERNS && c->patterns[p] && isnan(most); p++)
		for (int column = 0; column < s->columns; column++) {
			if (fnmatch(c->patterns[p], cell(s, HEAD, column), 0) != 0)
				continue;
			read_number(cell(s, row, column), &x);
			x *= c->scale * unit_factor(cell(s, UNITS, column), c->quantity);
			most = fmax(most, x);       /* of a number and NaN: the number */
		}
	return most;
}

/* the median of the x that were counted; NaN: none was */
static double median_of(const double *x, int n)
{
	double *counted = need(malloc((n + 1) * sizeof *counted)), median = NAN;
	int m = 0;
	for (int i = 0; i < n; i++)
		if (!isnan(x[i]))
			counted[m++] = x[i];
	if (m > 0)
		median = stats_of(counted, m).median;
	free(counted);
	return median;
}

// rank the stalls of a kernel
typedef struct Launches { int n, *rows; } Launches;

static void insert_stall(Stall *stalls, Stall new)
{
	for (int i = 0; i < NSTALLS; i++)
		if (new.pct > stalls[i].pct) {
			Stall old = stalls[i];
			stalls[i] = new;
			new = old;
		}
}

static void rank_stalls(const Sheet *s, Launches l, KernelCounters *k)
{
	double sum = 0, *x = need(malloc(l.n * sizeof *x));
	for (int column = 0; column < s->columns; column++) {
		// rank the reason of this column
		const char *name = cell(s, HEAD, column);
		Stall stall = { "", 0 };
		int length = reason_length(name);
		if (length == 0)
			continue;
		for (int i = 0; i < l.n; i++)
			read_number(cell(s, l.rows[i], column), &x[i]);
		stall.pct = median_of(x, l.n);
		snprintf(stall.reason, sizeof stall.reason, "%.*s", length,
			name + strlen(stall_begins));
		if (isnan(stall.pct))
			continue;
		sum += stall.pct;
		if (strcmp(stall.reason, "selected") != 0)
			insert_stall(k->stalls, stall);
	}
	for (int i = 0; i < NSTALLS && sum > 0; i++)
		k->stalls[i].pct *= 100 / sum;
	free(x);
}

// gather the launches of each kernel
static KernelCounters kernel_of(const Sheet *s, Launches l)
{
	KernelCounters k = { .launches = l.n };
	double *x = need(malloc(l.n * sizeof *x));
	snprintf(k.name, sizeof k.name, "%s", cell(s, l.rows[0], s->name));
	for (int i = 0; i < NCOUNTERS; i++) {
		for (int j = 0; j < l.n; j++)
			x[j] = value_of(s, l.rows[j], &counters[i]);
		k.values[i] = median_of(x, l.n);
		for (int j = 0; j < l.n && i == LAUNCH_US; j++)
			k.us += isnan(x[j]) ? 0 : x[j];
	}
	free(x);
	rank_stalls(s, l, &k);
	return k;
}

static int longest_first(const void *a, const void *b)
{
	const KernelCounters *x = a, *y = b;
	return (x->us < y->us) - (x->us > y->us);
}

// src/profile/counters.c: interface
static int gather_kernels(const Sheet *s, KernelCounters *kernels, int most)
{
	int n = 0;
	Launches l = { 0, need(malloc(s->rows * sizeof *l.rows)) };
	for (int first = FIRST; first < s->rows && n < most; first++) {
		// count the kernel once, with all its launches
		const char *name = cell(s, first, s->name);
		bool seen = false;
		for (int row = FIRST; row < first && !seen; row++)
			seen = strcmp(name, cell(s, row, s->name)) == 0;
		l.n = 0;
		for (int row = first; row < s->rows && !seen; row++)
			if (strcmp(name, cell(s, row, s->name)) == 0)
				l.rows[l.n++] = row;
		if (!seen)
			kernels[n++] = kernel_of(s, l);
	}
	free(l.rows);
	qsort(kernels, n, sizeof *kernels, longest_first);
	return n;
}

int counters_parse(KernelCounters *kernels, int most, const char *text, char *why,
	size_t size)
{
	Sheet s = { .text = need(strdup(text)), .why = why, .size = size };
	bool good = read_sheet(&s) && check_sheet(&s);
	int n = good ? gather_kernels(&s, kernels, most) : -1;
	free(s.cells);
	free(s.text);
	return n;
}
