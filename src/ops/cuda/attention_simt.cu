/* attention_simt.cu: attention by the formulas, four threads to a row */
#include "ops/cuda/mma_tiles.cuh"

enum { TEAM = 4, ROWS = 32, THREADS = ROWS * TEAM };

// give each thread a part of a row
/* column of element i of a thread's part: pairs in turn */
__device__ inline int column_of(int i)
{
	return (i / 2 * TEAM + threadIdx.x % TEAM) * 2 + i % 2;
}

// read and write parts of rows, and load tiles
template <int D, class T>
__device__ inline void read_part(float (&x)[D / TEAM], HeadRows<const T> from,
	int row)
{
	#pragma unroll
	for (int i = 0; i < D / TEAM; i++)
		x[i] = row < from.n ? widen(from.at[row * from.step + column_of(i)]) : 0;
}

template <int D, class T>
__device__ inline void write_part(HeadRows<T> to, int row,
	const float (&x)[D / TEAM])
{
	#pragma unroll
	for (int i = 0; i < D / TEAM && row < to.n; i++)
		to.at[row * to.step + column_of(i)] = narrow<T>(x[i]);
}

/* rows first ... in fp32, for the whole block; those after the last are 0 */
template <int D, class T>
__device__ inline void load_shared(float (&to)[ROWS][D], HeadRows<const T> from,
	int first)
{
	for (int i = threadIdx.x; i < ROWS * D; i += THREADS) {
		const int row = first + i / D;
		to[i / D][i % D] = row < from.n
			? widen(from.at[row * from.step + i % D]) : 0;
	}
}

/* the dot product of two rows, in all threads of a team */
template <int D>
__device__ inline float dot(const float (&x)[D / TEAM], const float *row)
{
	float sum = 0;
	#pragma unroll
	for (int i = 0; i < D / TEAM; i++)
		sum += x[i] * row[column_of(i)];
	return quad_sum(sum);
}

template <int D>
__device__ inline void add_times(float (&x)[D / TEAM], float factor,
	const float *row)
{
	#pragma unroll
	for (int i = 0; i < D / TEAM; i++)
		x[i] += factor * row[column_of(i)];
}

// compute attention row by row
/* O = softmax(scale Q K^T) V and L of 32 queries
 * grid: (B H, queries / 32), block: four threads for each query */
template <class T, int D>
__global__ void simt_forward(Attention a)
{
	__shared__ float k[ROWS][D], v[ROWS][D];
	const auto Q = query_rows<const T>(a.q, a),
		K = key_rows<const T>(a.k, a),
		V = key_rows<const T>(a.v, a);
	const int row = blockIdx.y * ROWS + threadIdx.x / TEAM,
		diagonal = a.bottom_right ? K.n - Q.n : 0,
		end = keys_seen((blockIdx.y + 1) * ROWS, K.n, a.causal, diagonal);
	const float scale = (float)a.scale;
	float q[D / TEAM], o[D / TEAM] = {}, largest = -FLT_MAX, sum = 0;
	read_part<D>(q, Q, row);
	for (int first = 0; first < end; first += ROWS) {
		__syncthreads();                /* all are done with the last keys */
		load_shared<D>(k, K, first);
		load_shared<D>(v, V, first);
		__syncthreads();
		float s[ROWS], most = largest;
		for (int j = 0; j < ROWS; j++) {
			const bool seen = first + j < K.n
				&& !(a.causal && first + j > row + diagonal);
			s[j] = dot<D>(q, k[j]) * scale;
			s[j] = seen ? s[j] : -INFINITY;
			most = fmaxf(most, s[j]);
		}
		const float shrink = expf(largest - most);
		largest = most;
		sum *= shrink;
		#pragma unroll
		for (int i = 0; i < D / TEAM; i++)
			o[i] *= shrink;
		for (int j = 0; j < ROWS; j++) {
			const float p = expf(s[j] - largest);
			sum += p;
			add_times<D>(o, p, v[j]);
		}
	}
	#pragma unroll
	for (int i = 0; i < D / TEAM; i++)
		o[i] *= inverse_sum(sum);
	write_part<D>(query_rows<T>(a.o, a), row, o);
	if (row < Q.n && threadIdx.x % TEAM == 0)
		((float *)a.L.at)[rows_before(a) + row] = largest + logf(sum);
}

// propagate through attention row by row
/* rotates pairs of a row back by the angles of its position */
template <int D>
__device__ inline void rope_backward(float (&x)[D / TEAM],
	const AttentionGradient &g, int row, int n)
{
	#pragma unroll
	for (int i = 0; i < D / TEAM; i += 2) {
		if (g.cosine.at == NULL || row >= n)
			continue;
		const size_t at = row * (size_t)(D / 2) + column_of(i) / 2;
		const float c = ((const float *)g.cosine.at)[at],
			s = ((const float *)g.sine.at)[at], even = x[i], odd = x[i + 1];
		x[i] = c * even + s * odd;
		x[i + 1] = c * odd - s * even;
	}
}

