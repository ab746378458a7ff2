-- drawings.lua: draw TikZ pictures when their source changed, all in one run
local report, files = require "report", require "files"
local format, query = require "format", require "query"
local evaluate = require "evaluate"
local M = {draw = true, stale = {}}
local folder, work = "figures/drawings", files.work

-- read a constant from the code
function format.constant(path, what)
	local text = files.read(path) or ""
	local pattern = what:find("(", 1, true) and what
		or "%f[%w_]" .. what .. "%s*=%s*(%d+)"
	local found = {text:match(pattern)}
	if #found == 0 then query.fail("%s does not have %s", path, what) end
	for i, n in ipairs(found) do found[i] = math.tointeger(tonumber(n)) end
	return table.unpack(found)
end

-- find the source of a drawing
local function macros(code, line)
	local out, values = {}, code and evaluate.evaluate(code, line) or {}
	for name, v in pairs(values) do
		v = tostring(type(v) == "number" and math.tointeger(v) or v)
		table.insert(out, ("\\def\\%s{%s}%%\n"):format(name, v))
	end
	table.sort(out)
	return table.concat(out)
end

function M.source(div, line)
	local a, picture = div.attributes, ""
	for _, b in ipairs(div.content) do
		if b.t == "RawBlock" and b.format == "latex" then
			picture = picture .. b.text
		end
	end
	if a.src then
		picture = files.read("src/drawings/" .. a.src .. ".tex") or ""
	end
	return picture:find("%S") and macros(a.values, line) .. picture or nil
end

-- make the preamble of drawings
local function preamble()
	local out = {"\\documentclass[10pt]{article}"}
	for name, hex in (files.read("src/plots/style.gp") or "")
		:gmatch('colour_(%w+) = "#(%x+)"') do
		table.insert(out, ("\\definecolor{%s}{HTML}{%s}"):format(name,
			hex:upper()))
	end
	table.insert(out, 2, "\\usepackage{xcolor}")
	table.insert(out, files.read("src/drawings/style.tex")
		or "\\usepackage{tikz}")
	return table.concat(out, "\n") .. "\n"
end

-- note a drawing whose key has changed
function M.add(name, picture, line)
	local out = folder .. "/" .. name .. ".pdf"
	M.preamble = M.preamble or preamble()
	local key = pandoc.utils.sha1(M.preamble .. picture)
	if M.draw and not (files.read(out) or ""):find("key " .. key, 1, true) then
		table.insert(M.stale, {name = name, picture = picture, line = line,
			key = key, out = out})
	end
	return out
end

-- draw what was noted
local page = [[
\setbox0\vbox{\kern.5pt\hbox{\kern.5pt\input{%s}\unskip\kern.5pt}\kern.5pt}%%
\pdfpagewidth=\wd0 \pdfpageheight=\dimexpr\ht0+\dp0\relax
\shipout\vbox{\special{pdf:docinfo << /Keywords (key %s) >>}\box0}
]]
local command = [[
mkdir -p %s && export SOURCE_DATE_EPOCH=1767225600 FORCE_SOURCE_DATE=1
rm -f %s/drawings.xdv
xelatex -no-pdf -interaction=nonstopmode -halt-on-error -file-line-error \
-output-directory=%s %s/drawings.tex | grep '^[^ ]*:[0-9]*: ' && exit 1
]]

function M.finish()
	if #M.stale == 0 then return end
	local book = {M.preamble, "\\begin{document}\\hoffset-1in\\voffset-1in\n"}
	local run = {command:format(folder, work, work, work)}
	for k, d in ipairs(M.stale) do
		local file = ("%s/drawing-%s.tex"):format(work, d.name)
		files.write(file, d.picture)
		table.insert(book, page:format(file, d.key))
		table.insert(run, ("xdvipdfmx -q -V 4 -s %d-%d -o %s %s/drawings.xdv "
			.. "|| exit 1\n"):format(k, k, d.out, work))
	end
	files.write(work .. "/drawings.tex", table.concat(book)
		.. "\\end{document}\n")
	local ok, text = files.run(table.concat(run))
	if ok then return end
	local name, what = text:match("drawing%-([^\n]-)%.tex:%d+: ([^\n]*)")
	for _, d in ipairs(M.stale) do
		if d.name == name or not name then
			report.at(d.line, ("drawing %s: %s"):format(d.name,
				(what or text):sub(1, 200)))
		end
	end
end
return M
