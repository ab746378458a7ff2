#include "train/checkpoint.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "ops/array.h"

// read the model's shape from the metadata
long metadata_integer(const TensorFile *f, const char *path, const char *key,
	long least, long most)
{
	const char *text = tensorfile_meta(f, key);
	if (text == NULL)
		usage_error("%s: the metadata lack '%s'", path, key);
	long value = strtol(text, NULL, 10);
	if (!*text || text[strspn(text, "0123456789")] || value < least
		|| value > most)
		usage_error("%s: metadata '%s' is '%s', expected an integer from %ld to "
			"%ld", path, key, text, least, most);
	return value;
}

static long meta_integer(const TensorFile *f, const char *path, const char *key)
{
	return metadata_integer(f, path, key, 1, 1 << 24);
}

// refuse tensors that do not fit the shape
const TensorView *checkpoint_expect(const TensorFile *f, const char *name,
	const Parameter *p)
{
	const TensorView *view = tensorfile_expect(f, name, "F32", p->count);
	if (view->ndim != (p->gain ? 1 : 2) || (!p->gain
		&& view->shape[0] != p->rows))
		usage_error("tensor %s has %d dimensions, the first %zu; expected "
			"shape (%zu, %zu)", name, view->ndim, view->shape[0], p->rows,
			p->columns);
	return view;
}

enum { MOST_ANGLES = 1 << 26 };         /* of RoPE: context times D/2 */

/* exits 2 unless the file has all tensors of such a model. As they lie in
 * the file, their sizes are bounded by its length, and no sum of them
 * overflows */
static void check_parameters(const TensorFile *f, const char *path,
	const Shape *s)
{
	if (s->context * (s->d_head / 2) > MOST_ANGLES)
		usage_error("%s: metadata 'context_length' is %ld, too long for heads "
			"of %ld elements", path, s->context, s->d_head);
	if (shape_nparameters(s) > tensorfile_count(f))
		usage_error("%s: a model of %ld layers has %d tensors, the file %d",
			path, s->layers, shape_nparameters(s), tensorfile_count(f));
	for (int i = 0; i < shape_nparameters(s); i++) {
		Parameter p = shape_parameter(s, i);
		checkpoint_expect(f, p.name, &p);
	}
}

// read and check a shape
Shape checkpoint_shape(const TensorFile *f, const char *path)
{
	const char *theta = tensorfile_meta(f, "rope_theta");
	char *end = "";
	Shape s = {
		.vocab = meta_integer(f, path, "vocab_size"), .context = meta_integer(f,
			path, "context_length"),
		.d_model = meta_integer(f, path, "d_model"), .d_ff = meta_integer(f,
			path, "d_ff"),
		.layers = meta_integer(f, path, "num_layers"), .heads = meta_integer(f,
			path, "num_heads"),
		.theta = theta ? strtod(theta, &end) : 0,
	};
	if (!(s.theta > 1) || !isfinite(s.theta) || *end)
		usage_error("%s: metadata 'rope_theta' is '%s', expected a number above "
			"1", path, theta ? theta : "absent");
	const char *error = shape_split_heads(&s);
	if (error == NULL)
		error = shape_error(&s);
	if (error)
		usage_error("%s: impossible shape: %s", path, error);
	check_parameters(f, path, &s);
	return s;
}

// load the weights
void checkpoint_load(Model *m, const TensorFile *f)
{
	real *host = need(malloc(m->count * sizeof *host));
	for (int i = 0; i < shape_nparameters(&m->shape); i++) {
		const Parameter *p = &m->params[i].about;
		const float *from = checkpoint_expect(f, p->name, p)->data;
		for (size_t j = 0; j < p->count; j++)
			host[j] = from[j];
		array_write(m->device, model_weight(m, i), host, p->count);
	}
	model_weights_changed(m);
	free(host);
}

// put together metadata
void metadata_text(Metadata *to, const char *key, const char *value)
{
	assert(to->n < MOST_METADATA);
	char *text = to->values[to->n];
	snprintf(text, sizeof to->values[0], "%s", value);
	to->pairs[2 * to->n] = key;
	to->pairs[2 * to->n++ + 1] = text;
	to->pairs[2 * to->n] = NULL;
}

void metadata_number(Metadata *to, const char *key, double value)
{
	char text[32];
	snprintf(text, sizeof text, "%.17g", value);
	metadata_text(to, key, text);
}

void metadata_shape(Metadata *to, const Shape *s)
{
	metadata_number(to, "vocab_size", s->vocab);
	metadata_number(to, "context_length", s->context);
	metadata_number(to, "d_model", s->d_model);
	metadata_number(to, "d_ff", s->d_ff);
	metadata_number(to, "num_layers", s->layers);
	metadata_number(to, "num_heads", s->heads);
	metadata_number(to, "rope_theta", s->theta);
}

// save the weights
void checkpoint_save(Model *m, const char *path)
{
	const Shape *s = &m->shape;
	int n = shape_nparameters(s);
	size_t done = 0;
	real *host = need(malloc(m->count * sizeof *host));
	float *data = need(malloc(m->count * sizeof *data));
	TensorView *views = need(malloc(n * sizeof *views));
	assert(s->heads * s->d_head == s->d_model && "no key says otherwise");
	for (int i = 0; i < n; i++) {
		const Parameter *p = &m->params[i].about;
		array_read(m->device, host + done, model_weight(m, i), p->count);
		views[i] = (TensorView){
			.name = p->name, .dtype = "F32", .ndim = p->gain ? 1 : 2,
			.shape = { p->gain ? p->count : p->rows, p->columns },
			.count = p->count, .data = data + done,
		};
		done += p->count;
	}
	for (size_t j = 0; j < m->count; j++)
		data[j] = (float)host[j];
	// write views and shape to the file
	Metadata meta = { 0 };
	metadata_shape(&meta, s);
	tensorfile_write(path, views, n, meta.pairs);
	free(views);
	free(data);
	free(host);
}
