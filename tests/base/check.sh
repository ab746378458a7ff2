# check.sh: sourced by tests; a case, and whether one has failed
failed=0
check() { # check NAME COMMAND...: the case passes when the command succeeds
	local name=$1
	shift
	if "$@"; then
		echo "ok - $name"
	else
		echo "not ok - $name"
		failed=1
	fi
}
