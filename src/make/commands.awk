# commands.awk: reads paths of sources and writes compile_commands.json; the files
# host and kernel hold the compiler and flags of C and of CUDA
BEGIN {
	getline cc <host
	getline nvcc <kernel
	printf "["
}
{
	printf "%s{\"directory\": %s, \"file\": %s, \"command\": %s}",
		(NR > 1 ? ",\n" : ""), quoted(ENVIRON["PWD"]), quoted($0),
		quoted((/\.cu$/ ? nvcc " " for_gpu : cc) " -c " $0)
}
END {
	print "]"
	print "compile_commands.json: " NR " sources" >"/dev/stderr"
}
function quoted(text) {
	gsub(/["\\]/, "\\\\&", text)
	return "\"" text "\""
}
