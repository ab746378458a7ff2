#!/usr/bin/env bash
# test_flash_benchmarking.sh: flash_benchmarking and pytorch_attention: options
# and tiny runs
. tests/experiments/expect.sh

for program in flash_benchmarking pytorch_attention; do
	expect "$program --help" 0 '^ *--d ' $program --help
	expect "$program: unknown option" 2 'unknown option --sise' $program \
		--sise small
	expect "$program: no queries" 2 '1..1048576' $program --n 0
	expect "$program: too many sequences" 2 '1..1024' $program --batch 1025
	expect "$program: unknown sweep" 2 'is not one of' $program --sweep steps
done
tiny='--device cpu --precision fp32 --n 33 --d 16'
variants=$("${BUILD:-build}/flash_benchmarking" --help |
	sed -n 's/^ *--variant \([^ ]*\).*/\1/p')
check 'variants are named' eval '[[ $variants = tiled\|*\|naive ]]'
for variant in ${variants//|/ }; do
	case $variant in
	naive|tiled) status=' ok$';;
	*) status='skipped: no kernel';;
	esac
	expect "$variant" 0 "^ *fp32 .* $variant .*$status" flash_benchmarking \
		$tiny --runs 1 --variant $variant
done
expect 'an unknown variant' 2 'tiled|.*|split_kv|.*-atomic|naive' \
	flash_benchmarking --variant warp
check 'a grid of shapes' "${BUILD:-build}/flash_benchmarking" --device cpu \
	--sweep grid --out "$out/table.tsv"
check 'the grid is complete' grep -q '^# complete: yes' "$out/table.tsv"
check 'all of its rows are ok' [ "$(column status | sort | uniq -c |
	tr -s ' ')" = ' 12 ok' ]
check 'with and without the mask' [ "$(column causal | sort -u |
	tr '\n' ' ')" = 'no yes ' ]
check 'by the kernel of a CPU' [ "$(column variant | sort -u)" = tiled ]
check 'every number is there' [ "$(grep -c '	-	' "$out/table.tsv")" = 0 ]
calls() { "${BUILD:-build}/flash_benchmarking" --device cpu --sweep calls \
	--out "$out/table.tsv"; }
rows_are() { # rows_are COLUMN 'VALUE ...': of all rows, sorted
	check "calls from PyTorch: $1" [ "$2" = "$(column "$1" | sort -u |
		paste -s -d ' ')" ]
}
rm "$out/table.tsv"
check 'calls from PyTorch' calls
rows_are op 'attention rmsnorm'
rows_are tensors cpu
if python3 -c 'import torch' 2>/dev/null \
		&& [ -d "${BUILD:-build}/site/libsystems" ]; then
	rows_are impl 'ours pytorch'
	rows_are status ok
	check 'all times are there' [ "$(grep -c '	-	' "$out/table.tsv")" = 0 ]
	rm "$out/table.tsv"
	mkdir "$out/alone"
	cp "${BUILD:-build}/flash_benchmarking" "$out/alone"
	echo 'raise ImportError("no package")' >"$out/alone/libsystems.py"
	BUILD=$out/alone PYTHONPATH=$out/alone \
		check 'calls without the package' calls
fi
command -v python3 >/dev/null && code=1 || code=127
rows_are status "skipped: PyTorch could not run (exit $code)"
check 'and none has a time' [ "$(tail -n 1 "$out/table.tsv" | wc -w)" = \
	"$(tail -n 1 "$out/table.tsv" | cut -f 1-6 | wc -w)" ]
expect 'two passes of naive attention' 0 '^ *fp32 .* backward .* ok$' \
	pytorch_attention --device cpu --n 33 --d 16 --batch 2 --passes 2
exit $failed
