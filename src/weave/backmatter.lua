-- backmatter.lua: lists of files, chunks and identifiers
local highlight = require "highlight"
local M = {}

local function ids(pieces)
	local list = {}
	for _, p in ipairs(pieces) do table.insert(list, p.id) end
	return table.concat(list, ",")
end

local function by_name(a, b)
	local x, y = a.name:lower():gsub("%W", ""), b.name:lower():gsub("%W", "")
	if x ~= y then return x < y end
	if a.name ~= b.name then return a.name < b.name end
	return (a.lang or "") < (b.lang or "")
end
local function names(book, roots)
	local list, out = {}, {"\\begin{nwindex}"}
	for _, e in ipairs(book.order) do
		if (e.root and not e.name:find(" ")) == roots then
			table.insert(list, e)
		end
	end
	table.sort(list, by_name)
	for _, e in ipairs(list) do
		table.insert(out, ("\\nwentry{%s}{}{%s}"):format(
			highlight.breakable(highlight.reference(book, e.name):gsub("\\nwref",
			"\\nwlisted")), ids(e.parts)))
	end
	table.insert(out, "\\end{nwindex}")
	return table.concat(out, "\n")
end
local function identifiers(book)
	local list, out = {}, {"\\begin{nwindex}"}
	for _, entries in pairs(book.index) do
		for _, e in pairs(entries) do table.insert(list, e) end
	end
	table.sort(list, by_name)
	for _, e in ipairs(list) do
		local target = ("%s.%s"):format(e.lang, e.name:gsub("[^%w]", "-"))
		table.insert(out, ("\\nwentry{\\nwtarget{%s}\\nwcode{%s}}{%s}{%s}")
			:format(target, highlight.breakable(highlight.escape(e.name)),
			ids(e.defs), ids(e.uses)))
	end
	table.insert(out, "\\end{nwindex}")
	return table.concat(out, "\n")
end

function M.index(book, div)
	local list
	if div.classes:includes("file-index") then
		list = names(book, true)
	elseif div.classes:includes("chunk-index") then
		list = names(book, false)
	elseif div.classes:includes("identifier-index") then
		list = identifiers(book)
	end
	if list then return pandoc.RawBlock("latex", list) end
end

return M
