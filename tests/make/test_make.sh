#!/usr/bin/env bash
# test_make.sh: what make does again after which change
. tests/make/scratch.sh
mkdir -p src/make src/experiments src/ops build
cp "$root/Makefile" .
cp "$root/src/make/build.mk" "$root/src/make/configure.sh" src/make
cp "$root"/src/make/{commands,problems,unwritten,items,digest}.awk \
	"$root"/src/make/{attempt,compile,digest,package,site}.sh src/make
cp "$root/build/config.mk" build
printf '## Problem {#%s .problem points=1 tables="%s"}\n' \
	one 'one one-more' two two >writeup.nw
printf 'double op(double x);\n' >src/ops/ops.h
printf '#include "ops/ops.h"\ndouble op(double x) { return 2 * x; }\n' \
	>src/ops/op.c
echo '{ global: op; };' >src/ops/exports.map
cat >src/experiments/one.c <<'END'
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <utime.h>
#include "ops/ops.h"
int main(int argc, char **argv)
{
	FILE *log = fopen("log", "a"), *out = fopen(argv[argc > 2 ? 2 : 0], "w");
	if (!log || !out)
		return 1;
	fprintf(log, "%s\n", argv[2] + 13);
	fprintf(out, "# complete: %s\n", getenv("DIE") ? "no" : "yes");
	fprintf(out, "x\n%g\n", op(1));
	fclose(out);
	poll(NULL, 0, 100); /* ms */
	puts("  end");
	if (getenv("LACKS") && (log = fopen(getenv("UNWRITTEN_LOG"), "a")))
		return fputs("not yet written: f (problem p)\n", log) > 0;
	if (getenv("DIE"))
		return utime(argv[2], &(struct utimbuf){ 0, 0 }) + 1;
	return 0;
}
END
sed '/ops/d; s/op(1)/1.0/' src/experiments/one.c >src/experiments/two.c
make() { command make NOWEB=/nonexistent CFLAGS= "$@" >said 2>&1; }
compiler=$(sed -n 's/^COMPILER := //p' build/config.mk)
mkdir 'a bin'
printf '#!/bin/sh\necho "$*" >>calls\nexec %s "$@"\n' "$compiler" >'a bin/cc'
chmod +x 'a bin/cc'
cat >src/experiments/three.c <<'END'
#include <stdio.h>
int main(void) { return puts(C_COMPILER) < 0; }
END
printf '#!/bin/sh\nexit 1\n' >'a bin/python3'
chmod +x 'a bin/python3'
check 'no PyTorch, no package' eval 'PATH="$work/a bin:$PATH" make \
	build/torch.text && bash src/make/site.sh site build/torch.text |
	grep -q "no PyTorch"'
rm 'a bin/python3'
uses() { # uses COMMAND: it compiled and linked, and is what three prints
	[ "$(build/three)" = "$1" ] && grep -q ' -c ' calls && grep -q try.c calls &&
		grep -q -- '-o build/three' calls && rm calls
}
printf -v own %q "$work/a bin/cc"
check 'a path with a blank' eval 'make CC="a bin/cc" build/three && uses "$own"'
check 'arguments' eval 'make CC="a\\ bin/cc -m64" build/three &&
	grep -q "^-m64 .*three.c" calls && uses "$own -m64"'
check 'a wrapper, from the environment' eval 'CC="env X=1 a\\ bin/cc" make \
	build/three && uses "env X=1 a\\ bin/cc"'
check 'which is remembered' eval 'touch src/experiments/three.c &&
	make build/three && not grep -q try.c calls'
check 'what is no compiler is named' not make CC="a compiler" build/three
check 'by its words' grep -q 'no working C compiler.*(a compiler)' said
check 'nor are unfinished words' not make CC="a 'compiler" build/three
cp "$root/build/config.mk" build
rm -r 'a bin' src/experiments/three.c build/three
mkdir src/ops/cuda
touch src/ops/cuda/k.cu
printf '%s\n' 'HAVE_CUDA := 1' 'DEVICE := cuda' 'ARCH ?= sm_90a' \
	>>build/config.mk
check 'a GPU is used' eval 'make -n all; grep -q HAVE_CUDA said'
check 'CUDA=0 leaves it' eval 'make CUDA=0 -n all; not grep -q HAVE_CUDA said'
normal() { # the last make is that of the normal variant
	grep -q ' build/one' said &&
		not grep -q 'build/debug\|build/asan\|fsanitize\|-O0' said
}
for setting in DEBUG SANITIZE; do
	check "$setting=0 is none" eval "make $setting=0 -n all; normal"
	check "$setting=0 in the environment" eval "$setting=0 make -n all; normal"
