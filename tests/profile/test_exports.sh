#!/usr/bin/env bash
# test_exports.sh: a trace, folded stacks and a snapshot, as readers see them
. tests/experiments/expect.sh
command -v python3 >/dev/null || exit 77
profile() { # profile NAME STATUS PATTERN ARGUMENTS...
	expect "$1" "$2" "$3" nsys_profile --size small --context 64 "${@:4}"
}
profile 'a step with all exports' 0 '^small .*ok$' --fusion fused \
	--trace "$out/trace" --snapshot "$out/snapshot" --folded "$out/folded"
profile 'the same exports anew' 0 '^small .*ok$' --fusion fused \
	--trace "$out/trace" --snapshot "$out/snapshot" --folded "$out/folded"
profile 'the fourth step of each way' 0 '^small .*ok$' --fusion fused \
	--warmup 3 --snapshot "$out/fourth"
profile 'one for another' 2 'something else' --trace "$out/snapshot"
cp "$out/snapshot" "$out/other"
profile 'unless it is forced' 0 'ok$' --fusion fused --trace "$out/other" \
	--force
check 'and is then a trace' grep -q '^{"displayTimeUnit"' "$out/other"
profile 'a trace where no file can be' 2 'cannot' --trace /proc/none/x
profile 'an unknown sweep' 2 'is not one of' --sweep none
read_with_python() { # read_with_python SCRIPT
	python3 -c "import json, pickle, sys
out = sys.argv[1]
trace = json.load(open(out + '/trace'))['traceEvents']
snapshot = pickle.load(open(out + '/snapshot', 'rb'))
spans = [e for e in trace if e['ph'] == 'X']
events = snapshot['device_traces'][0]
$1" "$out"
}
check 'the trace has the ranges of a step' read_with_python '
names = [e["name"] for e in spans]
assert names.count("forward") == names.count("backward") == 1
assert names.count("layer") == names.count("flash") > 0
assert all(e["dur"] >= 0 for e in spans)'
check 'the snapshot frees only what is there' read_with_python '
used = {b["address"] for s in snapshot["segments"] for b in s["blocks"]
	if b["state"] == "active_allocated"}
for e in reversed(events):
	if e["action"] == "alloc":
		used.remove(e["addr"])
	else:
		assert e["addr"] not in used
		used.add(e["addr"])
assert all(f["name"] and f["filename"] for e in events for f in e["frames"])'
check 'the snapshot has one step, however many were taken' read_with_python '
fourth = pickle.load(open(out + "/fourth", "rb"))["device_traces"][0]
assert len(events) == len(fourth) > 0'
check 'trace and snapshot agree on the bytes in use' read_with_python '
last = [e for e in trace if e["ph"] == "C"][-1]["args"]
assert sum(last.values()) == sum(s["active_size"] for s in snapshot["segments"])'
check 'folded stacks are names and a number' \
	grep -q '^step;forward;layer;.* [0-9][0-9]*$' "$out/folded"
if python3 -c 'import torch' 2>/dev/null; then
	for plot in trace_plot segment_plot; do
		check "PyTorch draws the snapshot: $plot" python3 -m \
			torch.cuda._memory_viz "$plot" "$out/snapshot" -o "$out/html"
	done
fi
exit $failed
