#!/usr/bin/env bash
# test_safetensors_package.sh [FILES]: our reader and writer of safetensors
# against the Python package's, on FILES files with random edits
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
has_package() { python3 -c 'import safetensors.numpy' 2>/dev/null; }
if ! has_package && [ -n "${CI-}" ]; then
	timeout 100 python3 -m pip install -q --target "$work/packages" \
		safetensors==0.8.0 numpy 2>"$work/said" || cat "$work/said"
	export PYTHONPATH=$work/packages
fi
has_package || exit 77
cat >"$work/ours.c" <<'END'
#include <string.h>
#include "base/safetensors.h"
#include "tests/base/exits.h"
#include "tests/base/headers.h"

static void open_file(void *path)
{
	tensorfile_open(path);
}

static void write_case(const char *folder, size_t i)
{
	char path[512];
	uint64_t length = headers[i].nbytes;
	snprintf(path, sizeof path, "%s/%03zu", folder, i);
	FILE *f = fopen(path, "wb");
	fwrite(&length, 8, 1, f);
	fwrite(headers[i].text, 1, length, f);
	for (size_t k = 0; k < headers[i].data_nbytes; k++)
		fputc(7, f);
	fclose(f);
	printf("%s %d %d\n", path, headers[i].status, headers[i].reference);
}

static void list(const char *path, const char *key)
{
	TensorFile *f = tensorfile_open(path);
	const char *value = tensorfile_meta(f, key);
	printf("%s%c", value ? value : "none", 0);
	for (int i = 0; i < tensorfile_count(f); i++) {
		const TensorView *v = tensorfile_at(f, i);
		printf("%s%c%s %d %zu%c", v->name, 0, v->dtype, v->ndim, v->count, 0);
	}
}
static void write_all(const char *path)
{
	char all[160] = "\300\200";
	for (int c = 1; c < 128; c++)
		all[1 + c] = (char)c;
	strcat(all, "\303\251\360\237\230\200");
	tensorfile_write(path, &(TensorView){ .name = all, .dtype = "F32",
		.ndim = 1, .shape = { 2 }, .count = 2, .data = (float[]){ 1, 2 } }, 1,
		(const char *const[]){ all, all, NULL });
}

int main(int n, char **arguments)
{
	if (strcmp(arguments[1], "cases") == 0)
		for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
			write_case(arguments[2], i);
	else if (strcmp(arguments[1], "list") == 0)
		list(arguments[2], arguments[3]);
	else if (strcmp(arguments[1], "write") == 0)
		write_all(arguments[2]);
	else
		for (int i = 2; i < n; i++)
			printf("%d\n", exit_status(open_file, arguments[i]));
}
END
eval "cc=($(sed -n 's/^COMPILER := //p' build/config.mk))"
"${cc[@]}" -std=c11 -D_GNU_SOURCE= -Isrc -I. -o "$work/ours" "$work/ours.c" \
	src/base/{safetensors,json,error,file,grow}.c -lm -pthread
cat >"$work/compare.py" <<'END'
import json, os, random, struct, subprocess, sys
import numpy
import safetensors, safetensors.numpy

work, files = sys.argv[1], int(sys.argv[2])

def ours(*arguments):
    return subprocess.run([f"{work}/ours", *arguments], check=True,
        capture_output=True).stdout

def reference(path):
    try:
        with safetensors.safe_open(path, framework="np"):
            return 0
    except safetensors.SafetensorError:
        return 2

def differ(what, path, *verdicts):
    with open(path, "rb") as file:
        sys.exit(f"{what}: {verdicts}: {file.read(2000)}")

os.mkdir(f"{work}/cases")
cases = [line.split() for line in ours("cases", f"{work}/cases").decode()
    .splitlines()]
for path, right, reads in cases:
    if reference(path) != int(reads):
        differ("the package and the table", path, reads)
for length in 100_000_000, 100_000_001:
    with open(f"{work}/long", "wb") as file:
        file.write(struct.pack("<Q", length) + b"{" + b" " * (length - 2) + b"}")
    verdicts = reference(file.name), int(ours("open", file.name))
    if verdicts != (0, 0) and length == 100_000_000 or verdicts[0] != verdicts[1]:
        differ("a long header", file.name, verdicts)
