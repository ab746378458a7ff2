-- highlight.lua: chunks as LaTeX: bold keywords, grey comments, links
local chunks = require "chunks"
local M = {columns = 82}

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
local special = {["\\"] = "\\nwbs{}", ["{"] = "\\{", ["}"] = "\\}",
	["$"] = "\\$", ["&"] = "\\&", ["#"] = "\\#", ["%"] = "\\%",
	["_"] = "\\_", ["^"] = "\\nwhat{}", ["~"] = "\\nwtilde{}"}

function M.escape(s)
	s = s:gsub("[\\{}$&#%%_^~]", special)
	return (s:gsub(" ", "\\ "))
end
function M.name(name)
	local out = name:gsub("(.-)%[%[(.-)%]%]", function(before, code)
		return M.escape(before) .. "\1" .. M.escape(code) .. "\2"
	end)
	local done, rest = out:match("^(.*\2)(.*)$")
	out = done and done .. M.escape(rest) or M.escape(name)
	out = out:gsub("\1", "\\nwcode{"):gsub("\2", "}")
	if not name:find(" ") then out = "\\nwcode{" .. out .. "}" end
	return out
end

function M.reference(book, name)
	local e = book.named[name]
	if not e then return M.name(name) end
	return ("\\nwref{%d}{%s}"):format(e.parts[1].id, M.name(name))
end

local function identifier(e, text)
	if not e or #e.defs == 0 then return M.escape(text) end
	return ("\\nwid{%d}{%s}"):format(e.defs[1].id, M.escape(text))
