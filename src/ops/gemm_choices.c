#define _GNU_SOURCE
#include "ops/gemm_choices.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/grow.h"
#include "base/table.h"

#define FIRST_LINE "# algorithms of matmuls, chosen by timing, 1"

struct GemmChoices {
	char *path, *place;
	int n, nothers, added, begun;
	GemmChoice *choices;
	char **others;                   /* lines of other places, as they stand */
};

// write a choice as a line
/* a choice's line without its checksum; the caller frees it */
static char *format_choice(const char *place, const GemmChoice *c)
{
	char *line;
	size_t size;
	FILE *f = need(open_memstream(&line, &size));
	fprintf(f, "%s", place);
	for (int i = 0; i < GEMM_NUMBERS; i++)
		fprintf(f, "\t%" PRIu64, c->number[i]);
	for (int i = 0; i < GEMM_WORDS; i++)
		fprintf(f, "\t%016" PRIx64, c->word[i]);
	fprintf(f, "\t%.4f\t%.4f", c->first_ms, c->best_ms);
	if (fclose(f) != 0)
		die("out of host memory");
	return line;
}

void gemm_choices_write(const GemmChoices *c)
{
	if (c->added == 0)
		return;
	FILE *f = file_begin(c->path);
	fprintf(f, "%s\n", FIRST_LINE);
	for (int i = 0; i < c->nothers; i++)
		fprintf(f, "%s\n", c->others[i]);
	for (int i = 0; i < c->n; i++) {
		char *line = format_choice(c->place, &c->choices[i]);
		fprintf(f, "%s\t%016" PRIx64 "\n", line, table_checksum(line));
		free(line);
	}
	file_end(f, c->path);
}

// take a line apart
/* is the text after the last tab the checksum of the text before it? */
static bool checksum_matches(const char *line)
{
	const char *last = strrchr(line, '\t');
	uint64_t sum;
	int n = 0;
	if (last == NULL || strlen(last) != 17
		|| sscanf(last, "\t%16" SCNx64 "%n", &sum, &n) != 1 || n != 17)
		return false;
	char *text = need(strndup(line, last - line));
	bool same = table_checksum(text) == sum;
	free(text);
	return same;
}

/* reads the numbers that follow the place; false: not the right number of them */
static bool parse_numbers(const char *at, GemmChoice *c)
{
	int n = 0;
	for (int i = 0; i < GEMM_NUMBERS; i++, at += n)
		if (sscanf(at, "\t%" SCNu64 "%n", &c->number[i], &n) != 1)
			return false;
	for (int i = 0; i < GEMM_WORDS; i++, at += n)
		if (sscanf(at, "\t%" SCNx64 "%n", &c->word[i], &n) != 1)
			return false;
	return sscanf(at, "\t%lf\t%lf\t%*x%n", &c->first_ms, &c->best_ms, &n) == 2
		&& at[n] == '\0';
}

static void parse_line(GemmChoices *c, const char *line, int number)
{
	size_t length = strlen(c->place);
	GemmChoice choice;
	if (!checksum_matches(line))
		usage_error("%s: line %d is not one that was written (remove the file, "
			"and matmuls are timed anew)", c->path, number);
	if (strncmp(line, c->place, length) != 0 || line[length] != '\t') {
		c->others = grow(c->others, c->nothers, sizeof *c->others);
		c->others[c->nothers++] = need(strdup(line));
	} else if (parse_numbers(line + length, &choice)) {
		gemm_choices_add(c, &choice);
	} else {
		usage_error("%s: line %d: expected %d numbers behind the place", c->path,
			number, GEMM_NUMBERS + GEMM_WORDS + 2);
	}
}

// read choices, or exit
static void read_lines(GemmChoices *c, FILE *f)
{
	char *line = NULL;
	size_t capacity = 0;
	ssize_t n;
	for (int number = 1; (n = getline(&line, &capacity, f)) >= 0; number++) {
		if (n > 0 && line[n - 1] == '\n')
			line[n - 1] = '\0';
		if (number == 1 && strcmp(line, FIRST_LINE) != 0)
			usage_error("%s: not a file of matmuls' algorithms", c->path);
		if (number > 1)
			parse_line(c, line, number);
	}
	if (ferror(f))
		usage_error("cannot read %s: %s", c->path, strerror(errno));
	free(line);
}

GemmChoices *gemm_choices_read(const char *path, const char *place)
{
	GemmChoices *c = need(calloc(1, sizeof *c));
	c->path = need(strdup(path));
	c->place = need(strdup(place));
	FILE *f = fopen(path, "r");
	if (f == NULL && errno != ENOENT)
		usage_error("cannot read %s: %s", path, strerror(errno));
	if (f) {
		read_lines(c, f);
		fclose(f);
	}
	c->added = 0;
	return c;
}

GemmChoices *gemm_choices_of(const Device *d, const char *path)
{
	char *place, *name = need(strdup(d->backend->describe(d->state)));
	if (asprintf(&place, "%s; %s", name, d->backend->libraries(d->state)) < 0)
		die("out of host memory");
	GemmChoices *c = gemm_choices_read(path, place);
	free(place);
	free(name);
	return c;
}

void gemm_choices_free(GemmChoices **c)
{
	if (*c == NULL)
		return;
	for (int i = 0; i < (*c)->nothers; i++)
		free((*c)->others[i]);
	free((*c)->others);
	free((*c)->choices);
	free((*c)->path);
	free((*c)->place);
	free(*c);
	*c = NULL;
}

// find and add choices
const GemmChoice *gemm_choices_find(const GemmChoices *c,
	const uint64_t number[GEMM_NUMBERS])
{
	for (int i = 0; i < c->n; i++)
		if (memcmp(c->choices[i].number, number,
			sizeof c->choices[i].number) == 0)
			return &c->choices[i];
	return NULL;
}

void gemm_choices_add(GemmChoices *c, const GemmChoice *choice)
{
	int i = 0;
	while (i < c->n && memcmp(c->choices[i].number, choice->number,
		sizeof choice->number) != 0)
		i++;
	if (i == c->n)
		c->choices = grow(c->choices, c->n++, sizeof *c->choices);
	c->choices[i] = *choice;
	c->added++;
	c->begun -= c->begun > 0;
}

void gemm_choices_begin(GemmChoices *c)
{
	c->begun++;
}

GemmCounts gemm_choices_counts(const GemmChoices *c)
{
	return (GemmCounts){ c->begun, c->n, c->added };
}
