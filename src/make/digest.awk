# digest.awk: what each program and backend is made of, as items and their hashes;
# used after items.awk
{ load($0) }
END {
	split("7 11", first, " ")
	split("1000003 999983", factor, " ")
	split("2147483629 2147483587", prime, " ")
	for (n = 33; n < 127; n++)
		code_of[sprintf("%c", n)] = n
	for (n = 1; n <= files; n++)
		if (is_list(file[n]))
			note_parts(file[n])
	for (n = 1; n <= files; n++)
		if (!(file[n] in part_of_list))
			parse(file[n])
	for (id = 1; id <= items; id++)
		export(id)
	for (n = 1; n <= files; n++)
		visit(file[n], file[n])
	note_makers()
	for (n = 1; n <= files; n++)
		note_header(file[n])
	for (id = 1; id <= items; id++)
		mention(id)
	for (id = 1; id <= items; id++)
		link(id)
	split("cpu cuda", backends, " ")
	for (b = 1; b <= 2; b++) {
		color(backends[b])
		for (n = 1; n <= files; n++)
			if (is_program(file[n]))
				list(file[n], backends[b])
	}
}

# publish the names of items
function export(id,    word, n, i, weak) {
	weak = kind[id] ~ /prototype|promise/
	n = split(names[id], word, " ")
	for (i = 1; i <= len[id]; i++)
		if ((id, tok[id, i]) in own && !own[id, tok[id, i]])
			own[id, tok[id, i]] = ++owned[id]
	for (i = 1; i <= n; i++)
		if (is_public(id, word[i]))
			publish(id, word[i], weak)
	if (is_list(in_file[id]))
		publish_list(id)
}
function is_public(id, word) {
	if (kind[id] == "macro")
		return word == defines[id]
	return name[id] ? word == name[id] : sort_in[id, word] != "parameter"
}
function publish(id, word, weak,    entry) {
	entry = id ":" own[id, word] ":" weak " "
	if ((id, word) in own_field)
		who_has_field[word] = who_has_field[word] entry
	else if (sort_in[id, word] == "tag")
		who_has_tag[word] = who_has_tag[word] entry
	else
		who_has[word] = who_has[word] entry
	if (weak)
		promises[id] = word
	else
		defined[word] = 1
}

function publish_list(id,    k, level, t) {
	for (k = 1; k <= len[id]; k++) {
		t = tok[id, k]
		level += (t == "(") - (t == ")")
		if (level == 1 && is_name(t) && !((id, t) in own)) {
			own[id, t] = ++owned[id]
			who_has[t] = who_has[t] id ":" owned[id] ":0 "
		}
	}
}

# see through includes
function visit(f, g,    i) {
	if (!g || (f, g) in sees)
		return
	sees[f, g] = 1
	for (i = 1; i <= includes[g]; i++)
		visit(f, include[g, i])
}

# note the operations that a source defines or names
function note_makers(    f, id, word) {
	for (id = 1; id <= items; id++) {
		f = in_file[id]
		word = kind[id] == "function" ? name[id] : ""
		if (kind[id] == "other" && assigned_name(id) != "")
			word = assigned_name(id)
		if (f ~ /^src\/ops\/((cpu|cuda)\/|formulas\.c)/ &&
				word ~ /^(cpu|cuda|formula)_/) {
			is_maker[f] = 1
			make_by(word, f)
		}
		word = defines[id]
		if (word ~ /^(cpu|cuda)_/ && len[id] == 5 &&
				tok[id, 4] ~ /^(cpu|cuda)_/) {
			sub(/^(cpu|cuda)_/, "", word)
			other[word] = tok[id, 4]
		}
	}
	for (f = 1; f <= files; f++)
		note_uses(file[f])
}
function assigned_name(id,    k) {
	for (k = 1; k < len[id] && tok[id, k] != "="; k++)
		if (tok[id, k + 1] == "[")
			return tok[id, k]
	return ""
}

