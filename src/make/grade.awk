# grade.awk: reads, in this order, functions that are not written (problem,
# function, gpu), test results (test, case, result, seconds, what it waits for),
# tables (name, machine, complete, state, date, scale), claims (line, problem,
# set, holds, test) and problems (problem, title, points, tables, tests, line)
FNR == 1 { nfile++; next }
nfile == 1 && $3 == "gpu" { kernels[$1] = kernels[$1] " " $2; next }
nfile == 1 { unwritten[$1] = unwritten[$1] " " $2; next }
nfile == 2 && $5 == "" { result[$1, $3]++; next }
nfile == 2 { waits[$1] = waits[$1] " " $5; result[$1, "waiting"]++; next }
nfile == 3 {
	table[$1] = $3 == "yes" ? $4 : "incomplete"
	small[$1] = $6 ~ /^small/
	next
}
nfile == 4 && $3 == "recorded" { claims[$2]++; holds[$2] += $4 == "yes" }
nfile == 4 { next }
nfile == 5 { problem = $1
	     asked += $3
	     if (problem in unwritten) {
	     	printf "%-47s %2d  0     not yet written:%s\n", problem, $3,
	     		unwritten[problem]
	     	bad = 1
	     	next
	     }
	     parts = kept = 0
	     text = test_verdict($5) table_verdict($4) claim_verdict(problem)
	     points = parts ? $3 * kept / parts : 0
	     if (problem in kernels)
	     	text = text "not yet written, for a GPU:" kernels[problem]
	     score += points
	     printf "%-47s %2d  %-4.3g  %s\n", problem, $3, points, text }
END {
	if (asked != course) {
		print "the headings of problems have " asked + 0 " points, the course " course
		bad = 1
	}
	if (woven != "yes") {
		print "writeup.nw cannot be woven; see above"
		bad = 1
	}
	print "\nscore: " score + 0 " of " asked + 0 " points of the problems" \
		" in this document; the course has " course
	if (old && !bad)
		print "tables are older than the code; nothing is wrong otherwise"
	exit bad
}

# define the verdicts
function judged(good, text) { parts++; kept += good; return text "  " }
function error_if(wrong) { bad = bad || wrong; return wrong }

function test_verdict(list,    name, n, i, lost, good, skipped, none, waiting,
		others) {
	n = split(list, name, " ")
	if (!n)
		return ""
	for (i = 1; i <= n; i++) {
		good += result[name[i], "passed"]
		lost += result[name[i], "failed"]
		skipped += result[name[i], "skipped"]
		waiting += result[name[i], "waiting"]
		others = others waits[name[i]]
		none += result[name[i], "passed"] + result[name[i], "failed"] \
			+ result[name[i], "skipped"] + result[name[i], "waiting"] == 0
	}
	return judged(!error_if(lost || none || waiting && !good), \
		"tests: " good + 0 " passed" \
		(lost ? ", " lost " failed" : "") \
		(waiting ? ", " waiting " wait for" once_each(others) : "") \
		(skipped ? ", " skipped " skipped" : "") \
		(none ? ", " none " not run" : ""))
}

function once_each(list,    each, n, i, seen, out) {
	n = split(list, each, " ")
	for (i = 1; i <= n; i++)
		if (!(each[i] in seen)) {
			seen[each[i]] = 1
			out = out " " each[i]
		}
	return out
}

function table_verdict(list,    name, n, i, good, text, state, down) {
	n = split(list, name, " ")
	if (!n)
		return ""
	for (i = 1; i <= n; i++) {
		state = name[i] in table ? table[name[i]] : "missing"
		if (state == "fresh")
			good++
		else
			text = text ", " name[i] " is " state
		down += small[name[i]]
		error_if(state != "fresh" && state != "stale")
		old += state == "stale"
	}
	return judged(good == n, "tables: " good + 0 " of " n " fresh" \
		(down ? ", " down " scaled down" : "") text)
}

function claim_verdict(problem) {
	if (!claims[problem])
		return ""
	return judged(!error_if(holds[problem] != claims[problem]),
		"claims: " holds[problem] " of " claims[problem] " hold")
}
