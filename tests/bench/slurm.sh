#!/usr/bin/env bash
# slurm.sh COMMAND...: runs COMMAND on the first of two nodes of a Slurm, which
# are namespaces of this host; 77: Slurm cannot be had here
set -euo pipefail
if [ "${1-}" = --node ]; then
	work=$2
	shift 2
	unset ${!OMPI_@} ${!ORTE_@} ${!PMIX_@} ${!PRTE_@} ${!SLURM_@}
	node=$(hostname)
	printf '%s\n' '127.0.0.1 localhost' '10.0.0.1 node0' '10.0.0.2 node1' \
		>"$work/$node.hosts"
	mount --bind "$work/$node.hosts" /etc/hosts
	mount -t tmpfs tmpfs /run
	mkdir -m 755 /run/munge
	export SLURM_CONF=$work/slurm.conf
	munged --key-file "$work/key" --pid-file /run/munge/munged.pid \
		--log-file /run/munge/log --seed-file /run/munge/seed \
		--socket /run/munge/munge.socket.2
	slurmd -D -N "$node" >"$work/$node.log" 2>&1 &
	if [ "$node" != node0 ]; then
		read -r _ <"$work/end" || true
		exit
	fi
	slurmctld -D >"$work/slurmctld.log" 2>&1 &
	for wait in $(seq 100); do
		[ "$(sinfo --noheader --format '%D %t' 2>/dev/null)" != '2 idle' ] || break
		sleep 0.2
	done
	status=0
	if [ "$wait" = 100 ]; then
		tail "$work"/*.log
		status=1
	else
		"$@" || status=$?
	fi
	: >"$work/end"
	exit $status
fi
refuse() {
	echo "slurm.sh: $1" >&2
	exit 77
}
for tool in slurmctld:slurm-wlm slurmd:slurm-wlm srun:slurm-wlm munged:munge; do
	command -v "${tool%:*}" >/dev/null ||
		refuse "no ${tool%:*}; the Debian package is ${tool#*:}"
done
[ "$(id -u)" = 0 ] || refuse 'it takes root'
said=$(bash src/bench/two_nodes.sh 1 true 2>&1) || refuse "$said"
unshare --pid --fork --mount-proc true || refuse 'no namespace of processes'
work=$(mktemp -d)
nodes=
trap 'kill -KILL $nodes 2>/dev/null || true; rm -rf "$work"' EXIT
trap 'exit 143' TERM HUP INT
mkdir "$work/state" "$work/node0" "$work/node1"
(umask 077 && head -c 1024 /dev/urandom >"$work/key")
for gpu in $(seq 0 7); do
	mknod "$work/gpu$gpu" c 1 3 || refuse 'no devices can be made'
done
echo "Name=gpu File=$work/gpu[0-7]" >"$work/gres.conf"
cat >"$work/slurm.conf" <<END
ClusterName=namespaces
SlurmctldHost=node0
SlurmUser=root
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/%n
TmpFS=/run
ProctrackType=proctrack/linuxproc
TaskPlugin=task/affinity
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=batch_sched_delay=0,sched_interval=1
SlurmdParameters=config_overrides
KillWait=2
GresTypes=gpu
NodeName=node[0-1] CPUs=64 CoresPerSocket=64 Gres=gpu:8
PartitionName=all Nodes=ALL Default=YES
END
mkfifo "$work/end"
unshare --pid --fork --kill-child --mount-proc bash src/bench/two_nodes.sh 1 \
	bash "$0" --node "$work" "$@" &
nodes=$!
status=0
wait $nodes || status=$?
exit $status
