#define _GNU_SOURCE
#include "experiments/harness.h"

#include <assert.h>
#include <errno.h>
#include <libgen.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/table.h"

long harness_seed = 1;
static const char *out;
static bool force, wide;
static int device_choice, sweep_choice;
static const char *const device_names[] = { "auto", "cpu", "cuda" };

struct Plan {
	int n;
	char **keys;
};

void plan_add(Plan *plan, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	plan->keys = need(realloc(plan->keys, (plan->n + 1) * sizeof *plan->keys));
	if (vasprintf(&plan->keys[plan->n++], format, args) < 0)
		die("out of host memory");
	va_end(args);
}

#define MOST_COLUMNS 48

struct Row {
	const char *columns;               /* names separated by blanks */
	int n, nkeys;
	char *cells[MOST_COLUMNS];
	FILE *pipe;
	bool emitted;
};

static int column_index(const Row *row, const char *name)
{
	int i = 0;
	size_t length = strlen(name);
	for (const char *c = row->columns; *c; c += strcspn(c, " "), c += *c == ' ',
		i++)
		if (strcspn(c, " ") == length && strncmp(c, name, length) == 0)
			return i;
	die("the experiment has no column %s", name);
}

const char *row_text(const Row *row, const char *column)
{
	return row->cells[column_index(row, column)];
}

long row_int(const Row *row, const char *column)
{
	return strtol(row_text(row, column), NULL, 10);
}
void row_set(Row *row, const char *column, const char *format, ...)
{
	int i = column_index(row, column);
	va_list args;
	va_start(args, format);
	free(row->cells[i]);
	if (vasprintf(&row->cells[i], format, args) < 0)
		die("out of host memory");
	va_end(args);
	for (char *c = row->cells[i]; *c; c++)
		if (*c == '\t' || *c == '\n')
			*c = ' ';
}

void row_emit(Row *row)
{
	for (int i = 0; i < row->n; i++)
		fprintf(row->pipe, "%s%c", row->cells[i], i + 1 < row->n ? '\t' : '\n');
	fflush(row->pipe);
	row->emitted = true;
}

static void row_free(Row *row)
{
	for (int i = 0; i < row->n; i++)
		free(row->cells[i]);
}

static Row row_new(const char *columns, int n, int nkeys, const char *keys)
{
	Row row = { .columns = columns, .n = n, .nkeys = nkeys };
	assert(n <= MOST_COLUMNS);
	for (int i = 0; i < n; i++) {
		int length = i < nkeys ? (int)strcspn(keys, "\t") : 0;
		if (asprintf(&row.cells[i], "%.*s", length ? length : 1, length ? keys
			: "-") < 0)
			die("out of host memory");
		keys += length + (keys[length] == '\t');
	}
	row_set(&row, "status", "ok");
	return row;
}
static struct Place {
	char backend[16], device[160], libraries[512];
	long memory_MiB;
} place;

static void find_place(const char *name)
{
	int ends[2];
	fflush(NULL);
	if (pipe(ends) != 0)
		die("pipe: %s", strerror(errno));
	pid_t child = fork();
	if (child < 0)
		die("fork: %s", strerror(errno));
	if (child == 0) {
		const Device *d = device_open(name);
		const Backend *b = d->backend;
		snprintf(place.backend, sizeof place.backend, "%s", b->name);
		snprintf(place.device, sizeof place.device, "%s", b->describe(d->state));
		snprintf(place.libraries, sizeof place.libraries, "%s",
			b->libraries(d->state));
		place.memory_MiB = (long)(b->memory(d->state) >> 20);
		_exit(write(ends[1], &place, sizeof place) != sizeof place);
	}
	close(ends[1]);
	if (read(ends[0], &place, sizeof place) != sizeof place)
		die("the device '%s' could not be opened", name);
	close(ends[0]);
	waitpid(child, NULL, 0);
}
static Row *current;