/* delta and dQ of 32 queries; launched as simt_forward */
template <class T, int D>
__global__ void simt_dq(Attention a, AttentionGradient g, float *deltas)
{
	__shared__ float k[ROWS][D], v[ROWS][D];
	const auto Q = query_rows<const T>(a.q, a),
		K = key_rows<const T>(a.k, a),
		V = key_rows<const T>(a.v, a),
		O = query_rows<const T>(a.o, a),
		dO = query_rows<const T>(g.d_o, a);
	const int row = blockIdx.y * ROWS + threadIdx.x / TEAM,
		diagonal = a.bottom_right ? K.n - Q.n : 0,
		end = keys_seen((blockIdx.y + 1) * ROWS, K.n, a.causal, diagonal);
	const size_t at = rows_before(a) + row;
	const float scale = (float)a.scale,
		L = row < Q.n ? finite_L(((const float *)a.L.at)[at]) : 0;
	float q[D / TEAM], d[D / TEAM], o[D / TEAM], dq[D / TEAM] = {}, delta = 0;
	read_part<D>(q, Q, row);
	read_part<D>(d, dO, row);
	read_part<D>(o, O, row);
	#pragma unroll
	for (int i = 0; i < D / TEAM; i++)
		delta += d[i] * o[i];
	delta = quad_sum(delta);
	if (row < Q.n && threadIdx.x % TEAM == 0)
		deltas[at] = delta;
	for (int first = 0; first < end; first += ROWS) {
		__syncthreads();
		load_shared<D>(k, K, first);
		load_shared<D>(v, V, first);
		__syncthreads();
		// add what each key gives to dQ
		for (int j = 0; j < ROWS; j++) {
			const bool seen = first + j < K.n
				&& !(a.causal && first + j > row + diagonal);
			const float p = expf(dot<D>(q, k[j]) * scale - L),
				ds = p * (dot<D>(d, v[j]) - delta) * scale;
			add_times<D>(dq, seen ? ds : 0, k[j]);
		}
	}
	rope_backward<D>(dq, g, row, Q.n);
	write_part<D>(query_rows<T>(g.dq, a), row, dq);
}

// propagate through attention row by row
/* dK and dV of 32 keys
 * grid: (B H, keys / 32), block: four threads for each key */
template <class T, int D>
__global__ void simt_dkv(Attention a, AttentionGradient g, const float *deltas)
{
	__shared__ float q[ROWS][D], d[ROWS][D];
	const auto Q = query_rows<const T>(a.q, a),
		K = key_rows<const T>(a.k, a),
		V = key_rows<const T>(a.v, a),
		dO = query_rows<const T>(g.d_o, a);
	const int row = blockIdx.y * ROWS + threadIdx.x / TEAM,
		diagonal = a.bottom_right ? K.n - Q.n : 0,
		start = first_query_of(blockIdx.y * ROWS, a.causal, diagonal);
	const size_t before = rows_before(a);
	const float scale = (float)a.scale, *L = (const float *)a.L.at + before;
	float k[D / TEAM], v[D / TEAM], dk[D / TEAM] = {}, dv[D / TEAM] = {};
	read_part<D>(k, K, row);
	read_part<D>(v, V, row);
	for (int first = start; first < Q.n; first += ROWS) {
		__syncthreads();
		load_shared<D>(q, Q, first);
		load_shared<D>(d, dO, first);
		__syncthreads();
		// add what each query gives to dK and dV
		for (int i = 0; i < min(ROWS, Q.n - first); i++) {
			const bool seen = !(a.causal && row > first + i + diagonal);
			const float score = dot<D>(k, q[i]) * scale,
				p = seen ? expf(score - finite_L(L[first + i])) : 0,
				ds = p * (dot<D>(v, d[i]) - deltas[before + first + i]) * scale;
			add_times<D>(dv, p, d[i]);
			add_times<D>(dk, ds, q[i]);
		}
	}
	rope_backward<D>(dk, g, row, K.n);
	write_part<D>(own_key_rows<T>(g.dk, a), row, dk);
	write_part<D>(own_key_rows<T>(g.dv, a), row, dv);
}

// launch attention row by row
/* calls f with a value of the stored type and D as a Constant; returns whether
 * there are kernels for both */
template <class F> static bool with_rows(Type type, size_t D, F f)
{
	const auto with = [&](auto stored) {
		return with_width(D, [&](auto width) { f(stored, width); });
	};
	switch (type) {
	case FP32: return with(float());
	case BF16: return with(bf16());
	case FP16: return with(fp16());
	default:   return false;
	}
}

extern "C" bool cuda_simt_supports(Device *d, const Attention *a,
	const AttentionGradient *)
{
	return with_rows(a->q.x.type, a->D, [](auto, auto) { });
}

static dim3 grid_of(const Attention &a, size_t rows)
{
	return dim3(blocks_for(a.B * a.H, 1), blocks_for(rows, ROWS));
}

extern "C" void cuda_simt_forward(Device *d, Attention a)
{
	with_rows(a.q.x.type, a.D, [&](auto stored, auto D) {
		simt_forward<decltype(stored), D.value>
			<<<grid_of(a, a.seqlen_q), THREADS, 0, cuda_stream(d)>>>(a);
	});
	LAUNCHED();
}

extern "C" void cuda_simt_backward(Device *d, Attention a, AttentionGradient g)
{
	float *deltas = (float *)cuda_scratch(d, cuda_mma_sync_scratch(d, &a, &g),
		"attention's delta");
	with_rows(a.q.x.type, a.D, [&](auto stored, auto D) {
		simt_dq<decltype(stored), D.value>
			<<<grid_of(a, a.seqlen_q), THREADS, 0, cuda_stream(d)>>>(a, g,
			deltas);
		simt_dkv<decltype(stored), D.value>
			<<<grid_of(a, a.seqlen_k), THREADS, 0, cuda_stream(d)>>>(a, g,
			deltas);
	});
	LAUNCHED();
	device_free(d, deltas);
}
