-- search.lua: the index that the search box reads
local html = require "html"
local M = {entries = {}}

function M.add(text, page, id, kind)
	table.insert(M.entries, {text = text, page = page, id = id, kind = kind})
end

-- write text as JavaScript
local entities = {["&quot;"] = '"', ["&lt;"] = "<", ["&gt;"] = ">",
	["&amp;"] = "&", ["&lang;"] = "", ["&rang;"] = ""}

local function plain(s) return (html.plain(s):gsub("&%a+;", entities)) end

local function quoted(s)
	return '"' .. plain(s):gsub('[%c"\\]', function(c)
		return ("\\u%04x"):format(c:byte())
	end) .. '"'
end

local function lines(list)
	return "`\n" .. table.concat(list, "\n"):gsub("[`$\\]", "\\%0") .. "`"
end

-- collect the words of the prose
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
			:gsub("<wbr>", "")
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

-- tell words and their pages in lines
local digits = "0123456789abcdefghijklmnopqrstuvwxyz"

local function letters(n)
	return (n < 26 and "" or letters(n // 26):lower())
		.. string.char(65 + n % 26)
end

local function shared(a, b)	-- letters at the start of both, at most 35
	local k = 0
	while k < 35 and k < #a and a:byte(k + 1) < 128
		and a:byte(k + 1) == b:byte(k + 1) do k = k + 1 end
	return k
end

local function words_in_lines(pages)
	local out, before = {}, ""
	local list, seen = words_of(pages)
	for i, word in ipairs(list) do
		local k, last, steps = shared(before, word), -1, {}
		for j, page in ipairs(seen[word]) do
			steps[j], last = letters(page - last - 1), page
		end
		out[i] = digits:sub(k + 1, k + 1) .. word:sub(k + 1) .. " "
			.. table.concat(steps)
		before = word
	end
	return lines(out)
end

-- tell identifiers and chunks in lines
local chunk = '<details class="chunk" id="c(%d+)"><summary><i>(.-)</i>(.-)'
	.. '</details>'
local function chunks_in_lines(pages)
	local out, first = {}, {}
	for k, p in ipairs(pages) do
		for id, name, rest in p.text:gmatch(chunk) do
			local users, foot = {}, rest:match('<p class="foot">(.*)</p>') or ""
			for user in foot:gmatch('#c(%d+)">&lang;') do
				table.insert(users, user)
			end
			table.insert(out, ("%d %s %s %s"):format(k - 1, first[name] or "",
				table.concat(users, ","), first[name] and "" or plain(name)))
			first[name] = first[name] or id
		end
	end
	return lines(out)
end

local function identifiers_in_lines()
	local out = {}
	for i, e in ipairs(html.index) do out[i] = e.chunk .. " " .. plain(e.text) end
	return lines(out)
end

-- write the index
function M.write(pages, write)
	local number, out = {}, {"const site = {pages: ["}
	for k, p in ipairs(pages) do
		number[p] = k - 1
		table.insert(out, ("[%s,%s],"):format(quoted(p.file), quoted(p.title)))
	end
	table.insert(out, "], entries: [")
	for _, e in ipairs(M.entries) do
		table.insert(out, ("[%s,%d,%s,%s],"):format(quoted(e.text),
			number[e.page], quoted(e.id), quoted(e.kind:sub(1, 1))))
	end
	table.insert(out, "], identifiers: " .. identifiers_in_lines() .. ",")
	table.insert(out, "chunks: " .. chunks_in_lines(pages) .. ",")
	table.insert(out, "words: " .. words_in_lines(pages) .. "};\n")
	write("search.js", table.concat(out, "\n"))
end
return M
