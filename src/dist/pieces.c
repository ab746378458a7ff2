#define _GNU_SOURCE
#include "dist/pieces.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"

// gather what the ranks own
typedef struct PieceRecord {
	char name[96];
	size_t rows, columns, begin, n;
	int rank;
} PieceRecord;

static PieceRecord *gather_counted(Comm *c, const Piece *pieces, size_t n,
	size_t most)
{
	PieceRecord *all = need(calloc(comm_ranks(c) * most + 1, sizeof *all)),
		*own = all + comm_rank(c) * most;
	for (size_t i = 0; i < n; i++) {
		const Piece *p = &pieces[i];
		assert(strlen(p->name) < sizeof own->name);
		own[i] = (PieceRecord){ "", p->rows, p->columns, p->begin, p->n,
			comm_rank(c) };
		snprintf(own[i].name, sizeof own->name, "%s", p->name);
	}
	comm_gather_host(c, all, most * sizeof *all);
	return all;
}

/* returns the records of all ranks that have elements, and their number */
static PieceRecord *gather_records(Comm *c, const Piece *pieces, int n,
	size_t *count)
{
	size_t most = 0, *counts = need(calloc(comm_ranks(c), sizeof *counts));
	counts[comm_rank(c)] = n;
	comm_gather_host(c, counts, sizeof *counts);
	for (int r = 0; r < comm_ranks(c); r++)
		most = counts[r] > most ? counts[r] : most;
	free(counts);
	PieceRecord *all = gather_counted(c, pieces, n, most);
	*count = 0;
	for (size_t i = 0; i < comm_ranks(c) * most; i++)
		if (all[i].n > 0)
			all[(*count)++] = all[i];
	return all;
}

// check that pieces tile their tensors
static int by_place(const void *a, const void *b)
{
	const PieceRecord *x = a, *y = b;
	int names = strcmp(x->name, y->name);
	return names ? names : (x->begin > y->begin) - (x->begin < y->begin);
}

static size_t element_count(size_t rows, size_t columns)
{
	return rows ? rows * columns : columns;
}

/* r begins where the pieces before it, of which `last` is one, have ended */
static void check_piece(const char *path, const PieceRecord *r,
	const PieceRecord *last, size_t end)
{
	size_t total = element_count(r->rows, r->columns);
	if (r->rows != last->rows || r->columns != last->columns)
		die("cannot write %s: %s is (%zu, %zu) on rank %d and (%zu, %zu) on "
			"rank %d", path, r->name, last->rows, last->columns, last->rank,
			r->rows, r->columns, r->rank);
	if (r->begin > end)
		die("cannot write %s: no rank has elements %zu to %zu of %s", path, end,
			r->begin - 1, r->name);
	if (r->begin < end)
		die("cannot write %s: rank %d and rank %d both have element %zu of %s",
			path, last->rank, r->rank, r->begin, r->name);
	if (r->n > total - end)
		die("cannot write %s: rank %d has element %zu of %s, which has %zu",
			path, r->rank, total, r->name, total);
}

/* checks the records of one tensor, from r on; returns the first record behind
 * them */
static const PieceRecord *check_tensor(const char *path, const PieceRecord *r,
	const PieceRecord *stop)
{
	const PieceRecord *last = r;
	size_t end = 0, total = element_count(r->rows, r->columns);
	for (; r < stop && strcmp(r->name, last->name) == 0; r++) {
		check_piece(path, r, last, end);
		end += r->n;
		last = r;
	}
	if (end < total)
		die("cannot write %s: no rank has elements %zu to %zu of %s", path, end,
			total - 1, last->name);
	return r;
}

/* sorts the records, and lists the tensors that they make up; returns how many */
static int make_views(const char *path, PieceRecord *r, size_t n,
	TensorView *views)
{
	int nviews = 0;
	qsort(r, n, sizeof *r, by_place);
	for (const PieceRecord *at = r, *stop = r + n; at < stop;) {
		TensorView v = { .name = at->name, .dtype = "F32", .ndim = 2,
			.shape = { at->rows, at->columns },
			.count = element_count(at->rows, at->columns) };
		if (at->rows == 0)
			v.ndim = 1, v.shape[0] = at->columns;
		views[nviews++] = v;
		at = check_tensor(path, at, stop);
	}
	return nviews;
}

