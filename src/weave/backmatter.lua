-- backmatter.lua: lists of files, chunks and identifiers
local highlight = require "highlight"
local M = {}

local kinds = {}

local function by_name(a, b)
	local x, y = a.name:lower():gsub("%W", ""), b.name:lower():gsub("%W", "")
	if x ~= y then return x < y end
	if a.name ~= b.name then return a.name < b.name end
	return (a.lang or "") < (b.lang or "")
end
local function index(list, entry)
	table.sort(list, by_name)
	return "\\begin{nwindex}\n" .. table.concat(list:map(function(e)
		return ("\\nwentry{%s}{%s}{%s}"):format(entry(e))
	end), "\n") .. "\n\\end{nwindex}"
end
local function names(book, roots)
	local list = pandoc.List {}
	for _, e in ipairs(book.order) do
		if e.root == roots then list:insert(e) end
	end
	return index(list, function(e)
		local link = highlight.reference(book, e.name)
		return highlight.breakable(link:gsub("\\nwref", "\\nwlisted")), "",
			highlight.ids(e.parts)
	end)
end
kinds["file-index"] = function(book) return names(book, true) end
kinds["chunk-index"] = function(book) return names(book, false) end
kinds["identifier-index"] = function(book)
	local list = pandoc.List {}
	for _, entries in pairs(book.index) do
		for _, e in pairs(entries) do list:insert(e) end
	end
	return index(list, function(e)
		return ("\\nwtarget{%s.%s}"):format(e.lang, e.name:gsub("[^%w]", "-"))
			.. highlight.code(e.name), highlight.ids(e.defs),
			highlight.ids(e.uses)
	end)
end

function M.index(book, div)
	local kind = kinds[div.classes[1]]
	if kind then return pandoc.RawBlock("latex", kind(book)) end
end

return M
