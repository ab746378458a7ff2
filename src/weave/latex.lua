-- latex.lua: write the document in the commands of template.tex
local here = PANDOC_SCRIPT_FILE:match("^(.*)/[^/]*$") or "."
package.path = here .. "/?.lua;" .. package.path
local marks = require "marks"
local writer, divisions = {traverse = "topdown"}, {}

local function raw(s) return pandoc.RawInline("latex", s) end
local function block(s, ...) return pandoc.RawBlock("latex", s:format(...)) end

-- write text so that TeX prints it verbatim
local special = {["\\"] = "\\nwbs{}", ["{"] = "\\{", ["}"] = "\\}",
	["$"] = "\\$", ["&"] = "\\&", ["#"] = "\\#", ["%"] = "\\%",
	["_"] = "\\_", ["^"] = "\\nwhat{}", ["~"] = "\\nwtilde{}",
	[" "] = "\\ "}

local function escape(s) return (s:gsub("[\\{}$&#%%_^~ ]", special)) end

-- write marked code for TeX
local kinds = {}
for kind, command in pairs {k = "nwkeyword", c = "nwcomment", s = "nwstring",
	q = "nwcode"} do
	kinds[kind] = function() return "\\" .. command .. "{", "}" end
end
for kind, command in pairs {i = "nwid", d = "nwix", r = "nwref",
	l = "nwlisted", n = "nwm", a = "nwaway", m = "nwmaway"} do
	kinds[kind] = function(argument)
		return ("\\%s{%s}{"):format(command, argument), "}"
	end
end

kinds.w = function() return "\\nwwrapped{}", "" end

local function marked(text) return marks.translate(text, escape, kinds) end

