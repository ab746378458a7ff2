-- query.lua: selections of the rows of a table
local M = {}
local inner = setmetatable({}, {__mode = "k"})
local meta = {}

-- fail with a message
function M.fail(text, ...)
	error({text = select("#", ...) > 0 and text:format(...) or text}, 0)
end

function M.position(t, column)
	local i = t.at[column]
	if not i then
		M.fail("%s has no column %s (it has %s)", t.path, tostring(column),
			table.concat(t.columns, ", "))
	end
	return i
end

-- turn a cell into a value
function M.value(cell)
	if cell == "-" then return nil end
	return cell:match("^[-+]?%.?%d") and tonumber(cell) or cell
end

-- decide whether a row meets the conditions
local function meets(value, want)
	if type(want) == "function" then
		return value ~= nil and want(value)
	elseif type(want) == "table" then
		for _, w in ipairs(want) do
			if meets(value, w) then return true end
		end
		return false
	end
	return value == want or tostring(value) == tostring(want)
end

local function satisfies(s, row, conditions)
	local t = inner[s].table
	if type(conditions) == "function" then
		return conditions(M.new(t, {row}))
	end
	for column, want in pairs(conditions) do
		local value = M.value(row[M.position(t, column)])
		if not meets(value, want) then return false end
	end
	return true
end

local function describe(conditions)
	if type(conditions) == "function" then return "what is asked of it" end
	local parts = {}
	for k, v in pairs(conditions) do
		if type(v) == "table" then v = "{" .. table.concat(v, ", ") .. "}" end
		table.insert(parts, k .. " = " .. tostring(v))
	end
	table.sort(parts)
	return table.concat(parts, ", ")
end

-- read an expression over a row
function M.expression(text, with)
	if type(text) ~= "string" then return text end
	local names, row = M.names, nil
	local function like(other, ...)
		local same = {}
		for _, column in ipairs {...} do same[column] = row[column] end
		return other(same)
	end
	local env = setmetatable({like = like}, {__index = function(_, name)
		if with and with[name] ~= nil then return with[name] end
		if name == "it" then return row end
		local t = M.is(row) and inner[row].table.at
			or type(row) == "table" and row
		if t and t[name] ~= nil then return row[name] end
		return names[name]
	end})
	local f, err = load("return " .. text, "=text", "t", env)
	if not f then M.fail("%s (in `%s`)", err:gsub("^text:%d+: ", ""), text) end
	return function(r)
		local outer = row
		row = r
		local value = f()
		row = outer
		return value
	end
end

-- select rows
function M.new(t, rows)
	local s = setmetatable({}, meta)
	inner[s] = {table = t, rows = rows}
	return s
end

function meta.__call(s, conditions, with)
	local t, rows = inner[s].table, {}
	conditions = M.expression(conditions, with)
	if type(conditions) ~= "table" and type(conditions) ~= "function" then
		M.fail("select rows with braces, %s{column = value}, or a function",
			t.name)
	end
	for _, row in ipairs(inner[s].rows) do
		if satisfies(s, row, conditions) then table.insert(rows, row) end
	end
	if #rows == 0 then
		M.fail("no row of %s has %s", t.path, describe(conditions))
	end
	return M.new(t, rows)
end

-- take a column
function meta.__index(s, column)
	local t, rows = inner[s].table, inner[s].rows
	local i = M.position(t, column)
	local list = {}
	for k, row in ipairs(rows) do
		list[k] = M.value(row[i])
		if list[k] == nil then
			local why = t.at.status and row[t.at.status] or "-"
			M.fail("%s:%d: %s is missing (status: %s)", t.path, row.line,
				column, why)
		end
	end
	if #rows == 1 then return list[1] end
	return list
end

-- offer selections to other modules
function M.inside(s) return inner[s] end
function M.is(s) return inner[s] ~= nil end

function M.each(s)
	local list = {}
	for _, row in ipairs(inner[s].rows) do
		table.insert(list, M.new(inner[s].table, {row}))
	end
	return list
end
return M
