#define _GNU_SOURCE
#include "base/table.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/grow.h"

// define what a table holds
struct Table {
	char *path;                        /* NULL: stdout */
	int lock;                          /* on the file at path, or -1 */
	bool wide;
	char *header;                      /* column names, separated by tabs */
	int nkeys, ncolumns;
	int nmeta;
	struct { char *key, *value; } meta[32];
	int nrows;
	char **rows;                       /* cells separated by tabs */
};

// build a table, add metadata
static int count_cells(const char *line)
{
	int n = 1;
	for (; *line; line++)
		n += *line == '\t';
	return n;
}

Table *table_new(const char *path, const char *columns, int nkeys)
{
	if (path)
		file_try(path, NULL, false);
	Table *t = need(calloc(1, sizeof *t));
	t->path = path ? need(strdup(path)) : NULL;
	t->lock = -1;
	t->header = need(strdup(columns));
	for (char *c = t->header; *c; c++)
		if (*c == ' ')
			*c = '\t';
	t->nkeys = nkeys;
	t->ncolumns = count_cells(t->header);
	assert(nkeys >= 1 && nkeys < t->ncolumns);
	return t;
}

void table_wide(Table *t)
{
	t->wide = true;
}

void table_meta(Table *t, const char *key, const char *format, ...)
{
	assert(t->nmeta < (int)(sizeof t->meta / sizeof *t->meta));
	va_list args;
	va_start(args, format);
	char *value;
	if (vasprintf(&value, format, args) < 0)
		die("out of host memory");
	va_end(args);
	for (char *c = value; *c; c++)
		if ((unsigned char)*c < ' ')
			*c = ' ';
	t->meta[t->nmeta].key = need(strdup(key));
	t->meta[t->nmeta++].value = value;
}

// compare the keys of two rows
static size_t key_length(const char *row, int nkeys)
{
	size_t n = 0;
	while (nkeys > 0 && row[n])
		nkeys -= row[n++] == '\t';
	return nkeys == 0 ? n - 1 : n;
}

bool table_has(const Table *t, const char *keys)
{
	size_t length = strlen(keys);
	for (int i = 0; i < t->nrows; i++)
		if (key_length(t->rows[i], t->nkeys) == length
			&& strncmp(t->rows[i], keys, length) == 0)
			return true;
	return false;
}

