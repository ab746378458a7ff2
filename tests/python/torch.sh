# torch.sh: sourced by tests of PyTorch through libsystems.so
. tests/base/check.sh
export LIBSYSTEMS=$PWD/${BUILD:-build}/libsystems.so
export PYTHONPATH=$PWD/src/python:$PWD/tests/python PYTHONDONTWRITEBYTECODE=1
[ -f "$LIBSYSTEMS" ] || exit 77         # there is none with SANITIZE=1
python3 -c 'import torch' 2>/dev/null || exit 77
in_copy() { # in_copy DIR ADAPTERS 'FILES' ARGUMENTS...: of pytest
	local copy part files=$3 status=0
	copy=$(mktemp -d || mktemp -d -p /tmp)
	for part in tests cs336-basics pyproject.toml; do
		[ ! -e "$1/$part" ] || cp -r "$1/$part" "$copy"
	done
	cp "$2" "$copy/tests/adapters.py"
	shift 3
	(cd "$copy" && PYTHONPATH=$PYTHONPATH:$copy/cs336-basics \
		python3 -m pytest -p no:cacheprovider $files "$@") || status=$?
	rm -rf "$copy"
	return $status
}
course_tests() { # course_tests ADAPTERS 'FILES' ARGUMENTS...: those there are
	local dir file found adapters=$1 files=$2
	shift 2
	python3 -c 'import pytest' 2>/dev/null || return 0
	for dir in ${COURSE-}; do
		found=
		for file in $files; do
			! compgen -G "$dir/$file" >/dev/null || found+=" $file"
		done
		[ -z "$found" ] || check "the course's tests in ${dir##*/}" \
			in_copy "$dir" "$adapters" "$found" "$@"
	done
}
