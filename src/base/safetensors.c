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
#include "base/json.h"

// define an open tensor file
enum { MOST_DIMENSIONS = 8, LONGEST_HEADER = 100000000 };

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
	Json json;                 /* the whole file, up to the header's end */
	size_t nbytes;
	int ntensors, nmeta;
	TensorEntry *tensors, **by_name; /* in the order of the file; sorted */
	MetaPair *meta;                /* sorted by key */
};

// read a shape and offsets
static void read_shape(TensorFile *f, TensorView *t)
{
	json_expect(&f->json, '[');
	for (t->ndim = 0, t->count = 1; !json_accept(&f->json, ']'); t->ndim++) {
		if (t->ndim > 0)
			json_expect(&f->json, ',');
		size_t at = f->json.at, size = json_size(&f->json);
		if (__builtin_mul_overflow(t->count, size, &t->count))
			json_damaged(&f->json, at, "a smaller shape");
		if (t->ndim < MOST_DIMENSIONS)
			t->shape[t->ndim] = size;
	}
}

static void read_offsets(TensorFile *f, size_t offsets[2])
{
	json_expect(&f->json, '[');
	offsets[0] = json_size(&f->json);
	json_expect(&f->json, ',');
	offsets[1] = json_size(&f->json);
	json_expect(&f->json, ']');
}

// read one tensor's entry
/* how many bits an element has; 0: the format has no such dtype */
static size_t dtype_bits(const char *dtype)
{
	static const struct { const char *name; size_t bits; } known[] = {
		{ "F64", 64 }, { "I64", 64 }, { "U64", 64 }, { "C64", 64 },
		{ "F32", 32 }, { "I32", 32 }, { "U32", 32 }, { "F16", 16 },
		{ "BF16", 16 }, { "I16", 16 }, { "U16", 16 }, { "I8", 8 }, { "U8", 8 },
		{ "BOOL", 8 }, { "F8_E4M3", 8 }, { "F8_E5M2", 8 }, { "F8_E8M0", 8 },
		{ "F8_E4M3FNUZ", 8 }, { "F8_E5M2FNUZ", 8 }, { "F6_E2M3", 6 },
		{ "F6_E3M2", 6 }, { "F4", 4 },
	};
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (strcmp(known[i].name, dtype) == 0)
			return known[i].bits;
	return 0;
}

/* of an element, in bytes: 1 for what is smaller than a byte */
static size_t dtype_alignment(const char *dtype)
{
	return (dtype_bits(dtype) + 7) / 8;
}

// read the fields of an entry
static void read_field(TensorFile *f, const char *key, TensorView *t,
	size_t offsets[2])
{
	if (strcmp(key, "shape") == 0) {
		read_shape(f, t);
	} else if (strcmp(key, "data_offsets") == 0) {
		read_offsets(f, offsets);
	} else if (strcmp(key, "dtype") == 0) {
		char *name = json_string(&f->json);
		snprintf(t->dtype, sizeof t->dtype, "%s",
			dtype_bits(name) ? name : "");
		free(name);
	} else {
		json_skip(&f->json, 2);
	}
}

static void read_fields(TensorFile *f, TensorView *t, size_t offsets[2])
{
	static const char *const fields[] = { "dtype", "shape", "data_offsets" };
	int seen[3] = { 0 };
	json_expect(&f->json, '{');
	do {
		size_t at = f->json.at;
		char *key = json_string(&f->json);
		json_expect(&f->json, ':');
		read_field(f, key, t, offsets);
		for (int i = 0; i < 3; i++)
			if (strcmp(key, fields[i]) == 0 && ++seen[i] > 1)
				json_damaged(&f->json, at,
					"dtype, shape and data_offsets, once each");
		free(key);
	} while (json_accept(&f->json, ','));
	json_expect(&f->json, '}');
	if (!seen[0] || !seen[1] || !seen[2])
		json_damaged(&f->json, f->json.at,
			"dtype, shape and data_offsets before here");
}

