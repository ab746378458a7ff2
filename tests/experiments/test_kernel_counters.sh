#!/usr/bin/env bash
# test_kernel_counters.sh: kernel_counters: options, a stand-in for ncu, failures
. tests/experiments/expect.sh

cat >"$out/ncu" <<'END'
#!/bin/sh
# prints $SAY after the name of the case that it is asked for, exits with $END
case "$*" in
*"--csv --page raw "*" counted/ "*"--launch swiglu forward:fused cpu")
	printf '%b' "$SAY"; exit "${END:-0}" ;;
*) echo "asked: $*"; exit 3 ;;
esac
END
chmod +x "$out/ncu"
counters() { # counters NAME STATUS PATTERN ARGUMENTS...
	local name=$1 status=$2 pattern=$3
	shift 3
	expect "$name" "$status" "$pattern" kernel_counters --device cpu "$@"
}
fake() { # fake NAME STATUS PATTERN: one case by the stand-in
	counters "$@" --case 'swiglu forward:fused' --ncu "$out/ncu" --wide
}
names='"Kernel Name","gpu__time_duration.sum","launch__registers_per_thread"'
units='"","ns","register/thread"'
export SAY END=0
SAY="==PROF== hello\n$names\n$units\n\"swiglu\",\"2000\",\"40\"\n"
SAY="$SAY\"rest\",\"9\",\"1\"\n"
fake 'a kernel' 0 '^ *swiglu forward .* swiglu  *1  *0.99[0-9]*  *2 .* 40 .*ok$'
SAY="$names\n$units\n\"swiglu\",\"2 s\",\"40\"\n"
fake 'a damaged number' 1 "'2 s' of gpu__time_duration.sum is no number"
SAY="$names\n$units\n\"swiglu\",\"0\",\"40\"\n"
fake 'no times' 1 '^kernel_counters: ncu told no times$'
check 'which one line says' [ "$(wc -l <"$out/said")" = 1 ]
SAY='==ERROR== ERR_NVGPUCTRPERM - The user does not have permission\n' END=1
fake 'no permission' 1 'only an administrator read counters (ERR_NVGPUCTRPERM)'
SAY='==ERROR== LibraryNotLoaded\n'
fake 'another error' 1 'ncu: LibraryNotLoaded (ncu ended with 1)'
SAY='' END=9
fake 'silence' 1 'printed no table of kernels (ncu ended with 9)'
counters 'no ncu' 1 "there is no '$out/none'" --ncu "$out/none"
counters 'a CPU' 0 'attention forward .* wgmma .*skipped: only a GPU' --wide
counters 'an unknown case' 2 "no case is named 'swiglu'" --case swiglu
SAY="$names\n$units\n\"swiglu\",\"2000\",\"40\"\n" END=1
fake 'nothing is recorded of a failure' 1 'ncu failed' --out "$out/t/t.tsv"
if [ -e "$out/t/t.tsv" ]; then
	echo 'not ok - a table was written'; failed=1
fi
expect 'launch a case' 0 'launched 3 times' kernel_counters --launch \
	'rmsnorm forward:fused' cpu
expect 'a case of a GPU' 1 'wgmma has no kernel of cpu' kernel_counters \
	--launch 'attention forward:wgmma' cpu
expect 'launch an unknown case' 2 'no case is named' kernel_counters --launch x \
	cpu
exit $failed
