-- html.lua: the elements of the document that are ours, as HTML
local marks, pictures = require "marks", require "pictures"
local M = {numbers = {}, index = {}, complaints = {}, walker = {}}
local walker, divisions, count = M.walker, {}, {chapter = 0}

-- write text and marked code as HTML
local entities = {["<"] = "&lt;", [">"] = "&gt;", ["&"] = "&amp;",
	['"'] = "&quot;"}
local function escape(s) return (s:gsub('[<>&"]', entities)) end
local function raw(s) return pandoc.RawInline("html", s) end

function M.plain(html)
	return (html:gsub("<[^>]*>", ""):gsub("%s+", " "):gsub("^ ", ""))
end

local kinds = {}
for kind, tags in pairs {k = {"<b>", "</b>"}, c = {"<i>", "</i>"},
	s = {'<span class="s">', "</span>"}, q = {"<code>", "</code>"},
	i = {'<a href="#c%s">', "</a>"}, l = {'<a href="#c%s">', "</a>"},
	d = {'<a href="#%s">', "</a>"},
	r = {'<a class="ref" href="#c%s">&lang;', "&rang;</a>"}} do
	kinds[kind] = function(argument) return tags[1]:format(argument), tags[2] end
end

local function marked(text, words)
	text = text:gsub("\1n[^\3]*\3", "")
	return marks.translate(text, words or escape, kinds)
end

local function breakable(s) return (escape(s):gsub("/(%a)", "/<wbr>%1")) end

-- write inlines as HTML
function walker.Code(c)
	local html
	if not c.classes:includes("marked") then
		html = breakable(c.text):gsub("(%a%-)(%a)", "%1<wbr>%2")
		html = "<code>" .. html .. "</code>"
	else
		html = marked(c.text, breakable)
		html = c.classes:includes("name") and html
			or "<code>" .. html .. "</code>"
	end
	local id = c.identifier
	return raw((id ~= "" and '<span id="' .. id .. '"></span>' or "") .. html)
end

function walker.Link(l)
	local id, class = l.target:match("^#(.+)$"), l.classes[1]
	if class == "page" then
		return raw(('<a class="page" href="#%s">\18%s\17</a>'):format(id, id))
	elseif class == "to" then
		return raw(('<a class="to" href="#%s">%s \16%s\17</a>'):format(id,
			l.attributes.what, id))
	end
	return pandoc.Link(l.content, l.target)
end

local parts = {cell = true, places = true, usedin = true, continued = true,
	begun = true, defines = true}

function walker.Span(s)
	local class = s.classes[1]
	if parts[class] then return nil end
	if class == "machine" then
		local place = pandoc.utils.stringify(s)
		return place == "" and {} or raw("<sup>" .. escape(place) .. "</sup>")
	elseif class == "provenance" then
		return raw('<small class="provenance">' .. escape(
			pandoc.utils.stringify(s)) .. "</small>")
	elseif s.identifier ~= "" then
		M.numbers[s.identifier] = M.current
		return pandoc.Span(s.content, pandoc.Attr(s.identifier))
	end
	return s.content
end

function walker.RawInline(r)
	if r.format == "html" then return nil end
	local formula = r.text:match("^\\begin{equation}(.*)\\end{equation}$")
	if formula then return walker.Math(pandoc.Math("DisplayMath", formula)) end
	table.insert(M.complaints, "there is no HTML for " .. r.text)
end

-- give equations their numbers
local function counted(kind, label)
	count[kind] = (count[kind] or 0) + 1
	local number = ("%d.%d"):format(count.chapter, count[kind])
	if label ~= "" then M.numbers[label] = number end
	return number
end

function walker.Math(m)
	m.text = m.text:gsub("\\[Bb]igg?l%f[%A]", "\\left")
	m.text = m.text:gsub("\\[Bb]igg?r%f[%A]", "\\right")
	m.text = m.text:gsub("\\mathrm(%b{})", "\\text%1")
	local label = m.text:match("\\label{([^}]*)}")
	if label then
		m = pandoc.Math("DisplayMath", (m.text:gsub("\\label{[^}]*}", "")))
		return {raw(('<span class="equation" id="%s">'):format(label)), m,
			raw(("<span>(%s)</span></span>"):format(counted("equation", label)))}
	elseif m.mathtype == "DisplayMath" then
		return {raw '<span class="equation">', m, raw "</span>"}
	end
	return m