done
check 'another counts' eval 'make DEBUG=1 -n all; grep -q build/debug/ said'
cp "$root/build/config.mk" build
rm -r src/ops/cuda
folders() { # is each entry's folder this one?
	local name
	name=$(sed 's/["\\]/\\&/g' <<<"$PWD")
	make compile_commands.json && grep -q two.c compile_commands.json &&
		not grep -vF "{\"directory\": \"$name\", \"file\"" compile_commands.json
}
check 'editors are told this folder' folders
echo 'printf "<%s>" "$@"' >src/make/skeleton.sh
passes() { # passes DIR KEEP: does a script get them as they are?
	make skeleton DIR="$1" KEEP="$2" && grep -qF "<$1><$2>" said
}
check 'a folder of any name' passes "it's \"one\"" 'a b'
for name in 'my box' "o'box" ../box; do
	check 'a machine has a name without blanks' not make -n one MACHINE="$name"
	check 'which is refused' grep -qF "MACHINE=$name: expected a name" said
done
check 'or none' eval 'make -n one MACHINE=; grep -q tables/local/one said'
mkdir bin
printf 'echo 4\n' >bin/nproc
cat >bin/both.sh <<'END'
for name in one two; do
	[[ "$*" != *" src/experiments/$name.c" ]] || touch met-$name
done
[[ "$*" != *" src/experiments/"* ]] || for ((i = 0; i < 40; i++)); do
	[ ! -e met-one ] || [ ! -e met-two ] || break
	sleep 0.05
done
[[ "$*" != *" src/experiments/"* ]] || [ -e met-one -a -e met-two ] || exit 1
exec cc "$@"
END
chmod +x bin/nproc
meet() { rm -f met-*; PATH=$work/bin:$PATH make CC='bash bin/both.sh' "$@" all; }
check 'told -j1, make compiles one at a time' not meet -j1
check 'or else on all cores' meet
cp "$root/build/config.mk" build
runs() { # runs NAMES: make, and these programs ran, in this order
	rm -f log
	make experiments || return 1
	[ "$(cat log 2>/dev/null | tr '\n' ' ')" = "$1" ]
}
in_turn() {
	rm -rf tables log
	make -j4 experiments
	[ "$(grep -o '^  run\|^  end' said | tr -d ' \n')" = runendrunendrunend ]
}
check 'experiments are announced when they start' in_turn
rm -rf tables log build/two
make two one
check 'several goals are made in their order' \
	[ "$(cat log | tr '\n' ' ')" = 'two.tsv one.tsv one-more.tsv ' ]
rm -r tables
check 'at first all runs' runs 'one.tsv one-more.tsv two.tsv '
check 'then nothing' runs ''
touch src/ops/op.c
sed -i '1s,$, // new,' src/ops/op.c
check 'a comment is compiled' eval 'make all; grep -q op.c said'
check 'and runs nothing' runs ''
sed -i 's/2 \* x/3 * x/' src/ops/op.c
check 'a constant runs the programs that use it' runs 'one.tsv one-more.tsv '
echo 'More prose.' >>writeup.nw
check 'prose runs nothing' runs ''
printf '## Tests {#course_tests tables="course_tests"}\n' >>writeup.nw
cp src/experiments/one.c src/experiments/course_tests.c
check "the course's tests are left out" runs ''
export COURSE=there
check 'where they are they run' runs 'course_tests.tsv '
unset COURSE
rm src/experiments/course_tests.c
sed -i '/#course_tests/d' writeup.nw
mkdir tables/far
echo x >tables/far/one.tsv
export MAKEFLAGS='READS_two=$$(RECORDED)'
check 'what another machine recorded runs what reads it' runs 'two.tsv '
check 'once' runs ''
unset MAKEFLAGS
rm -r tables/far
rm src/experiments/two.c
sed -i '/#two/d' writeup.nw
check 'a program can be removed' runs ''
rm -rf build/f32 build/one
exec 8>build/make.lock
flock 8
waiting() { cat said-* 2>/dev/null | grep -c '^make: waiting'; }
for i in 1 2; do
	command make NOWEB=/nonexistent CFLAGS= build/one >said-$i 2>&1 8>&- &
	pids[i]=$!
