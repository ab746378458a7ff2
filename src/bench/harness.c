#define _GNU_SOURCE
#include "bench/harness.h"

#include <cblas.h>
#include <errno.h>
#include <libgen.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/process.h"
#include "base/table.h"
#include "bench/group.h"
#include "bench/plan.h"
#include "dist/comm.h"
#include "dist/dry.h"
#include "dist/ring.h"
#include "dist/transports.h"
#include "ops/dry.h"

long harness_seed = 1;
static const char *out;
static bool force, wide, dry;
static const char *device_name = "auto";
static int sweep_choice;
static Link *job;                /* of ranks that mpirun started; NULL: none */

// find out where we run
/* what the table says of the machine */
static struct MachineInfo {
	char backend[16], device[160], libraries[512];
	long memory_MiB;
} machine;

static void record_machine(const Device *d, void *to)
{
	struct MachineInfo *seen = to;
	const Backend *b = d->backend;
	snprintf(seen->backend, sizeof seen->backend, "%s", b->name);
	snprintf(seen->device, sizeof seen->device, "%s", b->describe(d->state));
	snprintf(seen->libraries, sizeof seen->libraries, "%s",
		b->libraries(d->state));
	seen->memory_MiB = (long)(b->memory(d->state) >> 20);
}

/* opens the device in a child, where visit() writes down what it sees, and copies
 * that to `to` */
static void probe_device(const char *name,
	void (*visit)(const Device *d, void *to), void *to, size_t size)
{
	int ends[2];
	fflush(NULL);
	pid_t child = pipe(ends) == 0 ? fork() : -1;
	if (child < 0)
		die("no process that opens a device: %s", strerror(errno));
	if (child == 0) {
		visit(device_open(name), to);
		_exit(write(ends[1], to, size) != (ssize_t)size);
	}
	close(ends[1]);
	if (read(ends[0], to, size) != (ssize_t)size)
		die("the device '%s' could not be opened", name);
	close(ends[0]);
	waitpid(child, NULL, 0);
}

bool harness_on_gpu(void)
{
	return strcmp(machine.backend, "cuda") == 0;
}

// give each rank its part of the machine
static int ordinal = -1;         /* of the rank's GPU; -1: as --device says */
static int gpus;                 /* from the first on; 0: not counted yet */

static int first_gpu(void)
{
	const char *number = strchr(device_name, ':');
	return number ? atoi(number + 1) : 0;
}

// count GPUs in a child
static void record_gpu_count(const Device *d, void *to)
{
	int n = first_gpu();
	while (d->backend->why_missing(n) == NULL)
		n++;
	*(int *)to = n - first_gpu();
}

static void count_gpus(void)
{
	if (gpus == 0 && harness_on_gpu())
		probe_device(device_name, record_gpu_count, &gpus, sizeof gpus);
}

// bind a rank to its share of the host
/* local_rank of the local_ranks on this host: its share of the cores, its GPU */
static void bind_rank_to_device(int local_rank, int local_ranks)
{
	if (local_ranks == 1)
		return;
	int share = omp_get_num_procs() / local_ranks, most = omp_get_max_threads();
	share = share < 1 ? 1 : share < most ? share : most;
	omp_set_num_threads(share);
	openblas_set_num_threads(share);
	ordinal = first_gpu() + (gpus ? local_rank % gpus : 0);
}

// skip what needs more GPUs than there are
/* does the row need more GPUs than there are? Then sets its status */
static bool lacks_gpus(Row *row)
{
	if (row->ranks == 1 || !harness_on_gpu() || dry)
		return false;
	count_gpus();
	if (gpus < row->ranks)
		row_skip(row, "%d GPUs are needed, there %s %d", row->ranks,
			gpus == 1 ? "is" : "are", gpus);
	return gpus < row->ranks;
}

// open the device, with running out of memory as an outcome
static Row *current;             /* of this process, a rank */

static void set_oom(Row *row, const char *why)
{
	if (row->ranks > 1)
		row_status(row, "oom: rank %d: %s", row->rank, why);
	else
		row_status(row, "oom: %s", why);
}

static void end_as_oom(size_t need, size_t have, const char *what)
{
	char why[160];
	snprintf(why, sizeof why, "%s needs %.1f MiB, %.1f MiB free", what,
		need / 1048576.0, have / 1048576.0);
	if (job)
		die("rank %d: out of memory: %s", job->rank, why);
	set_oom(current, why);
	row_emit(current);
	_exit(EXIT_OUT_OF_MEMORY);
}

