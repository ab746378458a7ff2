-- noweb.lua: read noweb's event stream into pieces of prose and code
local M = {}

-- start a piece, a line, a quote
local function new_piece(s, kind)
	s.piece = {kind = kind, line = s.line, lines = {}, defs = {}, uses = {}}
	table.insert(s.pieces, s.piece)
	s.current = nil
end

local function add(s, token)
	if s.quote then
		table.insert(s.quote, token)
		return
	end
	if not s.current then
		s.current = {n = s.line}
		table.insert(s.piece.lines, s.current)
	end
	table.insert(s.current, token)
end

-- handle one event of each kind
local on = {}

function on.text(s, rest) add(s, rest) end
function on.nl(s)
	s.line = s.line + 1
	if s.quote then
		add(s, " ")
	elseif s.piece and not s.named then
		add(s, "")
		s.current = nil
	end
	s.named = false
end
function on.begin(s, rest) new_piece(s, rest:match("^%a+")) end
function on.defn(s, rest)
	s.piece.name, s.piece.line, s.named = rest, s.line, true
end
function on.use(s, rest) add(s, {ref = rest, line = s.line}) end
function on.quote(s) s.quote = {} end
function on.endquote(s)
	local q = s.quote
	s.quote = nil
	add(s, {quote = q})
end

function on.index(s, rest)
	local kind, name = rest:match("^(%a+) ?(.*)$")
	if kind == "use" then
		s.piece.uses[name] = true
		add(s, {use = name})
	elseif kind == "defn" then
		table.insert(s.piece.defs, name)
	elseif kind == "nl" then
		s.line = s.line + 1
	end
end

-- split the stream into pieces
function M.parse(stream)
	local s = {pieces = {}, line = 1}
	for event in stream:gmatch("[^\n]+") do
		local key, rest = event:match("^@(%a+) ?(.*)$")
		if on[key] then on[key](s, rest) end
	end
	return s.pieces
end
return M
