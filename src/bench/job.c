#define _GNU_SOURCE
#include "bench/job.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/process.h"
#include "base/table_reader.h"
#include "bench/harness.h"

// start a command, or say how it ended
static char *text_of(const char *format, va_list args)
{
	char *text;
	if (vasprintf(&text, format, args) < 0)
		die("out of host memory");
	return text;
}

FILE *job_start(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	char *command = text_of(format, args);
	va_end(args);
	FILE *from = need(popen(command, "r"));
	free(command);
	return from;
}

void job_skip(Row *row, const char *who, int status, const char *said)
{
	row_skip(row, "%s ended with %d%s%s", who,
		WIFEXITED(status) ? WEXITSTATUS(status) : -1, *said ? ": " : "", said);
	row_emit(row);
}

// copy the rows of a job
/* copies the rows of a table that has the row's own keys; returns how many */
static int copy_rows(Row *row, const char *path)
{
	int nkeys = 1, n = 0;
	Records *r = records_read(path);
	for (const char *c = row->keys; *c; c++)
		nkeys += *c == '\t';
	for (; r && n < records_count(r); n++) {
		for (int c = nkeys; c < records_columns(r); c++)
			row_set(row, records_column(r, c), "%s", records_cell(r, n, c));
		row_emit(row);
	}
	records_free(&r);
	return n;
}

// start this program again, as ranks of a job
/* said: the first line that has letters; returns as pclose */
static int hear(FILE *from, char *said, size_t room)
{
	char *line = NULL;
	size_t capacity = 0;
	*said = '\0';
	while (getline(&line, &capacity, from) > 0)
		if (*said == '\0' && strspn(line, " -\n") < strlen(line))
			snprintf(said, room, "%.*s", (int)strcspn(line, "\n"), line);
	free(line);
	return pclose(from);
}

// start the ranks of a job, and copy their rows
void job_rows(Row *row, long ranks, long limit_s, const char *launcher,
	const char *arguments, ...)
{
	char *folder = process_folder("job"), *self = process_file(), *table,
		said[160];
	va_list args;
	if (asprintf(&table, "%s/rows.tsv", folder) < 0)
		die("out of host memory");
	va_start(args, arguments);
	char *asked = text_of(arguments, args), *program = process_word(self),
		*out = process_word(table);
	va_end(args);
	int status = hear(job_start(MPIRUN_VARIABLES
		" OMPI_MCA_mpi_yield_when_idle=%d timeout -k 5 %ld %s %s --device cpu "
		"--ranks %ld --seed %ld --out %s %s 2>&1",
		ranks > sysconf(_SC_NPROCESSORS_ONLN), limit_s, launcher, program,
		ranks, harness_seed, out, asked), said, sizeof said);
	if (copy_rows(row, table) == 0)
		job_skip(row, launcher, status, said);
	unlink(table);
	rmdir(folder);
	char *const used[] = { folder, self, table, asked, program, out };
	for (size_t i = 0; i < sizeof used / sizeof *used; i++)
		free(used[i]);
}