// check an entry against the length of its data
static void read_tensor(TensorFile *f, char *name, size_t at)
{
	TensorView t = { .name = name };
	size_t start = f->json.at, offsets[2] = { 0, 0 }, nbits;
	read_fields(f, &t, offsets);
	if (dtype_bits(t.dtype) == 0)
		json_damaged(&f->json, start, "a known dtype");
	if (__builtin_mul_overflow(t.count, dtype_bits(t.dtype), &nbits)
		|| nbits % 8 != 0 || offsets[1] < offsets[0]
		|| offsets[1] - offsets[0] != nbits / 8)
		json_damaged(&f->json, start,
			"data_offsets as long as shape and dtype say");
	if (offsets[1] > f->nbytes - f->json.end)
		json_damaged(&f->json, start, "a tensor that ends inside the file");
	t.data = f->json.map + f->json.end + offsets[0];
	if ((uintptr_t)t.data % dtype_alignment(t.dtype) != 0)
		t.data = memcpy(need(malloc(nbits / 8 + 1)), t.data, nbits / 8);
	f->tensors = grow(f->tensors, f->ntensors, sizeof *f->tensors);
	f->tensors[f->ntensors++] = (TensorEntry){ t, offsets[0], offsets[1], at };
}

// read the metadata
static int by_key(const void *a, const void *b)
{
	return strcmp(((const MetaPair *)a)->key, ((const MetaPair *)b)->key);
}

static void read_pairs(TensorFile *f)
{
	json_expect(&f->json, '{');
	if (json_accept(&f->json, '}'))
		return;
	do {
		f->meta = grow(f->meta, f->nmeta, sizeof *f->meta);
		MetaPair *p = &f->meta[f->nmeta++];
		p->at = f->json.at;
		p->key = json_string(&f->json);
		json_expect(&f->json, ':');
		p->value = json_string(&f->json);
	} while (json_accept(&f->json, ','));
	json_expect(&f->json, '}');
}

static void read_metadata(TensorFile *f)
{
	if (json_peek(&f->json) == 'n') {
		json_skip(&f->json, 1);
		return;
	}
	read_pairs(f);
	if (f->nmeta > 0)               /* qsort takes no NULL */
		qsort(f->meta, f->nmeta, sizeof *f->meta, by_key);
	for (int i = 1; i < f->nmeta; i++)
		if (by_key(&f->meta[i - 1], &f->meta[i]) == 0)
			json_damaged(&f->json, f->meta[i].at, "a key of its own");
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
			json_damaged(&f->json, f->by_name[i]->at,
				"a tensor that begins where the one before it in the data ends");
		end = f->by_name[i]->end;
	}
	if (end != f->nbytes - f->json.end)
		json_damaged(&f->json, f->json.end + end, "the end of the file");
	qsort(f->by_name, f->ntensors, sizeof *f->by_name, by_name);
	for (int i = 1; i < f->ntensors; i++)
		if (by_name(&f->by_name[i - 1], &f->by_name[i]) == 0)
			json_damaged(&f->json, f->by_name[i]->at, "a name of its own");
}

// map the file and walk its header
static void map_file(TensorFile *f)
{
	struct stat s;
	int fd = open(f->json.path, O_RDONLY | O_NONBLOCK);     /* it may be a FIFO */
	if (fd < 0 || fstat(fd, &s) != 0)
		usage_error("cannot read %s: %s", f->json.path, strerror(errno));
	if (!S_ISREG(s.st_mode) || s.st_size < 8)
		usage_error("%s: offset 0: expected a safetensors file (it starts with "
			"eight bytes of header length)", f->json.path);
	f->nbytes = s.st_size;
	f->json.map = mmap(NULL, f->nbytes, PROT_READ, MAP_PRIVATE, fd, 0);
	if (f->json.map == MAP_FAILED)
		die("cannot map %s: %s", f->json.path, strerror(errno));
	close(fd);
}

// walk the header
static void read_header(TensorFile *f)
{
	bool metadata = false;
	json_expect(&f->json, '{');
	if (json_accept(&f->json, '}'))
		return;
	do {
		json_peek(&f->json);
		size_t at = f->json.at;
		char *name = json_string(&f->json);
		json_expect(&f->json, ':');
		if (strcmp(name, "__metadata__") != 0) {
			read_tensor(f, name, at);
			continue;
		}
		if (metadata)
			json_damaged(&f->json, at, "metadata once");
		metadata = true;
		read_metadata(f);
		free(name);
	} while (json_accept(&f->json, ','));
	json_expect(&f->json, '}');
}

