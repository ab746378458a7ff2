# skeleton.awk: a noweb document as an assignment; it is read twice,
#   awk -v keep='PROBLEM ...' -v rows=FILE -f skeleton.awk DOC pass=2 DOC
# marked chunks keep their contracts alone, unless a problem of theirs is kept
FNR == 1 { begin_reading() }
code && /^@( |$)/ { end_chunk($0); next }
/^<<.*>>=[ \t]*$/ {
	if (code)
		end_chunk("@")
	begin_chunk($0)
	next
}
code { text[++nlines] = $0; next }
{ read_prose($0) }
END {
	if (!failed)
		end_block()
	if (!failed)
		write_rows()
	exit failed
}

# begin to read a document
function fail(message) {
	print "skeleton: " message >"/dev/stderr"
	failed = 2
	exit failed
}
function begin_reading(    i, k, each) {
	if (pass == 2) {
		end_block()
		for (k in kept)
			if (!(k in points))
				fail("there is no problem " k)
		find_live()
		writing = 1
	} else {
		split(keep, each, " ")
		for (i in each)
			kept[each[i]] = 1
	}
	code = chunk = nlines = nblock = fenced = open = derived = 0
	section = marked = ""
}
function has(list, word) { return index(" " list " ", " " word " ") > 0 }

# begin and end a chunk
function begin_chunk(head,    k) {
	end_block()
	code = 1
	nlines = 0
	chunk++
	opening = head
	if (pass == 2)
		return
	sub(/>>=[ \t]*$/, "", head)
	name[chunk] = substr(head, 3)
	chunks[name[chunk]] = chunks[name[chunk]] " " chunk
	solves[chunk] = marked
	emptied[chunk] = marked != ""
	for (k in kept)
		if (has(marked, k))
			emptied[chunk] = 0
	marked = ""
}

function end_chunk(closing,    i) {
	code = 0
	if (pass == 2 && live[chunk])
		write_chunk(closing)
	for (i = 1; i <= nlines && pass != 2; i++) {
		source[chunk] = source[chunk] text[i] "\n"
		note_uses(text[i])
	}
}

function note_uses(line,    rest, to) {
	rest = line
	while (match(rest, /<<[^<>]+>>/)) {
		to = substr(rest, RSTART + 2, RLENGTH - 4)
		used[to] = 1
		if (!emptied[chunk] || rest == line && RSTART == 1)
			uses[chunk, ++nuses[chunk]] = to
		rest = substr(rest, RSTART + RLENGTH)
	}
}

# find what remains of the document
function find_live(    k, file) {
	for (k = 1; k <= chunk; k++)
		if (!(name[k] in used))
			reach(name[k], name[k])
	for (k in live)
		if (emptied[k])
			for (file in files)
				if ((k, file) in within)
					watched[file] = 1
	for (file in watched) {
		for (k in live)
			if (!emptied[k] && (k, file) in within)
				note_words(source[k], file)
		while (note_items(file))
			;
	}
}

function reach(of, file,    each, n, i, j, k) {
	n = split(chunks[of], each, " ")
	files[file] = 1
	for (i = 1; i <= n; i++) {
		k = each[i]
		if ((k, file) in within)
			continue
		within[k, file] = live[k] = 1
		for (j = 1; j <= nuses[k]; j++)
			reach(uses[k, j], file)
	}
}

# data and types that stay use functions too
function note_items(file,    k, i, more) {
	for (k in live)
		if (emptied[k] && (k, file) in within) {
			cut_items(source[k])
			for (i = 1; i <= nitems; i++)
				if (!((k, file, i) in noted) && !is_function(item[i]) &&
					(!is_hidden(item[i]) ||
					(file, identifier_of(item[i])) in word)) {
					noted[k, file, i] = more = 1
					note_words(item[i], file)
				}
		}
	return more
}

function note_words(of, file,    each, n, i) {
	gsub(/'"'|"([^"\\\n]|\\.)*"/, " ", of)
	gsub(/<<[^<>]+>>|\/\*([^*]|\*[^\/])*\*\//, " ", of)
	n = split(of, each, /[^A-Za-z0-9_]+/)
	for (i = 1; i <= n; i++)
		word[file, each[i]] = 1
}
function wanted(identifier,    file) {
	for (file in watched)
		if ((chunk, file) in within && (file, identifier) in word)
			return 1
	return 0
}

