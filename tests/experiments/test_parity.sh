#!/usr/bin/env bash
# test_parity.sh: the golden vectors pass; altered or damaged ones do not
parity=${BUILD:-build}/parity
golden=tests/golden/tiny.safetensors
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

expect() { # expect NAME STATUS FILE
	local got=0
	"$parity" "$3" >"$work/said" 2>&1 || got=$?
	if [ $got = "$2" ]; then
		echo "ok - $1"
	else
		echo "not ok - $1: exit $got: $(tail -n 1 "$work/said")"
		failed=1
	fi
}

size=$(stat -c %s $golden)
cp $golden "$work/altered"
chmod u+w "$work/altered"
# the last float of the token embeddings stands before 256 bytes of tokens
printf '\x00\x00\x80\x3f' |
	dd of="$work/altered" bs=1 seek=$((size - 260)) conv=notrunc status=none
head -c $((size - 1)) $golden >"$work/short"
expect 'the golden vectors' 0 $golden
expect 'one weight altered' 1 "$work/altered"
cp $golden "$work/nan"
chmod u+w "$work/nan"
# the first of the reference logits; one NaN among them must not be passed over
printf '\xff\xff\xff\x7f' |
	dd of="$work/nan" bs=1 seek=$((size - 115588)) conv=notrunc status=none
expect 'a NaN in the reference' 1 "$work/nan"
expect 'a file cut short' 2 "$work/short"
expect 'a missing file' 2 "$work/none"
exit $failed
