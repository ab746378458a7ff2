#define _GNU_SOURCE
#include "base/safetensors.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/grow.h"

// define an open tensor file
typedef struct TensorEntry {
	TensorView view;
	size_t begin, end;         /* offsets of its data in the data */
	size_t at;                 /* offset of its name in the file */
} TensorEntry;

typedef struct MetaPair {
	char *key, *value;
	size_t at;
} MetaPair;

struct TensorFile {
	const char *path;
	const char *map;           /* the whole file */
	/* at: offset of the byte that the parser of the header reads next; end: of
	 * the first byte behind the header */
	size_t nbytes, at, end;
	int ntensors, nmeta;
	TensorEntry *tensors, **by_name; /* in the order of the file; sorted */
	MetaPair *meta;                /* sorted by key */
};

// scan the tokens of JSON
static _Noreturn void damaged(const TensorFile *f, size_t at,
	const char *expected)
{
	usage_error("%s: offset %zu: expected %s", f->path, at, expected);
}

/* the character at f->at behind blanks, not taken; zero at the header's end */
static char skip_blanks_and_peek(TensorFile *f)
{
	while (f->at < f->end && strchr(" \t\r\n", f->map[f->at]) && f->map[f->at])
		f->at++;
	return f->at < f->end ? f->map[f->at] : '\0';
}

/* takes the character c; anything else is damage */
static void expect(TensorFile *f, char c)
{
	char text[] = { '\'', c, '\'', '\0' };
	if (skip_blanks_and_peek(f) != c)
		damaged(f, f->at, text);
	f->at++;
}

/* takes the next character if it is c; returns whether it was */
static bool accept(TensorFile *f, char c)
{
	bool found = skip_blanks_and_peek(f) == c;
	f->at += found;
	return found;
}

/* how many of the n bytes at s its first character has; 0: it is not UTF-8 */
static size_t utf8_length(const unsigned char *s, size_t n)
{
	size_t length = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2
		: s[0] < 0xf0 ? 3 : s[0] < 0xf5 ? 4 : 0;
	if (length > n)
		return 0;
	for (size_t i = 1; i < length; i++)
		if (s[i] >> 6 != 2)
			return 0;
	/* no surrogates, nothing longer than needed, nothing above 0x10ffff */
	bool wrong = (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f)
		|| (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f);
	return wrong ? 0 : length;
}

// scan a string
/* moves past the characters of a string; returns their bytes without escapes */
static size_t skip_string(TensorFile *f)
{
	size_t nbytes = 0, length;
	for (; f->at < f->end && f->map[f->at] != '"'; f->at += length) {
		if (f->map[f->at] == '\\' && (++f->at >= f->end
			|| !memchr("\"\\/", f->map[f->at], 3)))
			damaged(f, f->at, "a plain character");
		length = utf8_length((const unsigned char *)f->map + f->at,
			f->end - f->at);
		if (length == 0 || (unsigned char)f->map[f->at] < ' ')
			damaged(f, f->at, "a plain character in UTF-8");
		nbytes += length;
	}
	if (f->at >= f->end)
		damaged(f, f->end, "the end of a string");
	return nbytes;
}

static char *scan_string(TensorFile *f)
{
	expect(f, '"');
	size_t from = f->at, nbytes = skip_string(f);
	char *s = need(malloc(nbytes + 1));
	for (size_t i = 0; i < nbytes; i++) {
		from += f->map[from] == '\\';
		s[i] = f->map[from++];
	}
	s[nbytes] = '\0';
	f->at++;
	return s;
}

// scan a size and a list of sizes
static size_t scan_size(TensorFile *f)
{
	size_t value = 0;
	char c = skip_blanks_and_peek(f);
	if (c < '0' || c > '9' || (c == '0' && f->at + 1 < f->end
		&& f->map[f->at + 1] >= '0' && f->map[f->at + 1] <= '9'))
		damaged(f, f->at, "a number");
	for (; f->at < f->end && f->map[f->at] >= '0' && f->map[f->at] <= '9';
		f->at++)
		if (__builtin_mul_overflow(value, 10, &value)
			|| __builtin_add_overflow(value, f->map[f->at] - '0', &value))
			damaged(f, f->at, "a number below 2^64");
	return value;
}

