-- figures.lua: draw figures with gnuplot when their data or script changed
local report, files, data = require "report", require "files", require "data"
local provenance, drawings = require "provenance", require "drawings"
local M = {draw = true, drawn = {}}

-- run gnuplot
local function is_serious(line)
	return line:find("[Ss]kipping") or line:find("undefined")
		or line:find("[Nn]o valid") or line:find("[Cc]annot")
		or line:find("no column with header")
end

local function gnuplot(script, settings)
	local ok, text = files.run('env -u GNUTERM gnuplot -d -e "$1" "$2" 2>&1',
		settings, script)
	local lines = {}
	for l in text:gmatch("[^\n]+") do
		if l:find("%w") and not l:find("^Fontconfig")
			and (not ok or is_serious(l)) then
			table.insert(lines, (l:match("^%s*(.-)%s*$")))
		end
	end
	if ok and #lines == 0 then return true end
	return nil, table.concat(lines, "; "):sub(1, 300)
end

-- fix the date and add the key
local function finish(out, key)
	local pdf = files.read(out .. ".new")
	if not pdf or #pdf == 0 then return nil, "the script wrote no figure" end
	pdf = pdf:gsub("/CreationDate %(D:%d%d%d%d%d%d%d%d%d%d%d%d%d%d",
		"/CreationDate (D:20000101000000")
	files.write(out .. ".new", (pdf:gsub("startxref%s+%d+%s+%%%%EOF%s*$",
		"%% key " .. key .. "\n%0")))
	os.rename(out .. ".new", out)
	return true
end

local function is_from(path, key)
	return (files.read(path) or ""):find("% key " .. key, 1, true) ~= nil
end

-- look for cells that are no numbers
local function not_finite(t, script)
	script = ("\n" .. script):gsub("\n#[^\n]*", "")
	for i, name in ipairs(t.columns) do
		local named = script:find("%f[%w_]" .. name .. "%f[^%w_]")
		for _, row in ipairs(named and t.rows or {}) do
			local cell = row[i]:lower():match("^[-+]?(%a+)$")
			if cell == "nan" or cell == "inf" then
				return ("%s:%d: %s is %s"):format(t.path, row.line, name, row[i])
			end
		end
	end
end

-- draw a figure if its key has changed
function M.update(name, script, tables, more)
	local folder = "figures/" .. tables[1].machine
	local out = folder .. "/" .. name .. ".pdf"
	local source, settings = {files.read(script)}, {}
	for loaded in ("\n" .. source[1]):gmatch("\nload ['\"](.-)['\"]") do
		table.insert(source, files.read(loaded) or "")
	end
	table.insert(source, more)
	for k, t in ipairs(tables) do
		local gap = not_finite(t, source[1] .. more)
		if gap then return nil, gap end
		table.insert(source, files.read(t.path))
		table.insert(settings, ("table%s='%s'"):format(k > 1 and k or "",
			t.path))
	end
	local key = pandoc.utils.sha1(table.concat(source, "\0"))
	if M.drawn[out] and M.drawn[out] ~= key then
		return nil, out .. " is drawn twice, from different data: add name=..."
	end
	M.drawn[out] = key
	if not M.draw or is_from(out, key) then return out end
	files.run('mkdir -p "$1"', folder)
	table.insert(settings, ("out='%s.new'"):format(out))
	if more ~= "" then table.insert(settings, more) end
	local ok, err = gnuplot(script, table.concat(settings, "; "))
	if ok then ok, err = finish(out, key) end
	if not ok then
		os.remove(out .. ".new")
		return nil, ("%s: %s"):format(script, err)
	end
	return out
end

-- find the tables of a figure
local function choose(names, line)
	local tables = {}
	for name in names:gmatch("[^%s,]+") do
		table.insert(tables, data.shown(name, line))
	end
	if #tables == 0 then error({text = "a figure needs data=TABLE"}, 0) end
	return tables
end

-- set out a figure and its caption
local function figure(path, caption, label, framed)
	return pandoc.Div({pandoc.Plain(caption)}, pandoc.Attr(label, {"figure"},
		{src = path, floats = framed and "no" or "yes"}))
end

-- place a figure on the page
function M.show(image, line, framed)
	local a = image.attributes
	local script = "src/plots/" .. image.src .. ".gp"
	if not files.read(script) then
		report.at(line, ("figure %s: there is no %s"):format(image.src, script))
		return nil
	end
	local ok, tables = pcall(choose, a.data or "", line)
	if not ok then return report.error(line, tables) end
	local path, err = M.update(a.name or image.src, script, tables,
		a.set or "")
	if not path then
		report.at(line, "figure " .. image.src .. ": " .. err)
		return nil
	end
	local caption = pandoc.Inlines(image.caption)
	caption:extend {pandoc.Space(), provenance.caption(tables)}
	return figure(path, caption, image.identifier, framed)
end

-- place a drawing on the page
function M.drawing(div, caption, line, framed)
	local picture = drawings.source(div, line)
	if not picture or #caption == 0 or div.identifier == "" then
		report.at(line, "a drawing needs a label, a picture and a caption")
		return nil
	end
	local path = drawings.add(div.identifier:gsub("^fig:", ""), picture, line)
	return figure(path, pandoc.Inlines(caption), div.identifier, framed)
end
return M
