# items.awk: the tokens of sources as items, which are definitions, declarations
# and macros, with the names that each declares

# know the words of the language
BEGIN {
	note("int char void float double long short unsigned signed bool _Bool" \
		" auto", types)
	note("const volatile static inline extern register typedef constexpr" \
		" restrict __restrict__ __inline__ mutable _Noreturn _Thread_local" \
		" __device__ __global__ __host__ __shared__ __constant__" \
		" __forceinline__ __noinline__ __grid_constant__", qualifiers)
	note("return else goto case sizeof typeof do if while for switch new" \
		" delete defined throw break continue default operator asm" \
		" volatile _Alignof alignof", statements)
	note("struct union enum class typename", tags)
	note("__attribute__ __launch_bounds__ __align__ alignas _Alignas asm" \
		" static_assert _Static_assert", groups)
}
function note(words, set,    word, n, i) {
	n = split(words, word, " ")
	for (i = 1; i <= n; i++)
		set[word[i]] = keyword[word[i]] = 1
}
function is_name(t) { return t ~ /^[A-Za-z_]/ && !(t in keyword) }

# load the tokens of a source
function load(f,    path, line) {
	path = "build/code/" f
	file[++files] = f
	while ((getline line <path) > 0)
		T[f, ++count[f]] = line
	close(path)
	guarded[f] = T[f, 1] == "#ifndef" && T[f, 4] == "#define" &&
		T[f, 2] == T[f, 5]
}
function find(f, name,    beside) {
	beside = f
	sub(/[^\/]*$/, name, beside)
	return beside in count ? beside : "src/" name in count ? "src/" name : ""
}
function is_list(f) { return f ~ /\.h$/ && !guarded[f] }
function note_parts(f,    i, g) {
	for (i = 1; i < count[f]; i++)
		if (T[f, i] == "#include" && T[f, i + 1] ~ /^"/) {
			g = find(f, substr(T[f, i + 1], 2, length(T[f, i + 1]) - 2))
			if (g && is_list(g))
				part_of_list[g] = 1
		}
}

# cut a source into items
function parse(f) {
	conditions = inner = depth = 0
	begin_item()
	take(f, f, guarded[f] ? 8 : 1)
	if (size)
		end_item(f)
}
function take(f, from, i,    t) {
	for (; i <= count[from]; i++) {
		t = T[from, i]
		if (t ~ /^#[a-z]/)
			i = directive(f, from, i)
		else
			code(f, t)
	}
}
function begin_item() {
	size = body = assigned = 0
	called = ""
	id = items + 1
}
function add(t) { tok[id, ++size] = t }

function code(f, t,    previous) {
	if (!size && (t == ";" || t == "}"))
		return
	previous = tok[id, size]
	add(t)
	if (size == 3 && t == "{" && tok[id, 1] == "extern") {
		size = 0
		return
	}
	if (!depth && t == "=")
		assigned = 1
	if (!depth && t == "(" && !assigned && is_name(previous) &&
			!(previous in groups))
		called = previous
	if (!depth && t == "{")
		body = !assigned && called && previous ~ /^(\)|const)$/
	if (t ~ /^[([{]$/)
		depth++
	else if (t ~ /^[])}]$/ && depth)
		depth--
	if (!depth && (t == ";" || t == "}" && body))
		end_item(f)
}