function make_by(word, f) {
	makers[word] = makers[word] f " "
	sub(/^(cpu|cuda|formula)_/, "", word)
	makers[word] = makers[word] f " "
}
function note_uses(f,    i, word) {
	if (f ~ /^src\/ops\/((dispatch|ops|cuda\/operations)\.c|.*\.h)$/)
		return
	for (i = 1; i <= count[f]; i++) {
		word = T[f, i]
		if (!((f, word) in said) && word ~ /^[a-z]/) {
			said[f, word] = 1
			uses[f] = uses[f] makers[word]
			if (word in other)
				uses[f] = uses[f] makers[other[word]]
		}
	}
}

# find what a name means
function resolve(f, t,    to, rest) {
	if (!((f, t) in resolved)) {
		to = t in who_has ? targets(f, t, who_has[t]) : ""
		if (to == "" && t in who_has_tag)
			to = targets(f, t, who_has_tag[t])
		if (to == "" && match(t, /^(cpu_|cuda_|formula_|E_)/)) {
			rest = substr(t, RLENGTH + 1)
			if (rest in who_has)
				to = targets(f, rest, who_has[rest])
			if (to != "")
				to = "affix:" substr(t, 1, RLENGTH) " " to
		}
		if (to == "" && t in who_has_field)
			to = targets(f, t, who_has_field[t])
		resolved[f, t] = to
	}
	return resolved[f, t]
}
function resolve_field(f, t,    to) {
	if (!((f, t) in resolved_field)) {
		to = t in who_has_field ? targets(f, t, who_has_field[t]) : ""
		if (to == "")
			to = resolve(f, t)
		resolved_field[f, t] = to
	}
	return resolved_field[f, t]
}

function mention(id,    k, t, to, target, part, n, i) {
	for (k = 1; k <= len[id]; k++) {
		t = tok[id, k]
		if (!is_name(t) || tok[id, k - 1] ~ /^(\.|->|::)$/ || (id, t) in own)
			continue
		to = resolve(in_file[id], t)
		if (t in who_has_tag)
			to = to " " targets(in_file[id], t, who_has_tag[t])
		n = split(to, target, " ")
		for (i = 1; i <= n; i++) {
			split(target[i], part, ":")
			if (part[1] != "affix" && !((id, part[1]) in near)) {
				near[id, part[1]] = 1
				close_to[id] = close_to[id] part[1] " "
			}
		}
	}
}
function nearest(id, to,    target, part, n, i, first, second) {
	n = split(to, target, " ")
	if (n < 2)
		return to
	for (i = 1; i <= n; i++) {
		split(target[i], part, ":")
		if ((id, part[1]) in near)
			first = first target[i] " "
		else if (is_near(id, part[1]))
			second = second target[i] " "
	}
	return first != "" ? first : second != "" ? second : to
}
function is_near(id, other,    step, n, i) {
	n = split(close_to[id], step, " ")
	for (i = 1; i <= n; i++)
		if ((step[i], other) in near)
			return 1
	return 0
}

function targets(f, t, entries,    entry, part, n, i, here, seen, promised) {
	n = split(entries, entry, " ")
	for (i = 1; i <= n; i++) {
		split(entry[i], part, ":")
		if (!((f, in_file[part[1]]) in sees))
			continue
		if (part[3])
			promised = promised part[1] ":" part[2] " "
		else if (in_file[part[1]] == f)
			here = here part[1] ":" part[2] " "
		else
			seen = seen part[1] ":" part[2] " "
	}
	if (here != "" || seen != "")
		return here != "" ? here : seen
	return promised == "" ? "" : kept(entry, n, promised)
}

function kept(entry, n, promised,    part, i, f, found) {
	for (i = 1; i <= n; i++) {
		split(entry[i], part, ":")
		f = in_file[part[1]]
		if (!part[3] && f ~ /\.cu?$/ && !(f in is_maker) && !is_program(f) &&
				!was_static[part[1]])
			found = found part[1] ":" part[2] " "
	}
	return found == "" ? promised : found
}

