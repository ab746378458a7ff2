#!/usr/bin/env bash
# test_cost_model.sh: cost_model: known answers, other machines, nonsense
. tests/experiments/expect.sh

expect 'help' 0 '^ *--near-GBps' cost_model --help
machine='--TFLOPs 1000 --memory-GBps 4000 --memory-GB 80 --near-GBps 400 '
machine+='--far-GBps 50 --node 8'
# NAME|PATTERN|ARGUMENTS; rows are printed with blanks between cells
first='Llama 3 Grattafiori et al. 2024 Table 4 fitted Llama 3 405B H100 8192 64'
first+=' 8 1 16 32 TFLOP/s 430 [0-9.]* 430'
small='regimes --model small'
large='regimes --model 8B'
prime="$small --devices 1000003 --tokens 524288"
whole=optimizer_state_sharding_accounting-times
fp8='--fp8 1.8 --model 405B --hardware H100 --devices 1024 --tokens 16777216'
own='--d-model 128 --d-ff 512 --layers 2 --heads 2 --context 256'
while IFS='|' read -r name pattern arguments; do
	expect "$name" 0 "^ *${pattern// /  *} .*ok\$" cost_model --wide --sweep \
		$arguments
done <<END
constants|cpu call|constants
a step|cpu cpu fsdp_accounting large 32 fp32 4 fsdp 1|steps
more ranks|h200x2 h200x4 $whole xl 512 bf16 4 zero1 0 4 1 0 bf16|steps
memory|cpu large 32 bf16 4 zero2 0 2|memory
the first row is met|$first -*0.0000|public
one device|H200 small 1 1048576 single single 1 1 1|$small
7 devices|H200 small 7 7168 [^ ]* [^ ]* [17]|$small --devices 7 --tokens 7168
a prime number of devices|H200 small 1000003 524288 none - -|$prime
less than a sequence|H200 8B 8 4096 none|$large --devices 8 --tokens 4096
part of a sequence|H200 8B 1 8193 none|$large --devices 1 --tokens 8193
too large for a device|H100 405B 1 4194304 none|regimes --model 405B --devices 1
another machine|custom xl 8 262144|regimes --model xl --devices 8 $machine
another model|H100 custom 4 1024|regimes $own --devices 4 --tokens 1024
FP8 without FSDP|H100 405B 1024 16777216 zero1|regimes $fp8
scaling of one number|B200 xl weak 16 131072|scaling --model xl --devices 16
hiding on one device|TPU v5p xl zero1 1 1 1 0|hiding --model xl --devices 1
END

# a faster link, more memory and a larger batch never make a device slower
rate() { # rate OPTIONS...: tokens a second of a device
	"${BUILD:-build}/cost_model" --wide --sweep $large --devices 64 "$@" |
		awk '/ok$/ { for (i = 1; i <= NF; i++) if ($i == "yes" || $i == "no")
			print $(i + 2) }'
}
slower() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a > 0 && a <= b * 1.0001) }'; }
usual=$(rate --tokens 4194304 $machine)
check 'a slower link' slower \
	"$(rate --tokens 4194304 ${machine/far-GBps 50/far-GBps 5})" "$usual"
check 'less memory' slower \
	"$(rate --tokens 4194304 ${machine/GB 80/GB 40})" "$usual"
check 'fewer tokens' slower "$(rate --tokens 1048576 $machine)" "$usual"

# a prediction counts for steps that were measured after it, and for no others
folder=$out/h200x2
mkdir "$folder"
cp tables/h200x2/*.tsv "$folder"
rm "$folder/fsdp_accounting.tsv" "$folder/cost_model-predicted.tsv"
predict() {
	"${BUILD:-build}/cost_model" --tables "$folder" --sweep predicted \
		--out "$folder/cost_model-predicted.tsv" >/dev/null
}
measured_on() { # measured_on DATE: a table of that date, with its checksum
	local byte sum=$((0xcbf29ce484222325))
	sed "1d; s/^# date: .*/# date: $1/" tables/h200x2/fsdp_accounting.tsv \
		>"$out/table"
	for byte in $(od -An -v -tu1 "$out/table"); do
		sum=$(((sum ^ byte) * 0x100000001b3))
	done
	printf '# checksum: %016x\n' $sum | cat - "$out/table" \
		>"$folder/fsdp_accounting.tsv"
}
roles() { # roles DATE: how many steps of FSDP were predicted, if measured then
	measured_on "$1"
	"${BUILD:-build}/cost_model" --tables "$folder" --sweep steps --wide |
		grep -c ' fsdp_accounting .* fsdp .* predicted ' || true
}
seen_there() { # seen_there PATTERN: how many steps of the larger host are so
	"${BUILD:-build}/cost_model" --sweep steps --wide |
		grep -c " h200x4 .* tensor_parallel .* $1" || true
}
check 'a larger host adds steps of more ranks' \
	[ "$(seen_there 'bf16 *4 ')" = 15 ]
check 'and of no fewer' [ "$(seen_there 'bf16 *2 ')" = 0 ]
check 'steps are predicted' predict
check 'of what was measured since' [ "$(roles 2999-01-01T00:00:00Z)" -ge 6 ]
check 'not of what was known' [ "$(roles 2001-01-01T00:00:00Z)" = 0 ]
check 'what is measured is not predicted again' [ "$(roles 2001-01-01T00:00:00Z
	rm "$folder/cost_model-predicted.tsv"; predict
	grep -cP '\txl\t512\tbf16\t4\tfsdp\t1\t2\t1\tno\t0\tbf16\t' \
		"$folder/cost_model-predicted.tsv")" = "0
0" ]

echo damaged >>"$folder/cost_model-predicted.tsv"
# NAME|PATTERN|ARGUMENTS: one line and exit status 2
while IFS='|' read -r name pattern arguments; do
	expect "$name" 2 "$pattern" cost_model $arguments
	check "$name: one line" [ "$(wc -l <"$out/said")" = 1 ]
done <<END
no batch|'0' is not an integer in 1..|--sweep regimes --tokens 0
no device|'0' is not an integer in 1..|--sweep scaling --devices 0
half a device|'0.5' is not an integer|--sweep regimes --devices 0.5
half a machine|a machine needs|--sweep regimes --TFLOPs 400
a machine without nodes|a machine needs|--sweep regimes ${machine% --node 8}
a rate below 0|expected 1e-6 to 1e9|--sweep hiding --near-GBps -1
a rate that is no number|'nan' is not a finite|--sweep hiding --near-GBps nan
half a model|a model needs|--sweep regimes --d-model 512
heads that do not divide|expected a divisor|--sweep regimes $own --heads 3
FP8 that is slower|expected 1 to 8|--sweep regimes --fp8 0.5
FP8 under FSDP|for the sweeps regimes|--sweep hiding --fp8 2
an unknown machine|'V100' is not one of|--sweep regimes --hardware V100
an unknown model|'9B' is not one of|--sweep regimes --model 9B
damaged predictions|not those that were written|--tables $folder --sweep steps
no tables beside public runs|no table of training|--tables /nowhere --sweep public
constants proven by them|not those that were written|--tables $folder
no tables|no table of training steps|--tables /nowhere
none beside it|nowhere: no table of training|--tables tables/h200x2+/nowhere
a size that was not measured|no step of 10B|--fit-size 10B --tables tables/cpu
too many folders|more than|--tables a,b,c,d,e,f,g,h,i
maps without a GPU|maps take constants of GPUs|--tables tables/cpu --sweep hiding
END
exit $failed