// open the harness's device
Device *harness_device(void)
{
	char name[24];
	snprintf(name, sizeof name, "cuda:%d", ordinal);
	if (dry)
		return dry_device(machine.backend);
	Device *d = device_open(!harness_on_gpu() ? "cpu" : ordinal < 0
		? device_name : name);
	d->on_oom = end_as_oom;
	return d;
}

bool harness_forced(void)
{
	return force;
}

// let the ranks of a configuration meet
static Meeting meeting = { .listener = -1 };
static char *doing;              /* seen by the parent; NULL: there is none */

Link *harness_link(Row *row)                                 /* within 60 s */
{
	if (dry)
		return link_dry(row->rank, row->ranks);
	return job ? link_mpi() : link_tcp(row->rank, row->ranks, &meeting, 60);
}

Comm *harness_comm_over(Link *link, Device *device, const CommSettings *settings)
{
	CommSettings s = settings ? *settings : (CommSettings){ 0 };
	s.doing = doing;
	return comm_open(link, device, &s);
}

static int ranks_of(const Sweep *s, const Planned *p)
{
	return s->ranks ? s->ranks(p->config) : 1;
}

// describe the run
static char *read_digest(const char *backend)
{
	static char digest[64] = "unknown";
	char *path = process_beside("digest/%s.%s", program_name, backend);
	FILE *f = fopen(path, "r");
	if (f && fscanf(f, "%63s", digest) != 1)
		die("%s: expected a digest", path);
	if (f)
		fclose(f);
	free(path);
	return digest;
}

// say which machine and scale it is
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

// write the head of a table
static void describe_table(Table *t, const Experiment *e, int argc,
	char **argv)
{
	char date[32], command[4096] = "", name[256];
	time_t now = time(NULL);
	// write date, command and name
	strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--force") != 0)
			snprintf(command + strlen(command),
				sizeof command - strlen(command), " %s", argv[i]);
	snprintf(name, sizeof name, "%s", out ? basename(strdupa(out))
		: program_name);
	name[strcspn(name, ".")] = '\0';
	// write the entries of the head
	table_meta(t, "table", "%s", name);
	table_meta(t, "program", "%s", program_name);
	table_meta(t, "sweep", "%s", e->sweeps[sweep_choice].name);
	table_meta(t, "machine", "%s", machine_of(out));
	table_meta(t, "scale", "%s", at_course_scale(e) ? "course" : e->cpu_scale);
	table_meta(t, "device", "%s", machine.device);
	table_meta(t, "memory_MiB", "%ld", machine.memory_MiB);
	const char *more = e->sweeps[sweep_choice].ranks ? transport_libraries()
		: "";
	table_meta(t, "libraries", "%s%s%s", machine.libraries, *more ? "; " : "",
		more);
	table_meta(t, "date", "%s", date);
	table_meta(t, "command", "build/%s%s", program_name, command);
	table_meta(t, "seed", "%ld", harness_seed);
	table_meta(t, "backend", "%s", machine.backend);
	table_meta(t, "digest", "%s", read_digest(machine.backend));
}

// run one configuration in processes of its own
typedef struct Task {
	const Sweep *sweep;
	const void *config;
	Row *row;
} Task;

static void run_rank(void *arg, int rank, char *doing_here, FILE *to)
{
	const Task *task = arg;
	current = task->row;
	current->rank = rank;
	current->to = to;
	doing = doing_here;
	if (!dry)
		bind_rank_to_device(rank, current->ranks);
	(dry ? task->sweep->dry : task->sweep->run)(current, task->config);
	row_end(current);
}

static void append_rows(Table *t, Row *row, const char *lines, bool and_row)
{
	char *all;
	size_t n;
	row->to = need(open_memstream(&all, &n));
	fputs(lines, row->to);
	if (and_row)
		row_emit(row);
	fclose(row->to);
	table_append(t, all);
	free(all);
}