// keep other programs off the file
static void lock_file(Table *t)
{
	struct stat held, there;
	int fd = open(t->path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return;
	if (fd < 0 || fstat(fd, &there) != 0)
		usage_error("cannot read %s: %s", t->path, strerror(errno));
	if (t->lock >= 0 && fstat(t->lock, &held) == 0
		&& held.st_dev == there.st_dev && held.st_ino == there.st_ino) {
		close(fd);
		return;
	}
	if (!file_lock(fd))
		usage_error("cannot write %s: another program is writing it", t->path);
	if (t->lock >= 0)
		close(t->lock);
	t->lock = fd;
}

// write the file and rename it
#define CHECKSUM "# checksum: "

uint64_t table_checksum(const char *text)
{
	return hash_bytes(HASH_START, text, strlen(text));
}

static char *table_text(const Table *t, bool complete)
{
	char *text;
	size_t size;
	FILE *f = need(open_memstream(&text, &size));
	for (int i = 0; i < t->nmeta; i++)
		fprintf(f, "# %s: %s\n", t->meta[i].key, t->meta[i].value);
	fprintf(f, "# complete: %s\n%s\n", complete ? "yes" : "no", t->header);
	for (int i = 0; i < t->nrows; i++)
		fprintf(f, "%s\n", t->rows[i]);
	if (fclose(f) != 0)
		die("out of host memory");
	return text;
}

static void save_table(Table *t, bool complete)
{
	if (t->path == NULL)
		return;
	char *text = table_text(t, complete);
	lock_file(t);
	FILE *f = file_begin(t->path);
	fprintf(f, CHECKSUM "%016" PRIx64 "\n%s", table_checksum(text), text);
	free(text);
	const struct timespec zero[2] = { { 0, 0 }, { 0, 0 } };
	if (fflush(f) == 0 && !complete && futimens(fileno(f), zero) != 0)
		die("cannot set the time of %s: %s", t->path, strerror(errno));
	int lock = fcntl(fileno(f), F_DUPFD_CLOEXEC, 0);
	file_end(f, t->path);
	if (t->lock >= 0)
		close(t->lock);
	t->lock = lock;
}

// read the text of a table, or refuse
static char *read_text(const char *path)
{
	uint64_t sum;
	size_t length = 0;
	int n = 0;
	char *text = file_read(path, &length);
	if (length == 0) {
		free(text);
		return NULL;
	}
	if (sscanf(text, CHECKSUM "%16" SCNx64 "%n", &sum, &n) != 1
		|| text[n] != '\n')
		usage_error("cannot write %s: it exists and is not a table (--force "
			"replaces it)", path);
	if (table_checksum(text + n + 1) != sum)
		usage_error("%s: its lines are not those that were written (--force "
			"measures anew)", path);
	return text;
}

// refuse a table of another program or sweep
/* the text behind `start`; NULL if text is NULL or does not begin with it */
static const char *skip_prefix(const char *text, const char *start)
{
	size_t n = strlen(start);
	return text && strncmp(text, start, n) == 0 ? text + n : NULL;
}

static const char *next_line(const char *text)
{
	return text ? skip_prefix(text + strcspn(text, "\n"), "\n") : NULL;
}

/* the value of a key in a table's head, NULL if it is absent; *columns: the
 * line behind the head */
static const char *head_value(const char *line, const char *key,
	const char **columns)
{
	const char *found = NULL;
	for (; skip_prefix(line, "# "); line = next_line(line))
		if (skip_prefix(skip_prefix(skip_prefix(line, "# "), key), ": "))
			found = line + strlen("# : ") + strlen(key);
	*columns = line;
	return found;
}

static bool has_same_keys(const Table *t, const char *columns)
{
	size_t n = key_length(t->header, t->nkeys);
	return columns && strncmp(columns, t->header, n) == 0 && columns[n] == '\t';
}

static bool has_same_meta(const Table *t, const char *key, const char *value)
{
	for (int i = 0; i < t->nmeta; i++)
		if (strcmp(t->meta[i].key, key) == 0)
			return skip_prefix(skip_prefix(value, t->meta[i].value), "\n");
	return value == NULL;
}

static void refuse_foreign_table(const Table *t, const char *lines)
{
	const char *columns;
	const char *program = head_value(lines, "program", &columns);
	const char *sweep = head_value(lines, "sweep", &columns);
	if (has_same_meta(t, "program", program)
		&& (sweep ? has_same_meta(t, "sweep", sweep)
			: has_same_keys(t, columns)))
		return;
	program = program ? program : "another program";
	sweep = sweep ? sweep : "another";
	usage_error("cannot write %s: it is a table of %.*s, sweep %.*s (--force "
		"replaces it)", t->path, (int)strcspn(program, "\n"), program,
		(int)strcspn(sweep, "\n"), sweep);
}

// find the rows of a table that says the same
static const char *columns_under_same_head(const Table *t, const char *line)
{
	for (int i = 0; i < t->nmeta; i++) {
		line = skip_prefix(skip_prefix(skip_prefix(line, "# "),
			t->meta[i].key), ": ");
		line = strcmp(t->meta[i].key, "date") == 0 ? next_line(line)
			: skip_prefix(skip_prefix(line, t->meta[i].value), "\n");
	}
	line = next_line(skip_prefix(line, "# complete: "));
	return has_same_keys(t, line) ? line : NULL;
}

static void add_row(Table *t, const char *row, size_t length)
{
	t->rows = grow(t->rows, t->nrows, sizeof *t->rows);
	t->rows[t->nrows++] = need(strndup(row, length));
}

// read an earlier file
/* line: that of the columns; returns the one behind it */
static const char *adopt_columns(Table *t, const char *line)
{
	if (line == NULL)
		return NULL;
	free(t->header);
	t->header = need(strndup(line, strcspn(line, "\n")));
	t->ncolumns = count_cells(t->header);
	return next_line(line);
}

int table_resume(Table *t, bool adopt)
{
	if (t->path == NULL)
		return 0;
	lock_file(t);
	char *text = adopt ? read_text(t->path) : NULL;
	if (text == NULL)
		return 0;
	const char *lines = strchr(text, '\n') + 1;
	refuse_foreign_table(t, lines);
	const char *row = adopt_columns(t, columns_under_same_head(t, lines));
	for (size_t n; row && *row; row += n + 1) {
		n = strcspn(row, "\n");
		add_row(t, row, n);
		if (count_cells(t->rows[t->nrows - 1]) != t->ncolumns)
			usage_error("%s: row %d has not %d cells (--force measures anew)",
				t->path, t->nrows, t->ncolumns);
	}
	free(text);
	return t->nrows;
}

// find a column, or add it to the table
/* the position of the column of this name, which has n letters; -1: there is
 * none */
static int column_at(const Table *t, const char *name, size_t n)
{
	const char *c = t->header;
	for (int at = 0; at < t->ncolumns; at++, c++) {
		size_t length = strcspn(c, "\t");
		if (length == n && strncmp(c, name, n) == 0)
			return at;
		c += length;
	}
	return -1;
}

/* the line with one more cell, behind its first ncells; frees the line */
static char *insert_cell(char *line, int ncells, const char *cell, size_t n)
{
	char *end = line + strcspn(line, "\t"), *longer;
	for (int i = 1; i < ncells; i++)
		end += 1 + strcspn(end + 1, "\t");
	if (asprintf(&longer, "%.*s\t%.*s%s", (int)(end - line), line, (int)n, cell,
		end) < 0)
		die("out of host memory");
	free(line);
	return longer;
}

static void insert_column(Table *t, int at, const char *name, size_t n)
{
	t->header = insert_cell(t->header, at, name, n);
	for (int i = 0; i < t->nrows; i++)
		t->rows[i] = insert_cell(t->rows[i], at, "-", 1);
	t->ncolumns++;
}

static void add_columns(Table *t, const char *row)
{
	int before = t->nkeys - 1;
	for (row += key_length(row, t->nkeys); *row; row += strcspn(row, "\t")) {
		size_t n = strcspn(++row, "=\t");
		int at = column_at(t, row, n);
		assert(row[n] == '=');
		if (at >= 0 && at < t->nkeys)
			die("a row sets %.*s, which is one of its keys", (int)n, row);
		if (at < 0)
			insert_column(t, at = before + 1, row, n);
		before = at;
	}
}

// append rows
/* a new line with the row's cells in the order of columns; cuts the row up */
static char *cells_in_order(const Table *t, char *row)
{
	char **cells = need(calloc(t->ncolumns, sizeof *cells)), *cell, *line;
	size_t size;
	for (int i = 0; (cell = strsep(&row, "\t")); i++) {
		char *value = i < t->nkeys ? cell : strchr(cell, '=') + 1;
		cells[i < t->nkeys ? i : column_at(t, cell, value - 1 - cell)] = value;
	}
	FILE *f = need(open_memstream(&line, &size));
	for (int i = 0; i < t->ncolumns; i++)
		fprintf(f, "%s%s", i ? "\t" : "", cells[i] ? cells[i] : "-");
	if (fclose(f) != 0)
		die("out of host memory");
	free(cells);
	return line;
}

void table_append(Table *t, const char *rows)
{
	for (const char *end; (end = strchr(rows, '\n')); rows = end + 1) {
		char *row = need(strndup(rows, end - rows));
		assert(count_cells(row) > t->nkeys);
		add_columns(t, row);
		char *line = cells_in_order(t, row);
		add_row(t, line, strlen(line));
		free(line);
		free(row);
	}
	assert(*rows == '\0');
	save_table(t, false);
}

// print the rows in aligned columns
enum { GAP = 2 };

/* prints the cells that have a width; width 0: the column is hidden */
static void print_row(const char *row, const int *width)
{
	for (int c = 0;; c++) {
		int n = (int)strcspn(row, "\t");
		int pad = width[c] > n ? width[c] - n : 0;
		if (width[c])
			printf("%*s%.*s", c ? GAP + pad : pad, "", n, row);
		if (row[n] == '\0')
			break;
		row += n + 1;
	}
	putchar('\n');
}

static void widen_columns(int *width, const char *row)
{
	for (int c = 0; *row; c++) {
		int n = (int)strcspn(row, "\t");
		width[c] = width[c] > n ? width[c] : n;
		row += n + (row[n] == '\t');
	}
}

// hide columns that do not fit a terminal
static int terminal_width(void)
{
	struct winsize size;
	if (!isatty(STDOUT_FILENO))
		return INT_MAX;
	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0
		? size.ws_col : 80;
}

static const char *cell_at(const char *row, int c, int *length)
{
	while (c-- > 0)
		row += strcspn(row, "\t") + 1;
	*length = (int)strcspn(row, "\t");
	return row;
}

/* how soon a column may be hidden: 0 for a key, 1 for what was measured, 2 for
 * what may be missed */
static int column_rank(const Table *t, int c)
{
	static const char *const parts[] = { "_sd_", "_med_", "_min_", "_GFLOP",
		"_MB" };
	int n;
	const char *name = cell_at(t->header, c, &n);
	if (c < t->nkeys)
		return 0;
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		if (memmem(name, n, parts[i], strlen(parts[i])))
			return 2;
	for (int i = 0; i < t->nrows; i++) {
		const char *value = cell_at(t->rows[i], c, &n);
		if ((int)strspn(value, "-0123456789") < n)
			return 1;
	}
	return 2;
}

static int hide_columns(const Table *t, int *width, int columns)
{
	int last = t->ncolumns - 1, hidden = 0, all = width[0];
	for (int c = 1; c <= last; c++)
		all += GAP + width[c];
	if (all <= columns)
		return 0;
	cell_at(t->header, last, &width[last]);
	columns -= width[0] + GAP + width[last];
	for (int rank = 0; rank < 3; rank++)
		for (int c = 1; c < last; c++)
			if (column_rank(t, c) == rank && (columns -= GAP + width[c]) < 0) {
				columns = 0;
				width[c] = 0;
				hidden++;
			}
	return hidden;
}

// print the rows in aligned columns
static void print_aligned(const Table *t)
{
	int *width = need(calloc(t->ncolumns, sizeof *width));
	widen_columns(width, t->header);
	for (int i = 0; i < t->nrows; i++)
		widen_columns(width, t->rows[i]);
	int hidden = t->wide ? 0 : hide_columns(t, width, terminal_width());
	for (int i = 0; i < t->nmeta; i++)
		printf("# %s: %s\n", t->meta[i].key, t->meta[i].value);
	print_row(t->header, width);
	for (int i = 0; i < t->nrows; i++)
		print_row(t->rows[i], width);
	if (hidden)
		printf("# %d of %d columns are not shown (--wide: all)\n", hidden,
			t->ncolumns);
	free(width);
}

// close a table
void table_close(Table *t, bool complete)
{
	if (t->path == NULL)
		print_aligned(t);
	else if (complete)
		save_table(t, true);
	for (int i = 0; i < t->nmeta; i++) {
		free(t->meta[i].key);
		free(t->meta[i].value);
	}
	for (int i = 0; i < t->nrows; i++)
		free(t->rows[i]);
	if (t->lock >= 0)
		close(t->lock);
	free(t->rows);
	free(t->header);
	free(t->path);
	free(t);
}