// declare a save under way
typedef struct Saving {
	const char *path;
	Comm *comm;
	Device *device;
	FILE *file;                      /* on rank 0; else NULL */
	int fd;                          /* of the partial file */
	bool begun;                      /* the file is there, on rank 0 */
	TensorView *views;               /* of all tensors, by name */
	size_t *starts;                  /* of each: its first byte in the file */
	int nviews;
	const Piece *pieces;
	/* pieces written so far, and elements of the next one */
	int npieces, piece;
	size_t done;
	real *host;                      /* room for a chunk of elements */
	float *data;
} Saving;

// agree on a save, or give it up
static _Noreturn void fail_together(Saving *s, int rank, int error)
{
	const char *why = file_reason(error);
	if (s->file) {
		char *partial = file_partial(s->path);
		remove(partial);
		fclose(s->file);
	}
	if (!s->begun)
		usage_error("rank %d cannot write %s: %s", rank, s->path, why);
	die("rank %d cannot write %s: %s", rank, s->path, why);
}

/* ends all ranks where one has an error (errno); returns the sum of x over the
 * ranks */
static size_t agree_on_error(Saving *s, int error, size_t x)
{
	typedef struct SaveStatus { size_t error, x; } SaveStatus;
	int ranks = comm_ranks(s->comm);
	SaveStatus *all = need(calloc(ranks, sizeof *all));
	size_t sum = 0;
	all[comm_rank(s->comm)] = (SaveStatus){ (size_t)error, x };
	comm_gather_host(s->comm, all, sizeof *all);
	for (int r = 0; r < ranks; r++)
		if (all[r].error)
			fail_together(s, r, (int)all[r].error);
		else
			sum += all[r].x;
	free(all);
	return sum;
}

// open one file on all ranks
static char *folder_of(const char *path)
{
	char *folder = need(strdup(path)), *slash = strrchr(folder, '/');
	if (slash == NULL)
		strcpy(folder, *folder ? "." : "");
	else
		slash[slash == folder] = '\0';
	return folder;
}

/* returns 0, or errno */
static int try_folder(const char *path)
{
	char *folder = folder_of(path);
	int error = access(folder, W_OK | X_OK) != 0 ? errno : 0;
	free(folder);
	return error;
}

/* returns rank 0's partial file, a new one; NULL, with errno: there is none */
static FILE *start_partial_file(const char *path)
{
	char *partial = file_partial(path);
	FILE *left = file_start(path),
		*f = left && remove(partial) == 0 ? file_start(path) : NULL;
	int error = errno;
	if (left)
		fclose(left);
	free(partial);
	errno = error;
	return f;
}

static void start_file_together(Saving *s)
{
	int error = try_folder(s->path);
	if (error == 0 && comm_rank(s->comm) == 0) {
		s->file = start_partial_file(s->path);
		error = s->file ? 0 : errno;
	}
	agree_on_error(s, error, 0);
	s->begun = true;
}

/* writes the header, on rank 0; returns 0, or errno */
static int put_header(Saving *s, const char *const *meta, size_t *nbytes)
{
	errno = 0;
	*nbytes = tensorfile_put_header(s->file, s->views, s->nviews, meta);
	bool bad = fflush(s->file) != 0 || ferror(s->file);
	return !bad ? 0 : errno ? errno : EIO;
}

static void open_together(Saving *s, const char *const *meta)
{
	char *partial = file_partial(s->path);
	size_t start = 0;
	start_file_together(s);
	int error = s->file ? put_header(s, meta, &start) : 0;
	start = agree_on_error(s, error, start);
	for (int i = 0; i < s->nviews; i++) {
		s->starts[i] = start;
		start += s->views[i].count * sizeof(float);
	}
	s->fd = s->file ? fileno(s->file) : open(partial, O_WRONLY | O_CLOEXEC);
	agree_on_error(s, s->fd < 0 ? errno : 0, 0);
	free(partial);
}

// write pieces in rounds
enum { CHUNK = 1 << 22, ROUND = 1 << 26 };              /* elements */

static bool write_at(int fd, const void *from, size_t nbytes, size_t at)
{
	for (const char *p = from; nbytes > 0;) {
		ssize_t k = pwrite(fd, p, nbytes, (off_t)at);
		if (k < 0 && errno != EINTR)
			return false;
		size_t written = k > 0 ? (size_t)k : 0;
		p += written, at += written, nbytes -= written;
	}
	return true;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const TensorView *)a)->name, ((const TensorView *)b)->name);
}

