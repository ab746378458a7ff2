#!/usr/bin/env bash
# deps.sh: installs the packages of Debian or Ubuntu that the build needs
set -euo pipefail
packages='
gcc                         compiles the programs
libc6-dev                   headers of the C library
libopenblas-openmp-dev      matrix multiplication
libcmocka-dev               the unit tests
pkgconf                     finds OpenBLAS
noweb                       takes the document apart
pandoc                      reads its prose
gnuplot-nox                 draws the figures
texlive-xetex               typesets the page
texlive-pictures            sets its drawings
texlive-fonts-recommended   fonts that hyperref asks for
fonts-texgyre               the text
fonts-texgyre-math          the formulas
fonts-jetbrains-mono        the code
poppler-utils               reads the digest in the PDF, draws as SVG
openmpi-bin                 MPI: collectives to compare with, jobs over hosts
libopenmpi-dev              MPI: headers and libraries
iproute2                    two nodes on one host
'
if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
	echo "deps: neither Debian nor Ubuntu; please install:$packages" >&2
	exit 2
fi
missing=
while read -r name purpose; do
	[ -n "$name" ] || continue
	state=$(dpkg-query -W -f '${db:Status-Abbrev}' "$name" 2>/dev/null || true)
	case $state in ii*) continue ;; esac
	missing="$missing $name"
	printf 'deps: %-26s %s\n' "$name" "$purpose"
done <<<"$packages"
[ -n "$missing" ] || { echo 'deps: every package is installed'; exit 0; }
run=
if [ "$(id -u)" != 0 ]; then
	command -v sudo >/dev/null || {
		echo "deps: as root, run: apt-get install$missing" >&2
		exit 2
	}
	run=sudo
fi
set -- -q -y --no-install-recommends
export DEBIAN_FRONTEND=noninteractive
$run apt-get update -q
# shellcheck disable=SC2086
$run apt-get install "$@" $missing
rm -f build/config.mk
