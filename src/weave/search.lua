-- search.lua: the index that the search box reads
local html = require "html"
local M = {entries = {}}

function M.add(text, page, id, kind)
	table.insert(M.entries, {text = text, page = page, id = id, kind = kind})
end

local entities = {["&quot;"] = '"', ["&lt;"] = "<", ["&gt;"] = ">",
	["&amp;"] = "&", ["&lang;"] = "", ["&rang;"] = ""}

local function quoted(s)
	s = html.plain(s):gsub("&%a+;", entities)
	return '"' .. s:gsub('[%c"\\]', function(c)
		return ("\\u%04x"):format(c:byte())
	end) .. '"'
end
local function words_of(pages)
	local seen, list = {}, {}
	local function take(text, pattern, page)
		text = html.plain(text:gsub("<[/a-z]+", " %0")):gsub("&%a+;", " ")
		for w in text:lower():gmatch(pattern) do
			if not seen[w] then table.insert(list, w) end
			seen[w] = seen[w] or {}
			local e = seen[w]
			if e[#e] ~= page then table.insert(e, page) end
		end
	end
	for k, p in ipairs(pages) do
		local text = p.text:gsub('<ul class="index">.-</ul>', " ")
		local prose = text:gsub("<pre.-</pre>", " ")
			:gsub("<annotation.-</annotation>", " ")
		take(prose, "[%w_\128-\255][%w_\128-\255-]+", k - 1)
		for code in text:gmatch("<pre.-</pre>") do
			take(code:gsub("<[^>]*>", ""), "[%w_]+_[%w_]+", k - 1)
		end
	end
	table.sort(list)
	return list, seen
end
local chunk = '<details class="chunk" id="(c%d+)"><summary><i>(.-)</i>(.-)'
	.. '</details>'

local function chunks_of(p, number, out)
	for id, name, rest in p.text:gmatch(chunk) do
		local users, foot = {}, rest:match('<p class="foot">(.*)</p>') or ""
		for user in foot:gmatch("&lang;(.-)&rang;") do
			table.insert(users, user)
		end
		table.insert(out, ("%s:[%s,%d,%s],"):format(id, quoted(name), number,
			quoted(table.concat(users, ", "))))
	end
end
function M.write(pages, where, write)
	local number, out = {}, {"const site = {pages: ["}
	for k, p in ipairs(pages) do
		number[p] = k - 1
		table.insert(out, ("[%s,%s],"):format(quoted(p.file), quoted(p.title)))
	end
	for _, e in ipairs(html.index) do
		M.add(e.text, where[e.id], e.id, e.kind)
	end
	table.insert(out, "], entries: [")
	for _, e in ipairs(M.entries) do
		table.insert(out, ("[%s,%d,%s,%s],"):format(quoted(e.text),
			number[e.page], quoted(e.id), quoted(e.kind:sub(1, 1))))
	end
	table.insert(out, "], words: {")
	local list, seen = words_of(pages)
	for _, w in ipairs(list) do
		table.insert(out, ("%s:[%s],"):format(quoted(w),
			table.concat(seen[w], ",")))
	end
	table.insert(out, "}, chunks: {")
	for k, p in ipairs(pages) do chunks_of(p, k - 1, out) end
	table.insert(out, "}};\n")
	write("search.js", table.concat(out, "\n"))
end
return M