# follow the directives
function directive(f, from, i,    word, first, g) {
	word = T[from, i]
	first = i
	while (T[from, i] != "\\")
		i++
	if (word == "#include" && T[from, first + 1] ~ /^"/) {
		g = T[from, first + 1]
		g = find(from, substr(g, 2, length(g) - 2))
		include[f, ++includes[f]] = g
		if (g && is_list(g) && g != f)
			take(f, g, 1)
		return i
	}
	if (size && !depth && word ~ /^#(undef|define|include|pragma)$/)
		end_item(f)
	if (!size && word == "#undef")
		return i
	if (!size && word ~ /^#(if|el|endif)/) {
		condition(from, first, i)
		return i
	}
	if (size && word ~ /^#if/)
		inner++
	else if (size && word == "#endif")
		if (inner)
			inner--
		else if (conditions)
			conditions--
	for (; first <= i; first++)
		add(T[from, first])
	if (!depth && word ~ /^#(define|include|pragma)$/)
		end_item(f)
	return i
}

function condition(from, first, last,    text) {
	for (; first < last; first++)
		text = text " " T[from, first]
	if (text ~ /^ #if/)
		holds[++conditions] = text
	else if (text ~ /^ #el/ && conditions)
		holds[conditions] = holds[conditions] text
	else if (conditions)
		conditions--
}

# close an item
function end_item(f,    i, n, word) {
	items++
	in_file[id] = f
	kind[id] = tok[id, 1] == "#define" ? "macro" : \
		tok[id, 1] ~ /^#/ ? "directive" : body ? "function" : "other"
	if (kind[id] == "other" && !assigned && tok[id, size] == ";")
		weaken(id)
	name[id] = kind[id] ~ /function|prototype/ ? called : ""
	if (kind[id] ~ /function|prototype/)
		while (tok[id, 1] ~ /^(static|extern)$/)
			drop_first(id)
	len[id] = size
	declare(id)
	for (i = 1; i <= conditions; i++) {
		n = split(holds[i], word, " ")
		for (inner = 1; inner <= n; inner++)
			add(word[inner])
	}
	inner = 0
	len[id] = size
	begin_item()
}
function drop_first(id,    i) {
	was_static[id] = was_static[id] || tok[id, 1] == "static"
	for (i = 1; i < size; i++)
		tok[id, i] = tok[id, i + 1]
	size--
}

function weaken(id,    k, brace) {
	for (k = 1; k <= size; k++)
		if (tok[id, k] == "{")
			return
	if (tok[id, 1] == "typedef" || tok[id, 1] ~ /^(using|template)$/)
		return
	if (called)
		kind[id] = "prototype"
	else if (tok[id, 1] == "extern") {
		kind[id] = "promise"
		was_static[id] = 0
	} else if (size == 3 && tok[id, 1] in tags)
		kind[id] = "promise"
}

# find the names that an item declares
function declare(id,    k, t, level, top) {
	level = 0
	around[0] = kind[id] == "function" || kind[id] == "prototype" ? "head" : "top"
	group[0] = listed[0] = ""
	split("", list_depth)
	if (name[id])
		mark(id, name[id], "")
	for (k = 1; k <= len[id]; k++) {
		t = tok[id, k]
		if (t ~ /^#/) {
			k = declare_directive(id, k)
			continue
		}
		if (is_name(t)) {
			if (tok[id, k - 1] !~ /^(\.|->|::)$/ && declares(id, k, level))
				mark(id, t, sort_of(id, k, level))
			continue
		}
		if (t in tags && t != "typename")
			group[level] = t
		if (t ~ /^[([{]$/) {
			top = bracket(id, k, level)
			around[++level] = top
			group[level] = listed[level] = ""
		} else if (t ~ /^[])}]$/ && level) {
			closed = around[level--]
			if (closed == "code")
				listed[level] = ""
		} else if (t == ";")
			group[level] = listed[level] = ""
	}
}

function bracket(id, k, level,    t, before) {
	t = tok[id, k]
	before = tok[id, k - 1]
	if (t == "{" && before != "=" && before != ")" && group[level])
		return group[level] == "enum" ? "enum" : "struct"
	if (t == "{")
		return before ~ /^([);{}:]|else|do|const|\\)$/ ? "code" : "init"
	if (t == "(" && (around[level] ~ /head|struct|params|top/ || before == "]"))
		return "params"
	return before == "for" ? "for" : "paren"
}

function sort_of(id, k, level,    at) {
	at = around[level]
	if (at == "params" && tok[id, k - 1] == "*" && tok[id, k - 2] == "(")
		at = around[level - 1] # a pointer to a function
	if (tok[id, k + 1] ~ /^[{:]$/ && group[level])
		return "tag"
	return at == "struct" ? "member" : at == "params" ? "parameter" : ""
}
function mark(id, word, sort) {
	if (!((id, word) in own)) {
		own[id, word] = 0
		names[id] = names[id] word " "
		sort_in[id, word] = sort
	} else if (sort == "" || sort_in[id, word] == "parameter")
		sort_in[id, word] = sort
	if (sort == "member")
		own_field[id, word] = 1
}
function declare_directive(id, k) {
	if (tok[id, k] == "#define") {
		mark(id, tok[id, ++k], "")
		if (!defines[id])
			defines[id] = tok[id, k]
		if (tok[id, k + 1] == "(")
			for (k++; tok[id, k] != ")"; k++)
				if (is_name(tok[id, k]))
					mark(id, tok[id, k], "parameter")
		return k
	}
	while (k < len[id] && tok[id, k] != "\\")
		k++
	return k
}

# is the name at k a declarator?
function declares(id, k, level,    p, q, r, j, ours) {
	p = tok[id, k - 1]
	q = tok[id, k + 1]
	if (around[level] == "enum")
		return p == "{" || p == ","
	if (p in tags)
		return q ~ /^[{:]$/ || p ~ /^(class|typename)$/ && q ~ /^[,>=]$/
	if (p in types || is_name(p))
		ours = 1
	else if (p in qualifiers)
		ours = q ~ /^([=;,)]|\[)$/
	else if (p == "," && listed[level])
		ours = q !~ /^[*&<(]$/ && !is_name(q) && !(q in types) && q != "::"
	else if (p == ")" && q == "{" && group[level])
		return 1 # struct alignas(16) name
	else if (p == "}")
		ours = closed ~ /struct|enum/ && around[level] != "code" ||
			closed ~ /struct|enum/ && q ~ /^([;=,]|\[)$/
	else if (p ~ /^(\*|&|&&)$/)
		ours = pointed(id, k, level, q)
	else if (p == ">")
		ours = made_by_template(id, k, level, q)
	else if (p ~ /^[;{}]$/ && q == ":" && around[level] == "code")
		return 1
	if (ours)
		listed[level] = 1
	return ours
}

function opens_statement(t) {
	return t == "" || t ~ /^[;{}:]$/ || t == "\\" || t in qualifiers ||
		t in tags
}
function pointed(id, k, level, q,    j, P, before) {
	for (j = k - 1; tok[id, j] ~ /^(\*|&|&&)$/ || tok[id, j] in qualifiers; j--)
		;
	P = tok[id, j]
	before = tok[id, j - 1]
	if (P == "(" && q == ")" && tok[id, k + 2] ~ /^[([]$/)
		return before in types || is_name(before) || before == "*"
	if (P in types)
		return q != ")" || around[level] ~ /params/
	if (P == ",")
		return listed[level]
	if (P == "}")
		return closed ~ /struct|enum/
	if (!is_name(P) && P != ">")
		return 0
	if (around[level] ~ /top|struct|params|head/)
		return q ~ /^([=;,):]|\[)$/
	return opens_statement(before) || before == "(" && around[level] == "for" ||
		P == ">" && made_by_template(id, j + 1, level, q)
}

function made_by_template(id, k, level, q,    j, open, before) {
	if (q !~ /^([=;,(){]|\[)$/)
		return 0
	for (j = k - 1; j > 0 && k - j < 60; j--) {
		if (tok[id, j] == ">")
			open++
		else if (tok[id, j] == ">>")
			open += 2
		else if (tok[id, j] == "<" && --open == 0)
			break
		else if (tok[id, j] ~ /^[;{}]$/)
			return 0
	}
	before = tok[id, j - 2]
	return is_name(tok[id, j - 1]) && (opens_statement(before) ||
		before == "::" || around[level] ~ /params/ && before ~ /^[(,]$/)
}