static int scan_sizes(TensorFile *f, size_t *sizes, int most)
{
	int n = 0;
	expect(f, '[');
	while (!accept(f, ']')) {
		if (n > 0)
			expect(f, ',');
		if (n == most)
			damaged(f, f->at, "fewer dimensions");
		sizes[n++] = scan_size(f);
	}
	return n;
}

// read one tensor's entry
static size_t dtype_size(const char *dtype)
{
	static const struct { const char *name; size_t size; } known[] = {
		{ "F64", 8 }, { "I64", 8 }, { "U64", 8 }, { "F32", 4 }, { "I32", 4 },
			{ "U32", 4 }, { "F16", 2 }, { "BF16", 2 },
		{ "I16", 2 }, { "U16", 2 }, { "I8", 1 }, { "U8", 1 }, { "BOOL", 1 },
			{ "F8_E4M3", 1 }, { "F8_E5M2", 1 },
	};
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (strcmp(known[i].name, dtype) == 0)
			return known[i].size;
	return 0;
}

// read the fields of an entry
static void read_fields(TensorFile *f, TensorView *t, size_t offsets[2])
{
	bool dtype = false, shape = false, place = false;
	expect(f, '{');
	do {
		size_t at = f->at;
		char *key = scan_string(f);
		expect(f, ':');
		if (strcmp(key, "dtype") == 0 && !dtype) {
			char *name = scan_string(f);
			int length = snprintf(t->dtype, sizeof t->dtype, "%s", name);
			dtype = length < (int)sizeof t->dtype;
			free(name);
		} else if (strcmp(key, "shape") == 0 && !shape) {
			t->ndim = scan_sizes(f, t->shape, 8);
			shape = true;
		} else if (strcmp(key, "data_offsets") == 0 && !place) {
			place = scan_sizes(f, offsets, 2) == 2;
		} else {
			damaged(f, at, "dtype, shape and data_offsets, once each");
		}
		free(key);
	} while (accept(f, ','));
	expect(f, '}');
	if (!dtype || !shape || !place)
		damaged(f, f->at, "dtype, shape and data_offsets before here");
}

// check an entry against the length of its data
static void read_tensor(TensorFile *f, char *name, size_t at)
{
	TensorView t = { .name = name, .count = 1 };
	size_t start = f->at, offsets[2] = { 0, 0 }, nbytes;
	read_fields(f, &t, offsets);
	size_t size = dtype_size(t.dtype);
	if (size == 0)
		damaged(f, start, "a known dtype");
	for (int d = 0; d < t.ndim; d++)
		if (__builtin_mul_overflow(t.count, t.shape[d], &t.count))
			damaged(f, start, "a smaller shape");
	if (__builtin_mul_overflow(t.count, size, &nbytes)
		|| offsets[1] < offsets[0] || offsets[1] - offsets[0] != nbytes)
		damaged(f, start, "data_offsets as long as shape and dtype say");
	if (offsets[1] > f->nbytes - f->end)
		damaged(f, start, "a tensor that ends inside the file");
	t.data = f->map + f->end + offsets[0];
	if ((uintptr_t)t.data % size != 0)
		t.data = memcpy(need(malloc(nbytes + 1)), t.data, nbytes);
	f->tensors = grow(f->tensors, f->ntensors, sizeof *f->tensors);
	f->tensors[f->ntensors++] = (TensorEntry){ t, offsets[0], offsets[1], at };
}

// read the metadata
static int by_key(const void *a, const void *b)
{
	return strcmp(((const MetaPair *)a)->key, ((const MetaPair *)b)->key);
}

static void read_metadata(TensorFile *f)
{
	expect(f, '{');
	if (accept(f, '}'))
		return;
	do {
		f->meta = grow(f->meta, f->nmeta, sizeof *f->meta);
		MetaPair *p = &f->meta[f->nmeta++];
		p->at = f->at;
		p->key = scan_string(f);
		expect(f, ':');
		p->value = scan_string(f);
	} while (accept(f, ','));
	expect(f, '}');
	qsort(f->meta, f->nmeta, sizeof *f->meta, by_key);
	for (int i = 1; i < f->nmeta; i++)
		if (by_key(&f->meta[i - 1], &f->meta[i]) == 0)
			damaged(f, f->meta[i].at, "a key of its own");
}

