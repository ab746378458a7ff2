-- reader.lua: pandoc reader for noweb files whose prose is Markdown
local here = PANDOC_SCRIPT_FILE:match("^(.*)/[^/]*$") or "."
package.path = here .. "/?.lua;" .. package.path
local files, noweb, chunks = require "files", require "noweb", require "chunks"
local highlight, backmatter = require "highlight", require "backmatter"

local complaints = {}
local function complain(line, text)
	table.insert(complaints, {line = line, text = text})
end

-- run noweb on the file
local function run_noweb(file)
	local lib = os.getenv("NOWEB") or "/usr/lib/noweb"
	local command = [[set -eo pipefail
		"$1/markup" -t "$2" | awk -f "$3/launch.awk" >"$4/stream"
		sed -n 's/^@index defn //p' "$4/stream" >"$4/names"
		exec "$1/finduses" "$4/names" <"$4/stream"]]
	local ok, out = files.run(command, lib, file, here, files.work)
	if not ok or out:find("\n@fatal ") then
		io.stderr:write(file, ": noweb could not read the file\n")
		os.exit(1)
	end
	return out
end

-- number the attributes
local function number_attributes(text, n)
	text = " " .. text .. " "
	text = text:gsub("([%]%)`%s]){([.#]%a[%w_:.%-]*)([%s}])",
		"%1{%2 line=" .. n .. "%3")
	return text:sub(2, -2)
end

-- follow the state of the Markdown
local follow_divisions, close_all, close_block

local function step(s, text, n)
	s.at_start, s.was_fence = false, s.fence ~= nil
	if n == 1 and text:match("^%-%-%-%s*$") then s.yaml = true return end
	if s.yaml then
		if text:match("^%-%-%-%s*$") or text:match("^%.%.%.%s*$") then
			s.yaml = false
		end
		return
	end
	local fence = text:match("^%s*(```+)") or text:match("^%s*(~~~+)")
	if s.fence then
		if fence and #fence >= #s.fence and text:match("^%s*[`~]+%s*$") then
			s.fence = nil
		end
	elseif fence and not text:match("^%s*```+[^`]+`") then
		s.fence, s.fence_line = fence, n
	elseif s.env then
		if text:find("\\end{" .. s.env .. "}", 1, true) then s.env = nil end
	elseif text:match("^\\begin{([%w*]+)}") then
		s.env = text:match("^\\begin{([%w*]+)}")
		if text:find("\\end{" .. s.env .. "}", 1, true) then s.env = nil end
	elseif s.blank and text:match("^[%a%[*\"'`($\128-\255]")
		and not text:match("^Table:") then
		s.at_start = true
	end
	s.blank = text:match("^%s*$") ~= nil
	if not s.fence then follow_divisions(s, text, n) end
end

function follow_divisions(s, text, n)
	if text:match("^:::+%s*$") then
		if #s.open == 0 then complain(n, "this closes no division") end
		table.remove(s.open)
	elseif text:match("^:::+%s*[^%s:]") then
		table.insert(s.open, n)
	elseif text:match("^# ") then
		close_all(s)
	end
end

function close_all(s)
	for _, line in ipairs(s.open) do
		complain(line, "the division that begins here is not closed")
	end
	close_block(s)
	s.open = {}
end

function close_block(s)
	if not s.fence then return end
	complain(s.fence_line, "the block that begins here is not closed")
	s.fence = nil
end

-- leave out what the notes do not have
local mode = os.getenv("WEAVE_MODE")
local notes, lint = mode == "notes", mode == "lint"

local function follow_outline(s, text)
	if text:match("^\\part{") then s.parts = s.parts + 1 end
	local level, rest = text:match("^(#+) (.*)$")
	if s.was_fence or not level or #level > 3 then return end
	level = #level
	local class = rest:match("{([^{}]*)}%s*$") or ""
	if not class:find("%.unnumbered") then
		s.count[level] = (s.count[level] or 0) + 1
		for k = level + 1, 3 do s.count[k] = 0 end
		s.number = table.concat(s.count, ".", 1, level)
	end
	if level == 1 then
		s.chapter_out = s.parts > 1 and not class:find("%.notes")
		s.out = s.chapter_out
	elseif level == 2 then
		s.out = s.chapter_out or class:find("%.whole") ~= nil
	end
end

local function note_labels(s, text)
	for id in text:gmatch("[{ ]#(%a[%w:_.-]*)") do s.away[id] = s.number end
	for id in text:gmatch("\\label{([^}]*)}") do s.away[id] = s.number end
end

