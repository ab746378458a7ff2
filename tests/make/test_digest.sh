#!/usr/bin/env bash
# test_digest.sh: what changes the digest of a program, and what does not
. tests/make/scratch.sh
mkdir -p src/experiments src/ops/cpu src/ops/cuda src/base src/make
cp "$root"/src/make/{digest.sh,items.awk,digest.awk} src/make
digest() { bash src/make/digest.sh && cat "build/digest/$1.$2"; }
guard() { printf '#ifndef %s\n#define %s\n' "$1" "$1"; cat; echo '#endif'; }
files() { cut -d ' ' -f 2 "build/code/$1.$2" | sort -u | tr '\n' ' '; }
is() { [ "$1" = "$2" ]; }
cat >src/base/table.h <<'END'
#ifndef TABLE_H
#define TABLE_H
enum { MOST = 4, LEAST };
typedef struct Table { int n, sum; struct Table *next; } Table;
int table(void);
#endif
END
cat >src/base/table.c <<'END'
#include "base/table.h"
#define TWICE(x) ((x) * 2)
static const int start = 3;
static int first(const Table *t) { return t->n - t->sum; }
static int second(const Table *t) { return t->sum - t->n; }
int table(void)
{
	Table one = { .n = start, .sum = TWICE(MOST) }, *p = &one;
	int sum = first(p);
	for (int i = 0; i < LEAST; i++)
		sum += i * second(&one);
	return sum;
}
END
printf 'int op(int x);\n#define NAME(x) x\n#include "ops/list.h"\n' |
	guard OPS_H >src/ops/ops.h
printf 'OPERATION(%s, (int))\n' fill fused_fill softmax >src/ops/list.h
echo '#define cpu_fused_fill cpu_fill' | guard CPU_H >src/ops/cpu/cpu.h
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
unchanged 'a comment within a line' src/ops/cpu/op.c 's,int x,int /*"*/ /**/ x,'
unchanged 'a long comment' src/ops/cpu/op.c \
	'1s,$,\n/*\n\n\n\n\n\n\n\n\n*/,'
unchanged 'indentation' src/ops/cpu/op.c 's/return/\n\t\treturn/'
unchanged 'blanks around operators' src/ops/cpu/op.c 's/2 \* x/2*x/'
unchanged 'a line joined by a backslash' src/ops/ops.h 's/(x) x/(x) \\\n x/'
edit src/ops/cuda/op.cu 's/1/2/'
check 'a kernel changes nothing on the CPU' same
check 'a kernel counts on the GPU' not is "$(digest one cuda)" "$gpu"
cp saved src/ops/cuda/op.cu
renamed() { # renamed KIND OLD NEW
	cp -r src src.saved
	find src -name '*.[ch]' -exec sed -i "s/\\b$2\\b/$3/g" {} +
	check "another name of a $1 changes nothing" same
	rm -r src
	mv src.saved src
}
renamed 'static function' first url
renamed 'public function' op double_it
renamed 'local variable' p here
renamed 'loop variable' i at
renamed 'global variable' start begin
renamed 'type' Table Row
renamed 'member' sum total
renamed 'enumerator' LEAST FEWEST
renamed 'macro' TWICE DOUBLED
renamed 'parameter of a macro' x argument
renamed 'guard' TABLE_H BASE_TABLE_H
renamed 'operation' '\(cpu_\|\)fused_fill' '\1fill_fused'
cp -r src src.saved
mv src/base/table.h src/base/row.h
mv src/base/table.c src/base/line.c
find src -name '*.[ch]' -exec sed -i 's,base/table.h,base/row.h,' {} +
check 'other names of files change nothing' same
rm -r src && cp -r src.saved src
sed -i '/^static int first/d' src/base/table.c
sed -i 's/^int table.*/&\nint first(const Table *t);/' src/base/table.h
printf '%s\n' '#include "base/table.h"' \
	'int first(const Table *t) { return t->n - t->sum; }' >src/base/first.c
check 'a function in a file of its own changes nothing' same
rm -r src && mv src.saved src
edit src/base/table.c '/^static int first/{h;d};/^static int second/G'
check 'another order of functions changes nothing' same
cp saved src/base/table.c
edit src/ops/list.h 's|.*(fill, .*|#include "ops/list_fills.h"|; /fused_fill/d'
grep fill saved >src/ops/list_fills.h
check 'a list in parts changes nothing' same
rm src/ops/list_fills.h && cp saved src/ops/list.h
changed() { # changed NAME FILE SCRIPT
	edit "$2" "$3"
	check "$1 counts" not same
	check "$1 leaves the other program" other_same
	cp saved "$2"
}
changed 'a constant' src/ops/cpu/op.c 's/2 \* x/3 * x/'
changed 'what follows two slashes in a string' src/ops/cpu/op.c 's/a  b/a  c/'
changed 'a blank in a string' src/ops/cpu/op.c 's/a  b/a b/'
changed 'a blank between two signs' src/ops/cpu/op.c 's/+ +/++/'
changed 'an operation that it names' src/ops/cpu/fill.c 's/x++/x--/'
changed 'another operation' src/experiments/one.c 's/fused_fill/softmax/'
edit src/ops/cpu/op.c 's/2 \*/softmax(x) +/'
digest one cpu >said
check 'one that a source of it names belongs' \
	eval 'files one cpu | grep -q softmax'
cp saved src/ops/cpu/op.c
changed 'a type' src/ops/cpu/op.c 's/int x/long x/'
changed 'a blank that ends the name of a macro' src/ops/ops.h 's/NAME(/NAME (/'
both_change() { # both_change NAME SCRIPT: in the file that both programs have
	edit src/base/table.c "$2"
	check "$1 counts" not same
	check "$1 counts for the other" not other_same
	cp saved src/base/table.c
}
both_change 'a literal' 's/3/4/'
both_change 'an operator' 's/+= i/-= i/'
both_change 'the other function' 's/first(p)/second(p)/'
both_change 'the other member' 's/t->sum - t->n/t->sum - t->sum/'
both_change 'the other enumerator' 's/TWICE(MOST)/TWICE(LEAST)/'
both_change 'the order of two statements' '/sum = first/{h;d};/sum += i/{G}'
both_change 'a condition' 's/i < LEAST/i <= LEAST/'
both_change 'an address' 's/first(p)/first(\&one)/'
both_change 'a cast' 's/return sum;/return (char)sum;/'
both_change 'a type without a sign' 's/int sum/unsigned sum/'
check 'and all is as it was' same
code=$root/build/code
check 'the bandwidth of a copy has sources' test -s "$code/peaks.cuda"
check 'it is free of the embedding' not grep -q embedding.cu "$code/peaks.cuda"
check 'naive attention is not' \
	grep -q ops/formulas.c "$code/pytorch_attention.cuda"
rm src/ops/cpu/op.c
check 'a source that is gone counts' not same
mkdir no
printf '#!/bin/sh\nexit 1\n' | tee no/gcc no/cc >no/clang
chmod +x no/*
touch src/base/*
check 'no compiler is needed' eval 'PATH=$PWD/no:$PATH other_same'
exit $failed
