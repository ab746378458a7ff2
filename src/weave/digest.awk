# digest.awk: lists for each program and backend the sources that it is made of;
# reads hashes and paths of sources without comments
{
	code = ""
	getline code <$2
	close($2)
	file[++n] = f = substr($2, length("build/code/") + 1)
	hash[f] = $1
	text[f] = code
	note_includes(f, code)
	if (f ~ /^src\/ops\/(cpu|cuda)\//) {
		note_operations(f, code)
		note_other_names(code)
	}
}
END {
	for (i = 1; i <= n; i++) {
		note_uses(file[i])
		note_header(file[i], find(file[i], include[file[i], 1]))
	}
	for (i = 1; i <= n; i++)
		if (is_program(file[i])) {
			list(file[i], "cpu")
			list(file[i], "cuda")
		}
}
function note_includes(f, code) {
	while (match(code, /#include"[^"]*"/)) {
		include[f, ++includes[f]] = substr(code, RSTART + 9, RLENGTH - 10)
		code = substr(code, RSTART + RLENGTH)
	}
}
function find(f, name,    beside) {
	beside = f
	sub(/[^\/]*$/, name, beside)
	return beside in hash ? beside : "src/" name in hash ? "src/" name : ""
}
function is_program(f) {
	return f ~ /^src\/experiments\/.*\.c$/ &&
		!(substr(f, 1, length(f) - 1) "h" in hash)
}
function note_header(f, header) {
	if (header && f ~ /\.cu?$/ && !is_program(f) && !(f in is_maker))
		needs[header] = needs[header] f " "
}
function note_operations(f, code,    name) {
	while (match(code, /(cpu|cuda)_[a-z0-9_]+(\([^(){}]*\)[{]|\[\]=)/)) {
		name = substr(code, RSTART, RLENGTH)
		code = substr(code, RSTART + RLENGTH)
		sub(/[([].*/, "", name)
		makers[name] = makers[name] f " "
		sub(/^(cpu|cuda)_/, "", name)
		makers[name] = makers[name] f " "
		is_maker[f] = 1
	}
}
function note_other_names(code,    part) {
	while (match(code, /#define (cpu|cuda)_[a-z0-9_]+=(cpu|cuda)_[a-z0-9_]+/)) {
		split(substr(code, RSTART + 8, RLENGTH - 8), part, "=")
		code = substr(code, RSTART + RLENGTH)
		sub(/^(cpu|cuda)_/, "", part[1])
		other[part[1]] = part[2]
	}
}
function note_uses(f,    word, n, i) {
	if (f ~ /^src\/ops\/(ops\.c|.*\.h)$/)
		return
	n = split(text[f], word, /[^A-Za-z0-9_]+/)
	for (i = 1; i <= n; i++)
		if (!seen[f, word[i]]++)
			uses[f] = uses[f] makers[word[i]] makers[other[word[i]]]
}
function choose(f, backend,    more, n, i) {
	if (!(f in hash) || f in chosen || (backend == "cpu" && f ~ /\/cuda\//))
		return
	chosen[f] = 1
	for (i = 1; i <= includes[f]; i++)
		choose(find(f, include[f, i]), backend)
	n = split(needs[f] (operations ? uses[f] : ""), more, " ")
	for (i = 1; i <= n; i++)
		choose(more[i], backend)
}
function list(program, backend,    i, out) {
	out = program
	sub(/.*\//, "build/code/", out)
	sub(/c$/, backend, out)
	for (operations = 0; operations < 2; operations++) {
		split("", chosen)
		choose(program, backend)
		if (!("src/ops/list.h" in chosen))
			break
	}
	for (i = 1; i <= n; i++)
		if (file[i] in chosen)
			print hash[file[i]], file[i] >out
	close(out)
}
