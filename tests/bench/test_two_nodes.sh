#!/usr/bin/env bash
# test_two_nodes.sh: a job on two nodes that are namespaces of this host
. tests/experiments/expect.sh
. tests/bench/mpi.sh
program=${BUILD:-build}/tests/bench/test_ranks
nodes() { timeout -k 5 60 bash src/bench/two_nodes.sh "$@" >"$out/said" 2>&1; }
says() { # says STATUS PATTERN ARGUMENTS...
	local got=0
	nodes "${@:3}" || got=$?
	[ $got = "$1" ] && { [ -z "$2" ] || grep -q -e "$2" "$out/said"; }
}
check 'without a number of ranks' says 2 usage hostname
if ! nodes 1 true; then
	check 'a line says why there are no nodes' \
		grep -q '^two_nodes.sh: .*\(package is\|not permitted\)' "$out/said"
	echo 'ok - two nodes # SKIP no namespaces, MPI or iproute2'
	exit $failed
fi
export ASAN_OPTIONS=detect_leaks=0
place=$out/"o'b \$x&y #1 %d \"z, (1)~\`;" script=$PWD/src/bench/two_nodes.sh
mkdir -m 777 "$place" "$place/tmp"
there() { (cd "$place" && timeout 60 bash "$script" "$@" >"$out/said" 2>&1); }
TMPDIR=$place/tmp check 'two hosts' there 2 hostname
check 'with two ranks each' [ \
	"$(grep '^node' "$out/said" | sort | uniq -c | tr -d ' \n')" = 2node02node1 ]
check 'nothing is left behind' [ -z "$(ls -A "$place/tmp" "$place/build" |
	grep -v :)" ]
check 'words of a command' there 1 test "a  'b" = "a  'b"
if setpriv --reuid=65534 --clear-groups true 2>/dev/null; then
	refused() {
		! TMPDIR=$place/tmp setpriv --reuid=65534 --clear-groups --inh-caps=-all \
			--no-new-privs bash src/bench/two_nodes.sh 1 touch "$place/tmp/ran" \
			>"$out/said" 2>&1 && [ "$(wc -l <"$out/said")" = 1 ]
	}
	check 'one line where namespaces are not permitted' refused
	check 'which says so' grep -q 'namespaces are not permitted' "$out/said"
	check 'nothing has run or is left' [ -z "$(ls -A "$place/tmp")" ]
fi
check 'a link of a rate' nodes --rate 1gbit 1 tc qdisc show dev veth0
check 'at both ends' [ "$(grep -c 'tbf.* rate 1Gbit' "$out/said")" = 2 ]
check 'an impossible rate' says 1 'no link of rate fast' --rate fast 1 true
check 'messages that need no answer' says 0 '^8388608$' \
	1 printenv OMPI_MCA_btl_tcp_eager_limit
OMPI_MCA_btl_tcp_eager_limit=65536 check 'or as the environment says' \
	says 0 '^65536$' 1 printenv OMPI_MCA_btl_tcp_eager_limit
check 'the status of the job' says 3 '' 1 sh -c 'exit 3'
check 'ten nodes' says 2 usage --nodes 10 1 true
check 'one node' says 2 usage --nodes 1 1 true
if nodes --nodes 4 1 true; then
	check 'four hosts' nodes --nodes 4 --rate 1gbit 1 hostname
	check 'with a rank each' [ \
		"$(grep '^node' "$out/said" | sort | tr -d '\n')" = node0node1node2node3 ]
else
	check 'a line says why there is no switch' grep -q \
		'^two_nodes.sh: no switch' "$out/said"
	echo 'ok - four nodes # SKIP no bridge'
fi
if is_mpich; then
	echo 'ok - sums over two nodes # SKIP UCX of MPICH refuses namespaces'
elif has_mpi "$program"; then
	"$program" --device cpu --sweep sums --out "$out/forked.tsv"
	columns() { grep -P "^$1\t" "$2" | grep -v mpi | cut -f 1-6; }
	same_sums() { # same_sums RANKS
		cmp <(columns "$1" "$out/nodes.tsv") <(columns "$1" "$out/forked.tsv")
	}
	for ranks in 1 2; do
		check "a program with $ranks ranks a node" nodes $ranks "$program" \
			--device cpu --sweep sums --out "$out/nodes.tsv"
		check "$ranks ranks a node sum as forked ranks do" \
			same_sums $((2 * ranks))
	done
else
	echo 'ok - sums over two nodes # SKIP the program has no MPI'
fi
cat >"$out/meet.c" <<'END'
#include <stdlib.h>
#include <string.h>
#include "dist/link.h"
int main(int argc, char **argv)
{
	const char *open = getenv("OMPI_COMM_WORLD_RANK"), *pmi = getenv("PMI_RANK");
	int rank = atoi(open ? open : pmi), sum = 0, other;
	Meeting m = { "", 29600, -1 };
	strcpy(m.host, rank < 2 ? argv[1] : argv[2]);
	Link *l = link_tcp(rank, 4, &m, 8);
	for (int r = 0; r < 4; r++, sum += other)
		if (r == rank)
			other = r;
		else
			l->exchange(l, r, &rank, sizeof rank, r, &other, sizeof other);
	return sum != 6 || l->local_ranks != 2 || l->local_rank != rank % 2;
}
END
"${cc[@]}" -std=gnu11 -Isrc -o "$out/meet" \
	"$out/meet.c" src/dist/tcp.c src/base/error.c src/base/clock.c -lm
for own in localhost 127.0.1.1 10.0.0.1; do
	check "ranks meet at $own and at its address" \
		nodes 2 "$out/meet" $own 10.0.0.1
done
sleepers() { # how many processes of the job sleep
	local n=0 name
	for name in $(grep -lsx sleep /proc/[0-9]*/comm); do
		! grep -sqzx 31415 "${name%comm}cmdline" || n=$((n + 1))
	done
	echo $n
}
become() { # become N: waits until so many sleep
	for _ in $(seq 200); do
		[ "$(sleepers)" != "$1" ] || return 0
		sleep 0.1
	done
	return 1
}
bash src/bench/two_nodes.sh 1 sleep 31415 >/dev/null 2>&1 &
script=$!
check 'a job that lasts has started' become 2
kill -TERM $script
status=0
wait $script || status=$?
check 'a signal ends the script' [ $status = 143 ]
check 'and the job' become 0
exit $failed
