#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <omp.h>

#include "tests/base/program.h"
#include "train/checkpoint.h"
#include "tests/base/exits.h"
#include "tests/base/folder.h"

static const Shape shape = { 13, 5, 12, 20, 2, 3, 4, 10000 };

// test that weights return from a file
static void weights_return(void **state)
{
	Device *d = device_open("cpu");
	Model *m = model_new(d, &shape, &policies[POLICY_FP32], 1);
	Model *other = model_new(d, &shape, &policies[POLICY_FP32], 2);
	checkpoint_save(m, path);
	TensorFile *f = tensorfile_open(path);
	Shape read = checkpoint_shape(f, path);
	assert_memory_equal(&read, &shape, sizeof shape);
	checkpoint_load(other, f);
	assert_memory_equal(other->weights.at, m->weights.at,
		m->extent * sizeof(real));
	assert_int_equal(tensorfile_find(f, "layers.1.ln2.weight")->ndim, 1);
	tensorfile_close(&f);
	model_free(&m);
	model_free(&other);
	device_close(&d);
}

static void load_into(void *wrong)
{
	Device *d = device_open("cpu");
	checkpoint_load(model_new(d, wrong, &policies[POLICY_FP32], 1),
		tensorfile_open(path));
}

static void other_shapes_are_refused(void **state)
{
	Shape deeper = shape, wider = shape, same = shape;
	deeper.layers++;
	wider.d_ff++;
	assert_int_equal(exit_status(load_into, &same), 0);
	assert_int_equal(exit_status(load_into, &deeper), 2);
	assert_int_equal(exit_status(load_into, &wider), 2);
}

static void read_shape(void *unused)
{
	checkpoint_shape(tensorfile_open(path), path);
}

/* of the first n tensors of a model of that shape */
static int status_of(const Shape *s, int n, const char *const *meta)
{
	static const float zeros[8];
	Parameter p[16];
	TensorView views[16];
	for (int i = 0; i < n; i++) {
		p[i] = shape_parameter(s, i);
		views[i] = (TensorView){ .name = p[i].name, .dtype = "F32",
			.ndim = p[i].gain ? 1 : 2,
			.shape = { p[i].gain ? p[i].count : p[i].rows, p[i].columns },
			.count = p[i].count, .data = zeros };
	}
	tensorfile_write(path, views, n, meta);
	return exit_status(read_shape, NULL);
}

static void metadata_are_held_against_tensors(void **state)
{
	static const Shape one = { 1, 1, 1, 1, 1, 1, 1, 10000 },
		least = { 1, 1, 2, 3, 1, 1, 2, 10000 };
	static const char *const fits[] = { "vocab_size", "1", "context_length",
		"1", "d_model", "2", "d_ff", "3", "num_layers", "1", "num_heads", "1",
		"rope_theta", "10000", NULL };
	static const char *const wraps[] = { "vocab_size", "1", "context_length",
		"1", "d_model", "4194304", "d_ff", "11184810", "num_layers", "262144",
		"num_heads", "2097152", "rope_theta", "10000", NULL };
	static const struct { int at; const char *value; } altered[] = {
		{ 9, "2" }, { 9, "16777216" }, { 1, "2" }, { 1, "16777216" },
		{ 3, "0" }, { 3, "16777217" }, { 7, "2" }, { 11, "2" },
		{ 13, "10000x" }, { 13, "inf" }, { 5, "+2" }, { 5, " 2" },
		{ 5, "2x" }, { 5, "" }, { 5, "18446744073709551618" },
	};
	assert_int_equal(status_of(&one, 1, wraps), 2);
	assert_int_equal(status_of(&least, shape_nparameters(&least), fits), 0);
	for (size_t i = 0; i < sizeof altered / sizeof *altered; i++) {
		const char *meta[15] = { NULL };
		memcpy(meta, fits, sizeof meta);
		meta[altered[i].at] = altered[i].value;
		assert_int_equal(status_of(&least, shape_nparameters(&least), meta), 2);
	}
}

int main(void)
{
	omp_set_num_threads(1);     /* children of a process with threads may hang */
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(weights_return),
		cmocka_unit_test(other_shapes_are_refused),
		cmocka_unit_test(metadata_are_held_against_tensors),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
