/* versions.h: versions of a file, saved by ranks and by one process */
#ifndef TESTS_VERSIONS_H
#define TESTS_VERSIONS_H

#include <dirent.h>

#include "dist/pieces.h"
#include "tests/ops/compare.h"
#include "tests/dist/job.h"
#include "tests/base/folder.h"

// name tensors, and draw their elements
typedef struct Tensor { const char *name; size_t rows, columns; } Tensor;
static const Tensor tensors[] = {
	{ "one", 0, 1 }, { "layers.0.weight", 7, 13 }, { "three", 0, 3 },
	{ "a.single", 1, 1 }, { "optimizer.m.layers.0.weight", 40, 50 },
	{ "z", 0, 64 }, { "layers.10.weight", 3, 700 },
};
enum { NTENSORS = sizeof tensors / sizeof *tensors, MOST_PIECES = 64 };

static inline size_t elements_of(int t)
{
	return (tensors[t].rows ? tensors[t].rows : 1) * tensors[t].columns;
}

static inline float value(int version, int t, size_t i)
{
	return (float)random_truncated(version, t, i, 3);
}

// cut tensors into pieces at random
static inline int by_size(const void *a, const void *b)
{
	const size_t *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

/* of tensor t, those that the deal gives to this rank; in no order */
static inline int deal_tensor(int deal, int t, int rank, int ranks, Piece *p)
{
	size_t count = elements_of(t), cuts[2 * MOST + 1] = { 0 };
	int n = 0, parts = 2 * ranks;
	for (int k = 1; k <= parts; k++)
		cuts[k] = k == parts ? count
			: random_bits(deal, t, k) % (count + 1);
	qsort(cuts, parts + 1, sizeof *cuts, by_size);
	for (int k = parts - 1; k >= 0; k--)
		if (random_bits(deal, t, 100 + k) % ranks == (unsigned)rank)
			p[n++] = (Piece){ tensors[t].name, tensors[t].rows,
				tensors[t].columns, cuts[k], cuts[k + 1] - cuts[k],
				{ NULL, FP32 } };
	return n;
}

static inline int tensor_of(const Piece *p)
{
	int t = 0;
	while (strcmp(tensors[t].name, p->name) != 0)
		t++;
	return t;
}

/* version < 0: of NaN */
static inline int deal_pieces(Device *d, int deal, int rank, int ranks,
	int version, Piece *p)
{
	int n = 0;
	for (int t = 0; t < NTENSORS; t++)
		n += deal_tensor(deal, t, rank, ranks, p + n);
	for (int k = 0; k < n; k++) {
		p[k].at = array_new(d, p[k].n + 1, TYPE_REAL, MEM_PARAMETER, "piece");
		for (size_t i = 0; i < p[k].n; i++)
			reals(p[k].at)[i] = version < 0 ? NAN
				: value(version, tensor_of(&p[k]), p[k].begin + i);
	}
	return n;
}

static inline void free_pieces(Device *d, Piece *p, int n)
{
	for (int k = 0; k < n; k++)
		device_free(d, p[k].at.at);
}

// save a version by all ranks
typedef struct Version {
	int deal, version;
	const char *name;                /* of the file; NULL: path */
} Version;

static inline void save_version(Device *d, Comm *c, void *arg)
{
	const Version *v = arg;
	Piece p[MOST_PIECES];
	char text[16];
	snprintf(text, sizeof text, "%d", v->version);
	int n = deal_pieces(d, v->deal, comm_rank(c), comm_ranks(c), v->version, p);
	pieces_save(v->name ? v->name : path, c, d, p, n,
		(const char *const[]){ "version", text, NULL });
	free_pieces(d, p, n);
}

// write the file by one process, and compare
static inline int by_name(const void *a, const void *b)
{
	return strcmp(((const TensorView *)a)->name, ((const TensorView *)b)->name);
}

/* by one process, from whole tensors */
static inline void write_version(const char *to, int version)
{
	TensorView views[NTENSORS];
	char text[16];
	snprintf(text, sizeof text, "%d", version);
	// make a view of each whole tensor
	for (int t = 0; t < NTENSORS; t++) {
		size_t count = elements_of(t);
		float *data = malloc(count * sizeof *data);
		for (size_t i = 0; i < count; i++)
			data[i] = value(version, t, i);
		views[t] = (TensorView){ tensors[t].name, "F32", 2, { tensors[t].rows,
			tensors[t].columns }, count, data };
		if (tensors[t].rows == 0)
			views[t].ndim = 1, views[t].shape[0] = count;
	}
	qsort(views, NTENSORS, sizeof *views, by_name);
	tensorfile_write(to, views, NTENSORS, (const char *const[]){ "version", text,
		NULL });
	for (int t = 0; t < NTENSORS; t++)
		free((void *)views[t].data);
}

// write the file by one process, and compare
static inline void *contents(const char *name, size_t *nbytes)
{
	FILE *f = fopen(name, "r");
	assert_non_null(f);
	void *bytes = malloc(1 << 20);
	*nbytes = fread(bytes, 1, 1 << 20, f);
	assert_true(*nbytes < 1 << 20);
	fclose(f);
	return bytes;
}

static inline void expect_equal_files(const char *a, const char *b)
{
	size_t na, nb;
	void *x = contents(a, &na), *y = contents(b, &nb);
	assert_int_equal(na, nb);
	assert_memory_equal(x, y, na);
	free(x);
	free(y);
}

static inline bool only_one_file(void)
{
	int files = 0;
	DIR *d = opendir(folder);
	for (struct dirent *e; (e = readdir(d));)
		files += e->d_name[0] != '.';
	closedir(d);
	return files == 1;
}

#endif
