# help.awk: the targets of the Makefile: "target: ... ## what | needs | time"
function row(target, what, needs, time) {
	printf "%-21s %-66s %-27s %s\n", target, what, needs, time
}
BEGIN { row("target", "what it does", "needs", "time") }
/^[a-z._-]+:.*## / {
	split(substr($0, index($0, "## ") + 3), part, / *\| */)
	row(substr($0, 1, index($0, ":") - 1), part[1], part[2], part[3])
}
END {
	print "\nproblems; each is a target: it updates tables, or else runs tests:"
}