done
for ((i = 0; i < 100 && $(waiting) < 2; i++)); do sleep 0.1; done
check 'two makes wait' [ "$(waiting)" = 2 ]
within() { MAKE_LOCKED=$(stat -c %d:%i .) make src/ops/op.c; }
check 'a make within make does not' within
exec 8>&-
check 'then one succeeds' wait "${pids[1]}"
check 'and the other' wait "${pids[2]}"
check 'one compiles' [ "$(cat said-* | grep -c 'cc .*op.c')" = 1 ]
mkdir dumb
printf 'echo "flock: 9: No locks available" >&2\nexit 71\n' >dumb/flock
chmod +x dumb/flock
rm -f tables/local/one.tsv
check 'without locks make goes on' eval 'PATH=$work/dumb:$PATH make one'
check 'with one warning' [ "$(grep -c 'no locks here (flock: 9: No' said)" = 1 ]
check 'and makes the table' [ -e tables/local/one.tsv ]
ahead() { # ahead FILES: files of the next hour are made of, or anew
	touch -d '1 hour' "$@"
	timeout 60 make NOWEB=/nonexistent CFLAGS= all >said 2>&1
}
check 'sources of the next hour' ahead writeup.nw src/ops/op.c \
	src/make/configure.sh
check 'are named' grep -q 'the clock was behind the times of 3 files' said
check 'once' eval 'make all; ! grep -q "clock\|cc " said'
sed -i 's/3 \* x/5 * x/' src/ops/op.c
check 'and programs are made anew' eval \
	'ahead build/one build/f32/src/ops/op.o; grep -q "cc .*op.c" said'
sed -i 's/5 \* x/3 * x/' src/ops/op.c
no_byte_changes() {
	git init -q ours && cp "$root"/{.gitattributes,Makefile} ours || return 1
	for kind in nw c sh gp lua tsv svg pdf png st safetensors; do
		printf 'one\ntwo\n' >"ours/x.$kind"
	done
	printf 'one\r\ntwo\n' |
		tee ours/y.pdf ours/y.png ours/y.st >ours/y.safetensors
	git -C ours add . 2>said && git -C ours -c user.name=x -c user.email=x@y \
		commit -qm x && git clone -q -c core.autocrlf=true ours theirs &&
		diff -r -x .git ours theirs
}
if [ -e "$root/.gitattributes" ] && command -v git >/dev/null; then
	check 'git changes no byte' no_byte_changes
fi
sed -i 's/3 \* x/4 * x/' src/ops/op.c
export DIE=1
rm -f log
check 'a failing program stops make' not make one
check 'its table stays' grep -q 'complete: no' tables/local/one.tsv
check 'no other program runs' [ "$(cat log)" = one.tsv ]
check 'unless make is told to go on' eval 'not make -k one && grep -q more log'
unset DIE
check 'and is made again' runs 'one.tsv one-more.tsv '
printf '/*\n\tunwritten("f",\n\t\t"p");\n*/\n' >src/ops/f.c
touch writeup.nw
rm tables/local/*.tsv
check 'what is not written stops no experiment' eval 'LACKS=1 make one'
check 'is named' grep -q 'waits build/one: not yet written: f (problem p)$' said
check 'and leaves no table' [ ! -e tables/local/one.tsv ]
rm src/ops/f.c
touch writeup.nw
check 'which is made later' runs 'one.tsv one-more.tsv '
sed -i 's/double op(double x) {/& oops/' src/ops/op.c
check 'an error stops make' not make all
check 'it names the source' grep -q '^src/ops/op.c:2:' said
if [ -x "${NOWEB:-/usr/lib/noweb}/markup" ]; then
	cp "$root/src/make/tangle.sh" src/make
	for file in src/ops/op.[ch] src/ops/ops.h; do
		[ ! -f $file ] || { echo "{{$file}}="; cat $file; echo '@'; }
	done | document
	bash src/make/compile.sh src/ops/op.c gcc -Isrc -c -o op.o src/ops/op.c \
		>said 2>&1
	check 'or the line of the document' grep -q '^writeup.nw:3:' said
fi
serialised() { # as a compiler of kernels that makes each wgmma wait
	touch "$2"
	echo "ptxas info    : (C7510) wgmma.mma_async is serialized" >&2
}
export -f serialised
check 'a wgmma that waits is an error' not bash src/make/compile.sh k.cu \
	bash -c 'serialised "$@"' nvcc -o k.o 2>said
check 'and leaves nothing' [ ! -e k.o ]
cd "$root" || exit 1
in_help() { sed -n 's/^\([a-z._-]*\):.*## .*| *\([^|]*\)$/\1 \2/p' Makefile; }
in_table() {
	local cells='[^|]*|[^|]*|[^|]*|'
	sed -n "s/^| .make \([a-z._-]*\)$cells *\([^|;]*[^|; ]\) *[;|].*/\1 \2/p" \
		README.md
}
[ ! -f README.md ] || check 'README and help agree on times' \
	diff <(in_help | sort) <(in_table | sort)
mapped() {
	for folder in src/*/; do
		grep -q "^| .${folder#src/}" src/README.md || return 1
	done
}
check 'the map names every folder' mapped
exit $failed
