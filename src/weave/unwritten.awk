# unwritten.awk: the functions that a document leaves to be written; prints
# problem and function
/^<<.*>>=[ \t]*$/ { code = 1 }
/^@( |$)/ { code = 0 }
code && /^\tunwritten\("/ { call = " " }
call != "" { call = call $0 }
call != "" && /;$/ {
	split(call, part, "\"")
	n = split(part[4], problem, " ")
	for (i = 1; i <= n; i++)
		print problem[i] "\t" part[2]
	call = ""
}