// open and close a tensor file
TensorFile *tensorfile_open(const char *path)
{
	TensorFile *f = need(calloc(1, sizeof *f));
	f->json.path = path;
	map_file(f);
	uint64_t length;
	memcpy(&length, f->json.map, 8);
	if (length > f->nbytes - 8)
		usage_error("%s: offset 0: header length %" PRIu64 " exceeds the file",
			path, length);
	if (length > LONGEST_HEADER)
		usage_error("%s: offset 0: header length %" PRIu64 " exceeds the "
			"format's %d", path, length, LONGEST_HEADER);
	f->json.at = 8;
	f->json.end = 8 + length;
	if (f->json.at == f->json.end || f->json.map[f->json.at] != '{')
		json_damaged(&f->json, f->json.at, "'{'");
	read_header(f);
	if (json_peek(&f->json) != '\0' || f->json.at != f->json.end)
		json_damaged(&f->json, f->json.at, "the end of the header");
	check_entries(f);
	return f;
}

void tensorfile_close(TensorFile **file)
{
	TensorFile *f = *file;
	for (int i = 0; i < f->ntensors; i++) {
		const char *data = f->tensors[i].view.data;
		if (data < f->json.map || data > f->json.map + f->nbytes)
			free((char *)data);
		free((char *)f->tensors[i].view.name);
	}
	for (int i = 0; i < f->nmeta; i++) {
		free(f->meta[i].key);
		free(f->meta[i].value);
	}
	munmap((void *)f->json.map, f->nbytes);
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
		usage_error("%s: has no tensor %s", f->json.path, name);
	if (strcmp(t->dtype, dtype) != 0 || t->count != count)
		usage_error("%s: tensor %s holds %zu elements of %s, expected %zu of "
			"%s", f->json.path, name, t->count, t->dtype,
			count, dtype);
	return t;
}

// write a tensor file
static void put_string(FILE *h, const char *s)
{
	fputc('"', h);
	for (; *s; s++) {
		bool nul = s[0] == '\xc0' && s[1] == '\x80';
		if (nul || (unsigned char)*s < ' ')
			fprintf(h, "\\u%04x", nul ? 0 : *s);
		else
			fprintf(h, "%s%c", strchr("\"\\", *s) ? "\\" : "", *s);
		s += nul;
	}
	fputc('"', h);
}

static void put_metadata(FILE *h, const char *const *meta)
{
	fprintf(h, "\"__metadata__\":{");
	for (int i = 0; meta && meta[i]; i += 2) {
		fprintf(h, "%s", i ? "," : "");
		put_string(h, meta[i]);
		fputc(':', h);
		put_string(h, meta[i + 1]);
	}
	fputc('}', h);
}

static size_t data_bytes(const TensorView *t)
{
	size_t bits = dtype_bits(t->dtype);
	assert(bits > 0 && t->count * bits % 8 == 0);
	return t->count * bits / 8;
}

static void put_entry(FILE *h, const TensorView *t, size_t offset)
{
	assert(t->ndim <= MOST_DIMENSIONS);
	fputc(',', h);
	put_string(h, t->name);
	fprintf(h, ":{\"dtype\":\"%s\",\"shape\":[", t->dtype);
	for (int d = 0; d < t->ndim; d++)
		fprintf(h, "%s%zu", d ? "," : "", t->shape[d]);
	fprintf(h, "],\"data_offsets\":[%zu,%zu]}", offset,
		offset + data_bytes(t));
}

static void put_header(FILE *h, const TensorView *views, int n,
	const char *const *meta)
{
	size_t offset = 0;
	fputc('{', h);
	put_metadata(h, meta);
	for (int i = 0; i < n; i++) {
		put_entry(h, &views[i], offset);
		assert(offset % dtype_alignment(views[i].dtype) == 0);
		offset += data_bytes(&views[i]);
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
		ok = fwrite(views[i].data, 1, data_bytes(&views[i]), f)
			== data_bytes(&views[i]);
	if (ok && fflush(f) == 0 && fsync(fileno(f)) != 0)
		die("cannot write %s: %s", path, strerror(errno));
	file_end(f, path);
}
