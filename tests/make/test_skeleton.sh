#!/usr/bin/env bash
# test_skeleton.sh: what an assignment leaves out, and what it keeps
. tests/make/scratch.sh
need_noweb
document <<'END'
# Notes {#notes}
## Problem (one) {#one .problem points=3 tests="tests/t"}
Before [](#tbl:x), and [](#one).

[]{.solves problem="one two"}
{{work}}=
typedef struct Pair {
	int a, b;
} Pair;

static const int unused_table[] = { 1,
	2 };
static const int table[] = { 3 };

static int helper(int x) { return x; }

/* doubles
 * two numbers */
int twice(Pair *p,
	int n)
{
	{{step of twice}}
}
@ %def Pair helper twice

[]{.solves problem="one"}
{{work}}=
static int needed(int x) { return x + table[0]; }
@
{{step of twice}}=
return helper(n);
@
{{src/t.c}}=
#include "t.h"
{{work}}
int other(void) { return needed(table[0]); } /* helper */
@
## Problem (two) {#two .problem points=2}
Text.
END
skeleton() { # skeleton PROBLEMS: to kept.nw and rows.tsv
	awk -v keep="$1" -v rows=rows.tsv -f "$root/src/make/skeleton.awk" \
		writeup.nw pass=2 writeup.nw >kept.nw
}
tangled() { # tangled DOCUMENT: its only file
	mkdir -p build
	rm -rf tree
	bash "$root/src/make/tangle.sh" "$1" tree && cat tree/src/t.c
}
skeleton ''
check 'contracts stay, helpers and steps go' diff - <(tangled kept.nw) <<'END'
#include "t.h"

// work
typedef struct Pair {
	int a, b;
} Pair;
static const int table[] = { 3 };

#include "base/unwritten.h"

/* doubles
 * two numbers */
int twice(Pair *p,
	int n)
{
	unwritten("twice", "one two");
}

#include "base/unwritten.h"

static int needed(int x)
{
	unwritten("needed", "one");
}
int other(void) { return needed(table[0]); } /* helper */
END
check 'what remains is indexed' grep -qx '@ %def Pair twice' kept.nw
check 'rows say what to write' diff - rows.tsv < <(printf '%s\t%s\t%s\t%s\n' \
	problem points 'to write' tests one 3 'twice needed' tests/t two 2 twice '')
check 'so does the code' diff - \
	<(awk -f "$root/src/make/unwritten.awk" tree/src/t.c) < <(printf '%s\t%s\n' \
	one twice two twice one needed)
skeleton 'two'
check 'a chunk of two problems stays with either' grep -q 'return helper' kept.nw
check 'one of the other goes' grep -q 'unwritten("needed", "one")' kept.nw
skeleton 'two one'
check 'with all solutions nothing changes' cmp writeup.nw kept.nw
check 'an unknown problem is refused' not skeleton 'three'
sed -i 's/problem="one"/problem="four"/' writeup.nw
check 'and so is one in a mark' not skeleton ''
cat >writeup.nw <<'END'
# Notes {#notes}
Before [](#tbl:x), [](#tbl:z), and [text](#fig:y), and [](#one).

## Problem (one) {#one .problem points=3}

::: {.question}
What is `1`{.lua}?
:::

A derivation.

A value `2`{.lua} and more
on another line.

| a |
|---|
| `3`{.lua} |

: A caption.
{#tbl:z}

```{.lua}
x = 1
```

```{.lua}
of_code = constant("src/t.c", "N")
```

::: {.drawing #fig:w values="{N=of_code}"}
A drawing.
:::

::: {.drawing #fig:v values="{N=x}"}
Another.
:::

::: {.table #tbl:x data=t}
Caption.

Second paragraph.
:::

[](#tbl:x) shows it.

So does [](#tbl:x).

![Caption](f){.plot #fig:y}

[A claim]{.claim test="true"}

### Below {#below}

::: {.answer part="a"}
[Yes.]{.glance}
:::

### Derived {.derived}

So
$$ x = 1. \label{eq:x} $$

- an item

::: {.drawing #fig:u values="{N=x}"}
A result.
:::

::: {.drawing #fig:t}
A setting.
:::

Program: [](#below) by [](#eq:x).

### Again {#again}

Stays.

## After {#after}

[A claim]{.claim test="true"}
END
skeleton ''
check 'answers, values, tables, plots and claims go' diff - kept.nw <<'END'
# Notes {#notes}
Before [](#one), [](#one), and [text](#one), and [](#one).

## Problem (one) {#one .problem points=3}

::: {.question}
What is `1`{.lua}?
:::

A derivation.

```{.lua}
x = 1
```


::: {.drawing #fig:v values="{N=x}"}
Another.
:::


So does [](#one).

### Below {#below}

::: {.answer part="a"}
[Not yet written.]{.glance}
:::

### Derived {.derived}


::: {.drawing #fig:t}
A setting.
:::

Program: [](#below) by [](#one).

### Again {#again}

Stays.

## After {#after}

[A claim]{.claim test="true"}
END
cd "$root" || exit 1
mkdir "$work/full"
touch "$work/full/file"
check 'a folder with files is refused' not bash src/make/skeleton.sh "$work/full"
check 'and left alone' [ "$(ls "$work/full")" = file ]
check 'without noweb it fails' not env NOWEB="$work/no" bash \
	src/make/skeleton.sh "$work/half"
check 'and leaves no folder' [ ! -e "$work/half" ]
bash src/make/skeleton.sh "$work/none" >"$work/said" 2>&1
check 'the assignment is written' grep -q 'problems of .* points' "$work/said"
check 'with every problem' diff \
	<(awk '/^<<.*>>=/ { code = 1 } /^@( |$)/ { code = 0 } !code' writeup.nw |
		sed -n 's/^## .*{#\([a-z_]*\) [.]problem .*/\1/p' | sort) \
	<(cut -f 1 "$work/none/assignment.tsv" | sed 1d | sort)
check 'each with something to write' not grep -qP '^[^\t]*\t[^\t]*\t\t' \
	"$work/none/assignment.tsv"
! grep -rq --include=*.c "^$(printf '\t')unwritten(" src || exit $failed
mapfile -t objects < <(cd "$work/none" && grep -rl --include=*.c \
	"^$(printf '\t')unwritten(" src |
	sed '/\/cuda\//d; s,^,build/f32/,; s,c$,o,')
compile() {
	make -C "$work/none" CUDA= OPTIMIZE=-O0 "${objects[@]}" >"$work/said" 2>&1 ||
		{ grep error: "$work/said"; return 1; }
}
check 'files without their solutions compile without a warning' compile
bash src/make/skeleton.sh "$work/some" 'flash_forward flash_backward' >/dev/null
check 'what is kept is the same' cmp src/ops/cpu/attention.c \
	"$work/some/src/ops/cpu/attention.c"
compiled=build/f32/tests/ops/test_attention.o
[ -z "${SANITIZE-}" ] && [ -f $compiled ] || exit $failed
setting() { sed -n "s/^$1 := //p" build/config.mk; }
read -r -a libs <<<"$(setting BLAS_LIBS) $(setting CMOCKA_LIBS) -lm"
eval "cc=($(setting COMPILER))"
try() { # try FOLDER: the output of its attention's test
	local object=$work/attention.o
	"${cc[@]}" -std=c11 -Wall -Wextra -Wno-unused-parameter \
		-Wno-missing-field-initializers -Werror -O1 -fopenmp \
		-I"$1/src" -c -o "$object" "$1/src/ops/cpu/attention.c" &&
	"${cc[@]}" -fopenmp -o "$work/test" $compiled \
		build/f32/tests/base/unwritten.o "$object" build/libf32.a "${libs[@]}" &&
	OMP_WAIT_POLICY=passive "$work/test" >"$work/log" 2>&1
}
check 'the test fails without the solutions' not try "$work/none"
check 'each case with the line of a function' [ "$(grep -c \
	'not yet written: cpu_attention_forward_tiled (problem flash_forward)' \
	"$work/log")" -ge 4 ]
check 'and reports them' grep -q '^\[  FAILED  \] .*[4-9] test(s)' \
	"$work/log"
bash src/make/skeleton.sh "$work/one" flash_forward >/dev/null
check 'with one it fails for the other' not try "$work/one"
check 'only' not grep -q flash_forward "$work/log"
check 'and the case of the one passes' grep -q \
	'       OK . forward_follows_the_formulas' "$work/log"
check 'with both it passes' try "$work/some"
cat >"$work/late.c" <<'END'
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "base/unwritten.h"
static void meets_a_function(void **state) { unwritten("f", "p"); }
static void finds_what_is_left(void **state) { assert(state == NULL); }
int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(meets_a_function),
		cmocka_unit_test(finds_what_is_left) };
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	assert(failed == 0);
	return failed;
}
END
late() {
	local status=0
	"${cc[@]}" -std=c11 -Isrc -o "$work/late" "$work/late.c" \
		build/f32/tests/base/unwritten.o build/libf32.a "${libs[@]}" &&
	{ "$work/late" >"$work/log" 2>&1 || status=$?; }
	[ $status -ne 134 ] && [ "$(grep -c 'left before: not yet written: f (' \
		"$work/log")" -ge 1 ]
}
check 'assertions that fail later name the function' late
exit $failed
