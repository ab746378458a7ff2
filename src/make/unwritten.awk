# unwritten.awk: the functions that sources leave to be written: problem,
# function, and "gpu" if this machine has none and the function needs one
/^\tunwritten\("/ { call = " " }
call != "" { call = call $0 }
call != "" && /;$/ {
	split(call, part, "\"")
	n = split(part[4], problem, " ")
	gpu = FILENAME ~ /\/cuda\// && device != "cuda" ? "\tgpu" : ""
	for (i = 1; i <= n; i++)
		print problem[i] "\t" part[2] gpu
	call = ""
}
