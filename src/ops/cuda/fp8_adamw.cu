/* fp8_adamw.cu: AdamW's update of a weight, and the weight's codes */
#include "ops/cuda/adamw.cuh"
#include "ops/cuda/fp8_tile.cuh"

enum { THREADS = 1024 };

/* bytes: 30 an element with COUNT = 1 gradient in fp32; COUNT 0: any number
 * grid: tiles of a row, rows of tiles; block 1024 */
template <int COUNT, class G>
__global__ __launch_bounds__(THREADS) void fp8_adamw(
	const __grid_constant__ Moments<float, G> a, const AdamWStep *step,
	const int32_t *skip, const __grid_constant__ Fp8Cast c)
{
	Strip<bf16, THREADS> x = {};
	const TilePlace at = place();
	if (skip && *skip)
		return;
	const int rows = at.j < c.columns ? remaining(c.rows, at.i) : 0;
	#pragma unroll
	for (int k = 0; k < x.EACH; k++) {
		float weight[UNIT];
		if (k * x.STEP >= rows)
			continue;
		update<COUNT>(weight, a, (at.i + k * x.STEP) * c.columns + at.j, *step);
		#pragma unroll
		for (int n = 0; n < UNIT; n += 2)
			x.word[k][n / 2] = packed(weight[n], weight[n + 1]);
	}
	note_seen(c, cast_strip<false>(c, x, at));
}

// launch the update of a weight
extern "C" void cuda_fp8_adamw(Device *d, Array w, Gradients g, Array m, Array v,
	const AdamWStep *step, const int32_t *skip, Fp8Cast c)
{
	assert((c.given && c.scaling == FP8_DELAYED) || c.scaling == FP8_BLOCK);
	assert(c.rows % UNIT == 0 && c.columns % UNIT == 0);
	assert(w.type == FP32 && packs(w, 4) && packs(m, 4) && packs(v, 4));
	with_type(g.at[0].type, [&](auto gradient) {
		using G = decltype(gradient);
		const auto kernel = g.n == 1 ? fp8_adamw<1, G> : fp8_adamw<0, G>;
		kernel<<<tiles_of(c, c.columns), THREADS, 0, cuda_stream(d)>>>(
			moments_of<float, G>(w, m, v, g), step, skip, c);
	});
	LAUNCHED();
}