# hash an item without its names
function fold(w, h, x) { return (h * factor[w] + x) % prime[w] }
function hash(w, t,    i, h) {
	if (!((w, t) in known)) {
		h = first[w]
		for (i = 1; i <= length(t); i++)
			h = fold(w, h, code_of[substr(t, i, 1)] + 0)
		known[w, t] = h
	}
	return known[w, t]
}

function link(id,    k, t, h, g, field, key, num, f, to) {
	f = in_file[id]
	split("", num)
	h = 1
	g = 2
	for (k = 1; k <= len[id]; k++) {
		t = tok[id, k]
		if (!is_name(t)) {
			h = fold(1, h, hash(1, t))
			g = fold(2, g, hash(2, t))
			continue
		}
		field = tok[id, k - 1] ~ /^(\.|->|::)$/
		if ((id, t) in own && (!field || (id, t) in own_field)) {
			h = fold(1, h, own[id, t])
			g = fold(2, g, own[id, t])
			continue
		}
		key = field t
		if (!(key in num)) {
			to = field ? nearest(id, resolve_field(f, t)) : resolve(f, t)
			if (to == "" && field && (id, t) in own)
				to = "own"
			if (to == "" && tok[id, k - 1] in tags) {
				own[id, t] = ++owned[id] # a type that nobody here looks into
				to = "own"
			}
			num[key] = to == "" ? 0 : to == "own" ? -own[id, t] : ++refs[id]
			if (num[key] > 0)
				ref[id, refs[id]] = to
		}
		h = fold(1, h, num[key] ? 1000 + num[key] : hash(1, t))
		g = fold(2, g, num[key] ? 1000 + num[key] : hash(2, t))
	}
	shape1[id] = h
	shape2[id] = g
}

# refine the hashes
function color(backend,    id, round) {
	for (id = 1; id <= items; id++) {
		color1[id] = shape1[id]
		color2[id] = shape2[id]
	}
	for (round = 1; round <= 4; round++) {
		for (id = 1; id <= items; id++) {
			h = shape1[id]
			g = shape2[id]
			for (k = 1; k <= refs[id]; k++)
				mix(backend, ref[id, k])
			next1[id] = h
			next2[id] = g
		}
		for (id = 1; id <= items; id++) {
			color1[id] = next1[id]
			color2[id] = next2[id]
		}
	}
}

function mix(backend, to,    target, part, n, i, sum1, sum2) {
	n = split(to, target, " ")
	for (i = 1; i <= n; i++) {
		split(target[i], part, ":")
		if (part[1] == "affix") {
			sum1 += hash(1, part[2])
			sum2 += hash(2, part[2])
		} else if (backend == "cuda" || in_file[part[1]] !~ /\/cuda\//) {
			sum1 += fold(1, color1[part[1]], part[2])
			sum2 += fold(2, color2[part[1]], part[2])
		}
	}
	h = fold(1, h, sum1 % prime[1])
	g = fold(2, g, sum2 % prime[2])
}

# choose the sources of a program
function is_program(f) {
	return f ~ /^src\/experiments\/.*\.c$/
}
function note_header(f,    header) {
	header = include[f, 1]
	if (header && f ~ /\.cu?$/ && !is_program(f) && !(f in is_maker))
		needs[header] = needs[header] f " "
}
function choose(f, backend,    more, n, i) {
	if (!f || f in chosen || (backend == "cpu" && f ~ /\/cuda\//))
		return
	chosen[f] = 1
	for (i = 1; i <= includes[f]; i++)
		choose(include[f, i], backend)
	n = split(needs[f] (operations ? uses[f] : ""), more, " ")
	for (i = 1; i <= n; i++)
		choose(more[i], backend)
}

# list the items of a program
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
	for (i = 1; i <= items; i++)
		if (in_file[i] in chosen && !(promises[i] in defined))
			printf "%08x%08x %s %s\n", color1[i], color2[i], in_file[i], \
				(name[i] ? name[i] : names[i]) >out
	close(out)
}
