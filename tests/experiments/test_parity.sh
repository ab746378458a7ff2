#!/usr/bin/env bash
# test_parity.sh: the golden vectors pass; altered or damaged ones do not
. tests/experiments/expect.sh
golden=tests/golden/tiny.safetensors
size=$(stat -c %s $golden)
cp $golden "$out/altered"
chmod u+w "$out/altered"
# the last float of the token embeddings stands before 256 bytes of tokens
printf '\x00\x00\x80\x3f' |
	dd of="$out/altered" bs=1 seek=$((size - 260)) conv=notrunc status=none
head -c $((size - 1)) $golden >"$out/short"
expect 'the golden vectors' 0 'all bounds hold' parity $golden
expect 'compiled at run time' 0 'all bounds hold' parity $golden --fusion jit \
	--device cpu
expect 'what was fused' 0 '^closed: a matmul follows' parity $golden \
	--fusion jit --explain --device cpu
for fusion in eager fused; do
	expect "FP8, $fusion" 0 'all bounds hold' parity $golden --device cpu \
		--precision fp8 --fusion $fusion
done
expect 'no FP8 for the JIT' 2 'no operations in FP8' parity $golden \
	--device cpu --precision fp8 --fusion jit
expect 'one weight altered' 1 '^FAILED' parity "$out/altered"
cp $golden "$out/nan"
chmod u+w "$out/nan"
# the first of the reference logits; one NaN among them must not be passed over
printf '\xff\xff\xff\x7f' |
	dd of="$out/nan" bs=1 seek=$((size - 115588)) conv=notrunc status=none
expect 'a NaN in the reference' 1 '^FAILED' parity "$out/nan"
cp $golden "$out/gradient"
chmod u+w "$out/gradient"
# the first gradient of the token embeddings; no later tensor is named for it
printf '\xff\xff\xff\x7f' |
	dd of="$out/gradient" bs=1 seek=$((size - 214532)) conv=notrunc status=none
expect 'a NaN in a gradient' 1 'nan .*FAILED  *token_embeddings' parity \
	"$out/gradient"
expect 'a file cut short' 2 'ends inside the file' parity "$out/short"
expect 'a missing file' 2 'cannot read' parity "$out/none"
mkfifo "$out/fifo"
expect 'a FIFO' 2 'expected a safetensors file' parity "$out/fifo"
expect 'a directory' 2 'expected a safetensors file' parity "$out"
expect 'options behind the file' 0 'all bounds hold' parity $golden --device cpu
expect 'a file behind --' 2 'cannot read --device' parity --device cpu -- \
	--device
exit $failed
