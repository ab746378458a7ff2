-- highlight.lua: chunks as marked text: keywords, comments, strings, links
local chunks, marks = require "chunks", require "marks"
local mark = marks.mark
local M = {columns = 82}

-- describe the languages
local function words(text)
	local set = {}
	for w in text:gmatch("%S+") do set[w] = true end
	return set
end

local languages = {
	c = {line = "//", open = "/*", close = "*/", quotes = "\"'", hash = true,
		keywords = words [[auto bool break case char const continue default
		do double else enum extern float for goto if inline int long restrict
		return short signed sizeof static static_assert struct switch typedef
		union unsigned void volatile while uint8_t uint16_t uint32_t uint64_t
		int8_t int16_t int32_t int64_t size_t real FILE half __global__
		__device__ __shared__ __host__ __restrict__ __launch_bounds__
		__forceinline__ constexpr template typename]]},
	lua = {line = "--", long = "[[", close = "]]", quotes = "\"'",
		keywords = words [[and break do else elseif end false for function
		goto if in local nil not or repeat return then true until while]]},
}

languages.sh = {line = "#", blank = true, quotes = "\"'", keywords = words [[if
	then else elif fi for while until do done case esac in function local
	return exit export set shift trap]]}
languages.mk = {line = "#", blank = true, quotes = "", keywords = words [[ifeq
	ifneq ifdef ifndef else endif include define endef export override]]}
languages.awk = {line = "#", blank = true, quotes = "\"", keywords = words
	[[BEGIN END if else while for in do break continue function return next
	exit print printf getline delete]]}
languages.gp = {line = "#", blank = true, quotes = "\"'", keywords = words
	[[set unset plot replot load if else do for while with using title via
	fit print]]}
languages.py = {line = "#", quotes = "\"'", keywords = words [[and as assert
	break class continue def del elif else except finally for from global if
	import in is lambda not or pass raise return try while with yield None
	True False]]}
languages.tex = {line = "%", quotes = "", keywords = {}}
languages.text = {quotes = "", keywords = {}}

-- mark names and links
function M.name(name)
	if not name:find(" ") then return mark("q", "", name) end
	return (name:gsub("%[%[(.-)%]%]", function(code)
		return mark("q", "", code)
	end))
end

function M.reference(book, name, kind)
	local e = book.named[name]
	if not e then return M.name(name) end
	local first = e.parts[1]
	if first.away then return mark("a", first.away, M.name(name)) end
	return mark(kind or "r", first.id, M.name(name))
end

local function identifier(e, text)
	if not e or #e.defs == 0 or e.defs[1].away then return text end
	return mark("i", e.defs[1].id, text)
end

