-- tables.lua: table divisions and Markdown tables
local report, data, query = require "report", require "data", require "query"
local evaluate, columns = require "evaluate", require "columns"
local provenance, tabular = require "provenance", require "tabular"
local M = {}

-- pick the rows
local function pick(t, where, world)
	if not where then return t.rows end
	local picked = {}
	for _, row in ipairs(t.rows) do
		if columns.evaluate(t, row, where, world) then
			table.insert(picked, row)
		end
	end
	if #picked == 0 then
		query.fail("no row of %s has %s", t.path, where)
	end
	return picked
end

-- fill the cells of a row
local function fill(t, row, list, world)
	local cells = {}
	local status = t.at.status and row[t.at.status] or "ok"
	local word = status ~= "ok" and status:match("^[%w ]+") or nil
	for j, column in ipairs(list) do
		local cell = columns.cell(t, row, column, world)
		if cell == nil then
			cell, word = word or "—", nil
			cells.words = true
		end
		if type(cell) ~= "table" then cell = tostring(cell) end
		cells[j] = cell
	end
	return cells
end

-- evaluate the description against one data set
local function cells_of(a, world, line)
	local t = data.choose(a.data or "", world.shown, line)
	local list = columns.list(t, a.columns)
	world.line, world.used = line, {t}
	local out = {}
	for _, row in ipairs(pick(t, a.where, world)) do
		local cells = fill(t, row, list, world)
		if a.group then
			cells.group = columns.evaluate(t, row, a.group, world)
		end
		table.insert(out, cells)
	end
	return {rows = out, columns = list, table = t}
end

-- read headlines as Markdown
function M.inlines(text)
	local blocks = pandoc.read(text, "markdown-citations").blocks
	return blocks[1] and blocks[1].content or {}
end

local function headlines(list)
	local head = {}
	for j, column in ipairs(list) do
		head[j] = M.inlines(columns.title(column))
	end
	return head
end

-- gather the caption
function M.caption(blocks)
	local out = {}
	for _, b in ipairs(blocks) do
		if b.t == "Para" or b.t == "Plain" then
			if #out > 0 then table.insert(out, pandoc.Space()) end
			for _, i in ipairs(b.content) do table.insert(out, i) end
		end
	end
	return out
end

-- show a table
function M.show(div, line, framed)
	local x = evaluate.ask(line, function(world)
		local ok, found = pcall(cells_of, div.attributes, world, line)
		return ok, (ok or type(found) == "table") and found
			or {text = tostring(found)}
	end)
	if not x then return {} end
	x.head, x.framed = headlines(x.columns), framed
	x.caption = M.caption(div.content)
	if #x.caption > 0 then table.insert(x.caption, pandoc.Space()) end
	table.insert(x.caption, provenance.caption {x.table})
	x.label = div.identifier
	return tabular.layout(x)
end

-- show a Markdown table
function M.label(element)
	local a = element.attr
	if a.identifier ~= "" then
		return a.identifier, tonumber(a.attributes.line)
	end
	local s = pandoc.utils.to_simple_table(element)
	local id, rest = pandoc.utils.stringify(s.caption):match(
		"{#([%w:_.-]+)([^{}]*)}$")
	return id, id and tonumber(rest:match("line=(%d+)"))
end

local function unlabelled(caption)
	local out = pandoc.Inlines {}
	for _, i in ipairs(caption) do
		if i.t == "Str" and i.text:find("^{#") then
			out:remove()	-- the blank before it
			break
		end
		out:insert(i)
	end
	return out
end

function M.plain(element, framed)
	local s = pandoc.utils.to_simple_table(element)
	local x = {head = {}, rows = {}, align = "", framed = framed}
	local letter = {AlignRight = "r", AlignCenter = "c"}
	for j, h in ipairs(s.headers) do
		x.head[j] = M.caption(h)
		x.align = x.align .. (letter[tostring(s.aligns[j])] or "l")
	end
	for i, r in ipairs(s.rows) do
		x.rows[i] = {}
		for j, c in ipairs(r) do x.rows[i][j] = M.caption(c) end
	end
	x.label, x.caption = M.label(element), unlabelled(s.caption)
	return tabular.layout(x)
end
return M