// check the offsets and the names of all tensors
static int by_offset(const void *a, const void *b)
{
	const TensorEntry *x = *(TensorEntry *const *)a,
		*y = *(TensorEntry *const *)b;
	return x->begin != y->begin ? (x->begin > y->begin) - (x->begin < y->begin)
		: (x->end > y->end) - (x->end < y->end);
}

static int by_name(const void *a, const void *b)
{
	const TensorEntry *x = *(TensorEntry *const *)a,
		*y = *(TensorEntry *const *)b;
	return strcmp(x->view.name, y->view.name);
}

static void check_entries(TensorFile *f)
{
	size_t end = 0;
	f->by_name = need(malloc((f->ntensors + 1) * sizeof *f->by_name));
	for (int i = 0; i < f->ntensors; i++)
		f->by_name[i] = &f->tensors[i];
	qsort(f->by_name, f->ntensors, sizeof *f->by_name, by_offset);
	for (int i = 0; i < f->ntensors; i++) {
		if (f->by_name[i]->begin != end)
			damaged(f, f->by_name[i]->at, "a tensor that begins where the one "
				"before it in the data ends");
		end = f->by_name[i]->end;
	}
	if (end != f->nbytes - f->end)
		damaged(f, f->end + end, "the end of the file");
	qsort(f->by_name, f->ntensors, sizeof *f->by_name, by_name);
	for (int i = 1; i < f->ntensors; i++)
		if (by_name(&f->by_name[i - 1], &f->by_name[i]) == 0)
			damaged(f, f->by_name[i]->at, "a name of its own");
}

// map the file and walk its header
static void map_file(TensorFile *f)
{
	struct stat s;
	int fd = open(f->path, O_RDONLY | O_NONBLOCK);     /* it may be a FIFO */
	if (fd < 0 || fstat(fd, &s) != 0)
		usage_error("cannot read %s: %s", f->path, strerror(errno));
	if (!S_ISREG(s.st_mode) || s.st_size < 8)
		usage_error("%s: offset 0: expected a safetensors file (it starts with "
			"eight bytes of header length)", f->path);
	f->nbytes = s.st_size;
	f->map = mmap(NULL, f->nbytes, PROT_READ, MAP_PRIVATE, fd, 0);
	if (f->map == MAP_FAILED)
		die("cannot map %s: %s", f->path, strerror(errno));
	close(fd);
}

// walk the header
static void read_header(TensorFile *f)
{
	bool metadata = false;
	expect(f, '{');
	if (accept(f, '}'))
		return;
	do {
		skip_blanks_and_peek(f);
		size_t at = f->at;
		char *name = scan_string(f);
		expect(f, ':');
		if (strcmp(name, "__metadata__") != 0) {
			read_tensor(f, name, at);
			continue;
		}
		if (metadata)
			damaged(f, at, "metadata once");
		metadata = true;
		read_metadata(f);
		free(name);
	} while (accept(f, ','));
	expect(f, '}');
}

// open and close a tensor file
TensorFile *tensorfile_open(const char *path)
{
	TensorFile *f = need(calloc(1, sizeof *f));
	f->path = path;
	map_file(f);
	uint64_t length;
	memcpy(&length, f->map, 8);
	if (length > f->nbytes - 8)
		usage_error("%s: offset 0: header length %" PRIu64 " exceeds the file",
			path, length);
	f->at = 8;
	f->end = 8 + length;
	if (f->at == f->end || f->map[f->at] != '{')
		damaged(f, f->at, "'{'");
	read_header(f);
	if (skip_blanks_and_peek(f) != '\0' || f->at != f->end)
		damaged(f, f->at, "the end of the header");
	check_entries(f);
	return f;
}