// run one planned configuration
/* returns whether the configuration has its rows now */
static bool run_group(const Sweep *s, const Planned *p, Table *t, Row *row)
{
	if (s->ranks)
		meeting = meeting_here();
	Outcome o = group_run(dry ? 1 : row->ranks, s->limit_s ? s->limit_s
		: s->ranks ? 600 : 0, run_rank, &(Task){ s, p->config, row });
	if (s->ranks)
		meeting_close(&meeting);
	row->rank = o.rank;
	if (o.end == KILLED)
		set_oom(row, "the kernel ended the process");
	if (o.end == FAILED) {
		// say which configuration failed, and how
		char *name = need(strdup(p->cells)), rank[24] = "";
		for (char *c = name; *c; c++)
			*c = *c == '\t' ? ' ' : *c;
		if (row->ranks > 1)
			snprintf(rank, sizeof rank, "rank %d: ", o.rank);
		fprintf(stderr, "%s: the configuration '%s' failed (%s%s)\n", program_name,
			name, rank, o.how);
		free(name);
	} else {
		append_rows(t, row, o.lines, o.end == KILLED);
	}
	free(o.lines);
	return o.end != FAILED;
}

// run one planned configuration
static bool run_planned(const Sweep *s, const Planned *p, Table *t)
{
	Row row = row_new(p->cells);
	bool done = true;
	row.ranks = ranks_of(s, p);
	if (lacks_gpus(&row))
		append_rows(t, &row, "", true);
	else
		done = run_group(s, p, t, &row);
	row_free(&row);
	return done;
}

// run one configuration as a rank of a launched job
/* is it to be measured? t: the table on the first rank, NULL on others */
static bool is_wanted(const Planned *p, const Table *t)
{
	char wanted = t && !table_has(t, p->cells);
	if (job == NULL)
		return wanted;
	job->number++;
	job->doing = "the choice of a configuration";
	link_broadcast(job, &wanted, 1, 0);
	return wanted;
}

static void run_in_job(const Sweep *s, const Planned *p, Table *t)
{
	char *lines;
	size_t n;
	Row row = row_new(p->cells);
	row.rank = job->rank;
	row.ranks = job->ranks;
	row.to = need(open_memstream(&lines, &n));
	s->run(&row, p->config);
	if (!row.emitted)
		row_emit(&row);
	fclose(row.to);
	if (t)
		table_append(t, lines);
	free(lines);
	row_free(&row);
}

// report progress
static void report_progress(int done, int total, double seconds,
	const char *cells)
{
	static bool printed;
	if (!isatty(STDERR_FILENO))
		return;
	if (done < total)
		fprintf(stderr, "\r\033[K%s %d/%d, %.0f s left: %s", program_name,
			done + 1, total, done ? seconds / done * (total - done) : 0, cells);
	else if (printed)
		fprintf(stderr, "\r\033[K");
	printed = true;
}

// join the program's options with the harness's
static const Option dry_option = { "dry", OPT_FLAG, &dry, "",
	"say what memory it takes, without the devices and the ranks" };

static Option *join_options(const Experiment *e)
{
	static char sweeps[256];
	for (const Sweep *s = e->sweeps; s->name; s++)
		snprintf(sweeps + strlen(sweeps), sizeof sweeps - strlen(sweeps),
			"%s%s", *sweeps ? "|" : "", s->name);
	// list the harness's options
	const Option common[] = {
		{ "sweep", OPT_CHOICE, &sweep_choice, sweeps, "which table to make" },
		{ "out", OPT_TEXT, &out, "FILE",
			"write the table there and resume it; else print the table" },
		DEVICE_OPTION(&device_name),
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
	Option *all = need(calloc(n + sizeof common / sizeof *common + 1,
		sizeof *all));
	if (n)
		memcpy(all, e->options, n * sizeof *all);
	for (const Sweep *s = e->sweeps; s->name && !all[n].name; s++)
		if (s->dry)
			all[n] = dry_option;
	memcpy(all + n + (all[n].name != NULL), common, sizeof common);
	return all;
}

// join the program's options with the harness's
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
	if (dry && out)
		usage_error("option --dry: prints a table, and takes no --out");
	if (dry && e->sweeps[sweep_choice].dry == NULL)
		usage_error("option --dry: sweep '%s' has no dry run",
			e->sweeps[sweep_choice].name);
	free(options);
}

