-- law_words.lua: what the test of a law may say of other rows and tables
local data, query = require "data", require "query"
local words, skip = {}, {}
local M = {words = words, skip = skip, uses = {}, now = nil}

-- read a cell, or skip the row
function M.number(text)
	if text == "-" then error(skip, 0) end
	if text:match("^%-?nan$") then return 0 / 0 end
	return query.value(text)
end

local function cell(t, row, column) return row[query.position(t, column)] end

local function seen(t, row)
	if not row then error(skip, 0) end
	return setmetatable({}, {__index = function(_, column)
		return M.number(cell(t, row, column))
	end})
end

-- find the rows that agree in some columns
local function key(t, row, columns, changes)
	local parts = {}
	for column in columns:gmatch("%S+") do
		local v = changes and changes[column]
		if v == nil then v = query.value(cell(t, row, column)) end
		parts[#parts + 1] = type(v) == "number" and ("%.12g"):format(v)
			or tostring(v)
	end
	return table.concat(parts, "\t")
end

local function groups(t, columns)
	t.groups = t.groups or {}
	local found = t.groups[columns]
	if found then return found end
	found = {before = {}, of = {}}
	for _, row in ipairs(t.rows) do
		local k = key(t, row, columns)
		local list = found[k] or {}
		found[k], found.of[row], found.before[row] = list, list, list[#list]
		table.insert(list, row)
	end
	t.groups[columns] = found
	return found
end

-- speak of rows that agree
local function alike(columns)
	return groups(M.now.t, columns).of[M.now.row]
end

function words.rows(columns) return #alike(columns) end

function words.total(column, columns)
	local s = 0
	for _, row in ipairs(alike(columns)) do
		s = s + M.number(cell(M.now.t, row, column))
	end
	return s
end

function words.fixed(column, columns)
	local mine = M.number(cell(M.now.t, M.now.row, column))
	for _, row in ipairs(alike(columns)) do
		local other = cell(M.now.t, row, column)
		if other ~= "-" then return M.number(other) == mine end
	end
end

-- speak of one other row
function words.first(columns) return seen(M.now.t, alike(columns)[1]) end
function words.last(columns)
	return seen(M.now.t, alike(columns)[#alike(columns)])
end
function words.before(columns)
	return seen(M.now.t, groups(M.now.t, columns).before[M.now.row])
end
local function pick(t, row, columns, changes)
	local list = groups(t, columns)[key(t, row, columns, changes)]
	return seen(t, list and list[1])
end
function words.other(changes)
	return pick(M.now.t, M.now.row, M.now.law.scope.keys, changes)
end
function words.of(name, want)
	M.uses[name] = M.uses[name] or {}
	M.uses[name][M.now.t.name] = true
	local c, columns = (data.tables[name] or {})[M.now.t.machine], {}
	if not c then error(skip, 0) end
	for column in pairs(want) do table.insert(columns, column) end
	table.sort(columns)
	return pick(data.load(c, 0), nil, table.concat(columns, " "), want)
end

-- speak of growth
function words.below(by, value)
	local keys = (M.now.law.scope.keys .. " "):gsub("%f[%w_]" .. by .. " ", "")
	local t, best, most = M.now.t, nil, -math.huge
	local mine = M.number(cell(t, M.now.row, by))
	for _, row in ipairs(alike(keys)) do
		local v = query.value(cell(t, row, by))
		if v and v < mine and v > most and cell(t, row, value) ~= "-" then
			best, most = row, v
		end
	end
	return seen(t, best)
end

function words.scales(value, by, low, high, slack)
	local lower, mine = words.below(by, value), seen(M.now.t, M.now.row)
	local size, ratio = mine[by] / lower[by], mine[value] / lower[value]
	return ratio >= size ^ low / (slack or 1)
		and ratio <= size ^ high * (slack or 1)
end

-- compare two numbers
function words.close(x, y, relative, absolute)
	return math.abs(x - y) <= relative * math.abs(y) + (absolute or 0)
end

function words.integer(x) return x == math.floor(x) end
function words.vocabulary()     -- of the models in the table at hand
	local scale = M.now.t.meta.scale or "course"
	return scale:find("vocabulary divided by 8") and 1250 or 10000
end
function words.gpu() return M.now.t.meta.backend == "cuda" end
return M
