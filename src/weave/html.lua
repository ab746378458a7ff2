-- html.lua: the commands of template.tex, as HTML
local pictures = require "pictures"
local M = {numbers = {}, index = {}, complaints = {}}
local count = {chapter = 0}

local escaped = {["{"] = "\1", ["}"] = "\2", ["\\"] = "\3"}

local function protect(s)
	s = s:gsub("%%nw %d+\n", ""):gsub("\n+\\nw", "\\nw")
	s = s:gsub("\\&", "\5"):gsub("&", "\4"):gsub("\5", "&amp;")
	s = s:gsub('[<>"]', {["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;"})
	return (s:gsub("\\([{}\\$#%%_ ])", function(c) return escaped[c] or c end))
end

local function restore(s)
	return (s:gsub("[{}\3]", ""):gsub("\1", "{"):gsub("\2", "}"))
end

function M.plain(html)
	return (html:gsub("<[^>]*>", ""):gsub("%s+", " "):gsub("^ ", ""))
end
local commands, environments = {}, {}

local function read_command(s, i, name)
	local c, args = commands[name], {}
	if name == "begin" or name == "end" then
		local kind
		kind, i = s:match("^{(%a+)}()", i)
		name = name == "end" and "end " .. kind or kind
		c = environments[name]
	end
	if not c then
		table.insert(M.complaints, "there is no HTML for \\" .. name)
		c = {0, ""}
	end
	for k = 1, c[1] do
		local arg, after = s:match("^%s*(%b{})()", i)
		args[k], i = (arg or "{}"):sub(2, -2), after or i
	end
	if c[1] == 0 then i = s:match("^ ?()", i) end
	if c.body then
		local e, f = s:find("\\end{" .. name .. "}", i, true)
		table.insert(args, s:sub(i, e - 1))
		i = f + 1
	end
	return c, args, i
end
local expand

local function apply(c, args)
	if type(c[2]) == "function" then return c[2](table.unpack(args)) end
	for k, arg in ipairs(args) do args[k] = expand(arg) end
	return (c[2]:gsub("$(%d)", function(k) return args[tonumber(k)] end))
end

function expand(s)
	local out, i = {}, 1
	while true do
		local a, b, name = s:find("\\(%a+)", i)
		table.insert(out, s:sub(i, (a or 0) - 1))
		if not a then return table.concat(out) end
		local c, args, after = read_command(s, b + 1, name)
		table.insert(out, apply(c, args))
		i = after
	end
end
local function nothing() return "" end

for name, arguments in pairs {needspace = 1, nwneeds = 1, markboth = 2, nwm = 2,
	nwlining = 0, footnotesize = 0, scriptsize = 0, tiny = 0} do
	commands[name] = {arguments, nothing}
end
for name, text in pairs {nwcode = "<code>$1</code>", nwfit = "$1",
	nwmark = "<sup>$1</sup>",
	nwprovenance = '<small class="provenance">$1</small>',
	pageref = '<a class="page" href="#$1">\18$1\17</a>',
	nwtarget = '<span id="$1"></span>'} do
	commands[name] = {1, text}
end
commands.nwbs, commands.nwhat = {0, "\\"}, {0, "^"}
commands.nwtilde, commands.nwbreak = {0, "~"}, {0, "<wbr>"}
commands.nwto = {2, '<a class="to" href="#$2">$1 \16$2\17</a>'}
commands.nwix = {2, '<a href="#$1">$2</a>'}
commands.nwproblem = {3, function(points, id)
	if points ~= "" then
		points = (" &middot; %s point%s"):format(points,
			points == "1" and "" or "s")
	end
	return ('<p class="problem"><code>make %s</code>%s</p>'):format(id, points)
end}
for name, text in pairs {nwkeyword = "<b>$1</b>", nwcomment = "<i>$1</i>",
	nwstring = '<span class="s">$1</span>', nwusedin = "Used in $1.",
	nwcontinued = "Continued on line \21$1\17.",
	nwbegun = "Begun on line \21$1\17.", nwdefines = "Defines $1.",
	nwfoot = '</code></pre><p class="foot">$1</p></details>\n'} do
	commands[name] = {1, text}
end
commands.nwhead = {4, '<details class="chunk" id="c$1"><summary>'
	.. '<i>&lang;$2&rang;</i>$3&#8288;&equiv; '
	.. '<span class="line">writeup.nw:$4</span>'
	.. '</summary><pre tabindex="0"><code>'}
commands.nwend = {0, "</code></pre></details>\n"}
commands.nwsep = {0, " "}
commands.nwlisting = {0, '<pre class="listing" tabindex="0"><code>'}
commands.nwlistingend = {0, "</code></pre>\n"}
local function code_line(indent, text)
	return (" "):rep(tonumber(indent)) .. expand(text) .. "\n"
end
commands.nwl, commands.nwlk = {2, code_line}, {2, code_line}
commands.nwid = {2, '<a href="#c$1">$2</a>'}
commands.nwlisted = {2, '<a href="#c$1">$2</a>'}
commands.nwref = {2, '<a class="ref" href="#c$1">&lang;$2&rang;</a>'}
commands.nwglanced = {3,
	'<h2 class="glance"><a href="#$1"><code>$2</code></a> $3</h2>\n'}
commands.nwglance = {4, function(which, edition, label, text)
	return ('<p class="glance"><b>%s</b> %s <a class="page" href="#%s">'
		.. '\18%s\17</a>%s</p>'):format(which, expand(text), label, label,
		edition ~= "" and " [" .. edition .. "]" or "")
end}
commands.nwexperiment = {3, '<tr><td><a href="#$1">$2</a><td class="r">$3'
	.. '<td>\18$1\17'}
commands.nwevidence = {4, "<td>$1<td>$2<td>$3<td>$4</tr>\n"}
commands.nwnext = {0, "<tr><td><td><td>"}
commands.nwtotal = {1, '<tr><td>total<td class="r">$1<td><td><td><td><td></tr>'}
commands.nwsource = {4, function(name, machine, date, unfinished)
	return ('<p class="source"><b>%s</b> on %s, %s%s</p><dl class="source">')
		:format(expand(name), machine, date, unfinished ~= "" and ", "
		.. unfinished or "")
end}
commands.nwkey = {2, "<dt>$1</dt><dd>$2</dd>\n"}
commands.nwsourceend = {0, "</dl>\n"}
commands.nwentry = {3, function(name, defined, used)
	local html = expand(name)
	if defined ~= "" then
		table.insert(M.index, {text = restore(M.plain(html)),
			chunk = defined:match("%d+")})
	end
	local function places(ids, form)
		return ids ~= "" and form:format(ids) or ""
	end
	return ("<li>%s%s%s</li>\n"):format(html, places(defined,
		" <b>\19%s\17</b>"), places(used, " \19%s\17"))
end}
local function counted(kind, label)
	count[kind] = (count[kind] or 0) + 1
	local number = ("%d.%d"):format(count.chapter, count[kind])
	if label then M.numbers[label] = number end
	return number
end

local function caption(kind, name, body)
	local text = body:match("\\caption(%b{})")
	local label = body:match("\\label{([^}]*)}")
	if not text then return "", "", "" end
	return ('<figcaption><span class="n">%s %s</span> %s</figcaption>'):format(
		name, counted(kind, label), expand(text:sub(2, -2))),
		label and (' id="%s"'):format(label) or "", text
end
local function cells(row, tag, align)
	local out, j = {}, 0
	for cell in (row .. "\4"):gmatch("(.-)\4") do
		j = j + 1
		table.insert(out, ("<%s%s>%s</%s>"):format(tag,
			align:sub(j, j) == "l" and "" or ' class="r"',
			expand(cell):match("^%s*(.-)%s*$"), tag:match("%a+")))
	end
	return table.concat(out)
end

local function rows(text, tag, align)
	local out = {}
	for row in text:gmatch("[^\3]+") do
		local found
		row, found = row:gsub("\\addlinespace", "")
		if row:find("%S") then
			table.insert(out, (found > 0 and '<tr class="gap">' or "<tr>")
				.. cells(row, tag, align) .. "</tr>\n")
		end
	end
	return table.concat(out)
end
local function tabular(spec, body)
	local align = spec:gsub("@{}", "")
	body = body:gsub("\\midrule\\endfirsthead.-\\endfoot", "\\midrule")
	local head, rest = body:gsub("\\bottomrule", "")
		:match("\\toprule(.-)\\midrule(.*)$")
	return ('<div class="wide" tabindex="0"><table><thead>%s</thead><tbody>\n'
		.. '%s</tbody></table></div>'):format(rows(head, 'th scope="col"', align),
		rows(rest, "td", align))
end
local function table_with_caption(body)
	local text, id = caption("table", "Table", body)
	body = body:gsub("\\caption%b{}", ""):gsub("\\label{[^}]*}", "")
	return ('<figure class="table"%s>%s%s</figure>\n'):format(id, text,
		expand(body))
end

local function figure(body)
	local text, id, words = caption("figure", "Figure", body)
	local path = pictures.take(body:match("\\nwgraphic{([^}]*)}"))
	words = words:gsub("\\nwprovenance%b{}", ""):sub(2, -2)
	return ('<figure%s><div class="wide"><a href="%s"><img src="%s" '
		.. 'alt="\20%s\22"></a></div>%s</figure>\n'):format(id, path, path,
		M.plain(expand(words)), text)
end
environments = {tabular = {1, tabular, body = true},
	longtable = {1, tabular, body = true},
	nwtable = {0, table_with_caption, body = true},
	nwlong = {0, table_with_caption, body = true},
	nwfigure = {0, figure, body = true},
	nwfigurehere = {0, figure, body = true},
	nwindex = {0, '<ul class="index">\n'}, ["end nwindex"] = {0, "</ul>\n"},
	nwprovenancelist = {0, ""}, ["end nwprovenancelist"] = {0, ""},
	["end nwexperiments"] = {0, "</tbody></table></div>\n"},
	["end nwframe"] = {0, "</section>\n"}}
environments.nwexperiments = {0, '<div class="wide" tabindex="0"><table><thead>'
	.. '<tr><th scope="col">problem<th scope="col" class="r">points'
	.. '<th scope="col">section<th scope="col">table<th scope="col">machine'
	.. '<th scope="col">date<th scope="col">code</tr></thead><tbody>\n'}
environments.nwframe = {1, function(label)
	local id = label:match("\\label{([^}]*)}")
	label = label:gsub("\\label{[^}]*}", "")
	return ('<section class="frame" aria-label="%s"%s><p class="frame">%s</p>\n')
		:format(label, id and (' id="%s"'):format(id) or "", label)
end}
local function raw(s) return pandoc.RawInline("html", s) end

function M.is_tex(r) return r.format == "latex" or r.format == "tex" end

local function join(list)
	local out = {}
	for k, i in ipairs(list) do
		if i.t ~= "RawInline" or not M.is_tex(i) then
			out[k] = "\14" .. k .. "\15"
		else
			out[k] = protect((i.text:gsub("\\hyperref%[(.-)%]{",
				"\\nwix{%1}{")))
		end
	end
	return table.concat(out)
end
local function equation(text)
	local label = text:match("\\label{([^}]*)}")
	local body = text:match("^\\begin{equation}(.*)\\end{equation}$")
	return {raw(('<span class="equation" id="%s">'):format(label)),
		M.math(pandoc.Math("DisplayMath", (body:gsub("\\label{[^}]*}", "")))),
		raw(("<span>(%s)</span></span>"):format(counted("equation", label)))}
end

local function with_equations(list)
	local out = pandoc.Inlines {}
	for _, i in ipairs(list) do
		if i.t == "RawInline" and i.text:match("^\\begin{equation}") then
			out:extend(equation(i.text))
		elseif i.t == "Math" and i.mathtype == "DisplayMath" then
			out:extend {raw '<span class="equation">', i, raw "</span>"}
		else
			out:insert(i)
		end
	end
	return out
end
local entities = {["<"] = "&lt;", [">"] = "&gt;", ["&"] = "&amp;",
	['"'] = "&quot;"}

local function in_words(text, list)
	text = text:gsub("\14(%d+)\15", function(k)
		local i = list[tonumber(k)]
		local words = i.t ~= "Math" and pandoc.utils.stringify(i)
			or pandoc.write(pandoc.Pandoc {pandoc.Plain {i}}, "plain",
				{wrap_text = "none"}):gsub("%s+$", "")
		return (words:gsub('[<>&"]', entities))
	end)
	return (text:match("^%s*(.-)%s*$"))
end
local function split(text, list)
	local out = pandoc.Inlines {}
	for html, k in (text .. "\14\15"):gmatch("([^\14]*)\14(%d*)\15") do
		if html ~= "" then out:insert(raw(html)) end
		if k ~= "" then out:insert(list[tonumber(k)]) end
	end
	return out
end
function M.inlines(list)
	local latex = false
	list = with_equations(list)
	for _, i in ipairs(list) do
		latex = latex or i.t == "RawInline" and M.is_tex(i)
	end
	if not latex then return list end
	local text = restore(expand(join(list)))
	return split(text:gsub("\20(.-)\22", function(words)
		return in_words(words, list)
	end), list)
end
function M.math(m)
	m.text = m.text:gsub("\\[Bb]igg?l%f[%A]", "\\left")
	m.text = m.text:gsub("\\[Bb]igg?r%f[%A]", "\\right")
	m.text = m.text:gsub("\\mathrm(%b{})", "\\text%1")
	return m
end

function M.block(text)
	if text:match("^%%nw %d+$") or text:match("^\\%a+group%f[%A]") then
		return {}
	end
	return pandoc.RawBlock("html", restore(expand(protect(text))))
end
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
