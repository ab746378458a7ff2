#define _GNU_SOURCE
#include "profile/trace.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"

// write events of a trace
#define TRACE_BEGINS "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n"
enum { RANGES_TRACK = 1, STREAM_TRACKS = 100 };

bool trace_recognised(FILE *f)
{
	return file_begins(f, TRACE_BEGINS);
}

static void write_text(FILE *f, const char *text)
{
	putc('"', f);
	for (; *text; text++)
		if (*text == '"' || *text == '\\')
			fprintf(f, "\\%c", *text);
		else if ((unsigned char)*text < ' ')
			fprintf(f, "\\u%04x", *text);
		else
			putc(*text, f);
	putc('"', f);
}

static void name_track(FILE *f, int rank, unsigned track, const char *format,
	unsigned number)
{
	char name[64];
	snprintf(name, sizeof name, format, number);
	fprintf(f, "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%d,\"tid\":%u,"
		"\"args\":{\"name\":\"%s\"}},\n", rank, track, name);
}

static void write_event(FILE *f, int rank, unsigned track, const char *name,
	double start_us, double end_us)
{
	fprintf(f, "{\"ph\":\"X\",\"pid\":%d,\"tid\":%u,\"ts\":%.3f,\"dur\":%.3f,"
		"\"name\":", rank, track, start_us, end_us - start_us);
	write_text(f, name);
}

static void write_activities(FILE *f, const Profile *p, int rank)
{
	for (size_t i = 0; i < p->nactivities; i++) {
		const Activity *w = &p->activities[i];
		// name the stream's track before its first event
		bool named = false;
		for (size_t before = 0; before < i && !named; before++)
			named = p->activities[before].stream == w->stream;
		if (!named)
			name_track(f, rank, STREAM_TRACKS + w->stream, "stream %u",
				w->stream);
		write_event(f, rank, STREAM_TRACKS + w->stream, w->name, w->start_us,
			w->end_us);
		fprintf(f, ",\"args\":{\"grid\":[%u,%u,%u],\"block\":[%u,%u,%u],"
			"\"registers\":%u,\"shared_bytes\":%zu,\"bytes\":%zu}},\n",
			w->grid[0], w->grid[1], w->grid[2], w->block[0], w->block[1],
			w->block[2], w->registers, w->shared_bytes, w->nbytes);
	}
}

// write events of a trace
static void write_memory(FILE *f, const Device *d, int rank)
{
	ptrdiff_t active[NCATEGORIES];
	for (int c = 0; c < NCATEGORIES; c++)
		active[c] = (ptrdiff_t)d->active[c];
	for (size_t i = 0; i < d->nlog; i++)    /* back to the first event */
		active[d->log[i].category] -= d->log[i].nbytes;
	for (size_t i = 0; i < d->nlog; i++) {
		const MemoryEvent *e = &d->log[i];
		active[e->category] += e->nbytes;
		fprintf(f, "{\"ph\":\"C\",\"pid\":%d,\"ts\":%.3f,\"name\":\"bytes in "
			"use\",\"args\":{", rank, (e->ms + d->start_ms) * 1e3);
		for (int c = 0; c < NCATEGORIES; c++)
			fprintf(f, "%s\"%s\":%td", c ? "," : "", category_names[c],
				active[c]);
		fprintf(f, "}},\n");
	}
}

void trace_write(const Profile *p, int rank, const char *path)
{
	FILE *f = file_begin(path);
	fputs(TRACE_BEGINS, f);
	for (int s = 0; s < p->nranges; s++) {
		write_event(f, rank, RANGES_TRACK, p->ranges[s].name,
			p->ranges[s].start_us, p->ranges[s].end_us);
		fprintf(f, "},\n");
	}
	write_activities(f, p, rank);
	write_memory(f, p->device, rank);
	name_track(f, rank, RANGES_TRACK, "ranges", 0);
	fprintf(f, "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%d,\"args\":"
		"{\"name\":\"rank %d\"}}]}\n", rank, rank);
	file_end(f, path);
}

void trace_write_spans(const TraceSpan *spans, int n, const char *const *tracks,
	const char *path)
{
	FILE *f = file_begin(path);
	fputs(TRACE_BEGINS, f);
	for (int i = 0; i < n; i++) {
		const TraceSpan *s = &spans[i];
		// name the rank's track before its first event
		bool named = false;
		for (int before = 0; before < i && !named; before++)
			named = spans[before].rank == s->rank
				&& spans[before].track == s->track;
		if (!named)
			name_track(f, s->rank, RANGES_TRACK + s->track, tracks[s->track], 0);
		write_event(f, s->rank, RANGES_TRACK + s->track, s->name, s->start_us,
			s->end_us);
		fprintf(f, ",\"cat\":\"%s\"},\n", s->class);
	}
	// name the ranks
	for (int i = 0; i < n; i++)
		if (i == 0 || spans[i].rank != spans[i - 1].rank)
			fprintf(f, "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%d,"
				"\"args\":{\"name\":\"rank %d\"}},\n", spans[i].rank,
				spans[i].rank);
	fputs("{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":0,\"args\":"
		"{\"sort_index\":0}}]}\n", f);
	file_end(f, path);
}

// write folded stacks
bool folded_recognised(FILE *f)
{
	char *line = NULL;
	size_t capacity = 0;
	bool stack = false, numbers = true;
	while (numbers && getline(&line, &capacity, f) > 0) {
		const char *blank = strrchr(line, ' ');
		size_t digits = blank ? strspn(blank + 1, "0123456789") : 0;
		numbers = digits > 0 && strcmp(blank + 1 + digits, "\n") == 0;
		stack |= strchr(line, ';') != NULL;
	}
	free(line);
	return numbers && stack;
}

static void write_stack(const Profile *p, int range, FILE *f)
{
	if (p->ranges[range].parent >= 0) {
		write_stack(p, p->ranges[range].parent, f);
		putc(';', f);
	}
	fputs(p->ranges[range].name, f);
}

void folded_write(const Profile *p, FILE *f)
{
	double *own = need(calloc(p->nranges + 1, sizeof *own));
	for (int s = 0; s < p->nranges; s++) {
		own[s] += p->ranges[s].device_us;
		if (p->ranges[s].parent >= 0)
			own[p->ranges[s].parent] -= p->ranges[s].device_us;
	}
	for (int s = 0; s < p->nranges && !p->sees_activities; s++) {
		write_stack(p, s, f);
		fprintf(f, " %.0f\n", own[s] * 1e3);
	}
	for (size_t i = 0; i < p->nactivities; i++) {
		const Activity *w = &p->activities[i];
		if (w->range >= 0) {
			write_stack(p, w->range, f);
			putc(';', f);
		}
		fprintf(f, "%s %.0f\n", w->name, (w->end_us - w->start_us) * 1e3);
	}
	free(own);
}
