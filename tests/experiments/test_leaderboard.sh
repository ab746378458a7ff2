#!/usr/bin/env bash
# test_leaderboard.sh: leaderboard: options, tiny runs, files of algorithms
. tests/experiments/expect.sh

expect 'help' 0 '^ *--head-tokens' leaderboard --help
expect 'unknown option' 2 'unknown option --vocab' leaderboard --vocab 7
expect 'no fp16' 2 'fp16: expected fp32, bf16, bf16-stream' leaderboard \
	--device cpu --precision fp16
expect 'no copies' 2 'expected zero2 or fsdp' leaderboard --device cpu \
	--strategy ddp
expect 'heads that do not divide' 2 'expected a multiple of 6' leaderboard \
	--device cpu --heads 3
expect 'sequences that do not divide' 2 'expected a multiple of --ranks' \
	leaderboard --device cpu --batch 3
expect 'a file that is none' 2 'not a file of matmuls' leaderboard \
	--device cpu --gemms README.md
expect 'a file in no folder' 2 'cannot' leaderboard --device cpu \
	--gemms /proc/none/gemms

tiny='--device cpu --vocabulary 211 --d-model 24 --d-ff 40 --layers 3
	--heads 3 --context 20 --warmup-s 0 --measured-s 0.01'
table() { # table ARGUMENTS...
	"${BUILD:-build}/leaderboard" $tiny --out "$out/table.tsv" --force "$@" \
		>"$out/said" 2>&1
}
near() { # near COLUMN COLUMN PART: in each row
	paste <(column "$1") <(column "$2") | awk -v part="$3" '{ n++
		d = $1 - $2 } !(d*d <= part*part*$2*$2) { bad = 1 }
		END { exit bad || !n }'
}
loss_is() { # loss_is X: the first loss of each row, to a millionth
	column first_loss | awk -v want="$1" '{ n++; d = $1 - want }
		!(d*d <= 1e-12*want*want) { bad = 1 } END { exit bad || !n }'
}
check 'steps of all strategies' table --precision fp32
check 'their peaks' near peak_MiB derived_MiB 0.005
first=$(column first_loss | head -n 1)
check 'one loss' loss_is "$first"
strategies() {
	[ "$(column strategy | sort -u | xargs)" = 'fsdp zero2' ]
}
check 'both strategies' strategies
check 'chunks that do not divide' table --precision fp32 --head-tokens 7
check 'their loss' loss_is "$first"
check 'blocks that are run again' table --precision fp32 --recompute 1 \
	--strategy fsdp
check 'their loss too' loss_is "$first"
check 'their peak' near peak_MiB derived_MiB 0.005
long='--precision fp32 --strategy zero2 --context 800'
check 'enough memory' table $long
first=$(column first_loss)
check 'little memory' table $long --memory-MiB 1
check 'its loss' loss_is "$first"
check 'its peak' near peak_MiB derived_MiB 0.005
dropped() {
	[ "$(column drop_gate_up) $(column drop_qkv)" = '3 3' ]
}
check 'all is dropped' dropped
check 'an update behind the backward pass' table $long --update late
check 'its peak too' near peak_MiB derived_MiB 0.005
check 'its loss as well' loss_is "$first"
check 'all precisions' table --strategy zero2
check 'their peaks too' near peak_MiB derived_MiB 0.005
check 'bf16' table --precision bf16 --strategy zero2
check 'one rank' table --ranks 1 --batch 1

parts() { # parts ROWS
	[ "$(column part | wc -l)" = "$1" ]
}
check 'a probe' table --sweep probe --head-tokens 7
check 'its parts' parts 15
check 'a probe with a file' table --sweep probe --gemms "$out/gemms"
check 'both sources of algorithms' parts 30
exit $failed