// run the plan
/* a table that has the sweep's keys and the status */
static Table *table_of_sweep(const Sweep *s)
{
	char *columns;
	size_t n;
	int nkeys = 0;
	FILE *to = need(open_memstream(&columns, &n));
	for (const Key *key = s->keys; key->name; key++, nkeys++)
		fprintf(to, "%s ", key->name);
	fputs(ROW_STATUS, to);
	fclose(to);
	Table *t = table_new(out, columns, nkeys);
	free(columns);
	return t;
}

// run what is missing of the plan
/* t: the table on rank 0, NULL on other ranks; returns how many configurations
 * failed */
static int run_plan(const Plan *plan, Table *t)
{
	int failures = 0;
	double start = clock_ms();
	for (int i = 0; i < plan->n; i++) {
		const Planned *p = &plan->planned[i];
		if (t)
			report_progress(i, plan->n, (clock_ms() - start) / 1e3,
				p->cells);
		// run the configuration unless its rows are there
		if (job && ranks_of(plan->sweep, p) != job->ranks)
			continue;
		if (!is_wanted(p, t))
			continue;
		if (job)
			run_in_job(plan->sweep, p, t);
		else
			failures += !run_planned(plan->sweep, p, t);
	}
	if (t)
		report_progress(plan->n, plan->n, 0, "");
	return failures;
}

// close the table
static int count_left_out(const Plan *plan, const Table *t)
{
	int n = 0;
	for (int i = 0; job && i < plan->n; i++)
		n += ranks_of(plan->sweep, &plan->planned[i]) != job->ranks
			&& !table_has(t, plan->planned[i].cells);
	return n;
}

static void close_table(Table *t, const Plan *plan, int failures)
{
	int left_out = count_left_out(plan, t);
	if (left_out)
		fprintf(stderr, "%s: left out: %d configurations that do not take %d "
			"ranks\n", program_name, left_out, job->ranks);
	table_close(t, failures == 0 && left_out == 0);
}

// run an experiment
static void expect_configuration(const Plan *plan, int ranks)
{
	for (int i = 0; i < plan->n; i++)
		if (ranks_of(plan->sweep, &plan->planned[i]) == ranks)
			return;
	if (plan->n > 0)
		usage_error("%d ranks were started, and no configuration takes as many: "
			"the first takes %d", ranks, ranks_of(plan->sweep, plan->planned));
}

static void look_at_machine(const Experiment *e)
{
	if (dry) {
		Device *d = dry_device(strcmp(device_name, "cpu") == 0 ? "cpu"
			: "cuda");
		record_machine(d, &machine);
		device_close(&d);
		return;
	}
	probe_device(e->cpu_only ? "cpu" : device_name, record_machine, &machine,
		sizeof machine);
}

/* launched: the processes of a job that a launcher started; 0: there is none */
static void expect_ranks(const Plan *plan, int launched)
{
	if (launched && !dry)
		expect_configuration(plan, launched);
	for (int i = 0; i < plan->n && !dry && !launched; i++)
		if (ranks_of(plan->sweep, &plan->planned[i]) > MOST_RANKS)
			usage_error("option --ranks: at most %d processes are started here "
				"(--dry starts none)", MOST_RANKS);
}

int harness_main(const Experiment *e, int argc, char **argv)
{
	int rank = 0, ranks = 1;
	bool launched = link_launched(&rank, &ranks);
	if (launched && rank > 0 && freopen("/dev/null", "w", stdout) == NULL)
		die("cannot write /dev/null: %s", strerror(errno));
	parse_options(e, argc, argv);
	const Sweep *sweep = &e->sweeps[sweep_choice];
	Plan plan = { .sweep = sweep, .keys = sweep->keys };
	Table *t = launched && rank > 0 ? NULL : table_of_sweep(plan.sweep);
	look_at_machine(e);
	plan.sweep->plan(&plan);
	expect_ranks(&plan, launched ? ranks : 0);
	// join the job that a launcher started
	if (launched && !dry)
		count_gpus();
	job = dry ? NULL : link_mpi();
	if (job)
		bind_rank_to_device(job->local_rank, job->local_ranks);
	// describe the table, and take over finished rows
	if (t) {
		if (wide)
			table_wide(t);
		describe_table(t, e, argc, argv);
		table_resume(t, !force);
	}
	int failures = run_plan(&plan, t);
	if (t)
		close_table(t, &plan, failures);
	link_close(&job);
	plan_free(&plan);
	return failures ? 1 : 0;
}