os.remove(f"{work}/long")
print(f"ok - safetensors {safetensors.__version__} on {len(cases)} headers")
every = "".join(map(chr, range(128))) + "\u00e9\U0001f600"
kinds = {"?": "BOOL", "i1": "I8", "u1": "U8", "i2": "I16", "u2": "U16",
    "f2": "F16", "i4": "I32", "u4": "U32", "f4": "F32", "c8": "C64",
    "i8": "I64", "u8": "U64", "f8": "F64"}
tensors = {every + kind: numpy.zeros((1,) * 30 + (3,), kind) for kind in kinds}
safetensors.numpy.save_file(tensors, f"{work}/theirs", {"key": every})
written = every.encode().replace(b"\0", b"\xc0\x80")
value, *listed = ours("list", f"{work}/theirs", "key").split(b"\0")[:-1]
assert value == written
assert dict(zip(listed[::2], listed[1::2])) == {written + kind.encode():
    f"{kinds[kind]} 31 3".encode() for kind in kinds}

ours("write", f"{work}/written")
with safetensors.safe_open(f"{work}/written", framework="np") as file:
    assert file.metadata() == {every: every} and list(file.keys()) == [every]
    assert file.get_tensor(every).tolist() == [1, 2]
print("ok - each reads what the other writes")
class Forbidden(Exception):
    pass

def once(pairs):
    if len(dict(pairs)) < len(pairs):
        raise Forbidden
    return dict(pairs)

def forbidden(path):
    with open(path, "rb") as file:
        image = file.read()
    text = image[8:8 + struct.unpack("<Q", image[:8])[0]].decode()
    try:
        entries = json.loads(text, object_pairs_hook=once)
    except Forbidden:
        return True
    entries.pop("__metadata__", None)
    return text[0] != "{" or not all(isinstance(entry, dict)
        and isinstance(entry["dtype"], str) for entry in entries.values())
words = [b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b"0", b"1", b"-", b".",
    b"e", b" ", b"\n", b"\0", b"\xff", b"\xc3", b"null", b"true", b"\\u0041",
    b"\\ud83d", b"\\ude00", b"\\n", b'"x":1,', b'"x":[{}],', b'"dtype":"F4",',
    b"F4", b"F8_E8M0", b"C64", b"__metadata__", b"1,", b"18446744073709551615"]

def edit(image, draw):
    length = struct.unpack("<Q", image[:8])[0]
    header = bytearray(image[8:8 + length])
    for _ in range(draw.choice((1, 1, 1, 2))):
        at = draw.randrange(len(header) + 1)
        stop = min(len(header), at + draw.choice((0, 0, 1, 2, 5)))
        header[at:stop] = draw.choice((b"", bytes(header[at:stop]) * 2,
            draw.choice(words), draw.choice(words)))
    if draw.randrange(16):
        length = len(header)
    return struct.pack("<Q", length) + bytes(header) + image[8 + length:]
draw = random.Random(1)
seeds = [path for path, _, reads in cases if reads == "0"]
seeds += [f"{work}/written", f"{work}/theirs"] * (len(seeds) // 8)
paths, opened, stricter = [], 0, 0
for i in range(files):
    with open(draw.choice(seeds), "rb") as seed:
        image = edit(seed.read(), draw)
    paths.append(f"{work}/edited{i}")
    with open(paths[-1], "wb") as file:
        file.write(image)
for first in range(0, files, 500):
    some = paths[first:first + 500]
    for path, status in zip(some, map(int, ours("open", *some).split())):
        verdicts = reference(path), status
        opened += verdicts == (0, 0)
        if verdicts[0] != verdicts[1]:
            stricter += 1
            if verdicts != (0, 2) or not forbidden(path):
                differ("an edited file", path, verdicts)
print(f"ok - {files} edited files, of which both open {opened} and the package "
    f"alone {stricter}, against the format's rules")
END
python3 "$work/compare.py" "$work" "${1:-1500}"
