-- pages.lua: write the document as pages for a browser
local here = PANDOC_SCRIPT_FILE:match("^(.*)/[^/]*$") or "."
package.path = here .. "/?.lua;" .. package.path
local html, search = require "html", require "search"
local files, pictures = require "files", require "pictures"
local out = os.getenv("WEAVE_OUT")
local pages, where, lines, part, template = {}, {}, {}, nil, nil

-- write HTML and files
local function as_html(blocks)
	return pandoc.write(pandoc.Pandoc(blocks), "html5",
		pandoc.WriterOptions {html_math_method = "mathml"})
end

local function write(name, text) files.write(out .. "/" .. name, text) end

-- say where lines may break
local function breakable(text)
	text = text:gsub("<mo>\u{2113}</mo>", "<mi>\u{2113}</mi>")
	text = text:gsub('(%(?)(<math display="inline".-</math>)([^%s<]*)',
		function(before, formula, after)
			return before .. after ~= "" and '<span class="m">' .. before
				.. formula .. after .. "</span>" or nil
		end)
	local function long(name)
		return #name > 24 and name:gsub("_", "_<wbr>") or nil
	end
	return (text:gsub("<h[1-3][%s>].-</h[1-3]>", function(h)
		return h:gsub(">[^<]*", function(words)
			return words:gsub("[%w_]+", long)
		end)
	end))
end

