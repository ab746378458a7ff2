#!/usr/bin/env bash
# test_digest.sh: what changes the digest of a program, and what does not
. tests/weave/scratch.sh
mkdir -p src/experiments src/ops/cpu src/ops/cuda src/base src/weave
cp "$root"/src/weave/digest.* src/weave
digest() { bash src/weave/digest.sh && cat "build/digest/$1.$2"; }
echo 'int table(void);' >src/base/table.h
printf '#include "base/table.h"\nint table(void) { return 1; }\n' \
	>src/base/table.c
printf 'int op(int x);\n#define NAME(x) x\n#include "ops/list.h"\n' >src/ops/ops.h
echo 'void (*fill)(int), (*fused_fill)(int), (*softmax)(int);' >src/ops/list.h
echo '#define cpu_fused_fill cpu_fill' >src/ops/cpu/cpu.h
for name in fill softmax; do
	printf '#include "ops/ops.h"\nvoid cpu_%s(int x) { x++; }\n' $name \
		>src/ops/cpu/$name.c
done
cat >src/ops/cpu/op.c <<'END'
#include "ops/ops.h"
/* doubles, and "adds" */
int op(int x) { const char *url = "http://a  b"; return 2 * x + +url[0]; }
END
printf '#include "ops/ops.h"\nint gpu(void) { return 1; }\n' >src/ops/cuda/op.cu
printf '#include "base/table.h"\n#include "ops/ops.h"\n%s\n' \
	'int main(void) { fused_fill(1); return op(table()); }' >src/experiments/one.c
printf '#include "base/table.h"\n%s\n' \
	'int main(void) { return table(); }' >src/experiments/two.c
one=$(digest one cpu) two=$(digest two cpu) gpu=$(digest one cuda)
same() { [ "$(digest one cpu)" = "$one" ]; }
other_same() { [ "$(digest two cpu)" = "$two" ]; }
edit() { # edit FILE SCRIPT: changes the file for one case, keeping a copy
	cp "$1" saved
	sed -i "$2" "$1"
}
files() { cut -d ' ' -f 2 "build/code/$1.$2" | tr '\n' ' '; }
is() { [ "$1" = "$2" ]; }
table='src/base/table.c src/base/table.h ' list='src/ops/list.h src/ops/ops.h '
check 'headers and implementations belong' is "$(files one cpu)" \
	"${table}src/experiments/one.c src/ops/cpu/fill.c src/ops/cpu/op.c $list"
check 'cuda files belong on cuda' eval 'files one cuda | grep -q cuda/op.cu'
check 'a program takes no more than it includes' is "$(files two cpu)" \
	"${table}src/experiments/two.c "
check 'it has sixteen digits' eval '[[ $one =~ ^[0-9a-f]{16}$ ]]'
unchanged() { # unchanged NAME FILE SCRIPT
	edit "$2" "$3"
	check "$1 changes nothing" same
	cp saved "$2"
}
unchanged 'an operation that it does not name' src/ops/cpu/softmax.c 's/x++/x--/'
unchanged 'another comment' src/ops/cpu/op.c 's/doubles/triples/'
unchanged 'a comment at the end of a line' src/ops/cpu/op.c 's,$, // "x,'
unchanged 'a comment over two lines' src/ops/cpu/op.c 's,int x,int/*\n*/x,'
unchanged 'a long comment' src/ops/cpu/op.c \
	'1s,$,\n/*\n\n\n\n\n\n\n\n\n*/,'
unchanged 'indentation' src/ops/cpu/op.c 's/return/\n\t\treturn/'
unchanged 'blanks around operators' src/ops/cpu/op.c 's/2 \* x/2*x/'
unchanged 'a line joined by a backslash' src/ops/ops.h 's/(x) x/(x) \\\n x/'
edit src/ops/cuda/op.cu 's/1/2/'
check 'a kernel changes nothing on the CPU' same
check 'a kernel counts on the GPU' not is "$(digest one cuda)" "$gpu"
cp saved src/ops/cuda/op.cu
changed() { # changed NAME FILE SCRIPT
	edit "$2" "$3"
	check "$1 counts" not same
	check "$1 leaves the other program" other_same
	cp saved "$2"
}
changed 'a constant' src/ops/cpu/op.c 's/2 \* x/3 * x/'
changed 'what follows two slashes in a string' src/ops/cpu/op.c 's/a  b/a  c/'
changed 'a blank between two signs' src/ops/cpu/op.c 's/+ +/++/'
changed 'an operation that it names' src/ops/cpu/fill.c 's/x++/x--/'
edit src/ops/cpu/op.c 's/2 \*/softmax(x) +/'
digest one cpu >said
check 'one that a source of it names belongs' \
	eval 'files one cpu | grep -q softmax'
cp saved src/ops/cpu/op.c
changed 'a header' src/ops/ops.h 's/int x/long x/'
changed 'a blank that ends the name of a macro' src/ops/ops.h 's/NAME(/NAME (/'
edit src/base/table.c 's/1/2/'
check 'a common file counts for one' not same
check 'a common file counts for the other' not other_same
cp saved src/base/table.c
check 'and all is as it was' same
code=$root/build/code
check 'the bandwidth of a copy has sources' test -s "$code/peaks.cuda"
check 'it is free of softmax' not grep -q softmax.cu "$code/peaks.cuda"
check 'naive attention is not' \
	grep -q eager_attention.cu "$code/pytorch_attention.cuda"
rm src/ops/cpu/op.c
check 'a source that is gone counts' not same
refused() {
	command() { false; }
	export -f command
	! bash src/weave/digest.sh 2>said && [ "$(wc -l <said)" = 1 ]
}
check 'it takes gcc' refused
exit $failed