static void end_as_oom(size_t need, size_t have, const char *what)
{
	row_set(current, "status", "oom: %s needs %.1f MiB, %.1f MiB free", what,
		need / 1048576.0, have / 1048576.0);
	row_emit(current);
	_exit(0);
}

Device *harness_device(void)
{
	Device *d = device_open(place.backend);
	d->on_oom = end_as_oom;
	return d;
}

bool harness_on_gpu(void)
{
	return strcmp(place.backend, "cuda") == 0;
}

bool harness_forced(void)
{
	return force;
}
static char *read_digest(const char *name, const char *backend)
{
	static char digest[64] = "unknown";
	char self[4096], *path;
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	if (n < 0)
		return digest;
	self[n] = '\0';
	if (asprintf(&path, "%s/digest/%s.%s", dirname(self), name, backend) < 0)
		die("out of host memory");
	FILE *f = fopen(path, "r");
	if (f && fscanf(f, "%63s", digest) != 1)
		die("%s: expected a digest", path);
	if (f)
		fclose(f);
	free(path);
	return digest;
}

static const char *machine_of(const char *path)
{
	static char copy[4096];
	if (path == NULL || snprintf(copy, sizeof copy, "%s",
		path) >= (int)sizeof copy)
		return "local";
	return basename(dirname(copy));
}

static void describe_table(Table *t, const Experiment *e, int argc,
	char **argv)
{
	char date[32], command[4096] = "", name[256];
	time_t now = time(NULL);
	strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--force") != 0)
			snprintf(command + strlen(command),
				sizeof command - strlen(command), " %s", argv[i]);
	snprintf(name, sizeof name, "%s", out ? basename(strdupa(out)) : e->name);
	name[strcspn(name, ".")] = '\0';
	table_meta(t, "table", "%s", name);
	table_meta(t, "program", "%s", e->name);
	table_meta(t, "sweep", "%s", e->sweeps[sweep_choice].name);
	table_meta(t, "machine", "%s", machine_of(out));
	table_meta(t, "scale", "%s", e->scale ? e->scale() : "course");
	table_meta(t, "device", "%s", place.device);
	table_meta(t, "memory_MiB", "%ld", place.memory_MiB);
	table_meta(t, "libraries", "%s", place.libraries);
	table_meta(t, "date", "%s", date);
	table_meta(t, "command", "build/%s%s", e->name, command);
	table_meta(t, "seed", "%ld", harness_seed);
	table_meta(t, "backend", "%s", place.backend);
	table_meta(t, "digest", "%s", read_digest(e->name, place.backend));
}
static _Noreturn void run_child(const Sweep *sweep, Row *row, int pipe)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	row->pipe = fdopen(pipe, "w");
	current = row;
	sweep->run(row);
	if (!row->emitted)
		row_emit(row);
	fflush(NULL);
	_exit(0);
}

/* appends the child's rows; returns whether it ended well */
static bool run_row(const Sweep *sweep, Table *t, Row *row)
{
	int ends[2];
	fflush(NULL);
	if (pipe(ends) != 0)
		die("pipe: %s", strerror(errno));
	pid_t child = fork();
	if (child < 0)
		die("fork: %s", strerror(errno));
	if (child == 0) {
		close(ends[0]);
		run_child(sweep, row, ends[1]);
	}
	close(ends[1]);
	FILE *rows = need(fdopen(ends[0], "r"));
	char **lines = NULL, *line = NULL;
	size_t n = 0, capacity = 0;
	for (ssize_t length; (length = getline(&line, &capacity, rows)) > 0; n++) {
		lines = need(realloc(lines, (n + 1) * sizeof *lines));
		line[length - 1] = '\0';
		lines[n] = need(strdup(line));
	}
	free(line);
	fclose(rows);
	int status;
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	bool ok = WIFEXITED(status) && WEXITSTATUS(status) == 0;
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) {
		row_set(row, "status", "oom: the kernel ended the process");
		row->pipe = open_memstream(&line, &capacity);
		row_emit(row);
		fclose(row->pipe);
		line[strcspn(line, "\n")] = '\0';
		table_append(t, line);
		ok = true;
	} else if (!ok) {
		fprintf(stderr, "%s: the configuration '%s' failed (%s %d)\n", program_name,
			row->cells[0], WIFEXITED(status) ? "exit status" : "signal",
			WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
	}
	for (size_t i = 0; i < n; i++) {
		if (ok)
			table_append(t, lines[i]);
		free(lines[i]);
	}
	free(lines);
	return ok;
}
static void report_progress(const Experiment *e, int done, int total,
	double seconds, const char *keys)
{
	static bool printed;
	if (!isatty(STDERR_FILENO))
		return;
	if (done < total)
		fprintf(stderr, "\r\033[K%s %d/%d, %.0f s left: %s", e->name, done + 1,
			total, done ? seconds / done * (total - done) : 0, keys);
	else if (printed)
		fprintf(stderr, "\r\033[K");
	printed = true;
}

