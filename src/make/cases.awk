# cases.awk: the cases in the output of a test, as rows of test-results.tsv
/^\[ RUN      \] [^ ]+$/ { why = left; note($4, "") }
/not yet written: .*\(problem / {
	why = $0
	sub(/.*\(problem /, "", why)
	sub(/\).*/, "", why)
	if (/^ERROR:/)
		left = why
}
/^\[       OK \] [^ ]+$/ { note($4, "passed") }
/^\[  FAILED  \] [^ ]+$/ { note($4, "failed") }
/^\[  SKIPPED \] [^ ]+$/ { note($4, "skipped") }
/^(not )?ok / {
	result = /^not/ ? "failed" : / # SKIP/ ? "skipped" : "passed"
	gsub(/^(not )?ok [0-9]* *-? *| # SKIP.*/, "")
	note($0, result)
}
END {
	for (i = 1; i <= n; i++)
		if (state[label[i]] == "")
			note(label[i], "failed")
	for (i = 1; i <= n; i++)
		bad += state[label[i]] == "failed"
	if (status == 124 || status == 137 && end - start >= limit)
		note("(stopped after " limit " seconds)", "failed")
	else if (status == 77 && !n)
		note("(all)", "skipped")
	else if (status != 0 && !bad)
		note("(exit status " status ")", "failed")
	else if (!n)
		note("(all)", "passed")
	for (i = 1; i <= n; i++)
		printf "%s\t%s\t%s\t%.2f%s\n", name, label[i], state[label[i]],
			end - start, waits[label[i]]
}
function note(what, result) {
	if (!(what in state))
		label[++n] = what
	if (state[what] == "failed")
		return
	state[what] = result
	if (result == "failed" && why != "")
		waits[what] = "\t" why
}
