#!/usr/bin/env bash
# test_dry.sh: dry runs against the peaks that GPUs and CPUs have held
. tests/experiments/expect.sh

agrees() { # agrees TABLE PROGRAM ARGUMENTS...: all rows of it, run dry
	local table=$1 program=${BUILD:-build}/$2 older=1 digest
	digest=build/digest/$2.$(sed -n 's/^# backend: //p' "$table")
	[ ! -s "$digest" ] || ! grep -q "^# digest: $(cat "$digest")" "$table" ||
		older=0
	shift 2
	"$program" --dry --wide "$@" >"$out/dry" 2>"$out/said" || return 1
	awk -v part=0.002 -v older=$older '/^#/ { next }
	FNR == NR && !n { n = split($0, dry); next }
	FNR == NR { last = NR
		for (i = 1; i <= n; i++) cell[NR, dry[i]] = $i
		next }
	!m { m = split($0, name, "\t"); next }
	{ split($0, has, "\t")
		for (i = 1; i <= m; i++) is[name[i]] = has[i]
		if (is["status"] != "ok" || older && is["fusion"] == "eager" &&
			is["precision"] != "fp32") next
		found += finds(); rows++ }
	function same(r, i) {
		for (i = 1; i <= m && name[i] !~ /MiB|_ms/; i++)
			if (cell[r, name[i]] != has[i]) return 0
		return 1
	}
	function finds(r, i, d, peak) {
		for (r = 1; r <= last && !same(r); r++);
		if (r > last) return 0
		for (i = 1; i <= m; i++) if (name[i] == "peak_MiB") peak = has[i]
		for (i = 1; i <= m; i++) {
			if (name[i] !~ wanted || has[i] == "-") continue
			d = cell[r, name[i]] - has[i]
			if (!((r, name[i]) in cell) || d > part * peak || -d > part * peak)
				return 0
		}
		return 1
	}
	END { exit !(rows && found == rows) }' \
	wanted='^(peak|parameter|gradient|optimizer|activation|temporary)_MiB$' \
		"$out/dry" "$table"
}
check 'memory_profiling-estimate' agrees \
	tables/h100/memory_profiling-estimate.tsv memory_profiling --sweep estimate
check 'memory_profiling' agrees tables/h100/memory_profiling.tsv \
	memory_profiling
check 'gradient_checkpointing' agrees tables/h100/gradient_checkpointing.tsv \
	gradient_checkpointing
for state in fsdp_accounting optimizer_state_sharding_accounting; do
	check "$state, two GPUs" agrees tables/h200x2/$state.tsv $state
	check "$state on a CPU" agrees tables/cpu/$state.tsv $state --device cpu
done
check 'fsdp_accounting, four GPUs' agrees tables/h200x4/fsdp_accounting.tsv \
	fsdp_accounting --ranks 4
recorded() { # recorded TABLE: strategy, precision, deterministic, peak of rows
	awk -F'\t' '/^#/ { next } !n { while (++n <= NF) at[$n] = n; next }
		$at["status"] == "ok" { print $at["strategy"], $at["precision"],
			$at["deterministic"], $at["peak_MiB"] }' "$1"
}
for machine in h100x2 h200x2; do
	while read -r strategy precision deterministic peak; do
		"${BUILD:-build}/leaderboard" --dry --wide --strategy "$strategy" \
			--precision "$precision" --memory-MiB "$((${peak%.*} + 1))" \
			>"$out/dry" </dev/null
		said=$(awk -v want="$deterministic" '/^#/ { next }
			!n { while (++n <= NF) at[$n] = n; next }
			$at["deterministic"] == want { print $at["peak_MiB"] }' "$out/dry")
		check "$machine, $strategy, $precision: $said, held $peak" awk \
			-v a="$said" -v b="$peak" 'BEGIN {
				exit !(a > 0.998*b && a < 1.002*b) }'
	done < <(recorded "tables/$machine/leaderboard.tsv")
done

expect 'any number of ranks' 0 '1000 .* ok$' fsdp_accounting --dry --size 10B \
	--ranks 1000 --strategy fsdp --prefetch 1 --wide
expect 'a sweep that times' 2 "sweep 'timeline' has no dry run" \
	fsdp_accounting --dry --sweep timeline
expect 'no table is written' 2 'takes no --out' fsdp_accounting --dry \
	--out "$out/t.tsv"
expect 'a program that has none' 2 'unknown option --dry' peaks --dry
exit $failed
