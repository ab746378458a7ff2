-- backmatter.lua: lists of files, chunks and identifiers
local highlight = require "highlight"
local M = {}

local kinds = {}

-- sort without regard to case
local function by_name(a, b)
	if a.key ~= b.key then return a.key < b.key end
	if a.name ~= b.name then return a.name < b.name end
	return (a.lang or "") < (b.lang or "")
end

local function sort(list)
	for _, e in ipairs(list) do e.key = e.name:lower():gsub("%W", "") end
	table.sort(list, by_name)
end

-- make an index
local function entry(what, defs, uses)
	if defs == "" and uses == "" then return nil end
	return pandoc.Plain {what, pandoc.Span({}, pandoc.Attr("", {"places"},
		{defs = defs, uses = uses}))}
end

local function index(list, make)
	sort(list)
	local out = pandoc.Blocks {}
	for _, e in ipairs(list) do out:insert(make(e)) end
	return pandoc.Div(out, {class = "index"})
end

-- list files or chunks
local function names(book, roots)
	local list = {}
	for _, e in ipairs(book.order) do
		if e.root == roots then table.insert(list, e) end
	end
	return index(list, function(e)
		return entry(pandoc.Code(highlight.reference(book, e.name, "l"),
			{class = "marked name"}), "", highlight.ids(e.parts))
	end)
end
kinds["file-index"] = function(book) return names(book, true) end
kinds["chunk-index"] = function(book) return names(book, false) end

-- list identifiers
kinds["identifier-index"] = function(book)
	local list = {}
	for _, entries in pairs(book.index) do
		for _, e in pairs(entries) do table.insert(list, e) end
	end
	return index(list, function(e)
		local label = e.lang .. "." .. e.name:gsub("[^%w]", "-")
		return entry(pandoc.Code(e.name, {id = label}),
			highlight.ids(e.defs), highlight.ids(e.uses))
	end)
end

function M.index(book, div)
	local kind = kinds[div.classes[1]]
	if kind then return kind(book) end
end

return M
