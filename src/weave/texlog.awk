# texlog.awk: read book.tex, then book.log; report in lines of writeup.nw
BEGIN { last = 1 }	# the template comes first
FNR == NR {
	if ($1 == "%nw") last = $2
	line[FNR] = last
	next
}

# report errors of TeX
/^[^ ]*[a-z]:[0-9]+: / {
	split($0, part, ":")
	text = $0
	sub(/^[^:]*:[0-9]+: /, "", text)
	at = part[1] ~ /book\.tex$/ ? line[part[2]] : 1
	print source ":" at ": TeX: " text
	bad = 1
}
settled && /^LaTeX Warning: .* undefined on input line [0-9]+/ {
	at = $NF
	sub(/\.$/, "", at)
	text = $0
	sub(/^LaTeX Warning: /, "", text)
	sub(/ on page .*/, "", text)
	print source ":" line[at] ": TeX: " text " is undefined"
	bad = 1
}
/^! / { print source ":1: TeX: " substr($0, 3); bad = 1 }

/^Missing character: There is no / && !($6 in lacking) {
	lacking[$6] = 1
	at = n = 0
	while ((getline text < source) > 0) {
		n++
		if (!at && index(text, $6)) at = n
	}
	close(source)
	sub(/^Missing character: There/, "there")
	sub(/ in font .*/, " in the font")
	print source ":" at + 0 ": " $0
	bad = 1
}

# report what sticks out
/^Overfull \\[hv]box/ {
	excess = $3
	sub(/^\(/, "", excess)
	sub(/pt$/, "", excess)
	match($0, /lines? [0-9]+/)
	at = substr($0, RSTART, RLENGTH)
	sub(/lines? /, "", at)
	if (excess + 0 > 4 && (at || /hbox/))
		print source ":" line[at] ": warning: text is " excess \
			" pt too " (/vbox/ ? "high" : "wide")
}
/^Shrunk table on line [0-9]+/ {
	print source ":" line[$NF] ": warning: a table is too wide to be read"
}
END { exit bad }
