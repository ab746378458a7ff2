#define _GNU_SOURCE
/* course_tests: the course's own tests, run by pytest on our functions */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/process.h"
#include "bench/harness.h"
#include "bench/job.h"

static const char *course;
static long limit_s = 600;
static const Option options[] = {
	{ "course", OPT_TEXT, &course, "'DIR ...'", "copies of the course's "
		"repository, of several editions; else those of the variable COURSE" },
	LIMIT_OPTION(&limit_s, "1..86400",
		"seconds that the tests of one file may take"),
	{ 0 }
};

// describe a file of the course's tests
typedef struct Repository {
	const char *folder;              /* as it was given */
	char edition[8], version[32];    /* "2026", "26.1.1" */
	char *tests;                     /* the folder that holds them */
	struct dirent **files;           /* sorted */
	int nfiles;
} Repository;
static Repository *repositories;
static int nrepositories;

typedef struct CourseConfig {
	const char *edition, *file;
	const Repository *from;
} CourseConfig;
static const Key keys[] = { KEY(CourseConfig, edition),
	KEY(CourseConfig, file), { 0 } };

// read the edition of a repository
static void read_edition(Repository *r)
{
	char *path, *line = NULL;
	size_t capacity = 0;
	bool found = false;
	if (asprintf(&path, "%s/CHANGELOG.md", r->folder) < 0)
		die("out of host memory");
	FILE *f = fopen(path, "r");
	while (f && !found && getline(&line, &capacity, f) > 0)
		found = sscanf(line, "## [%31[^]]] - %4[0-9]-", r->version,
			r->edition) == 2;
	if (f)
		fclose(f);
	if (!found)
		usage_error("--course: no edition of the course in '%s': expected '## "
			"[VERSION] - YEAR-MONTH-DAY' in its CHANGELOG.md", r->folder);
	free(line);
	free(path);
}

// find the tests of a repository
static int is_test(const struct dirent *entry)
{
	const char *name = entry->d_name, *end = strrchr(name, '.');
	return strncmp(name, "test_", 5) == 0 && end && strcmp(end, ".py") == 0;
}

static void find_tests(Repository *r)
{
	static const char *const places[] = { "tests", "cs336-systems/tests" };
	for (int i = 0; i < 2 && r->nfiles <= 0; i++) {
		free(r->tests);
		if (asprintf(&r->tests, "%s/%s", r->folder, places[i]) < 0)
			die("out of host memory");
		r->nfiles = scandir(r->tests, &r->files, is_test, alphasort);
	}
	if (r->nfiles <= 0)
		usage_error("--course: no tests/test_*.py in '%s'", r->folder);
}

// list the repositories
static void add_repository(const char *folder)
{
	Repository r = { .folder = folder };
	read_edition(&r);
	find_tests(&r);
	for (int i = 0; i < nrepositories; i++)
		if (strcmp(repositories[i].edition, r.edition) == 0)
			usage_error("--course: '%s' and '%s' are both of %s",
				repositories[i].folder, folder, r.edition);
	repositories = grow(repositories, nrepositories, sizeof r);
	repositories[nrepositories++] = r;
}

static void list_repositories(const char *folders)
{
	static char *words;              /* what the repositories point at */
	words = need(strdup(folders ? folders : ""));
	for (char *word = strtok(words, " "); word; word = strtok(NULL, " "))
		add_repository(word);
	if (nrepositories == 0)
		usage_error("no copy of the course's repository: expected --course "
			"'DIR ...', or the variable COURSE");
}

// plan the files of tests
static char *site;                   /* the folder that holds the package */

static void find_package(void)
{
	char *package = process_beside("site/libsystems");
	if (access(package, R_OK) != 0)
		usage_error("%s is not there: expected the package for PyTorch that "
			"make site installs", package);
	free(package);
	site = process_beside("site");
}

static void plan(Plan *plan)
{
	find_package();
	list_repositories(course ? course : getenv("COURSE"));
	for (int i = 0; i < nrepositories; i++)
		for (int k = 0; k < repositories[i].nfiles; k++)
			plan_add(plan, &(CourseConfig){ repositories[i].edition,
				repositories[i].files[k]->d_name, &repositories[i] });
}

// write a row for each test of a file
static void set_columns(Row *row, char *line)
{
	for (char *pair = strtok(line, "\t\n"); pair; pair = strtok(NULL, "\t\n")) {
		char *value = strchr(pair, '=');
		if (value == NULL)
			continue;
		*value++ = '\0';
		row_set(row, pair, "%s", value);
	}
}

static void run(Row *row, const void *config)
{
	const CourseConfig *c = config;
	char *tests = process_word(c->from->tests), *file = process_word(c->file),
		*package = process_word(site), *line = NULL;
	size_t capacity = 0;
	row_set(row, "version", "%s", c->from->version);
	FILE *from = job_start("exec python3 src/experiments/course_tests.py "
		"--limit %ld --device %s %s %s %s", limit_s, harness_on_gpu() ? "cuda"
		: "cpu", package, tests, file);
	while (getline(&line, &capacity, from) > 0) {
		set_columns(row, line);
		row_emit(row);
	}
	int status = pclose(from);
	if (status) {
		row_forget(row, 2);                  /* keeps status and version */
		job_skip(row, "python3", status, "");
	}
	free(line);
	free(package);
	free(file);
	free(tests);
}

// describe the course's tests to the harness
const Experiment experiment = {
	.about = "the course's own tests, run by pytest on our functions",
	.options = options, .sweeps = SWEEPS(
		{ "tests", keys, plan, run }),
};
