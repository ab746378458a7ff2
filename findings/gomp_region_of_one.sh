#!/usr/bin/env bash
# gomp_region_of_one.sh: libgomp 12.2.0 of Debian 12, OpenMP's library of gcc
#
# A parallel region with one thread ends with a call of the system.  One that
# `if (0)` keeps serial is such a region, and so is one that begins within
# another, where nesting is off as it is by default.  Both look as if they cost
# nothing, and the work is done by the thread that is there.  But the barrier at
# the end of the region wakes whoever sleeps on it, though nobody can: one call
# of futex for each region, two for each within another.
#
# Seen:
#     1000 loops without OpenMP: 0 calls of futex
#     1000 regions under if (0): 1000 calls of futex
#     2000 regions within another: 2 for each
#
# Needs gcc; downloads 10 MB of packages of Debian 12 into a temporary folder, and
# runs with them.
set -euo pipefail
gomp=12.2.0-14+deb12u1 strace=6.1-0.1
command -v gcc >/dev/null || exit 77
. "$(dirname "$0")/debian"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
unpack bookworm "libgomp1=$gomp" "strace=$strace"
cat >one.c <<'END'
#include <stdio.h>
int main(void)
{
	volatile long sum = 0;
	for (int i = 0; i < 1000; i++) {
		#pragma omp parallel for if (0)
		for (int k = 0; k < 4; k++)
			sum += k;
	}
	printf("%ld\n", sum);
}
END
cat >within.c <<'END'
#include <stdio.h>
int main(void)
{
	long sums[2] = { 0 };
	#pragma omp parallel for num_threads(2)
	for (int t = 0; t < 2; t++)
		for (int i = 0; i < 1000; i++) {
			long sum = 0;
			#pragma omp parallel for reduction(+:sum)
			for (int k = 0; k < 4; k++)
				sum += k;
			sums[t] += sum;
		}
	printf("%ld\n", sums[0] + sums[1]);
}
END
gcc -O2 -o serial one.c
gcc -O2 -fopenmp -o one one.c
gcc -O2 -fopenmp -o within within.c
calls() { # calls PROGRAM: how often it calls futex
	LD_LIBRARY_PATH=$(libraries) OMP_NUM_THREADS=2 "$work/root/usr/bin/strace" -f \
		-o trace -e trace=futex "./$1" >/dev/null 2>&1
	grep -c 'futex(' trace || true
}
serial=$(calls serial) one=$(calls one) within=$(calls within)
echo "1000 loops without OpenMP: $serial calls of futex"
echo "1000 regions under if (0): $one calls of futex"
echo "2000 regions within another: $((within / 2000)) for each"
[ "$serial" = 0 ] && [ "$one" = 1000 ] && [ $((within / 2000)) = 2 ]
