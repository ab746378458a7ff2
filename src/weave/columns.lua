-- columns.lua: the columns of a table that is shown
local query, format = require "query", require "format"
local evaluate = require "evaluate"
local M = {}

-- split at commas outside brackets
local function pieces(text)
	local list, depth, start = {}, 0, 1
	for i = 1, #text + 1 do
		local c = text:sub(i, i)
		if c:match("[%(%[{]") then depth = depth + 1
		elseif c:match("[%)%]}]") then depth = depth - 1
		elseif (c == "," and depth == 0) or c == "" then
			table.insert(list, text:sub(start, i - 1):match("^%s*(.-)%s*$"))
			start = i + 1
		end
	end
	return list
end

-- read one column's description
local function describe(text)
	local expr, title = text:match("^(.-[^=<>~])=%f[^=](.*)$")
	expr = expr or text
	local body, digits = expr:match("^(.-)%s*:([%w.]+)%s*$")
	expr = (body or expr):match("^%s*(.-)%s*$")
	return {expr = expr, format = digits, title = title}
end

function M.list(t, text)
	local list = {}
	if not text then
		for _, c in ipairs(t.columns) do
			if c ~= "status" then table.insert(list, describe(c)) end
		end
		return list
	end
	for _, piece in ipairs(pieces(text)) do
		table.insert(list, describe(piece))
	end
	return list
end

-- invent a headline
local units = {ms = "ms", us = "µs", s = "s", MiB = "MiB", GiB = "GiB",
	GBps = "GB/s", GFlops = "GFLOP/s", TFlops = "TFLOP/s", pct = "%"}

function M.title(column)
	if column.title then return column.title end
	local stem, unit = column.expr:match("^(.*)_(%a+)$")
	if stem and units[unit] then
		return stem:gsub("_", " ") .. " (" .. units[unit] .. ")"
	end
	return (column.expr:gsub("_", " "))
end

-- evaluate an expression over a row
function M.evaluate(t, row, expr, world)
	local env = setmetatable({}, {__index = function(_, name)
		local i = t.at[name]
		if i then return query.value(row[i]) end
		return world.env[name]
	end})
	local f, err = load("return " .. expr, "=expression", "t", env)
	if not f then query.fail("%s", err:gsub("^expression:%d+: ", "")) end
	local ok, value = pcall(f)
	if ok then return value end
	if type(value) == "table" then error(value, 0) end
	query.fail("%s (in `%s`, at %s:%d)", tostring(value):gsub(
		"^expression:%d+: ", ""), expr, t.path, row.line)
end

-- format a cell
local function missing(t, row, expr)
	for name in expr:gmatch("[%a_][%w_]*") do
		if t.at[name] and row[t.at[name]] == "-" then return true end
	end
	return false
end

function M.cell(t, row, column, world)
	local i = t.at[column.expr]
	if missing(t, row, column.expr) then return nil end
	if i and not column.format then
		local text = row[i]:gsub("^us$", "µs"):gsub("(%d) x (%d)", "%1 × %2")
		return text:match("^%-?%d+$") and format.commas(text) or text
	end
	local value = M.evaluate(t, row, column.expr, world)
	local f = column.format
	if type(value) ~= "number" then return value end
	if not f then query.fail("column %s needs a format", column.expr) end
	if f:match("^%d+$") then return format.digits(value, tonumber(f)) end
	if f:match("^%.%d+$") then return format.fixed(value, f:sub(2)) end
	if not format[f] then query.fail("there is no format %s", f) end
	return format[f](value)
end
return M
