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
check 'fp8' table --precision fp8
check 'without FSDP' [ "$(column strategy)" = zero2 ]
expect 'nor with it' 2 'gathers no codes, expected zero2' leaderboard \
	--device cpu --precision fp8 --strategy fsdp
check 'its peak in fp8' near peak_MiB derived_MiB 0.005
check 'fp8 beside bf16' table --sweep fp8
check 'both types' [ "$(column precision | xargs)" = 'bf16 fp8' ]
expect 'no third type' 2 'no --precision' leaderboard --device cpu \
	--sweep fp8 --precision fp32
expect 'no probe of fp8' 2 'multiplies in bf16' leaderboard --device cpu \
	--sweep probe --precision fp8
check 'one rank' table --ranks 1 --batch 1
check 'sums as they come' table --precision fp32 --strategy zero2 --atomic
sums_are() { [ "$(column deterministic)" = "$1" ]; }
check 'they are not in order' sums_are no

parts() { # parts ROWS
	[ "$(column part | wc -l)" = "$1" ]
}
check 'a probe' table --sweep probe --head-tokens 7
check 'its parts' parts 15
check 'a probe with a file' table --sweep probe --gemms "$out/gemms"
check 'both sources of algorithms' parts 30

not() { ! "$@"; }
golden=tests/golden/tiny.safetensors
errors() { # errors FILE ARGUMENTS...
	local file=$1
	shift
	table --sweep errors --gold "$file" "$@"
}
within() { # within LEAST MOST: errors of logits and gradients
	paste <(column what) <(column error) | awk -F'\t' -v least="$1" -v most="$2" '
		$1 != "logits" && $1 != "gradient" { next } { n++ }
		!($2 >= least && $2 <= most) { bad = 1 } END { exit bad || n != 6 }'
}
check 'errors in fp32' errors $golden --precision fp32
check 'they are small' within 1e-9 1e-5
check 'errors in bf16' errors $golden --precision bf16-state
check 'they are those of bf16' within 1e-4 0.1
check 'all policies' errors $golden
rows() { [ "$(column what | wc -l)" = "$1" ]; }
check 'a row for each number' rows 48
alter() { # alter FILE OFFSET BYTES: bytes of a copy, from the end of the file
	cp "$1" "$out/altered" && chmod u+w "$out/altered" && printf "$3" |
		dd of="$out/altered" bs=1 seek=$(($(stat -c %s "$1") - $2)) \
		conv=notrunc status=none
}
check 'one weight altered' alter $golden 260 '\x00\x00\x80\x3f'
check 'its errors' errors "$out/altered" --precision fp32
check 'they are large' not within 1e-9 1e-5
check 'a NaN among the logits' alter $golden 115588 '\xff\xff\xff\x7f'
check 'its errors too' errors "$out/altered" --precision fp32
check 'they are no numbers' not within 1e-9 1e-5
expect 'no golden vectors' 2 'header length' leaderboard --sweep errors \
	--gold README.md --device cpu
# errors at most PyTorch's, half as much again; those of updates, in which few
# numbers change sign, four times
beside() {
	paste <(column precision) <(column what) <(column error) \
		<(column pytorch_error) | awk -F'\t' '$2 == "loss" { next } { n++
		most = ($2 == "update" ? 4 : 1.5)*$4 }
		!($3 >= 0 && $3 <= most) { bad = 1 } END { exit bad || n != 44 }'
}
if python3 -c 'import torch' 2>/dev/null; then
	peer() { # peer ARGUMENTS...
		python3 src/experiments/pytorch_golden.py errors --out "$out/gold" \
			--vocabulary 307 --d-model 96 --d-ff 256 --layers 2 --heads 3 \
			--context 24 "$@"
	}
	check 'a file of PyTorch' peer
	expect 'all of it' 0 'all bounds hold' parity --device cpu "$out/gold"
	check 'errors beside PyTorch' errors "$out/gold"
	check 'they are no larger' beside
	check 'a part of its elements' peer --sample 1000
	check 'their errors' errors "$out/gold"
	check 'they are no larger either' beside
	size=$(stat -c %s "$out/gold")
	check 'a part of its weights altered' alter "$out/gold" $((size / 2)) \
		'\x00\x00\x80\x3f'
	check 'errors of that' errors "$out/altered"
	check 'they are larger' not beside
fi
falls() { # of both precisions, over 21 rows
	paste <(column step) <(column loss) | awk '$1 == 0 { first = $2 }
		$1 == 20 { n++; if (!($2 < first - 0.1)) bad = 1 }
		END { exit bad || n != 2 || NR != 42 }'
}
tiny=${tiny/--vocabulary 211/--vocabulary 263}
check 'a text' table --sweep learn --text LICENSE --rate 1e-2
check 'it is learned' falls
expect 'no text' 2 'cannot read' leaderboard --device cpu --sweep learn \
	--text "$out/none"
expect 'too few tokens' 2 '256 different bytes' leaderboard --device cpu \
	--sweep learn --vocabulary 255
exit $failed
