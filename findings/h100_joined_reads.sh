#!/usr/bin/env bash
# h100_joined_reads.sh: an H100 SXM, driver 580.159.04, CUDA 13.0, Nsight Compute
#
# ld.global.cg goes past the L1, so a kernel whose blocks read one array again
# and again with it seems to measure the bandwidth of the L2.  On an H100 it does
# not: loads of one line by several SMs that are under way at the same time are
# joined between the SMs and the L2.  Counters show it.  All bytes that were asked
# for arrive at the SMs (l1tex__m_xbar2l1tex_read_bytes), no load hits the L1, and
# yet the L2 answers requests for half of them (lts__t_sectors_srcunit_tex).  The
# blocks start at different places of the array, 31 KiB apart, and it happens all
# the same.  Where each block reads an array of its own that stays in the L2, both
# counters agree, and the rate is half.
#
# Seen, 264 blocks of 1,024 threads, medians of 21 launches:
#     one array of 8 MiB: 14703 GB/s at the SMs, the L2 delivers 0.51 of it
#     arrays of their own: 7577 GB/s at the SMs, the L2 delivers 1.00 of it
#
# Needs an H100, nvcc and ncu, and leave to read counters; otherwise it exits
# with 77.  Downloads nothing.
set -euo pipefail
command -v nvcc >/dev/null && command -v ncu >/dev/null || exit 77
nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | grep -q H100 || exit 77
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cat >reads.cu <<'END'
#include <algorithm>
#include <cstdio>
constexpr int BLOCKS = 264, THREADS = 1024;

template <bool OWN>
__global__ __launch_bounds__(THREADS) void reads(float *sums, const float4 *x,
	int packs, int passes)
{
	const float4 *from = x + (OWN ? (size_t)blockIdx.x * packs : 0);
	const int first = OWN ? 0 : packs / BLOCKS * blockIdx.x / THREADS * THREADS;
	float sum = 0;
	for (int pass = 0; pass < passes; pass++)
		#pragma unroll 4
		for (int i = 0; i < packs; i += THREADS) {
			int at = first + i < packs ? first + i : first + i - packs;
			float4 v;
			asm volatile("ld.global.cg.v4.f32 {%0, %1, %2, %3}, [%4];"
				: "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
				: "l"(from + at + threadIdx.x));
			sum += (v.x + v.y) + (v.z + v.w);
		}
	sums[blockIdx.x * THREADS + threadIdx.x] = sum;
}

template <bool OWN> static void measure(int packs, int passes)
{
	float4 *x;
	float *sums, ms[21];
	cudaEvent_t from, to;
	cudaEventCreate(&from);
	cudaEventCreate(&to);
	cudaMalloc(&x, sizeof *x * packs * (OWN ? BLOCKS : 1));
	cudaMalloc(&sums, sizeof *sums * BLOCKS * THREADS);
	cudaMemset(x, 0, sizeof *x * packs * (OWN ? BLOCKS : 1));
	for (float &t : ms) {
		cudaEventRecord(from);
		reads<OWN><<<BLOCKS, THREADS>>>(sums, x, packs, passes);
		cudaEventRecord(to);
		cudaEventSynchronize(to);
		cudaEventElapsedTime(&t, from, to);
	}
	std::sort(ms, ms + 21);
	printf("%s %.0f\n", OWN ? "own" : "shared",
		1e-6 * BLOCKS * sizeof *x * packs * passes / ms[10]);
}

int main()
{
	measure<false>(8 << 16, 16);
	measure<true>(3 * THREADS, 1024);
	return cudaDeviceSynchronize();
}
END
nvcc -O3 -arch=sm_90 reads.cu -o reads
./reads >rates
metrics=l1tex__m_xbar2l1tex_read_bytes.sum,lts__t_sectors_srcunit_tex.sum
ncu --csv --clock-control none --print-units base --metrics $metrics ./reads >counted 2>&1 || {
	grep -q ERR_NVGPUCTRPERM counted && exit 77
	cat counted >&2
	exit 1
}
python3 - <<'END'
import csv
rates = {name: float(rate) for name, rate in map(str.split, open("rates"))}
rows = list(csv.DictReader(line for line in open("counted") if line[0] == '"'))
total = {}
for row in rows:
    kind = "own" if "<1>" in row["Kernel Name"] or "true" in row["Kernel Name"] else "shared"
    key = kind, row["Metric Name"].split("_")[0]
    total[key] = total.get(key, 0) + float(row["Metric Value"].replace(",", ""))
share = {k: 32 * total[k, "lts"] / total[k, "l1tex"] for k in rates}
for kind, name in ("shared", "one array of 8 MiB"), ("own", "arrays of their own"):
    print(f"{name}: {rates[kind]:.0f} GB/s at the SMs, the L2 delivers {share[kind]:.2f} of it")
assert 0.3 < share["shared"] < 0.85, "loads of one array are not joined any more"
assert 0.97 < share["own"] < 1.05, "loads of different arrays are joined"
assert rates["own"] < 0.85 * rates["shared"], "the rates are alike"
END