end
local function join(tokens)
	local text, refs, marks = "", {}, {}
	for _, t in ipairs(tokens) do
		if type(t) == "string" then
			text = text .. t
		elseif t.ref then
			text = text .. "\1"
			refs[#text] = t.ref
		elseif t.use then
			marks[#text + 1] = t.use
		end
	end
	return text, refs, marks
end
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
	return ("\\nwm{%d}{%s}"):format(e.defs[1].id, M.escape(e.name))
end
local function comment(p, i)
	local text, lang = p.text, p.lang
	local two, stop = text:sub(i, i + 1)
	local style = p.inside or two == lang.open and "comment"
		or two == lang.long and "string"
	if style then
		local _, e = text:find(lang.close, p.inside and i or i + 2, true)
		stop, p.inside = e or #text, not e and style or nil
	elseif lang.line and text:sub(i, i + #lang.line - 1) == lang.line
		and (not lang.blank or i == 1 or text:sub(i - 1, i - 1) == " ") then
		stop, style = #text, "comment"
	end
	if not stop then return end
	return "\\nw" .. style .. "{" .. p.plain(i, stop) .. "}", stop + 1
end
local function string_literal(p, i)
	local q = p.text:sub(i, i)
	if q == "" or not p.lang.quotes:find(q, 1, true) then return end
	local j = i + 1
	while j <= #p.text do
		local c = p.text:sub(j, j)
		if c == "\\" then j = j + 1
		elseif c == q then return "\\nwstring{" .. p.plain(i, j) .. "}", j + 1
		end
		j = j + 1
	end
end
local function word(p, i)
	local mark = p.marks[i]
	if mark then
		local e = chunks.definition(p.book, mark, p.family)
		if e then
			remember(p, e)
			return identifier(e, mark), i + #mark
		end
	end
	local w = p.text:match("^[%a_][%w_]*", i)
	if w and p.lang.keywords[w] then
		return "\\nwkeyword{" .. M.escape(w) .. "}", i + #w
	elseif w then
		return M.escape(w), i + #w
	end
	if p.lang.hash then
		local d = p.text:match("^#%s*%a+", i)
		if d and p.text:sub(1, i - 1):match("^%s*$") then
			return "\\nwkeyword{" .. M.escape(d) .. "}", i + #d
		end
	end
end
local function highlight_line(p, tokens)
	p.text, p.refs, p.marks = join(tokens)
	local out, i = {}, 1
	while i <= #p.text do
		local tex, after
		if p.refs[i] then
			tex, after = M.reference(p.book, p.refs[i]), i + 1
		else
			tex, after = comment(p, i)
			if not tex then tex, after = string_literal(p, i) end
			if not tex then tex, after = word(p, i) end
		end
		if not tex then
			local run = p.text:match("^[^%a_\"'/#%%\1[-]+", i)
				or p.text:sub(i, i)
			tex, after = M.escape(run), i + #run
		end
		table.insert(out, tex)
		i = after
	end
	return table.concat(out)
end
local function highlighter(book, lang, piece)
	local p = {book = book, family = lang, lang = languages[lang or "c"],
		piece = piece, notes = {}}
	function p.plain(i, j)
		local out = M.escape(p.text:sub(i, j))
		for at = i, j do
			if p.refs[at] then
				local ref = M.reference(p.book, p.refs[at])
				out = out:gsub("\1", function() return ref end, 1)
			end
		end
		return out
	end
	return p
end
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
local function highlight_lines(p, lines, out, too_wide)
	for k, line in ipairs(lines) do
		local tokens, width = expand(line)
		if width > M.columns then too_wide(line.n, width) end
		local first = type(tokens[1]) == "string" and tokens[1] or ""
		local indent = #first:match("^ *")
		if indent > 0 then tokens[1] = first:sub(indent + 1) end
		local keep = (k <= 2 or k >= #lines - 1) and "k" or ""
		table.insert(out, ("\\nwl%s{%d}{%s%s}"):format(keep, indent,
			highlight_line(p, tokens), note(p)))
	end
end
function M.ids(pieces, first)
	local ids = pandoc.List.map(pieces, function(p) return p.id end)
	return table.concat(ids, ",", first or 1)
end
local function footer(book, e, piece)
	local out = {}
	if piece == e.parts[1] then
		local seen = {}
		for _, user in ipairs(e.used_in) do
			if not seen[user.name] then
				seen[user.name] = true
				table.insert(out, "\\nwusedin{" ..
					M.reference(book, user.name) .. "}")
			end
		end
		local rest = M.ids(e.parts, 2)
		if rest ~= "" then table.insert(out, "\\nwcontinued{" .. rest .. "}") end
	else
		table.insert(out, ("\\nwbegun{%d}"):format(e.parts[1].id))
	end
	if #piece.defs > 0 then
		local names = {}
		for _, d in ipairs(piece.defs) do
			table.insert(names, ("\\nwix{%s.%s}{%s}"):format(piece.lang,
				d:gsub("[^%w]", "-"), M.escape(d)))
		end
		table.insert(out, "\\nwdefines{" .. table.concat(names, ", ") .. "}")
	end
	if #out == 0 then return "\\nwend" end
	return "\\nwfoot{" .. table.concat(out, "\\nwsep ") .. "}"
end

function M.chunk(book, piece, complain)
	local e = book.named[piece.name]
	local p = highlighter(book, piece.lang, piece)
	local out = {("%%nw %d\n\\nwhead{%d}{%s}{%s}{%d}"):format(piece.line,
		piece.id, M.name(piece.name), piece == e.parts[1] and "" or "+",
		piece.line)}
	while #piece.lines > 0 and #piece.lines[#piece.lines] <= 1
		and (piece.lines[#piece.lines][1] or "") == "" do
		table.remove(piece.lines)
	end
	highlight_lines(p, piece.lines, out, function(n, width)
		complain(n, ("code line of %d columns, %d fit"):format(width,
			M.columns))
	end)
	table.insert(out, footer(book, e, piece))
	return table.concat(out, "\n")
end
function M.listing(text, lang, too_wide)
	local p = highlighter(nil, languages[lang] and lang or "text")
	local lines, out = {}, {"\\nwlisting"}
	for line in (text .. "\n"):gmatch("(.-)\n") do
		table.insert(lines, {line})
	end
	highlight_lines(p, lines, out, too_wide)
	table.insert(out, "\\nwlistingend")
	return table.concat(out, "\n")
end
function M.breakable(tex)
	return (tex:gsub("/(%a)", "/\\nwbreak %1"))
end

function M.code(text)
	return "\\nwcode{" .. M.breakable(M.escape(text)):gsub("(%a%-)(%a)",
		"%1\\nwbreak %2") .. "}"
end

function M.quote(book, tokens)
	local out = {}
	local mark
	for _, t in ipairs(tokens) do
		if type(t) == "table" and t.use then
			mark = t.use
		elseif type(t) == "table" and t.ref then
			table.insert(out, M.reference(book, t.ref))
		else
			local e = mark and chunks.definition(book, mark)
			table.insert(out, e and identifier(e, t) or M.escape(t))
			mark = nil
		end
	end
	return "\\nwcode{" .. M.breakable(table.concat(out)) .. "}"
end
return M
