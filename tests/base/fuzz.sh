#!/usr/bin/env bash
# fuzz.sh SECONDS: searches for a file that breaks the reader of safetensors
set -euo pipefail
command -v clang >/dev/null || { echo "fuzz: there is no clang"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/corpus"
cp tests/golden/tiny.safetensors "$work/corpus"
head -c 9000 tests/golden/tiny.safetensors >"$work/corpus/short"
printf '\x02\0\0\0\0\0\0\0{}' >"$work/corpus/empty"
header='{"__metadata__":{"\u00e9\n":"\ud83d\ude00\\\u0000"},"f\t":{"dtype"'
header+=':"F6_E2M3","of":[{"a":-1.5e+3},[true,null,"\/"]],"shape":[1,1,1,1,1,1,1,'
header+='1,4],"data_offsets":[0,3]}}'
printf "\\x$(printf %x ${#header})\\0\\0\\0\\0\\0\\0\\0%sabc" "$header" \
	>"$work/corpus/rare"
cat >"$work/fuzz.c" <<'END'
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "base/error.h"
#include "base/file.c"
#include "base/grow.c"
#include "base/json.c"
#include "base/safetensors.h"

static jmp_buf refused;
static const uint8_t *image;
static void *copy;
const char *program_name = "fuzz";

void usage_error(const char *format, ...)
{
	longjmp(refused, 1);
}
void die(const char *format, ...) { (void)format; abort(); }
void *need(void *p) { return p ? p : (abort(), p); }

static void *copy_of_map(size_t n)
{
	return copy = memcpy(malloc(n), image, n);
}
#define mmap(at, n, ...) copy_of_map(n)
#define munmap(at, n) ((void)(at))
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static char path[] = "file.XXXXXX";
	static int file = -1;
	if (file < 0 && (file = mkstemp(path)) < 0)
		abort();
	if (ftruncate(file, (off_t)n) != 0)
		abort();
	image = data;
	copy = NULL;
	if (setjmp(refused) == 0) {
		TensorFile *t = tensorfile_open(path);
		for (int i = 0; i < tensorfile_count(t); i++) {
			const TensorView *v = tensorfile_at(t, i);
			if (tensorfile_find(t, v->name) != v)
				abort();
			const char *digits = strpbrk(v->dtype, "123456789");
			size_t bits = digits ? strtoul(digits, NULL, 10) : 8;
			volatile char last = v->count
				? ((const char *)v->data)[v->count * bits / 8 - 1] : 0;
			(void)last;
		}
		tensorfile_close(&t);
	}
	free(copy);
	close_range(file + 1, ~0U, 0);      /* what a refusal left open */
	return 0;
}
END
clang -std=c11 -D_GNU_SOURCE= -g -O1 -fsanitize=fuzzer,address,undefined \
	-fno-sanitize-recover=undefined -Isrc -include "$work/fuzz.c" \
	src/base/safetensors.c -o "$work/fuzz"
mkdir -p build
kept=$PWD/build/
cd "$work"
# a refusal leaks what had been read: it ends the program otherwise
ASAN_OPTIONS=detect_leaks=0 ./fuzz -max_total_time="$1" -rss_limit_mb=8192 \
	-artifact_prefix="$kept" corpus 2>&1 | tail -n 4
