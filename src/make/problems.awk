# problems.awk: the registry of problems, read from the headings of writeup.nw;
# prints a fragment of a makefile, or with -v list=1 a list of the targets
/^<<.*>>=[ \t]*$/ { code = 1 }
/^@( |$)/ { code = 0 }
code { next }
/^(```|~~~)/ { fenced = !fenced }
fenced || !/^#+ .*\{.*#.*\}[ \t]*$/ { next }
{
	start = 0
	while ((at = index(substr($0, start + 1), "{")) > 0)
		start += at
	attributes = substr($0, start)
	title = substr($0, 1, start - 1)
	gsub(/^#+ +| +$/, "", title)
	match(attributes, /#[^ }]+/)
	name = substr(attributes, RSTART + 1, RLENGTH - 1)
	tables = value("tables")
	tests = value("tests")
	if (!tables && !tests && attributes !~ /\.problem/)
		next
	if (list)
		printf "  %-44s %s\n", name, title
	else
		{
			print "TARGETS += " name
			print "TABLES_" name " := " tables
			print "TESTS_" name " := " tests
		}
}

# define value, which finds an attribute
function value(attribute,    rest, at) {
	at = index(attributes, " " attribute "=\"")
	if (!at)
		return ""
	rest = substr(attributes, at + length(attribute) + 3)
	return substr(rest, 1, index(rest, "\"") - 1)
}