local function breakable(s)
	s = s:gsub("%f[%w_]_+", function(run) return ("\5"):rep(#run) end)
	return (escape(s):gsub("\5", "\\nwus{}"):gsub("/(%a)", "/\\nwbreak %1"))
end

local function code(text)
	return "\\nwcode{" .. breakable(text):gsub("(%a%-)(%a)", "%1\\nwbreak %2")
		.. "}"
end

-- write inlines for TeX
function writer.Code(c)
	if not c.classes:includes("marked") then
		local id = c.identifier
		return raw((id ~= "" and "\\nwtarget{" .. id .. "}" or "")
			.. code(c.text))
	end
	local tex = marks.translate(c.text, breakable, kinds)
	return raw(c.classes:includes("name") and tex or "\\nwcode{" .. tex .. "}")
end

function writer.Link(l)
	local id, class = l.target:match("^#(.+)$"), l.classes[1]
	if not id then return nil end
	if class == "page" then return raw("\\pageref{" .. id .. "}") end
	if class == "to" then
		return raw(("\\nwto{%s}{%s}"):format(l.attributes.what, id))
	end
	local out = pandoc.Inlines {raw("\\hyperref[" .. id .. "]{")}
	out:extend(l.content:walk(writer))
	out:insert(raw "}")
	return out, false
end

function writer.Math(m)
	if m.text:find("\\label{", 1, true) then
		return raw("\\begin{equation}" .. m.text .. "\\end{equation}")
	end
end

function writer.Span(s)
	local class = s.classes[1]
	if class == "machine" then
		local place = pandoc.utils.stringify(s)
		return raw(place ~= "" and "\\nwmark{" .. escape(place) .. "}" or "")
	elseif class == "provenance" then
		return {raw "\\nwprovenance{", s.content[1], raw "}"}, false
	end
end

-- break a line that is too long for its column
local function divide(line, at)	-- before and behind `at` characters that show
	local open, seen, i = {}, 0, 1
	while i <= #line do
		local b = line:byte(i)
		if b == 1 then
			local e = line:find("\2", i, true)
			table.insert(open, line:sub(i, e))
			i = e + 1
		elseif b == 3 then
			table.remove(open)
			i = i + 1
		elseif seen == at then
			break
		else
			seen, i = seen + 1, utf8.offset(line, 2, i)
		end
	end
	return line:sub(1, i - 1) .. ("\3"):rep(#open),
		table.concat(open) .. line:sub(i)
end

local function place_to_break(text, columns)
	for _, what in ipairs {"[,;]", "[ (]"} do
		for k = columns, columns * 6 // 10, -1 do
			local ends = text:sub(k, k) == " " and k - 1 or k
			if text:sub(ends, ends):match(what) then return k end
		end
	end
	return columns
end

local function wrap(lines, line, columns)
	if columns then line = line:gsub("\1[nm][^\3]*\3", "") end
	local text = marks.plain(line)
	if not columns or utf8.len(text) <= columns or line:find("\1[ra]") then
		table.insert(lines, line)
		return
	end
	local indent = #line:match("^ *")
	local head, rest = divide(line, place_to_break(text, columns))
	table.insert(lines, head)
	wrap(lines, (" "):rep(indent + 2) .. marks.mark("w", "", "") .. rest,
		columns)
end

local function put_lines(out, text, columns)
	local lines = {}
	for line in (text .. "\n"):gmatch("(.-)\n") do
		wrap(lines, line, columns)
	end
	for k, line in ipairs(lines) do
		local indent = #line:match("^ *")
		out[#out + 1] = line == "" and "\\nwblank"
			or ("\\nwl%s{%d}{%s}"):format((k <= 2 or k >= #lines - 1
			or lines[k + 1] == "{") and "k" or "", indent,
			marked(line:sub(indent + 1)))
	end
	return #lines
end

-- write a chunk for TeX
local said = {usedin = "nwusedin", defines = "nwdefines",
	continued = "nwcontinued", begun = "nwbegun"}

local function foot(spans)
	local out, width = {}, 0
	for k, s in ipairs(spans) do
		local names = {}
		for _, c in ipairs(s.content) do
			names[#names + 1] = c.t == "Code" and marked(c.text)
				or pandoc.utils.stringify(c)
			width = width + utf8.len(c.text and marks.plain(c.text) or " ")
				+ (s.classes[1] == "usedin" and 6 or 0)
		end
		local ids = s.attributes.chunks
		width = width + 12 + (ids and select(2, ids:gsub("%d+", "")) * 6 or 0)
		out[k] = ("\\%s{%s}"):format(said[s.classes[1]],
			ids or table.concat(names))
	end
	return table.concat(out, "\\nwsep "), width
end

-- choose how the code of a file is set
local to_read = {"^src/model/path_", "^src/ops/cuda/norm",
	"^src/ops/cuda/attention_", "^src/ops/cuda/warp_specialized",
	"^src/ops/cuda/hopper%.cuh$", "^src/ops/cuda/mma"}
local parts = 0

local function is_consulted(file)
	for _, pattern in ipairs(to_read) do
		if file:match(pattern) then return false end
	end
	return parts > 1
end

function divisions.chunk(d)
	local a, name = d.attributes, d.content[1].content[1].text
	local tex, width = foot(d.content[3].content)
	local columns = is_consulted(a.file) and 75 or nil
	local room = (columns and 430 or 340) - 4.3 * utf8.len(marks.plain(name))
	local beside = tex ~= "" and 3.6 * width < room
	local out = {("%%nw %s\n\\nwhead%s{%s}{%s}{%s}{%s}{%s}"):format(a.line,
		columns and "wide" or "", a.chunk, marked(name),
		a.first == "yes" and "" or "+", a.line, beside and tex or "")}
	local code = d.content[2].text
	local few = select(2, code:gsub("\n", "")) < 6
	if columns then out[#out + 1] = few and "\\nwsmall" or "\\nwcolumns" end
	put_lines(out, code, columns and (few and 140 or columns))
	if columns then out[#out + 1] = few and "\\nwsmallend" or "\\nwcolumnsend" end
	out[#out + 1] = (tex == "" or beside) and "\\nwend"
		or "\\nwfoot{" .. tex .. "}"
	return pandoc.RawBlock("latex", table.concat(out, "\n"))
end

-- write a table for TeX
local function size(rows)
	local widest, total = {}, 0
	for _, row in ipairs(rows) do
		for j, cell in ipairs(row.content or {}) do
			local first = cell.content[1]
			local n = first and first.t == "Math" and 6
				or utf8.len(pandoc.utils.stringify(cell))
			widest[j] = math.max(widest[j] or 0, n)
		end
	end
	for _, w in ipairs(widest) do total = total + w + 2 end
	return total <= 78 and "\\footnotesize" or total <= 139 and "\\scriptsize"
		or "\\tiny"
end

local function put_row(out, row)
	for j, cell in ipairs(row.content) do
		if j > 1 then out:insert(raw " & ") end
		out:extend(cell.content)
	end
	out:insert(raw "\\\\\n")
end

local function put_rows(out, rows, first, between)
	for k = first, #rows do
		if rows[k].t == "Plain" then put_row(out, rows[k])
		else out:insert(raw(between)) end
	end
end

local function keep_in_place(list)
	local seen = list:filter(function(b) return b.t ~= "RawBlock" end)
	for k, b in ipairs(seen) do
		local before, after = seen[k - 1] or {}, seen[k + 1]
		local alone = before.t == "Header" and (not after or after.t == "Header")
		local announced = before.t == "Para"
			and pandoc.utils.stringify(before):find(":$")
		if b.t == "Div" and b.classes[1] == "grid" and (alone or announced) then
			b.attributes.floats = "no"
		end
	end
	return list
end

local short = {"\\begin{nwtable%s}\n", "\\nwfit{\\begin{tabular}{@{}",
	"\\bottomrule\\end{tabular}}\n\\end{nwtable%s}", "\\midrule\n"}
local long = {"\\begin{nwlong}", "\\begin{longtable}{@{}",
	"\\end{longtable}\\end{nwlong}", "\\midrule\\endhead\\bottomrule\\endfoot\n"}

function divisions.grid(d)
	local rows, is_long = d.content:walk(writer), d.attributes.long == "yes"
	local begin, open, close, behind = table.unpack(is_long and long or short)
	local how = d.attributes.floats == "yes" and parts == 1 and "float" or ""
	local out = pandoc.Inlines {raw(begin:format(how))}
	if #rows[1].content > 0 then
		out:insert(raw "\\caption{")
		out:extend(rows[1].content)
		out:insert(raw("}" .. (d.identifier ~= "" and "\\label{" .. d.identifier
			.. "}" or "")))
	end
	rows:remove(1)
	if is_long then out:insert(raw("\\nwlining" .. size(rows))) end
	out:insert(raw(open .. d.attributes.align .. "@{}}\\toprule\n"))
	put_row(out, rows[1])
	if is_long then
		out:insert(raw "\\midrule\\endfirsthead\\toprule\n")
		put_row(out, rows[1])
	end
	out:insert(raw(behind))
	put_rows(out, rows, 2, "\\addlinespace\n")
	out:insert(raw(close:format(how)))
	return pandoc.Plain(out)
end

divisions["experiment-list"] = function(d)
	local rows = d.content:walk(writer)
	local out = pandoc.Inlines {raw "\\begin{nwexperiments}\n"}
	put_rows(out, rows, 2, "\\midrule ")
	out:insert(raw "\\end{nwexperiments}")
	return pandoc.Plain(out)
end

-- write other divisions for TeX
function divisions.figure(d)
	local out = d.content[1].content:walk(writer)
	local env = d.attributes.floats == "yes" and "nwfigure" or "nwfigurehere"
	out:insert(1, raw(("\\begin{%s}\\nwgraphic{%s}\n\\caption{"):format(env,
		d.attributes.src)))
	out:insert(raw("}" .. (d.identifier ~= "" and "\\label{" .. d.identifier
		.. "}" or "") .. "\\end{" .. env .. "}"))
	return pandoc.Plain(out)
end

function divisions.frame(d)
	local out = d.content:walk(writer)
	out:insert(1, block("\\begin{nwframe}{%s%s}", d.attributes.label,
		d.identifier ~= "" and "\\label{" .. d.identifier .. "}" or ""))
	out:insert(block "\\end{nwframe}")
	return out
end

function divisions.make(d)
	local a = d.attributes
	return block("\\nwproblem{%s}{%s}{%s}", a.points, escape(a.problem), a.level)
end

-- write lists and indexes for TeX
function divisions.answered(d)
	local problem, title = table.unpack(d.content[1].content)
	problem = problem.content[1]
	return block("\\nwglanced{%s}{%s}{%s}", problem.target:sub(2),
		escape(problem.content[1].text), escape(pandoc.utils.stringify(title)))
end

function divisions.short(d)
	local a, out = d.attributes, d.content[1].content:walk(writer)
	out:insert(1, raw(("\\nwglance{%s}{%s}{%s}{"):format(a.part, a.edition,
		a.to)))
	out:insert(raw "}")
	return pandoc.Plain(out)
end

function divisions.sources(d)
	local out = pandoc.Blocks {block "\\begin{nwprovenancelist}"}
	for _, source in ipairs(d.content) do
		for k, row in ipairs(source.content) do
			local tex = {}
			for j, cell in ipairs(row.content) do
				tex[j] = ""
				for _, i in ipairs(cell.content) do
					tex[j] = tex[j] .. (i.t == "Code" and code(i.text)
						or escape(pandoc.utils.stringify(i)))
				end
			end
			out:insert(block("%s{%s}", k == 1 and "\\nwsource" or "\\nwkey",
				table.concat(tex, "}{")))
		end
		out:insert(block "\\nwsourceend")
	end
	out:insert(block "\\end{nwprovenancelist}")
	return out
end

function divisions.index(d)
	local out = {"\\begin{nwindex}"}
	for _, entry in ipairs(d.content) do
		local what, places = table.unpack(entry.content)
		local a = places.attributes
		table.insert(out, ("\\nwentry{%s}{%s}{%s}"):format(
			writer.Code(what).text, a.defs, a.uses))
	end
	table.insert(out, "\\end{nwindex}")
	return pandoc.RawBlock("latex", table.concat(out, "\n"))
end

-- write other blocks for TeX
function writer.Div(d)
	local write = divisions[d.classes[1]]
	if write then return write(d), false end
end

function writer.CodeBlock(c)
	if not c.classes:includes("listing") then return nil end
	local out = {"\\nwlisting"}
	put_lines(out, c.text)
	out[#out + 1] = "\\nwlistingend"
	return pandoc.RawBlock("latex", table.concat(out, "\n"))
end

function writer.RawBlock(r)
	if r.format == "nwline" then
		return pandoc.RawBlock("latex", "%nw " .. r.text)
	elseif r.format == "nwchapter" then
		return block("\\setcounter{chapter}{%s}", r.text)
	elseif r.text:match("^\\part{") then
		parts = parts + 1
	end
end

function writer.Header(h)
	h.content = h.content:walk {Link = writer.Link, Span = writer.Span}
	if not h.classes:includes("evidence") then return h, false end
	return {block "\\nwneeds{10\\baselineskip}", h}, false
end

-- write the document for TeX
function Pandoc(doc)
	doc.blocks = doc.blocks:walk({Blocks = keep_in_place}):walk(writer)
	for key, v in pairs(doc.meta) do
		local kind = pandoc.utils.type(v)
		if kind == "Inlines" or kind == "Blocks" then
			doc.meta[key] = v:walk(writer)
		end
	end
	return doc
end