/* element `done` of the piece, as a byte of the file */
static size_t place_of(const Saving *s, const Piece *p, size_t done)
{
	const TensorView wanted = { .name = p->name }, *v = bsearch(&wanted,
		s->views, s->nviews, sizeof wanted, by_name);
	return s->starts[v - s->views] + (p->begin + done) * sizeof(float);
}

/* writes elements of the current piece; returns how many, 0: the file cannot take
 * them (errno) */
static size_t write_chunk(Saving *s)
{
	const Piece *p = &s->pieces[s->piece];
	size_t n = p->n - s->done < CHUNK ? p->n - s->done : CHUNK;
	array_read(s->device, s->host, array_part(s->device, p->at, s->done), n);
	for (size_t i = 0; i < n; i++)
		s->data[i] = (float)s->host[i];
	bool ok = write_at(s->fd, s->data, n * sizeof *s->data,
		place_of(s, p, s->done));
	s->done += n;
	return ok ? n : 0;
}

/* returns 0, or errno */
static int write_round(Saving *s)
{
	for (size_t n = 0; n < ROUND && s->piece < s->npieces;) {
		size_t more = 0;
		if (s->pieces[s->piece].n > 0 && (more = write_chunk(s)) == 0)
			return errno;
		n += more;
		if (s->done == s->pieces[s->piece].n)
			s->piece++, s->done = 0;
	}
	return fdatasync(s->fd) != 0 ? errno : 0;
}

static void write_all(Saving *s)
{
	size_t left;
	s->host = need(malloc(CHUNK * sizeof *s->host));
	s->data = need(malloc(CHUNK * sizeof *s->data));
	do {
		int error = write_round(s);
		left = agree_on_error(s, error, (size_t)(s->npieces - s->piece));
	} while (left > 0);
	free(s->host);
	free(s->data);
}

// put the file in the place of the old one
/* returns 0, or errno */
static int sync_folder(const char *path)
{
	char *folder = folder_of(path);
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
		error = fd < 0 || fsync(fd) != 0 ? errno : 0;
	if (fd >= 0)
		close(fd);
	free(folder);
	return error == EINVAL ? 0 : error;
}

static void replace_file(Saving *s)
{
	int error = 0;
	if (s->file) {
		error = file_finish(s->file, s->path);
		s->file = NULL;
		error = error ? error : sync_folder(s->path);
	} else {
		close(s->fd);
	}
	agree_on_error(s, error, 0);
}

// save pieces
void pieces_save(const char *path, Comm *c, Device *d, const Piece *pieces, int n,
	const char *const *meta)
{
	size_t count;
	PieceRecord *records = gather_records(c, pieces, n, &count);
	Saving s = { .path = path, .comm = c, .device = d, .pieces = pieces,
		.npieces = n };
	s.views = need(malloc((count + 1) * sizeof *s.views));
	s.starts = need(malloc((count + 1) * sizeof *s.starts));
	s.nviews = make_views(path, records, count, s.views);
	open_together(&s, meta);
	write_all(&s);
	replace_file(&s);
	free(s.views);
	free(s.starts);
	free(records);
}

// load pieces
static const float *expect_piece(const TensorFile *f, const Piece *p)
{
	size_t count = element_count(p->rows, p->columns);
	const TensorView *v = tensorfile_expect(f, p->name, "F32", count);
	assert(p->begin <= count && p->n <= count - p->begin);
	if (v->ndim != (p->rows ? 2 : 1) || (p->rows && v->shape[0] != p->rows))
		usage_error("tensor %s has %d dimensions, the first %zu; expected shape "
			"(%zu, %zu)", p->name, v->ndim, v->ndim ? v->shape[0] : 0, p->rows,
			p->columns);
	return (const float *)v->data + p->begin;
}

static void load_piece(const TensorFile *f, Device *d, const Piece *p, real *host)
{
	const float *from = expect_piece(f, p);
	for (size_t done = 0, n; done < p->n; done += n) {
		n = p->n - done < CHUNK ? p->n - done : CHUNK;
		for (size_t i = 0; i < n; i++)
			host[i] = from[done + i];
		array_write(d, array_part(d, p->at, done), host, n);
	}
}

void pieces_load(const TensorFile *f, Device *d, const Piece *pieces, int n)
{
	real *host = need(malloc(CHUNK * sizeof *host));
	for (int i = 0; i < n; i++)
		expect_piece(f, &pieces[i]);
	for (int i = 0; i < n; i++)
		load_piece(f, d, &pieces[i], host);
	free(host);
}
