#!/usr/bin/env bash
# test_tangle.sh: what tangling promises
. tests/make/scratch.sh
need_noweb
tangle() { bash "$root/src/make/tangle.sh" "$@" >said 2>&1; }
base() {
	cat <<'END'
{{src/a/kernel.cu}}=
void f(void) {
	{{launch}}
}
{{launch}}=
k<<<1, 2>>>(x);
{{src/a/kernel.cu}}=
void g(void) { }
{{src/run.sh}}=
echo hello
@
END
}
base | document
check 'a good document tangles' tangle writeup.nw
check 'a chunk begins with its name' grep -qx '	// launch' src/a/kernel.cu
check 'tabs and launches survive' grep -qx '	k<<<1, 2>>>(x);' src/a/kernel.cu
check 'a file goes on behind an empty line' \
	test "$(tail -n 3 src/a/kernel.cu)" = $'}\n\nvoid g(void) { }'
check 'scripts can be executed' test -x src/run.sh
check 'the files are listed' grep -qx 'TANGLED += src/a/kernel.cu' \
	build/tangled.mk
mkdir full
ln -s "${NOWEB:-/usr/lib/noweb}/markup" full/markup
printf '#!/bin/sh\n%s/nt "$@" | head -n 3\n' \
	"${NOWEB:-/usr/lib/noweb}" >full/nt
chmod +x full/nt
full_disk() { NOWEB=$PWD/full tangle writeup.nw; }
check 'a file that was not written whole stops it' not full_disk
check 'it says so' grep -q 'could not be written whole' said
check 'and leaves the file as it was' grep -q hello src/run.sh
check 'lines are numbered on demand' tangle --lines writeup.nw numbered
check 'numbers are those of the document' \
	grep -qx '#line 6 "writeup.nw"' numbered/src/a/kernel.cu
theirs="a folder's noweb"
mkdir -p "elsewhere/$theirs" elsewhere/bin
printf '#!/bin/sh\nexit 1\n' >elsewhere/bin/notangle
chmod +x elsewhere/bin/notangle
ln -s "${NOWEB:-/usr/lib/noweb}"/* "elsewhere/$theirs"
cp "$root/Makefile" elsewhere
printf '%s\n' '{{src/make/tangle.sh}}=' 'echo >build/tangled.mk' '@' | document
mv writeup.nw elsewhere
other_noweb() {
	PATH=$PWD/elsewhere/bin:$PATH make -C elsewhere NOWEB="$theirs" tangle \
		>said 2>&1
}
check 'make uses the noweb that it is told' other_noweb
check 'and runs what the document has' \
	grep -qx 'echo >build/tangled.mk' elsewhere/build/tangle.sh
base | document
touch -d '2001-01-01' src/a/kernel.cu src/run.sh
chmod -x src/run.sh
base | sed 's/hello/goodbye/' | document
tangle writeup.nw
check 'a changed file is written' grep -q goodbye src/run.sh
check 'it can be executed again' test -x src/run.sh
check 'an unchanged one keeps its time' test src/a/kernel.cu -ot writeup.nw
mkdir -p tests/golden
touch tests/golden/data src/by-hand
{ base; printf '{{src/new/gone.c}}=\nint x;\n'; } | document
tangle writeup.nw
check 'a new file is written' test -f src/new/gone.c
base | document
tangle writeup.nw
check 'and removed with its chunk' test ! -e src/new
check 'golden data stay' test -f tests/golden/data
check 'a file from elsewhere stays' test -f src/by-hand
bad() { # bad NAME MESSAGE CHUNK...: fails with the message, changes nothing
	local name=$1 message=$2
	shift 2
	{ base | sed 's/hello/never/'; printf '%s\n' "$@"; } | document
	check "$name fails" not tangle writeup.nw
	check "$name is named with its line" grep -q "^$message" said
	check "$name leaves all files" not grep -rq never src
}
bad 'an undefined chunk' 'writeup.nw:13: chunk "nowhere" is used' \
	'{{src/new.c}}=' '{{nowhere}}' '@'
bad 'an unused chunk' 'writeup.nw:12: chunk "an orphan" is defined but' \
	'{{an orphan}}=' 'int x;' '@'
bad 'a file elsewhere' 'writeup.nw:12: chunk "../escape.c" is defined but' \
	'{{../escape.c}}=' 'int x;' '@'
bad 'a stray bracket' 'writeup.nw:12: unescaped' 'if a {{ b'
exit $failed