-- join the tokens of a line
local function join(tokens)
	local text, refs, names = "", {}, {}
	for _, t in ipairs(tokens) do
		if type(t) == "string" then
			text = text .. t
		elseif t.ref then
			text = text .. "\4"
			refs[#text] = t.ref
		elseif t.use then
			names[#text + 1] = t.use
		end
	end
	return text, refs, names
end

-- take a note for the margin
local noted = {}

local function remember(p, e)
	if not p.piece or not e.defs[1]
		or pandoc.List.includes(e.defs, p.piece) then return end
	local id = p.piece.id
	if #e.name <= 22 and id - (noted[e] or -9) > 4 then
		table.insert(p.notes, e)
	end
	noted[e] = id
end

local function note(p)
	local e = table.remove(p.notes, 1)
	if not e then return "" end
	local from = e.defs[1]
	return mark(from.away and "m" or "n", from.away or from.id, e.name)
end

-- highlight comments and strings
local function comment(p, i)
	local text, lang = p.text, p.lang
	local two, stop = text:sub(i, i + 1)
	local style = p.inside or two == lang.open and "c"
		or two == lang.long and "s"
	if style then
		local _, e = text:find(lang.close, p.inside and i or i + 2, true)
		stop, p.inside = e or #text, not e and style or nil
	elseif lang.line and text:sub(i, i + #lang.line - 1) == lang.line
		and (not lang.blank or i == 1 or text:sub(i - 1, i - 1) == " ") then
		stop, style = #text, "c"
	end
	if not stop then return end
	return mark(style, "", p.plain(i, stop)), stop + 1
end

local function string_literal(p, i)
	local q = p.text:sub(i, i)
	if q == "" or not p.lang.quotes:find(q, 1, true) then return end
	local j = i + 1
	while j <= #p.text do
		local c = p.text:sub(j, j)
		if c == "\\" then j = j + 1
		elseif c == q then return mark("s", "", p.plain(i, j)), j + 1
		end
		j = j + 1
	end
end

-- highlight words
local function word(p, i)
	local name = p.names[i]
	if name then
		local e = chunks.definition(p.book, name, p.family)
		if e then
			remember(p, e)
			return identifier(e, name), i + #name
		end
	end
	local w = p.text:match("^[%a_][%w_]*", i)
	if w then
		return p.lang.keywords[w] and mark("k", "", w) or w, i + #w
	end
	if p.lang.hash then
		local d = p.text:match("^#%s*%a+", i)
		if d and p.text:sub(1, i - 1):match("^%s*$") then
			return mark("k", "", d), i + #d
		end
	end
end

-- highlight one line
local function highlight_line(p, tokens)
	p.text, p.refs, p.names = join(tokens)
	local out, i = {}, 1
	while i <= #p.text do
		local found, after
		if p.refs[i] then
			found, after = M.reference(p.book, p.refs[i]), i + 1
		else
			found, after = comment(p, i)
			if not found then found, after = string_literal(p, i) end
			if not found then found, after = word(p, i) end
		end
		if not found then
			found = p.text:match("^[^%a_\"'/#%%\4[-]+", i) or p.text:sub(i, i)
			after = i + #found
		end
		out[#out + 1] = found
		i = after
	end
	return table.concat(out)
end

local function highlighter(book, lang, piece)
	local p = {book = book, family = lang, lang = languages[lang or "c"],
		piece = piece, notes = {}}
	function p.plain(i, j)
		local at = i - 1
		return (p.text:sub(i, j):gsub("()\4", function(k)
			return M.reference(p.book, p.refs[at + k])
		end))
	end
	return p
end

-- count the columns of a line
local function expand(tokens)
	local col, out = 0, {}
	for _, t in ipairs(tokens) do
		if type(t) == "string" then
			t = t:gsub("[^\t]*\t?", function(part)
				col = col + (utf8.len((part:gsub("\t", ""))) or #part)
				if part:sub(-1) ~= "\t" then return part end
				local pad = 4 - col % 4
				col = col + pad
				return part:sub(1, -2) .. (" "):rep(pad)
			end)
		elseif t.ref then
			col = col + math.floor(utf8.len(t.ref) * 0.85) + 5
		end
		table.insert(out, t)
	end
	return out, col
end

-- highlight a list of lines
local function highlight_lines(p, lines, too_wide)
	local out = {}
	for k, line in ipairs(lines) do
		local tokens, width = expand(line)
		if width > M.columns then too_wide(line.n, width) end
		local blanks, rest = "", tokens[1]
		if type(rest) == "string" then
			blanks, tokens[1] = rest:match("^( *)(.*)$")
		end
		out[k] = blanks .. highlight_line(p, tokens) .. note(p)
	end
	return out
end

-- write the footer of a chunk
function M.ids(pieces, first)
	local ids = {}
	for k = first or 1, #pieces do
		if not pieces[k].away then ids[#ids + 1] = pieces[k].id end
	end
	return table.concat(ids, ",")
end

local function span(class, content, ids)
	return pandoc.Span(content, pandoc.Attr("", {class}, {chunks = ids}))
end

local function footer(book, e, piece)
	local out = pandoc.List {}
	if piece == e.parts[1] then
		local seen = {}
		for _, user in ipairs(e.used_in) do
			if not seen[user.name] then
				seen[user.name] = true
				out:insert(span("usedin", {pandoc.Code(
					M.reference(book, user.name), {class = "marked"})}))
			end
		end
		local rest = M.ids(e.parts, 2)
		if rest ~= "" then out:insert(span("continued", {}, rest)) end
	else
		out:insert(span("begun", {}, M.ids {e.parts[1]}))
	end
	local names = pandoc.List {}
	for k, d in ipairs(piece.defs) do
		if k > 1 then names:extend {pandoc.Str ",", pandoc.Space()} end
		local label = piece.lang .. "." .. d:gsub("[^%w]", "-")
		names:insert(pandoc.Code(mark("d", label, d), {class = "marked"}))
	end
	if #names > 0 then out:insert(span("defines", names)) end
	return out
end
local function code(text) return pandoc.Code(text, {class = "marked"}) end
local function block(lines, class)
	return pandoc.CodeBlock(table.concat(lines, "\n"),
		pandoc.Attr("", {"marked", class}))
end

local function too_wide(complain)
	return function(n, width)
		complain(n, ("code line of %d columns, %d fit"):format(width,
			M.columns))
	end
end

-- a chunk that is only checked
function M.measure(piece, complain)
	for _, line in ipairs(piece.lines) do
		local _, width = expand(line)
		if width > M.columns then too_wide(complain)(line.n, width) end
	end
	return {}
end

function M.chunk(book, piece, complain)
	local e = book.named[piece.name]
	while #piece.lines > 0 and #piece.lines[#piece.lines] <= 1
		and (piece.lines[#piece.lines][1] or "") == "" do
		table.remove(piece.lines)
	end
	local p = highlighter(book, piece.lang, piece)
	local lines = highlight_lines(p, piece.lines, too_wide(complain))
	return pandoc.Div({pandoc.Plain {code(M.name(piece.name))}, block(lines),
		pandoc.Plain(footer(book, e, piece))}, pandoc.Attr("", {"chunk"}, {
		chunk = tostring(piece.id), line = tostring(piece.line),
		file = piece.file or "", first = piece == e.parts[1] and "yes" or "no"}))
end

-- highlight a chunk
function M.listing(text, lang, too_wide)
	local p = highlighter(nil, languages[lang] and lang or "text")
	local lines = {}
	for line in (text .. "\n"):gmatch("(.-)\n") do
		table.insert(lines, {line})
	end
	return block(highlight_lines(p, lines, too_wide), "listing")
end

-- mark a quotation
function M.quote(book, tokens)
	local out, name = {}, nil
	for _, t in ipairs(tokens) do
		if type(t) == "table" and t.use then
			name = t.use
		elseif type(t) == "table" and t.ref then
			table.insert(out, M.reference(book, t.ref))
		else
			local e = name and chunks.definition(book, name)
			table.insert(out, identifier(e, t))
			name = nil
		end
	end
	return code(table.concat(out))
end
return M
