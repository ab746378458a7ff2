#include "jit/source.h"

// find what can move in packs
bool source_has_short_index(const KernelPlan *p)
{
	size_t most = p->g.n;
	for (int v = 0; v < p->g.nnodes; v++)
		if (p->g.nodes[v].kind == LOAD && p->g.nodes[v].from.nbytes > most)
			most = p->g.nodes[v].from.nbytes;
	for (int s = 0; s < p->g.nstores; s++)
		if (p->g.stores[s].to.nbytes > most)
			most = p->g.stores[s].to.nbytes;
	return most < (size_t)1 << 31;
}

size_t source_packs(const KernelPlan *p)
{
	size_t T = row_threads(p->C);
	return (p->C + T * PACK - 1) / (T * PACK);
}

// decide which accesses move in packs
/* can four neighbours be loaded or stored by one aligned instruction? */
static bool moves_in_packs(const KernelPlan *p, const Access *a)
{
	int contiguous = 0;
	for (int k = 0; k < a->index.n; k++) {
		const Term *t = &a->index.term[k];
		if (t->div == 1 && t->stride == 1 && t->mod % PACK == 0)
			contiguous++;
		else if (t->div % PACK != 0 || t->stride % PACK != 0)
			return false;
	}
	size_t n = p->C ? p->C : p->g.n;
	return contiguous == 1 && a->ints == NULL && n % PACK == 0
		&& (uintptr_t)a->at % (PACK * p->g.width(a->type)) == 0;
}

static void find_packs(Writer *w)
{
	const KernelPlan *p = w->p;
	for (int v = 0; v < p->g.nnodes; v++)
		w->packed[v] = p->g.nodes[v].kind == LOAD
			&& p->level[v] == LEVEL_ELEMENT && moves_in_packs(p,
			&p->g.nodes[v].from);
	for (int s = 0; s < p->g.nstores; s++)
		w->store_packed[s] = !p->g.stores[s].columns && p->store_loop[s] >= 0
			&& moves_in_packs(p, &p->g.stores[s].to);
}

// write the prelude in CUDA
static const char prelude[] =
	"typedef float real;\n"
	"typedef unsigned short bits;\n"
	"struct __align__(16) pack32 { float at[4]; };\n"
	"struct __align__(8) pack16 { bits at[4]; };\n"
	"#define DEVICE static __device__ __forceinline__\n"
	"DEVICE float from_fp32(float x) { return x; }\n"
	"DEVICE float to_fp32(float x) { return x; }\n"
	"DEVICE float from_tf32(float x) { return x; }\n"
	"DEVICE float to_tf32(float x)\n{\n"
	"\tunsigned u = __float_as_uint(x);\n"
	"\tif ((u & 0x7f800000) != 0x7f800000)\n"
	"\t\tu += 0xfff + (u >> 13 & 1);\n"
	"\treturn x != x ? x : __uint_as_float(u & ~0x1fffu);\n}\n"
	"DEVICE float from_bf16(bits x)\n"
	"{ return __uint_as_float((unsigned)x << 16); }\n"
	"DEVICE bits to_bf16(float x)\n"
	"{\n\tbits y;\n\tasm(\"cvt.rn.bf16.f32 %0, %1;\" : \"=h\"(y) : \"f\"(x));\n"
	"\treturn y;\n}\n"
	"DEVICE float round_bf16(float x)\n"
	"{\n\tunsigned y;\n\tasm(\"cvt.rn.bf16x2.f32 %0, %1, %2;\" : \"=r\"(y)\n"
	"\t\t: \"f\"(x), \"f\"(0.0f));\n\treturn __uint_as_float(y);\n}\n"
	"DEVICE float from_fp16(bits x)\n"
	"{\n\tfloat y;\n\tasm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(y) : \"h\"(x));\n"
	"\treturn y;\n}\n"
	"DEVICE bits to_fp16(float x)\n"
	"{\n\tbits y;\n\tasm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(y) : \"f\"(x));\n"
	"\treturn y;\n}\n"
	"DEVICE float round_fp16(float x) { return from_fp16(to_fp16(x)); }\n"
	"DEVICE float round_tf32(float x) { return to_tf32(x); }\n"
	"DEVICE float round_fp32(float x) { return x; }\n"
	"DEVICE float root(float x) { return sqrtf(x); }\n"
	"DEVICE float inverse_root(float x) { return rsqrtf(x); }\n"
	"DEVICE float exponential(float x) { return expf(x); }\n"
	"DEVICE float logarithm(float x) { return logf(x); }\n"
	"DEVICE float fold_sum(float a, float b) { return a + b; }\n"
	"DEVICE float fold_maximum(float a, float b) { return fmaxf(a, b); }\n"
	"#define INFINITE __int_as_float(0x7f800000)\n"
	"static __device__ __noinline__ float divide(float a, float b)\n"
	"{ return a / b; }\n"
	"DEVICE float op_DIVIDE_SHARED(float a, float b, float c)\n{\n"
	"\tconst float y = 1 / b;\n"
	"\tconst unsigned u = __float_as_uint(a), low = 0x21800000;\n"
	"\tif (!(b >= 1 && b < 0x1p60f) || (u != 0 && u - low >= 0x3c000000))\n"
	"\t\treturn divide(a, b);\n"
	"\tfloat q = a * y;\n"
	"\tq = __fmaf_rn(__fmaf_rn(-b, q, a), y, q);\n"
	"\treturn __fmaf_rn(__fmaf_rn(-b, q, a), y, q);\n}\n";