-- write prose with placeholders
local function plain_text(tokens)
	local out = {}
	for _, t in ipairs(tokens) do
		if type(t) == "string" then table.insert(out, t)
		elseif t.ref then table.insert(out, "<<" .. t.ref .. ">>") end
	end
	return table.concat(out)
end

local function write_line(s, line, quotes, chapters)
	local text = ""
	for _, t in ipairs(line) do
		if type(t) == "string" then
			text = text .. t
		elseif t.quote and s.fence then
			text = text .. "[[" .. plain_text(t.quote) .. "]]"
		elseif t.quote then
			table.insert(quotes, t.quote)
			text = text .. ("`%d`{=nwquote}"):format(#quotes)
		elseif t.ref then
			text = text .. "<<" .. t.ref .. ">>"
		end
	end
	step(s, text, line.n)
	follow_outline(s, text)
	if notes and s.out then return note_labels(s, text) end
	if not s.was_fence and text:match("^# ") then table.insert(chapters, {}) end
	local out = chapters[#chapters]
	if notes and s.parts > 1 then
		if text:match("^\\part{") then text = "" end
		if not s.was_fence and text:match("^# ") then
			table.insert(out, ("```{=nwchapter}\n%d\n```\n"):format(
				s.count[1] - 1))
		end
	end
	if s.at_start then
		table.insert(out, ("```{=nwline}\n%d\n```\n"):format(line.n))
	end
	if not s.was_fence then text = number_attributes(text, line.n) end
	table.insert(out, text)
end

-- put the highlighted code in place of the placeholders
local function substitute(book, quotes)
	local f = {}
	function f.RawInline(r)
		if r.format ~= "nwquote" then return nil end
		return highlight.quote(book, quotes[tonumber(r.text)])
	end
	function f.RawBlock(r)
		if r.format ~= "nwchunk" then return nil end
		local piece = book.chunks[tonumber(r.text)]
		if lint then return highlight.measure(piece, complain) end
		return highlight.chunk(book, piece, complain)
	end
	function f.Code(c)
		if c.classes[1] == "marked" then return nil end
		c.text = c.text:gsub("({[.#]%a[%w_:.%-]*) line=%d+", "%1")
		return c
	end
	f.CodeBlock = f.Code
	function f.Div(d) return backmatter.index(book, d) end
	return f
end

local function plain_headings(quotes)
	local taken = {}
	return {Header = function(h)
		local name, n = h.identifier, 0
		while taken[h.identifier] and not h.attributes.line do
			n = n + 1
			h.identifier = name .. "-" .. n
		end
		taken[h.identifier] = true
		return h:walk {RawInline = function(r)
			if r.format ~= "nwquote" then return nil end
			return pandoc.Code(plain_text(quotes[tonumber(r.text)]))
		end}
	end}
end

-- pass the complaints on to the filter
local function hand_over(doc, file, away)
	local list = {}
	for _, c in ipairs(complaints) do
		table.insert(list, pandoc.MetaMap {line = tostring(c.line),
			text = pandoc.MetaString(c.text)})
	end
	doc.meta["weave-complaints"] = pandoc.MetaList(list)
	doc.meta["weave-file"] = pandoc.MetaString(file)
	doc.meta["weave-away"] = pandoc.MetaMap(away)
	return doc
end

-- read a noweb file
local markdown = "markdown-implicit_figures-citations-example_lists"

local function read_chapters(chapters)
	local doc
	for _, lines in ipairs(chapters) do
		local chapter = pandoc.read(table.concat(lines, "\n") .. "\n", markdown)
		if doc then
			doc.blocks:extend(chapter.blocks)
		else
			doc = chapter
		end
	end
	return doc
end

function Reader(_, _)
	local file = PANDOC_STATE.input_files[1]
	local pieces = noweb.parse(run_noweb(file))
	local book = chunks.number(pieces)
	chunks.connect(book)
	chunks.spread_languages(book)
	chunks.index(book)
	local chapters, quotes = {{}}, {}
	local state = {blank = true, open = {}, parts = 0, count = {}, away = {}}
	for _, p in ipairs(pieces) do
		if p.kind == "code" and notes and state.out then
			p.away, state.blank = state.number, true
		elseif p.kind == "code" then
			close_block(state)
			table.insert(chapters[#chapters],
				("\n```{=nwchunk}\n%d\n```\n"):format(p.id))
			state.blank = true
		else
			for _, line in ipairs(p.lines) do
				write_line(state, line, quotes, chapters)
			end
		end
	end
	close_all(state)
	local doc = read_chapters(chapters)
	doc = doc:walk(plain_headings(quotes)):walk(substitute(book, quotes))
	return hand_over(doc, file, state.away)
end
