/* versions.h: versions of a file, saved by ranks and by one process */
#ifndef TESTS_VERSIONS_H
#define TESTS_VERSIONS_H

#include <dirent.h>

#include "tests/dist/cut_tensors.h"
#include "tests/dist/job.h"
#include "tests/base/folder.h"

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
