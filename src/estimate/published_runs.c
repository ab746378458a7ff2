#include "estimate/published_runs.h"

#include <assert.h>
#include <string.h>

// shapes of public models
typedef enum { LLAMA_8B, LLAMA_70B, LLAMA_405B, LLAMA2_13B, LLAMA2_70B, GPT_1B,
	GPT_3B, GPT_7B, GPT_18B, GPT_39B, GPT_76B, GPT_145B, GPT_310B, GPT_529B,
	GPT_1008B, SCALE_175B } PublishedModel;

/* kv: heads of keys; GPTs have two matrices of four times the width */

// list the shapes of published models
static const struct { const char *name; CostShape shape; } models[] = {
	/* vocab, d_model, d_ff, layers, heads, d_head, kv, matrices */
	[LLAMA_8B] = { "Llama 3 8B",
		{ 128256, 4096, 14336, 32, 32, 128, 8, 3 } },
	[LLAMA_70B] = { "Llama 3 70B",
		{ 128256, 8192, 28672, 80, 64, 128, 8, 3 } },
	[LLAMA_405B] = { "Llama 3 405B",
		{ 128256, 16384, 53248, 126, 128, 128, 8, 3 } },
	[LLAMA2_13B] = { "Llama 2 13B",
		{ 32000, 5120, 13824, 40, 40, 128, 40, 3 } },
	[LLAMA2_70B] = { "Llama 2 70B",
		{ 32000, 8192, 28672, 80, 64, 128, 8, 3 } },
	[GPT_1B] = { "1.7B",
		{ 51200, 2304, 9216, 24, 24, 96, 24, 2 } },
	[GPT_3B] = { "3.6B",
		{ 51200, 3072, 12288, 30, 32, 96, 32, 2 } },
	[GPT_7B] = { "7.5B",
		{ 51200, 4096, 16384, 36, 32, 128, 32, 2 } },
	[GPT_18B] = { "18.4B",
		{ 51200, 6144, 24576, 40, 48, 128, 48, 2 } },
	[GPT_39B] = { "39.1B",
		{ 51200, 8192, 32768, 48, 64, 128, 64, 2 } },
	[GPT_76B] = { "76.1B",
		{ 51200, 10240, 40960, 60, 80, 128, 80, 2 } },
	[GPT_145B] = { "145.6B",
		{ 51200, 12288, 49152, 80, 96, 128, 96, 2 } },
	[GPT_310B] = { "310.1B",
		{ 51200, 16384, 65536, 96, 128, 128, 128, 2 } },
	[GPT_529B] = { "529.6B",
		{ 51200, 20480, 81920, 105, 128, 160, 128, 2 } },
	[GPT_1008B] = { "1008B",
		{ 51200, 25600, 102400, 128, 160, 160, 160, 2 } },
	[SCALE_175B] = { "175B",
		{ 64000, 12288, 49152, 96, 128, 96, 128, 2 } },
};

// public runs
typedef struct PublishedRow {
	const char *source, *hardware;
	PublishedModel model;
	long devices, context, batch;    /* sequences in a step */
	/* what divides a sequence's work, and runs of blocks on a stage */
	long tensor, parts, stages, interleave;
	CostStrategy strategy;
	bool again;                      /* blocks are run again */
	double value;
	PublishedUnit unit;
} PublishedRow;

// abbreviate the rows of a source
#define TITAN(n, value) LLAMA_8B, n, 8192, 2 * (n), 1, 1, 1, 1, COST_FSDP,   \
	false, value, PUBLISHED_TOKENS
#define TITAN_A100(model, T, batch, again, value) "TorchTitan, A100", "A100", \
	model, 64, T, batch, 1, 1, 1, 1, COST_FSDP, again, value, PUBLISHED_TOKENS
#define MEGATRON(model, n, batch, t, p, v, value) "Megatron-LM, 2021", "A100", \
	model, n, 2048, batch, t, 1, p, v, COST_FLAT, true, value, PUBLISHED_TFLOPS
#define LLAMA(n, T, batch, parts, value) "Llama 3", "H100", LLAMA_405B, n, T, \
	batch, 8, parts, 16, 7, COST_ZERO1, false, value, PUBLISHED_TFLOPS
#define SCALE(n, batch, value) "A100", SCALE_175B, n, 2048, batch, 8, 1, 8, 6, \
	COST_ZERO1, false, value, PUBLISHED_SECONDS
