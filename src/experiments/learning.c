#define _GNU_SOURCE
/* learning: trains a small byte-level model on a text; loss curve, baselines, a
 * sample */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/random.h"
#include "bench/harness.h"
#include "cases/text_training.h"
#include "train/checkpoint.h"
#include "ops/array.h"

static const char *path = "writeup.nw", *save;
static long steps;
static int precision;
static const Option options[] = {
	TEXT_OPTION(&path),
	STEPS_OPTION_IN(&steps, "1..1000000",
		"training steps: 500, on a CPU 300"),
	PRECISION_OPTION_FOR(&precision,
		"fp32, or mixed precision with a low format"),
	SAVE_OPTION(&save, "write the trained weights there"),
	{ 0 }
};

enum { CONTEXT = 128, BATCH = 8, EVERY = 20, PASSES = 8 };
static const Shape shape = {
	.vocab = 256, .context = CONTEXT, .d_model = 128, .d_ff = 384, .layers = 4,
		.heads = 4, .d_head = 32, .theta = 10000,
};
static const double peak_lr = 3e-3;
static const Windows held_out = { PASSES * BATCH, CONTEXT };

// train and record the curve
typedef struct LearningConfig { int precision; } LearningConfig;
static const Key keys[] = { KEY(LearningConfig, precision, PRECISIONS), { 0 } };

static void sample(Model *m, Row *row);

static void run(Row *row, const void *config)
{
	steps = steps ? steps : harness_on_gpu() ? 500 : 300;
	const LearningConfig *c = config;
	Text text = text_read(path, 16 * (shape.context + 1));
	Model *m = model_new(harness_device(), &shape, &policies[c->precision],
		harness_seed);
	TextTraining of = { .m = m, .text = &text, .peak_lr = peak_lr,
		.steps = steps, .seed = harness_seed,
		.adamw = adamw_new(m, peak_lr, 0.9, 0.95, 1e-8, 0.1),
		.batch = batch_random(BATCH, shape.context, shape.vocab, harness_seed) };
	// set the baselines of the text
	row_set(row, "bytes", "%zu", text.n);
	row_set(row, "parameters", "%zu", m->count);
	row_set(row, "uniform_nats", "%.6f", log(256));
	row_set(row, "unigram_nats", "%.6f", text_unigram_nats(&text, held_out));
	row_set(row, "bigram_nats", "%.6f", text_bigram_nats(&text, held_out));
	row_set(row, "bigram_bound_nats", "%.6f",
		text_bigram_bound_nats(&text, held_out));
	double sum = 0, ms = 0;
	for (long step = 0, since = 0; step < steps; step++) {
		StepTime t = text_training_step(&of, step);
		sum += t.loss, ms += t.step_ms, since++;
		// record the curve at a recorded step
		if (step % EVERY == 0 || step + 1 == steps) {
			row_set(row, "step", "%ld", step);
			row_set(row, "train_nats", "%.6f", sum / since);
			row_set(row, "held_out_nats", "%.6f", text_held_out_nats(&of, held_out));
			row_set(row, "step_ms", "%.3f", ms / since);
			if (step + 1 == steps)
				sample(m, row);
			row_emit(row);
			sum = ms = since = 0;
		}
	}
	if (save)
		checkpoint_save(m, save);
}

// draw a sample from the model
static int draw(const real *logits, double temperature, double u)
{
	double weight[256], largest = logits[0], sum = 0;
	for (int v = 1; v < 256; v++)
		largest = logits[v] > largest ? logits[v] : largest;
	for (int v = 0; v < 256; v++)
		sum += weight[v] = exp((logits[v] - largest) / temperature);
	for (int v = 0; v < 256; v++)
		if ((u -= weight[v] / sum) < 0)
			return v;
	return 255;
}

// draw a sample byte by byte
static void sample(Model *m, Row *row)
{
	enum { LENGTH = 240 };
	static const char prompt[] = "The ";
	char text[LENGTH + 1] = { 0 };
	int32_t window[LENGTH];
	size_t n = strlen(prompt);
	memcpy(text, prompt, n);
	real logits[256];
	for (; n < LENGTH; n++) {
		size_t T = n < (size_t)shape.context ? n : (size_t)shape.context;
		for (size_t i = 0; i < T; i++)
			window[i] = (unsigned char)text[n - T + i];
		model_forward(m, window, NULL, 1, T, false);
		array_read(m->device, logits, array_part(m->device, m->logits,
			(T - 1) * 256), 256);
		text[n] = (char)draw(logits, 0.7, random_uniform(harness_seed, 4, n));
	}
	for (size_t i = 0; i < LENGTH; i++)
		text[i] = text[i] == '\n' ? '|' : text[i] == '\t' ? ' '
			: text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
	row_set(row, "sample", "%s", text);
}

// describe the experiment of learning
static void plan(Plan *plan)
{
	Text text = text_read(path, 16 * (shape.context + 1));
	text_free(&text);
	if (save)
		file_try(save, tensorfile_recognised, harness_forced());
	plan_add(plan, &(LearningConfig){ precision });
}

const Experiment experiment = {
	.about = "train a small byte-level model on a text", .options = options,
	.sweeps = SWEEPS(
		{ "curve", keys, plan, run }),
};