-- begin a page
local function new_page(h)
	local p = {file = h.identifier .. ".html", id = h.identifier,
		level = h.level, part = part, blocks = pandoc.Blocks {}, sections = {}}
	p.chapter = h.level == 2 and pages[#pages].chapter or p
	if h.level == 2 then table.insert(p.chapter.sections, p) end
	table.insert(pages, p)
	part = nil
	return p
end

local in_headings = {Link = html.walker.Link, Span = html.walker.Span}

local function heading(h)
	local number, page = html.heading(h), pages[#pages]
	local content = h.content:walk(in_headings)
	if number ~= "" then
		content:insert(1, pandoc.RawInline("html",
			('<span class="n">%s</span> '):format(number)))
	end
	local title = as_html {pandoc.Plain(content)}
	if h.level == 1 or h.level == 2 and not h.classes:includes("unlisted") then
		page = new_page(h)
		page.title, page.number = title, number
	end
	page.current = number ~= "" and number or page.current
	html.current = page.current
	search.add(title, page, h.identifier, "heading")
	page.blocks:insert(pandoc.Header(h.level - page.level + 1, content,
		pandoc.Attr(h.identifier)))
end

-- translate the blocks of a page
local walker = html.walker

function walker.DefinitionList(list)
	for _, item in ipairs(list.content) do
		local term = pandoc.utils.stringify(item[1])
		local id = "term-" .. term:gsub("[^%w]+", "-")
		item[1] = {pandoc.Span(item[1], pandoc.Attr(id))}
		search.add(term, pages[#pages], id, "term")
	end
	return list
end

local function distribute(blocks)
	for _, b in ipairs(blocks) do
		local name = b.t == "RawBlock" and b.text:match("^\\part{(.*)}")
		if name then
			part = name
		elseif b.t == "Header" then
			heading(b)
		else
			pages[#pages].blocks:extend(pandoc.Blocks {b}:walk(walker))
		end
	end
end

-- find the page of every label
local function find_labels(p)
	for id in p.html:gmatch('%sid="([^"]*)"') do where[id] = p end
	for id, line in p.html:gmatch('id="(c%d+)"><summary>.-nw:(%d+)') do
		lines[id] = line
	end
	local tex = p.html:match('<span class="math.->(.-)<')
	if tex then
		table.insert(html.complaints, p.file .. ": no MathML for " .. tex)
	end
end

-- put in numbers and addresses
local function address(id, from)
	local p = where[id] or from
	if id == p.id and p ~= from then return p.file end
	return (p == from and "" or p.file) .. "#" .. id
end

local function place(p)
	return p.number ~= "" and p.number or html.plain(p.title)
end

local function places(ids, from, label)
	local list, last = {}, nil
	for id in ids:gmatch("%d+") do
		id = "c" .. id
		local text = where[id] and label(id) or "?"
		if text ~= last then
			table.insert(list, ('<a href="%s">%s</a>'):format(
				address(id, from), text))
		end
		last = text
	end
	return table.concat(list, ", ")
end

local function resolve(p)
	local function place_of(id) return where[id] and place(where[id]) or "?" end
	local fill = {["\16"] = function(id) return html.numbers[id] or "" end,
		["\18"] = place_of,
		["\19"] = function(ids) return places(ids, p, place_of) end,
		["\21"] = function(ids)
			return places(ids, p, function(id) return lines[id] end)
		end}
	local text = p.html:gsub("([\16\18\19\21])(.-)\17", function(kind, what)
		return fill[kind](what)
	end)
	return (text:gsub('href="#([^"]*)"', function(id)
		return 'href="' .. address(id, p) .. '"'
	end))
end

-- list the contents
local function link(p, current)
	return ('<li><a href="%s"%s>%s</a>'):format(p.file, p == current and
		' aria-current="page"' or "", (p.title:gsub("_", "_<wbr>")))
end

local function links(list, current)
	local items = {}
	for _, p in ipairs(list) do table.insert(items, link(p, current)) end
	return #items > 0 and "<ul>\n" .. table.concat(items, "</li>\n")
		.. "</li>\n</ul>\n" or ""
end

local function contents(current)
	local list = {"<ul>"}
	for _, p in ipairs(pages) do
		if p.part then
			table.insert(list, ('</ul><p class="part">%s</p><ul>'):format(p.part))
		end
		if p.level == 1 then
			local open = not current or current.chapter == p
			table.insert(list, link(p, current) .. (open and
				links(p.sections, current) or "") .. "</li>")
		end
	end
	return table.concat(list, "\n") .. "</ul>\n"
end

-- write a page
local function turn(p, rel, word)
	if not p then return "<span></span>" end
	return ('<a rel="%s" href="%s"><span>%s:</span> %s</a>'):format(rel, p.file,
		word, p.title)
end

local function finish(p, k, book)
	local title = p.title and html.plain(p.title) .. " &middot; " or ""
	local parts = {pagetitle = title .. book.title, booktitle = book.title,
		digest = book.digest, contents = contents(p),
		body = p.text .. (p.level == 1 and '<div class="sections">'
			.. links(p.sections) .. "</div>" or ""),
		turn = turn(pages[k - 1], "prev", "Before")
			.. turn(pages[k + 1], "next", "Next")}
	write(p.file, (template:gsub("%$(%a+)%$", parts)))
end

-- write the front page
local function front(meta, title)
	local abstract = pandoc.utils.type(meta.abstract) == "Blocks"
		and as_html(meta.abstract:walk(walker)) or ""
	return {file = "index.html", text = ('<h1>%s</h1><p class="subtitle">%s</p>'
		.. '%s<h2>Contents</h2><div class="contents">%s</div>'):format(title,
		pandoc.utils.stringify(meta.subtitle or ""), abstract, contents())}
end

-- make all pages
function Pandoc(doc)
	template = files.read(here .. "/page.html")
	distribute(doc.blocks)
	pictures.finish(out)
	for _, p in ipairs(pages) do
		p.html = breakable(as_html(p.blocks))
		find_labels(p)
	end
	for _, p in ipairs(pages) do p.text = resolve(p) end
	local book = {title = pandoc.utils.stringify(doc.meta.title or "Untitled"),
		digest = os.getenv("SOURCE_DIGEST") or "none"}
	for k, p in ipairs(pages) do finish(p, k, book) end
	finish(front(doc.meta, book.title), 0, book)
	search.write(pages, write)
	for _, c in ipairs(html.complaints) do
		io.stderr:write("html: ", c, "\n")
	end
	if #html.complaints > 0 then os.exit(1) end
	return pandoc.Pandoc {}
end