static const PublishedRow rows[] = {
	{ "TorchTitan, eager", "H100 500 W", TITAN(8, 5762) },
	{ "TorchTitan, eager", "H100 500 W", TITAN(128, 5605) },
	{ "TorchTitan, compiled", "H100 500 W", TITAN(8, 6667) },
	{ "TorchTitan, compiled", "H100 500 W", TITAN(128, 6514) },
	{ TITAN_A100(LLAMA_8B, 8192, 64, false, 2973) },
	{ TITAN_A100(LLAMA_70B, 8192, 64, true, 331) },
	{ TITAN_A100(LLAMA2_13B, 4096, 128, false, 2162) },
	{ TITAN_A100(LLAMA2_70B, 4096, 128, true, 353) },
	/*                        GPUs batch tp pp runs TFLOP/s */
	{ MEGATRON(GPT_1B,          32,  512, 1, 1, 1, 137) },
	{ MEGATRON(GPT_3B,          64,  512, 2, 1, 1, 138) },
	{ MEGATRON(GPT_7B,         128,  512, 4, 1, 1, 142) },
	{ MEGATRON(GPT_18B,        256, 1024, 8, 1, 1, 135) },
	{ MEGATRON(GPT_39B,        512, 1536, 8, 2, 2, 138) },
	{ MEGATRON(GPT_76B,       1024, 1792, 8, 4, 3, 140) },
	{ MEGATRON(GPT_145B,      1536, 2304, 8, 8, 2, 148) },
	{ MEGATRON(GPT_310B,      1920, 2160, 8, 16, 2, 155) },
	{ MEGATRON(GPT_529B,      2520, 2520, 8, 35, 3, 163) },
	{ MEGATRON(GPT_1008B,     3072, 3072, 8, 64, 2, 163) },
	{ LLAMA(8192, 8192, 2048, 1, 430) },
	{ LLAMA(16384, 8192, 2048, 1, 400) },
	{ LLAMA(16384, 131072, 128, 16, 380) },
	{ "MegaScale", SCALE(256, 768, 32.0) },
	{ "MegaScale", SCALE(512, 768, 16.5) },
	{ "MegaScale", SCALE(768, 768, 11.5) },
	{ "MegaScale", SCALE(1024, 768, 8.9) },
	{ "MegaScale", SCALE(3072, 6144, 23.66) },
	{ "MegaScale", SCALE(6144, 6144, 12.21) },
	{ "MegaScale", SCALE(8192, 6144, 9.56) },
	{ "MegaScale", SCALE(12288, 6144, 6.34) },
	{ "Megatron-LM, 2024", SCALE(256, 768, 40.0) },
	{ "Megatron-LM, 2024", SCALE(512, 768, 21.2) },
	{ "Megatron-LM, 2024", SCALE(768, 768, 15.2) },
	{ "Megatron-LM, 2024", SCALE(1024, 768, 11.9) },
	{ "Megatron-LM, 2024", SCALE(3072, 6144, 29.02) },
	{ "Megatron-LM, 2024", SCALE(6144, 6144, 14.78) },
	{ "Megatron-LM, 2024", SCALE(8192, 6144, 12.24) },
	{ "Megatron-LM, 2024", SCALE(12288, 6144, 8.57) },
};

// make a run of a row
static const struct { const char *source, *where; } citations[] = {
	{ "TorchTitan, eager", "llama3_h100_202412 Tables 1 and 3" },
	{ "TorchTitan, compiled", "llama3_h100_202412 Tables 1 and 3" },
	{ "TorchTitan, A100", "performance.md of August 2024" },
	{ "Megatron-LM, 2021", "Narayanan et al. 2021 Table 1" },
	{ "Llama 3", "Grattafiori et al. 2024 Table 4" },
	{ "MegaScale", "Jiang et al. 2024 Table 2" },
	{ "Megatron-LM, 2024", "Jiang et al. 2024 Table 2" },
};

static const char *cited_by(const char *source)
{
	for (size_t i = 0; i < sizeof citations / sizeof *citations; i++)
		if (strcmp(citations[i].source, source) == 0)
			return citations[i].where;
	assert(!"a source without a citation");
	return "";
}

// turn a row into a run of the cost model
int published_count(void)
{
	return sizeof rows / sizeof *rows;
}

PublishedRun published_run(int i)
{
	const PublishedRow *p = &rows[i];
	bool whole = p->strategy == COST_FSDP;
	long data = p->devices / (p->tensor * p->parts * p->stages),
		sequences = p->batch / data;
	assert(data * p->tensor * p->parts * p->stages == p->devices);
	assert(sequences * data == p->batch);
	return (PublishedRun){ p->source, cited_by(p->source), models[p->model].name,
		p->hardware, p->devices,
		{ .shape = models[p->model].shape, .context = p->context,
			.tokens = (double)p->context * (whole ? sequences : 1),
			.data = data, .tensor = p->tensor, .parts = p->parts,
			.stages = p->stages, .microbatches = whole ? 1 : sequences,
			.interleave = p->interleave, .strategy = p->strategy,
			.prefetch = whole, .real = 4, .low = 2, .gather = 2,
			.gradient = 4, .wire = 4, .mixed = true, .flash = true,
			.recompute = p->again }, p->value, p->unit };
}

// speak as a source does
double published_value(const PublishedRun *p, double step_ms)
{
	const CostRun *r = &p->run;
	double tokens = r->tokens * r->microbatches * r->data,
		causal = cost_forward_flops(&r->shape, r->context),
		whole = cost_forward_flops(&r->shape, 2 * r->context),
		head = 2 * r->shape.vocab * r->shape.d_model,
		flops = r->recompute ? 4 * whole - head : 3 * causal;
	if (p->unit == PUBLISHED_TOKENS)
		return tokens / p->devices / step_ms * 1e3;
	return p->unit == PUBLISHED_TFLOPS ? flops * tokens / p->devices / step_ms
		* 1e-9
		: step_ms * 1e-3;
}