end

-- number figures and tables
local function caption(kind, name, label, content)
	if #content == 0 then return {} end
	local out = pandoc.Inlines {raw(('<figcaption><span class="n">%s %s</span> ')
		:format(name, counted(kind, label)))}
	out:extend(content)
	out:insert(raw "</figcaption>")
	return out
end

local function identified(label)
	return label ~= "" and (' id="%s"'):format(label) or ""
end

-- write a chunk as HTML
local head = '<details class="chunk" id="c%s"><summary><i>&lang;%s&rang;</i>%s'
	.. '&#8288;&equiv; <span class="line">writeup.nw:%s</span></summary>'
	.. '<pre tabindex="0"><code>%s\n</code></pre>%s</details>\n'
local said = {usedin = "Used in %s.", defines = "Defines %s.",
	continued = "Continued on line \21%s\17.",
	begun = "Begun on line \21%s\17."}

local function foot(spans)
	local out = {}
	for k, s in ipairs(spans) do
		local names = {}
		for _, c in ipairs(s.content) do
			names[#names + 1] = c.t == "RawInline" and c.text
				:gsub("^<code>(.*)</code>$", "%1"):gsub("<wbr>", "")
				or pandoc.utils.stringify(c)
		end
		out[k] = said[s.classes[1]]:format(s.attributes.chunks
			or table.concat(names))
	end
	return #out > 0 and '<p class="foot">' .. table.concat(out, " ") .. "</p>"
		or ""
end

function divisions.chunk(d)
	local a, name = d.attributes, d.content[1].content[1].text
	return pandoc.RawBlock("html", head:format(a.chunk,
		name:match("^<code>(.*)</code>$"):gsub("<wbr>", ""),
		a.first == "yes" and "" or "+", a.line,
		marked(d.content[2].text), foot(d.content[3].content)))
end

-- write a table as HTML
local function put_row(out, row, tag, align, gap)
	out:insert(raw(gap and '<tr class="gap">' or "<tr>"))
	for j, cell in ipairs(row.content) do
		out:insert(raw(("<%s%s>"):format(tag,
			align:sub(j, j) == "l" and "" or ' class="r"')))
		out:extend(cell.content)
		out:insert(raw("</" .. tag:match("%a+") .. ">"))
	end
	out:insert(raw "</tr>\n")
end

local function grid(rows, align)
	local out = pandoc.Inlines {}
	out:insert(raw '<div class="wide" tabindex="0"><table><thead>')
	put_row(out, rows[1], 'th scope="col"', align)
	out:insert(raw "</thead><tbody>\n")
	for k = 2, #rows do
		if rows[k].t == "Plain" then
			put_row(out, rows[k], "td", align, rows[k - 1].t ~= "Plain")
		end
	end
	out:insert(raw "</tbody></table></div>")
	return out
end

function divisions.grid(d)
	local rows = pandoc.List(d.content)
	local out = pandoc.Inlines {raw('<figure class="table"'
		.. identified(d.identifier) .. ">")}
	out:extend(caption("table", "Table", d.identifier, rows:remove(1).content))
	out:extend(grid(rows, d.attributes.align))
	out:insert(raw "</figure>\n")
	return pandoc.Plain(out)
end
divisions["experiment-list"] = function(d)
	return pandoc.Plain(grid(d.content, "lrlllll"))
end

-- say in words what a picture shows
local function in_words(list)
	local out = {}
	for _, i in ipairs(list) do
		if i.t == "Math" then
			local doc = pandoc.Pandoc {pandoc.Plain {i}}
			out[#out + 1] = pandoc.write(doc, "plain", {wrap_text = "none"})
				:gsub("%s+$", "")
		elseif i.t == "RawInline" and i.text:match("^<small") then
			break
		elseif i.t == "RawInline" then
			out[#out + 1] = M.plain(i.text)
		elseif i.content then
			out[#out + 1] = in_words(i.content)
		else
			out[#out + 1] = escape(pandoc.utils.stringify(i))
		end
	end
	return (table.concat(out):match("^%s*(.-)%s*$"))
end

-- write a figure as HTML
function divisions.figure(d)
	local content = d.content[1].content
	local path = pictures.take(d.attributes.src)
	local out = pandoc.Inlines {raw(('<figure%s><div class="wide"><a href="%s">'
		.. '<img src="%s" alt="%s"></a></div>'):format(identified(d.identifier),
		path, path, in_words(content)))}
	out:extend(caption("figure", "Figure", d.identifier, content))
	out:insert(raw "</figure>\n")
	return pandoc.Plain(out)
end

-- write frames and headings of problems as HTML
function divisions.frame(d)
	local label = d.attributes.label
	d.content:insert(1, pandoc.RawBlock("html",
		('<section class="frame" aria-label="%s"%s><p class="frame">%s</p>\n')
		:format(label, identified(d.identifier), label)))
	d.content:insert(pandoc.RawBlock("html", "</section>\n"))
	return d.content
end

function divisions.make(d)
	local n, points = d.attributes.points, ""
	if n ~= "" then
		points = (" &middot; %s point%s"):format(n, n == "1" and "" or "s")
	end
	return pandoc.RawBlock("html", ('<p class="problem"><code>make %s</code>'
		.. '%s</p>'):format(d.attributes.problem, points))
end

-- write lists and indexes as HTML
function divisions.answered(d)
	local problem, title = table.unpack(d.content[1].content)
	local out = pandoc.Inlines {raw '<h2 class="glance">'}
	out:extend(problem.content)
	out:insert(pandoc.Space())
	out:extend(title.content)
	out:insert(raw "</h2>\n")
	return pandoc.Plain(out)
end

function divisions.short(d)
	local a = d.attributes
	local out = pandoc.Inlines {raw(('<p class="glance"><b>%s</b> '):format(
		a.part))}
	out:extend(d.content[1].content)
	out:insert(raw((' <a class="page" href="#%s">\18%s\17</a>%s</p>'):format(a.to,
		a.to, a.edition ~= "" and " [" .. a.edition .. "]" or "")))
	return pandoc.Plain(out)
end

function divisions.source(d)
	local out, head = pandoc.Inlines {}, d.content[1].content
	out:insert(raw '<p class="source"><b>')
	out:extend(head[1].content)
	for k, before in ipairs {"</b> on ", ", ", ", "} do
		if pandoc.utils.stringify(head[k + 1]) ~= "" then
			out:insert(raw(before))
			out:extend(head[k + 1].content)
		end
	end
	out:insert(raw '</p><dl class="source">')
	for k = 2, #d.content do
		local key, value = table.unpack(d.content[k].content)
		for tag, cell in pairs {dt = key, dd = value} do
			table.insert(cell.content, 1, raw("<" .. tag .. ">"))
			cell.content:insert(raw("</" .. tag .. ">"))
		end
		out:extend(key.content .. value.content)
	end
	out:insert(raw "</dl>\n")
	return pandoc.Plain(out)
end

function divisions.index(d)
	local out = {'<ul class="index">\n'}
	local function places(ids, form)
		return ids ~= "" and form:format(ids) or ""
	end
	for _, entry in ipairs(d.content) do
		local html, a = entry.content[1].text, entry.content[2].attributes
		if a.defs ~= "" then
			table.insert(M.index, {text = M.plain(html),
				chunk = a.defs:match("%d+")})
		end
		table.insert(out, ("<li>%s%s%s</li>\n"):format(html, places(a.defs,
			" <b>\19%s\17</b>"), places(a.uses, " \19%s\17")))
	end
	table.insert(out, "</ul>\n")
	return pandoc.RawBlock("html", table.concat(out))
end

-- write other blocks as HTML
function walker.Div(d)
	local write = divisions[d.classes[1]]
	if write then return write(d) end
end

function walker.CodeBlock(c)
	if not c.classes:includes("listing") then return nil end
	return pandoc.RawBlock("html", '<pre class="listing" tabindex="0"><code>'
		.. marked(c.text) .. "\n</code></pre>\n")
end

function walker.RawBlock(r)
	if r.format ~= "html" then return {} end
end

-- number headings
local levels = {"chapter", "section", "subsection"}

function M.heading(h)
	local number = {}
	if not h.classes:includes("unnumbered") and h.level <= 3 then
		local kind = levels[h.level]
		count[kind] = (count[kind] or 0) + 1
		for k = h.level + 1, 3 do count[levels[k]] = 0 end
		if h.level == 1 then
			count.figure, count.table, count.equation = 0, 0, 0
		end
		for k = 1, h.level do number[k] = count[levels[k]] or 0 end
	end
	M.numbers[h.identifier] = table.concat(number, ".")
	return M.numbers[h.identifier]
end
return M