// the text of folds over the threads of a row
static const char folding[] =
	"#define WHOLE(fold, none) \\\n"
	"DEVICE float whole_##fold(float x) \\\n"
	"{ \\\n"
	"\tfor (int lane = 16; lane > 0; lane /= 2) \\\n"
	"\t\tx = fold_##fold(x, __shfl_xor_sync(0xffffffff, x, lane)); \\\n"
	"\tif (T == 32) \\\n"
	"\t\treturn x; \\\n"
	"\t__shared__ float part[32]; \\\n"
	"\t__syncthreads(); \\\n"
	"\tif (threadIdx.x % 32 == 0) \\\n"
	"\t\tpart[threadIdx.x / 32] = x; \\\n"
	"\t__syncthreads(); \\\n"
	"\tx = threadIdx.x % 32 < T / 32 ? part[threadIdx.x % 32] : none; \\\n"
	"\tfor (int lane = 16; lane > 0; lane /= 2) \\\n"
	"\t\tx = fold_##fold(x, __shfl_xor_sync(0xffffffff, x, lane)); \\\n"
	"\treturn x; \\\n"
	"}\n"
	"WHOLE(sum, 0)\n"
	"WHOLE(maximum, -INFINITE)\n";

// write the definitions that a kernel in CUDA needs
static void put_prelude(const Writer *w)
{
	const KernelPlan *p = w->p;
	fputs(prelude, w->f);
	fprintf(w->f, "typedef %s index;\n", source_has_short_index(p) ? "unsigned"
		: "unsigned long long");
#define OPCODE(NAME, OPERANDS, FORMULA) \
	fputs("DEVICE float op_" #NAME \
		"(float a, float b, float c)\n{ return " #FORMULA "; }\n", w->f);
#include "ops/opcodes.h"
#undef OPCODE
	if (p->shape != FLAT) {
		fprintf(w->f, "enum { C = %zu, T = %u, PACKS = %zu, ROWS = %d };\n", p->C,
			row_threads(p->C), source_packs(p),
			row_threads(p->C) == 32 && !p->columns ? 8 : 1);
		fputs(folding, w->f);
	}
}

// write the arguments in CUDA
static const char *stored_as(Type type)
{
	return type == BF16 || type == FP16 ? "bits" : "float";
}

static void put_arguments(const Writer *w)
{
	const KernelPlan *p = w->p;
	bool flat = p->shape == FLAT;
	fprintf(w->f, "extern \"C\" __global__ void __launch_bounds__(%s)\n"
		"fused(const index %s", flat ? "256" : "T * ROWS", flat ? "n" : "rows");
	for (int v = 0; v < p->g.nnodes; v++) {
		const Node *node = &p->g.nodes[v];
		if (!plan_has(p->live, v))
			continue;
		if (node->kind == LOAD)
			fprintf(w->f, ",\n\tconst %s *a%d", stored_as(node->from.type), v);
		if (node->kind == LOAD ? node->from.ints != NULL
			: node->kind == COMPARISON && node->compare.ints)
			fprintf(w->f, ",\n\tconst int *t%d", v);
	}
	for (int s = 0; s < p->g.nstores; s++)
		if (!p->g.stores[s].dead)
			fprintf(w->f, ",\n\t%s *s%d", p->g.stores[s].columns ? "float"
				: stored_as(p->g.stores[s].to.type), s);
	if (p->g.skip)
		fputs(",\n\tconst int *skip", w->f);
	for (int v = 0; v < p->g.nnodes; v++)
		if (plan_has(p->live, v) && p->g.nodes[v].kind == CONSTANT)
			fprintf(w->f, ",\n\tconst float n%d", v);
	fputs(")\n{\n", w->f);
}

// write packs
/* writes the pack that begins at element i of an access, as an lvalue */
static void put_address(const Writer *w, char array, int number,
	const Access *a)
{
	fprintf(w->f, "*(%spack%d *)&", array == 'a' ? "const " : "",
		8 * (int)w->p->g.width(a->type));
	source_access(w, array, number, a);
}

// write the loads of a pack
/* writes the loads of a loop's packs; i is the first element of the pack */
static void put_pack_loads(const Writer *w, int loop)
{
	const KernelPlan *p = w->p;
	for (int v = 0; v < p->g.nnodes; v++) {
		const Access *from = &p->g.nodes[v].from;
		if (!plan_has(p->loop[loop], v) || !w->packed[v])
			continue;
		source_line(w, "pack%d p%d = { { 0 } };", 8 * (int)p->g.width(from->type),
			v);
		if (p->guard[v] >= 0)
			source_line(w, "if (any%d)", p->guard[v]);
		source_indent(w);
		fprintf(w->f, "%sp%d = ", p->guard[v] >= 0 ? "\t" : "", v);
		put_address(w, 'a', v, from);
		fputs(";\n", w->f);
	}
	for (int s = 0; s < p->g.nstores; s++)
		if (source_stored(p, s, loop) && w->store_packed[s])
			source_line(w, "pack%d q%d;",
				8 * (int)p->g.width(p->g.stores[s].to.type), s);
}

// write the stores of a pack
static void put_pack_stores(const Writer *w, int loop)
{
	for (int s = 0; s < w->p->g.nstores; s++)
		if (source_stored(w->p, s, loop) && w->store_packed[s]) {
			source_indent(w);
			put_address(w, 's', s, &w->p->g.stores[s].to);
			fprintf(w->f, " = q%d;\n", s);
		}
}

// write the store of an element in CUDA
static void put_store(const Writer *w, int s, const Store *made, const char *name)
{
	if (made->columns)
		fprintf(w->f, "c%d[pack * 4 + k] += %s;\n", s, name);
	else {
		if (w->store_packed[s])
			fprintf(w->f, "q%d.at[k]", s);
		else
			source_access(w, 's', s, &made->to);
		fprintf(w->f, " = to_%s(%s);\n", type_names[made->to.type], name);
	}
}

// write one loop in CUDA
/* does the comparison guard a load of the loop? */
static bool is_guard_of_loop(const KernelPlan *p, int loop, int comparison)
{
	for (int v = 0; v < p->g.nnodes; v++)
		if (plan_has(p->loop[loop], v) && p->guard[v] == comparison)
			return true;
	return false;
}

static void put_element_index(const Writer *w, const char *indent)
{
	source_line(w, "%sconst index i = i0 + k%s;", indent,
		w->p->C ? ", j = j0 + k" : "");
}

// write the elements of a pack
/* writes one pack; bound: "", or the condition under which element k exists */
static void put_pack(Writer *w, int loop, const char *bound)
{
	const KernelPlan *p = w->p;
	for (int v = 0; v < p->g.nnodes; v++)
		if (is_guard_of_loop(p, loop, v)) {
			source_line(w, "bool any%d = false;", v);
			source_line(w, "for (int k = 0; k < 4; k++) {");
			put_element_index(w, "\t");
			source_indent(w);
			fprintf(w->f, "\tany%d |= ", v);
			source_comparison(w, v);
			fputs(";\n", w->f);
			source_line(w, "}");
		}
	source_line(w, p->C ? "const index i = i0, j = j0;" : "const index i = i0;");
	put_pack_loads(w, loop);
	source_line(w, "#pragma unroll");
	source_line(w, "for (int k = 0; k < 4; k++)%s {", bound);
	w->depth++;
	put_element_index(w, "");
	source_element(w, loop, "", "pack * 4 + k");
	source_stores(w, loop, put_store);
	w->depth--;
	source_line(w, "}");
	put_pack_stores(w, loop);
}

// write the loop over a thread's packs
static void put_loop(Writer *w, int loop)
{
	const KernelPlan *p = w->p;
	source_line(w, "#pragma unroll%s", p->shape == HELD_ROW ? "" : " 1");
	source_line(w, "for (int pack = 0; pack < PACKS; pack++) {");
	w->depth++;
	source_line(w, "const index j0 = (pack * T + threadIdx.x) * 4,");
	source_line(w, "\ti0 = row * C + j0;");
	source_line(w, "if (j0 < C) {");
	w->depth++;
	put_pack(w, loop, p->C % PACK ? " if (j0 + k < C)" : "");
	w->depth--;
	source_line(w, "}");
	w->depth--;
	source_line(w, "}");
}

// write the rows in CUDA
static void put_row_stores(Writer *w)
{
	bool some = false;
	for (int s = 0; s < w->p->g.nstores; s++)
		some |= source_stored(w->p, s, -1);
	if (!some)
		return;
	source_line(w, "if (T == 32)");
	source_line(w, "\t__syncwarp();");
	source_line(w, "else");
	source_line(w, "\t__syncthreads();");
	source_line(w, "if (threadIdx.x == 0) {");
	w->depth++;
	source_stores(w, -1, put_store);
	w->depth--;
	source_line(w, "}");
}

// write the loops of a row in CUDA
static void put_row(Writer *w)
{
	const KernelPlan *p = w->p;
	for (int v = 0; v < p->g.nnodes; v++)
		if (plan_has(p->held, v))
			source_line(w, "real h%d[PACKS * 4];", v);
	for (int loop = 0; loop < p->nloops; loop++) {
		source_row(w, loop);
		for (int v = 0; v < p->g.nnodes; v++)
			if (source_folds(p, v, loop))
				source_line(w, "real r%d = %s;", v,
					p->g.nodes[v].fold == FOLD_SUM ? "0" : "-INFINITE");
		put_loop(w, loop);
		for (int v = 0; v < p->g.nnodes; v++)
			if (source_folds(p, v, loop))
				source_line(w, "const real v%d = whole_%s(r%d);", v,
					p->g.nodes[v].fold == FOLD_SUM ? "sum" : "maximum", v);
	}
	for (int stage = p->nloops; stage < MOST_STAGES; stage++)
		source_row(w, stage);
	put_row_stores(w);
}

// write the sums of columns in CUDA
/* writes the declaration of the sums if begin, else their stores */
static void put_column_sums(const Writer *w, bool begin)
{
	const KernelPlan *p = w->p;
	for (int s = 0; s < p->g.nstores; s++) {
		if (!p->g.stores[s].columns || p->g.stores[s].dead)
			continue;
		if (begin) {
			source_line(w, "float c%d[PACKS * 4] = { 0 };", s);
			continue;
		}
		source_line(w, "#pragma unroll");
		source_line(w, "for (int k = 0; k < PACKS * 4; k++) {");
		source_line(w, "\tconst index j = (k / 4 * T + threadIdx.x) * 4");
		source_line(w, "\t\t+ k %% 4;");
		source_line(w, "\tif (j < C)");
		source_line(w, "\t\ts%d[(size_t)blockIdx.x * C + j] = c%d[k];", s, s);
		source_line(w, "}");
	}
}

// write the loop over rows in CUDA
static void put_rows(Writer *w)
{
	bool columns = w->p->columns;
	put_column_sums(w, true);
	if (columns) {
		source_line(w, "const size_t slab = blockIdx.x, slabs = gridDim.x;");
		source_line(w, "for (index row = slab * rows / slabs;");
		source_line(w, "\trow < (slab + 1) * rows / slabs; row++) {");
	} else {
		source_line(w, "const index row = (index)blockIdx.x * ROWS");
		source_line(w, "\t+ threadIdx.y;");
		source_line(w, "if (row < rows) {");
	}
	w->depth++;
	source_line(w, "const index i = row * C;");
	put_row(w);
	w->depth--;
	source_line(w, "}");
	put_column_sums(w, false);
}

// write the elements of a flat plan in CUDA
static void put_flat(Writer *w)
{
	source_row(w, 0);
	source_line(w, "const int pack = 0;");
	source_line(w, "const index i0 = ((index)blockIdx.x * 256");
	source_line(w, "\t+ threadIdx.x) * 4;");
	source_line(w, "if (i0 < n) {");
	w->depth++;
	put_pack(w, 0, w->p->g.n % PACK ? " if (i0 + k < n)" : "");
	w->depth--;
	source_line(w, "}");
}

void source_cuda(FILE *f, const KernelPlan *p)
{
	Writer writer = { .f = f, .p = p, .cuda = true, .depth = 1 }, *w = &writer;
	find_packs(w);
	put_prelude(w);
	put_arguments(w);
	if (p->g.skip)
		source_line(w, "if (*skip)\n\t\treturn;");
	if (p->shape == FLAT)
		put_flat(w);
	else
		put_rows(w);
	fputs("}\n", f);
}
