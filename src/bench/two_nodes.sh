#!/usr/bin/env bash
# two_nodes.sh [--nodes N] [--rate RATE] RANKS COMMAND...: runs COMMAND as a job
# of MPI with RANKS ranks on each of N nodes, or two: namespaces of this host
set -euo pipefail
rate= nodes=2
while [ $# -ge 2 ]; do
	case $1 in
	--rate) rate=$2 ;;
	--nodes) nodes=$2 ;;
	*) break ;;
	esac
	shift 2
done
if ! [[ $# -ge 2 && $1 =~ ^[1-9][0-9]*$ && $nodes =~ ^[2-9]$ ]]; then
	echo 'usage: two_nodes.sh [--nodes 2..9] [--rate 1gbit] RANKS COMMAND...' >&2
	exit 2
fi
ranks=$1
last=$((nodes - 1))
shift
refuse() {
	echo "two_nodes.sh: $1" >&2
	exit 1
}
eval "mpirun=$(sed -n 's/^MPIRUN := //p' build/config.mk 2>/dev/null || true)"
mpirun=${mpirun:-mpirun}
for tool in "$mpirun":openmpi-bin ip:iproute2 tc:iproute2 hostname:hostname \
	unshare:util-linux nsenter:util-linux; do
	command -v "${tool%:*}" >/dev/null ||
		refuse "no ${tool%:*}; the Debian package is ${tool#*:} (make deps)"
done
unshare --net --uts --ipc --mount mount -t tmpfs tmpfs /dev/shm 2>/dev/null ||
	refuse "namespaces are not permitted: it takes root, in a container \
CAP_SYS_ADMIN and CAP_NET_ADMIN"
mkdir -p build
work=$(mktemp -d build/two_nodes.XXXXXX)
pids=()
trap 'kill "${pids[@]}" 2>/dev/null || true; rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
mkfifo "$work/held"
for node in $(seq 0 $last); do
	unshare --net --uts --ipc --mount bash -c '
		mount -t tmpfs tmpfs /dev/shm && hostname "node$1" &&
			ip link set lo up && touch "$2/ready$1" && exec cat' \
		bash $node "$work" <"$work/held" >/dev/null &
	pids+=($!)
done
exec 3>"$work/held"
for node in $(seq 0 $last); do
	until [ -e "$work/ready$node" ]; do
		kill -0 "${pids[node]}" 2>/dev/null ||
			refuse "node $node did not start"
		sleep 0.02
	done
done
if [ $nodes = 2 ]; then
	ip link add veth0 netns "${pids[0]}" type veth \
		peer name veth0 netns "${pids[1]}" 2>"$work/said" ||
		refuse "no pair of virtual interfaces: $(cat "$work/said")"
else
	unshare --net bash -c 'ip link add bridge0 type bridge 2>"$1/said" &&
		ip link set bridge0 up && touch "$1/switch" && exec cat' \
		bash "$work" <"$work/held" >/dev/null &
	switch=$!
	pids+=($switch)
	until [ -e "$work/switch" ]; do
		kill -0 $switch 2>/dev/null || refuse "no switch: $(cat "$work/said")"
		sleep 0.02
	done
	for node in $(seq 0 $last); do
		ip link add veth0 netns "${pids[node]}" type veth \
			peer name port$node netns $switch 2>"$work/said" ||
			refuse "no pair of virtual interfaces: $(cat "$work/said")"
		nsenter -t $switch --net ip link set port$node master bridge0 up
	done
fi
for node in $(seq 0 $last); do
	there="nsenter -t ${pids[node]} --net"
	$there ip address add "10.0.0.$((node + 1))/24" dev veth0
	$there ip link set veth0 up
	[ -z "$rate" ] || $there tc qdisc add dev veth0 root tbf rate "$rate" \
		burst 128kb latency 100ms 2>"$work/said" ||
		refuse "no link of rate $rate: $(cat "$work/said")"
done
threads=$(($(nproc) / (nodes * ranks)))
cat >"$work/on" <<END
#!/usr/bin/env bash
pids=(${pids[*]})
node=\$((\${1##*.} - 1))
shift
first=\$((node * $ranks))
export OMP_NUM_THREADS=$((threads > 0 ? threads : 1))
export CUDA_VISIBLE_DEVICES=\$(seq -s , \$first \$((first + $ranks - 1)))
exec nsenter -t "\${pids[node]}" --net --uts --ipc --mount \\
	bash -c 'cd "\$0" && eval "\$*"' $(printf %q "$PWD") "\$@"
END
chmod +x "$work/on"
case $("$mpirun" --version 2>&1) in
*HYDRA*) # of MPICH
	slots=: options=(-launcher rsh -launcher-exec "$work/on" -iface veth0) ;;
*)
	slots=' slots=' options=(--mca plm_rsh_agent "$work/on"
		--mca oob_tcp_if_include 10.0.0.0/24
		--mca btl_tcp_if_include 10.0.0.0/24
		--mca btl_vader_single_copy_mechanism none) ;;
esac
for node in $(seq 1 $nodes); do
	echo "10.0.0.$node$slots$ranks"
done >"$work/hosts"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_btl_tcp_eager_limit=${OMPI_MCA_btl_tcp_eager_limit:-8388608}
"$work/on" 10.0.0.1 "exec $(printf '%q ' "$mpirun" -n $((nodes * ranks)) \
	--hostfile "$work/hosts" --bind-to none "${options[@]}" "$@")" 3>&- &
pids+=($!)
status=0
wait $! || status=$?
exit $status