static double now_seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}
static Option *join_options(const Experiment *e)
{
	static char sweeps[256];
	for (const Sweep *s = e->sweeps; s->name; s++)
		snprintf(sweeps + strlen(sweeps), sizeof sweeps - strlen(sweeps),
			"%s%s", *sweeps ? "|" : "", s->name);
	const Option common[] = {
		{ "sweep", OPT_CHOICE, &sweep_choice, sweeps, "which table to make" },
		{ "out", OPT_TEXT, &out, "FILE",
			"write the table there and resume it; else print the table" },
		{ "device", OPT_CHOICE, &device_choice, DEVICES,
			"where to run; auto: on a GPU if there is one" },
		{ "seed", OPT_INT, &harness_seed, "0..4294967295",
			"of all random numbers" },
		{ "force", OPT_FLAG, &force, "",
			"measure again what the files hold, and replace any file" },
		{ "wide", OPT_FLAG, &wide, "",
			"print all columns, even if they do not fit the terminal" },
		{ 0 }
	};
	int n = 0;
	while (e->options && e->options[n].name)
		n++;
	Option *all = need(calloc(n + sizeof common / sizeof *common, sizeof *all));
	if (n)
		memcpy(all, e->options, n * sizeof *all);
	memcpy(all + n, common, sizeof common);
	return all;
}
static int count_words(const char *text)
{
	int n = 1;
	for (; *text; text++)
		n += *text == ' ';
	return n;
}

int harness_main(const Experiment *e, int argc, char **argv)
{
	Option *options = join_options(e);
	int first = options_parse(options, argc, argv, e->about);
	if (first < argc)
		usage_error("unexpected argument '%s' (options start with --)",
			argv[first]);
	if (out && *out == '\0')
		usage_error("option --out: expected the name of a file");
	free(options);
	const Sweep *sweep = &e->sweeps[sweep_choice];
	char *columns;
	if (asprintf(&columns, "%s %s status", sweep->keys, sweep->values) < 0)
		die("out of host memory");
	int nkeys = count_words(sweep->keys), failures = 0;
	Table *t = table_new(out, columns, nkeys);
	if (wide)
		table_wide(t);
	find_place(e->cpu_only ? "cpu" : device_names[device_choice]);
	Plan plan = { 0 };
	sweep->plan(&plan);
	describe_table(t, e, argc, argv);
	table_resume(t, !force);
	double start = now_seconds();
	for (int i = 0; i < plan.n; i++) {
		report_progress(e, i, plan.n, now_seconds() - start, plan.keys[i]);
		if (table_has(t, plan.keys[i]))
			continue;
		Row row = row_new(columns, table_columns(t), nkeys, plan.keys[i]);
		failures += !run_row(sweep, t, &row);
		row_free(&row);
	}
	report_progress(e, plan.n, plan.n, 0, "");
	table_close(t, failures == 0);
	for (int i = 0; i < plan.n; i++)
		free(plan.keys[i]);
	free(plan.keys);
	free(columns);
	return failures ? 1 : 0;
}
