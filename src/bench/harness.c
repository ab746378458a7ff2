#define _GNU_SOURCE
#include "bench/harness.h"

#include <errno.h>
#include <libgen.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/table.h"
#include "bench/group.h"

long harness_seed = 1;
static const char *out;
static bool force, wide;
static const char *device_name = "auto";
static int sweep_choice;

typedef struct Planned {
	void *config;
	char *cells;                     /* of its keys */
} Planned;

struct Plan {
	const Sweep *sweep;
	int n;
	Planned *planned;
};

void plan_copy(Plan *plan, const void *config, size_t size)
{
	plan->planned = need(realloc(plan->planned,
		(plan->n + 1) * sizeof *plan->planned));
	Planned *p = &plan->planned[plan->n++];
	p->config = memcpy(need(malloc(size)), config, size);
	p->cells = key_cells(plan->sweep->keys, config);
}

static void plan_free(Plan *plan)
{
	for (int i = 0; i < plan->n; i++) {
		free(plan->planned[i].config);
		free(plan->planned[i].cells);
	}
	free(plan->planned);
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
static Row *current;             /* of this process, a rank */

static void set_oom(Row *row, const char *why)
{
	if (row->ranks > 1)
		row_set(row, "status", "oom: rank %d: %s", row->rank, why);
	else
		row_set(row, "status", "oom: %s", why);
}

static void end_as_oom(size_t need, size_t have, const char *what)
{
	char why[160];
	snprintf(why, sizeof why, "%s needs %.1f MiB, %.1f MiB free", what,
		need / 1048576.0, have / 1048576.0);
	set_oom(current, why);
	row_emit(current);
	_exit(EXIT_OUT_OF_MEMORY);
}
Device *harness_device(void)
{
	Device *d = device_open(harness_on_gpu() ? device_name : "cpu");
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

static bool at_course_scale(const Experiment *e)
{
	return harness_on_gpu() || e->cpu_scale == NULL
		|| (e->full_scale && e->full_scale());
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
	table_meta(t, "scale", "%s", at_course_scale(e) ? "course" : e->cpu_scale);
	table_meta(t, "device", "%s", place.device);
	table_meta(t, "memory_MiB", "%ld", place.memory_MiB);
	table_meta(t, "libraries", "%s", place.libraries);
	table_meta(t, "date", "%s", date);
	table_meta(t, "command", "build/%s%s", e->name, command);
	table_meta(t, "seed", "%ld", harness_seed);
	table_meta(t, "backend", "%s", place.backend);
	table_meta(t, "digest", "%s", read_digest(e->name, place.backend));
}
typedef struct Job {
	const Sweep *sweep;
	const void *config;
	Row *row;
} Job;

static void run_rank(void *arg, int rank, FILE *to)
{
	const Job *job = arg;
	current = job->row;
	current->rank = rank;
	current->to = to;
	job->sweep->run(current, job->config);
	row_end(current);
}
/* returns whether the configuration has its rows now */
static bool run_planned(const Sweep *s, const Planned *p, Table *t,
	const char *columns)
{
	Row row = row_new(columns, p->cells);
	row.ranks = s->ranks ? s->ranks(p->config) : 1;
	Outcome o = group_run(row.ranks, s->limit_s, run_rank,
		&(Job){ s, p->config, &row });
	if (o.end == FAILED) {
		char *name = need(strdup(p->cells)), rank[24] = "";
		for (char *c = name; *c; c++)
			*c = *c == '\t' ? ' ' : *c;
		if (row.ranks > 1)
			snprintf(rank, sizeof rank, "rank %d: ", o.rank);
		fprintf(stderr, "%s: the configuration '%s' failed (%s%s)\n", program_name,
			name, rank, o.how);
		free(name);
	} else {
		char *lines;
		size_t n;
		row.rank = o.rank;
		row.to = need(open_memstream(&lines, &n));
		fputs(o.lines, row.to);
		if (o.end == KILLED) {
			set_oom(&row, "the kernel ended the process");
			row_emit(&row);
		}
		fclose(row.to);
		table_append(t, lines);
		free(lines);
	}
	free(o.lines);
	row_free(&row);
	return o.end != FAILED;
}
static void report_progress(const Experiment *e, int done, int total,
	double seconds, const char *cells)
{
	static bool printed;
	if (!isatty(STDERR_FILENO))
		return;
	if (done < total)
		fprintf(stderr, "\r\033[K%s %d/%d, %.0f s left: %s", e->name, done + 1,
			total, done ? seconds / done * (total - done) : 0, cells);
	else if (printed)
		fprintf(stderr, "\r\033[K");
	printed = true;
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
		{ "device", OPT_TEXT, &device_name, DEVICES "|cuda:N",
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
static void parse_options(const Experiment *e, int argc, char **argv)
{
	Option *options = join_options(e);
	int first = options_parse(options, argc, argv, e->about);
	if (first < argc)
		usage_error("unexpected argument '%s' (options start with --)",
			argv[first]);
	if (out && *out == '\0')
		usage_error("option --out: expected the name of a file");
	if (!device_named(device_name))
		usage_error("option --device: '%s' is not one of " DEVICES "|cuda:N",
			device_name);
	free(options);
}
/* names of the table's columns, blanks between; sets how many are keys */
static char *join_columns(const Sweep *s, int *nkeys)
{
	char *columns;
	size_t n;
	FILE *to = need(open_memstream(&columns, &n));
	*nkeys = 0;
	for (const Key *key = s->keys; key->name; key++, ++*nkeys)
		fprintf(to, "%s ", key->name);
	fprintf(to, "%s status", s->values);
	fclose(to);
	return columns;
}

/* returns how many configurations failed */
static int run_plan(const Experiment *e, const Plan *plan, Table *t,
	const char *columns)
{
	int failures = 0;
	double start = clock_ms();
	for (int i = 0; i < plan->n; i++) {
		const Planned *p = &plan->planned[i];
		report_progress(e, i, plan->n, (clock_ms() - start) / 1e3,
			p->cells);
		if (!table_has(t, p->cells))
			failures += !run_planned(plan->sweep, p, t, columns);
	}
	report_progress(e, plan->n, plan->n, 0, "");
	return failures;
}
int harness_main(const Experiment *e, int argc, char **argv)
{
	parse_options(e, argc, argv);
	Plan plan = { .sweep = &e->sweeps[sweep_choice] };
	int nkeys;
	char *columns = join_columns(plan.sweep, &nkeys);
	Table *t = table_new(out, columns, nkeys);
	if (wide)
		table_wide(t);
	find_place(e->cpu_only ? "cpu" : device_name);
	plan.sweep->plan(&plan);
	describe_table(t, e, argc, argv);
	table_resume(t, !force);
	int failures = run_plan(e, &plan, t, columns);
	table_close(t, failures == 0);
	plan_free(&plan);
	free(columns);
	return failures ? 1 : 0;
}