# leave contracts
function cut_items(of,    n, i, each, line) {
	n = split(of, each, "\n")
	nitems = 0
	for (i = 1; i <= n; i++) {
		comment[++nitems] = ""
		while (i <= n && each[i] ~ /^([ \t]*$|\/\*|\/\/)/) {
			comment[nitems] = comment[nitems] (line = each[i++]) "\n"
			while (line ~ /^\/\*/ && each[i - 1] !~ /\*\// && i <= n)
				comment[nitems] = comment[nitems] each[i++] "\n"
		}
		item[nitems] = line = each[i]
		while (line !~ /^(#|<<)/ && !ends_item(item[nitems], each[i]) && i < n)
			item[nitems] = item[nitems] "\n" each[++i]
	}
}

function ends_item(of, line) {
	if (of ~ /(^|\n)\{(\n|$)|\{\n/)
		return line ~ /^}/
	return line ~ /[;}][ \t]*$/
}
function is_hidden(of) { return of ~ /^(static |template|__)/ }
function is_function(of) { return of ~ /^[^={;]*\([^{;]*\{/ }
function identifier_of(of) {
	sub(/[ \t\n]*\{.*/, "", of)
	sub(/__launch_bounds__\([^()]*(\([^()]*\))*\)/, "", of)
	sub(/[ \t]*[\[(=;].*/, "", of)
	sub(/.*[^A-Za-z0-9_]/, "", of)
	return of
}

function contract(of,    head, identifier) {
	if (of ~ /^(#|<<|typedef |struct |enum )/ ||
		of ~ /^extern / && !is_function(of))
		return of
	identifier = identifier_of(of)
	if (is_hidden(of) && !wanted(identifier))
		return ""
	if (!is_function(of))
		return of
	head = of
	sub(/[ \t\n]*\{.*/, "", head)
	note_function(identifier)
	return head "\n{\n\tunwritten(\"" identifier "\"," \
		(length(identifier solves[chunk]) > 50 ? "\n\t\t" : " ") \
		"\"" solves[chunk] "\");\n}"
}

function note_function(identifier,    each, n, i) {
	n = split(solves[chunk], each, " ")
	for (i = 1; i <= n; i++)
		if (each[i] in points)
			functions[each[i]] = functions[each[i]] " " identifier
		else
			fail("there is no problem " each[i])
}

function keep_contracts(    n, i, each, out, kept_part) {
	cut_items(source[chunk])
	for (i = 1; i <= nitems; i++) {
		kept_part = contract(item[i])
		if (kept_part ~ /\tunwritten\(/ && out !~ /unwritten\.h/)
			out = out "\n#include \"base/unwritten.h\"\n" \
				(comment[i] ~ /^\n/ ? "" : "\n")
		if (kept_part != "")
			out = out comment[i] kept_part "\n"
	}
	sub(/^\n+/, "", out)
	nlines = split(out, text, "\n")
	if (source[chunk] !~ /\n\n$/)
		nlines--
}

function write_chunk(closing,    i, each, n, all) {
	if (emptied[chunk])
		keep_contracts()
	print opening
	for (i = 1; i <= nlines; i++) {
		print text[i]
		all = all " " text[i]
	}
	if (emptied[chunk] && closing ~ /^@ %def /) {
		gsub(/[^A-Za-z0-9_]+/, " ", all)
		n = split(substr(closing, 8), each, " ")
		closing = "@"
		for (i = 1; i <= n; i++)
			if (has(all, each[i]))
				closing = (closing == "@" ? "@ %def" : closing) " " each[i]
	}
	print closing
}

# read prose, and leave answers out
function read_prose(line) {
	if (line ~ /^(```|~~~)/)
		fenced = !fenced
	if (!fenced && !open && line ~ /^#+ /) {
		end_block()
		enter(line)
	}
	if (line ~ /^\[\]\{\.solves problem="[^"]*"\}[ \t]*$/) {
		end_block()
		marked = line
		gsub(/^[^"]*"|"[^"]*$/, "", marked)
	}
	block[++nblock] = line
	if (!fenced && line ~ /^:::+[ \t]*[^: \t]/)
		open++
	else if (!fenced && line ~ /^:::+[ \t]*$/)
		open--
	if (!fenced && open <= 0 && line ~ /^([ \t]*|:::+[ \t]*)$/)
		end_block()
}

function enter(heading,    depth, id) {
	depth = index(heading, " ") - 1
	if (depth <= section_depth)
		section = ""
	if (depth <= derived)
		derived = 0
	if (heading ~ /[{ ]\.derived[ }]/)
		derived = depth
	if (heading !~ /\.problem[ }]/)
		return
	id = heading
	sub(/.*\{#/, "", id)
	sub(/[ }].*/, "", id)
	if (!(id in points))
		order[++nproblems] = id
	points[id] = attribute(heading, "points")
	tests[id] = attribute(heading, "tests")
	section = id in kept ? "" : id
	section_depth = depth
}
function attribute(of, which) {
	if (!match(of, " " which "=(\"[^\"]*\"|[^ }]*)"))
		return ""
	of = substr(of, RSTART + length(which) + 2, RLENGTH - length(which) - 2)
	gsub(/"/, "", of)
	return of
}

function end_block(    i, all) {
	if (!nblock)
		return
	for (i = 1; i <= nblock; i++)
		all = all block[i] "\n"
	removed = section != "" && is_answer(block[1], all)
	if (removed) {
		note_labels(all)
		nblock = 0
		if (block[1] ~ /^::: *\{\.answer/) {
			block[++nblock] = block[1]
			block[++nblock] = "[Not yet written.]{.glance}"
			block[++nblock] = ":::"
		}
	}
	for (i = 1; i <= nblock && writing; i++)
		print redirected(block[i])
	nblock = open = 0
}

function framed(classes) { return "^:::+ *\\{\\.(" classes ")" }
function is_answer(first, all) {
	if (first ~ /^: / && removed)           # the caption of a table that went
		return 1
	if (match(first, /^\[\]\(#[^)]+\)/) && substr(first, 5, RLENGTH - 5) in gone)
		return 1                        # a paragraph about what went
	if (reads_solution(first, all) || derived && is_derivation(first))
		return 1
	if (first ~ framed("question|predict|note|drawing|rule|exercise") || \
		first ~ /^(```|~~~|#)/)
		return 0
	return first ~ /^::: *\{\.(answer|table|solution)/ || \
		all ~ /\{\.claim|`\{\.lua|\.plot[ }]/
}

# under a heading of the class derived the text is the answer
function is_derivation(first) {
	return first !~ framed("question|drawing|rule|exercise") && \
		first !~ /^(```|~~~|#|\[\]\{\.solves)/ && \
		first !~ /^([ \t]*$|Program:|\*\*Sources\.)/ || \
		first ~ /\{\.drawing .*values=/
}
# numbers that are read from the code of a solution go with what uses them
function reads_solution(first, all,    identifier) {
	if (first ~ /^```\{\.lua\}/ && match(all, /[a-z0-9_]+ = \{?constant\(/)) {
		identifier = substr(all, RSTART, RLENGTH)
		sub(/ .*/, "", identifier)
		constants[identifier] = 1
		return 1
	}
	gsub(/[^a-z0-9_]+/, " ", all)
	for (identifier in constants)
		if (has(all, identifier))
			return 1
	return 0
}

function note_labels(all) {
	gsub(/\\label\{/, " #", all)
	while (match(all, /[{ ]#[a-z]+:[^ }]+/)) {
		gone[substr(all, RSTART + 2, RLENGTH - 2)] = section
		all = substr(all, RSTART + RLENGTH)
	}
}
function redirected(line,    done, id) {
	while (match(line, /\(#[^)]+\)/)) {
		id = substr(line, RSTART + 2, RLENGTH - 3)
		done = done substr(line, 1, RSTART + 1) (id in gone ? gone[id] : id) ")"
		line = substr(line, RSTART + RLENGTH)
	}
	return done line
}

# list what is to be written
function write_rows(    i, p) {
	if (rows == "")
		return
	print "problem\tpoints\tto write\ttests" >rows
	for (i = 1; i <= nproblems; i++) {
		p = order[i]
		if (!(p in kept))
			print p "\t" points[p] "\t" substr(functions[p], 2) "\t" \
				tests[p] >rows
	}
}
