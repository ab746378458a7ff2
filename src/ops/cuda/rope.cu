/* rope.cu: rotary embedding of queries and keys where they lie */
#include "ops/cuda/common.cuh"

/* qkv: (B T, 3, H, D) of T, D even; cosine, sine: (length, D/2) fp32; direction 1
 * rotates a pair by its angle, -1 rotates it back
 * bytes a token: 4 H D sizeof(T); 6 H D FLOPs
 * grid: B T, block: 2 H D / N threads, at most 1024; N even, a divisor of D */
template <class T, int N, int W>
__global__ void rope(T *qkv, const float *cosine, const float *sine,
	size_t length, unsigned width, unsigned D, float direction)
{
	const size_t angle = blockIdx.x % length * (D / 2);
	T *token = qkv + blockIdx.x * (3 * (size_t)width);
	for (unsigned j = threadIdx.x * N; j < 2 * width; j += blockDim.x * N) {
		const size_t at = angle + j % D / 2;
		float x[N], c[N / 2], s[N / 2];
		load_by<W>(x, token + j);
		load_by<(W + 1) / 2>(c, cosine + at);
		load_by<(W + 1) / 2>(s, sine + at);
		#pragma unroll
		for (int i = 0; i < N; i += 2) {
			const float even = x[i], odd = x[i + 1];
			const float across = direction * s[i / 2];
			x[i] = c[i / 2] * even - across * odd;
			x[i + 1] = across * even + c[i / 2] * odd;
		}
		store_by<W>(token + j, x);
	}
}

// launch RoPE with the widest access
template <class T, int N, int W>
static void launch(Device *d, Array qkv, Array cosine, Array sine,
	size_t tokens, size_t length, size_t H, size_t D, int direction)
{
	const unsigned threads = threads_for(blocks_for(2 * H * D, N), 1024);
	rope<T, N, W><<<blocks_for(tokens, 1), threads, 0, cuda_stream(d)>>>(
		(T *)qkv.at, (const float *)cosine.at, (const float *)sine.at, length,
		(unsigned)(H * D), (unsigned)D, (float)direction);
	LAUNCHED();
}

extern "C" void cuda_fused_rope(Device *d, Array qkv, Array cosine, Array sine,
	size_t B, size_t T, size_t H, size_t D, int direction)
{
	with_type(qkv.type, [&](auto t) {
		using E = decltype(t);
		constexpr int N = 16 / sizeof(E);
		if (D % N == 0 && packs(qkv, N) && packs(cosine, N / 2)
			&& packs(sine, N / 2))
			launch<E, N, N>(d, qkv, cosine, sine, B * T, T, H, D, direction);
		else
			launch<E, 2, 1>(d, qkv, cosine, sine, B * T, T, H, D, direction);
	});
}