void tensorfile_close(TensorFile **file)
{
	TensorFile *f = *file;
	for (int i = 0; i < f->ntensors; i++) {
		const char *data = f->tensors[i].view.data;
		if (data < f->map || data > f->map + f->nbytes)
			free((char *)data);
		free((char *)f->tensors[i].view.name);
	}
	for (int i = 0; i < f->nmeta; i++) {
		free(f->meta[i].key);
		free(f->meta[i].value);
	}
	munmap((void *)f->map, f->nbytes);
	free(f->tensors);
	free(f->by_name);
	free(f->meta);
	free(f);
	*file = NULL;
}

// look tensors up
const char *tensorfile_meta(const TensorFile *f, const char *key)
{
	const MetaPair wanted = { .key = (char *)key },
		*found = f->nmeta == 0 ? NULL
			: bsearch(&wanted, f->meta, f->nmeta, sizeof *f->meta, by_key);
	return found ? found->value : NULL;
}

int tensorfile_count(const TensorFile *f)
{
	return f->ntensors;
}

const TensorView *tensorfile_at(const TensorFile *f, int i)
{
	assert(i >= 0 && i < f->ntensors);
	return &f->tensors[i].view;
}

const TensorView *tensorfile_find(const TensorFile *f, const char *name)
{
	const TensorEntry wanted = { .view.name = name }, *at = &wanted,
		*const *found = bsearch(&at, f->by_name, f->ntensors,
			sizeof *f->by_name, by_name);
	return found ? &(*found)->view : NULL;
}

const TensorView *tensorfile_expect(const TensorFile *f, const char *name,
	const char *dtype, size_t count)
{
	const TensorView *t = tensorfile_find(f, name);
	if (t == NULL)
		usage_error("%s: has no tensor %s", f->path, name);
	if (strcmp(t->dtype, dtype) != 0 || t->count != count)
		usage_error("%s: tensor %s holds %zu elements of %s, expected %zu of "
			"%s", f->path, name, t->count, t->dtype,
			count, dtype);
	return t;
}

// write a tensor file
static void put_header(FILE *h, const TensorView *views, int n,
	const char *const *meta)
{
	fprintf(h, "{\"__metadata__\":{");
	for (int i = 0; meta && meta[i]; i += 2)
		fprintf(h, "%s\"%s\":\"%s\"", i ? "," : "", meta[i], meta[i + 1]);
	fprintf(h, "}");
	size_t offset = 0;
	for (int i = 0; i < n; i++) {
		size_t size = dtype_size(views[i].dtype);
		assert(size > 0 && offset % size == 0);
		fprintf(h, ",\"%s\":{\"dtype\":\"%s\",\"shape\":[", views[i].name,
			views[i].dtype);
		for (int d = 0; d < views[i].ndim; d++)
			fprintf(h, "%s%zu", d ? "," : "", views[i].shape[d]);
		fprintf(h, "],\"data_offsets\":[%zu,%zu]}", offset,
			offset + views[i].count * size);
		offset += views[i].count * size;
	}
	fprintf(h, "}");
	while (ftell(h) % 8 != 0)
		fputc(' ', h);
}

bool tensorfile_recognised(FILE *f)
{
	struct stat s;
	uint64_t length;
	return fread(&length, 8, 1, f) == 1 && getc(f) == '{'
		&& fstat(fileno(f), &s) == 0 && length <= (uint64_t)s.st_size - 8;
}

size_t tensorfile_put_header(FILE *f, const TensorView *views, int n,
	const char *const *meta)
{
	char *header = NULL;
	size_t header_bytes = 0;
	FILE *h = need(open_memstream(&header, &header_bytes));
	put_header(h, views, n, meta);
	fclose(h);
	uint64_t length = header_bytes;
	fwrite(&length, 8, 1, f);
	fwrite(header, 1, header_bytes, f);
	free(header);
	return 8 + header_bytes;
}

void tensorfile_write(const char *path, const TensorView *views, int n,
	const char *const *meta)
{
	FILE *f = file_begin(path);
	tensorfile_put_header(f, views, n, meta);
	bool ok = !ferror(f);
	for (int i = 0; i < n && ok; i++)
		ok = fwrite(views[i].data, dtype_size(views[i].dtype), views[i].count,
			f) == views[i].count;
	if (ok && fflush(f) == 0 && fsync(fileno(f)) != 0)
		die("cannot write %s: %s", path, strerror(errno));
	file_end(f, path);
}
