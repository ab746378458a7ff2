-- tsv.lua: read a recorded table, or say what is wrong with it
local files = require "files"
local M = {}
local required = {"checksum", "table", "machine", "date", "digest", "complete"}

local function wrong(path, line, text)
	error({text = ("%s:%d: %s"):format(path, line, text)}, 0)
end

-- read the file, which must end with a newline
local function contents(path)
	local text = files.read(path)
	if not text then wrong(path, 1, "cannot be read") end
	if text == "" then wrong(path, 1, "the file is empty") end
	if text:sub(-1) ~= "\n" then
		local _, n = text:gsub("\n", "")
		wrong(path, n + 1, "the file ends in the middle of a line")
	end
	return text
end

-- take one line of the header
local function take_key(t, line, n)
	local key, value = line:match("^# ([%w_]+): ?(.*)$")
	if not key then wrong(t.path, n, "not a `# key: value` line") end
	if t.meta[key] then wrong(t.path, n, "key " .. key .. " stands twice") end
	t.meta[key] = value
end

-- take the row of column names
local function split(line)
	local fields = {}
	for f in (line .. "\t"):gmatch("([^\t]*)\t") do
		table.insert(fields, f)
	end
	return fields
end

local function take_columns(t, line, n)
	t.columns, t.at = split(line), {}
	for i, c in ipairs(t.columns) do
		if not c:match("^%a[%w_]*$") then
			wrong(t.path, n, ("`%s` is not a column name"):format(c))
		elseif t.at[c] then
			wrong(t.path, n, "column " .. c .. " stands twice")
		end
		t.at[c] = i
	end
end

-- take a row
local function take_row(t, line, n)
	local row = split(line)
	if #row ~= #t.columns then
		wrong(t.path, n, ("%d fields where the header has %d"):format(#row,
			#t.columns))
	end
	for i, v in ipairs(row) do
		if v == "" then
			wrong(t.path, n, "column " .. t.columns[i] .. " is empty")
		end
	end
	row.line = n
	table.insert(t.rows, row)
end

-- check the header
local function check_header(t)
	for _, key in ipairs(required) do
		if not t.meta[key] then
			wrong(t.path, 1, "the header has no `# " .. key .. ":` line")
		end
	end
	if t.meta.table ~= t.name then
		wrong(t.path, 1, "the file holds the table " .. t.meta.table)
	elseif t.meta.machine ~= t.machine then
		wrong(t.path, 1, "the file was measured on " .. t.meta.machine)
	elseif t.meta.rows and tonumber(t.meta.rows) ~= #t.rows then
		wrong(t.path, 1, ("%d rows, but the header says %s"):format(#t.rows,
			t.meta.rows))
	elseif not t.columns then
		wrong(t.path, 1, "there is no row of column names")
	elseif #t.rows == 0 and t.meta.complete == "yes" then
		wrong(t.path, 1, "a complete table without rows")
	end
end

-- add a column
function M.columns(path)
	for line in (files.read(path) or ""):gmatch("[^\n]+") do
		if line:sub(1, 1) ~= "#" then return split(line) end
	end
	return {}
end

function M.add_column(t, column)
	table.insert(t.columns, column)
	t.at[column] = #t.columns
	for _, row in ipairs(t.rows) do row[#t.columns] = "-" end
end

-- check bounds
function M.below_bound(t)
	local found = {}
	for name, i in pairs(t.at) do
		local stem = name:match("^(.*)_bound_ms$")
		local j = stem and t.at[stem .. "_ms"]
		for _, row in ipairs(j and t.rows or {}) do
			local x, bound = tonumber(row[j]), tonumber(row[i])
			if x and bound and not (x >= bound) then
				table.insert(found, ("%s:%d: %s_ms is %s, below its bound %s")
					:format(t.path, row.line, stem, row[j], row[i]))
			end
		end
	end
	table.sort(found)
	return found
end

-- check that nothing was edited
local function checksum(text)
	local hash = 0xcbf29ce484222325
	for i = (text:find("\n", 1, true) or 0) + 1, #text do
		hash = (hash ~ text:byte(i)) * 0x100000001b3
	end
	return ("%016x"):format(hash)
end

function M.altered(t)
	if t.meta.checksum == t.checksum then return {} end
	return {t.path .. ": its lines are not those that were written: altered"}
end

-- read a table
function M.read(path, machine, name)
	local t = {path = path, machine = machine, name = name, meta = {},
		rows = {}}
	local n, text = 0, contents(path)
	t.checksum = checksum(text)
	for line in text:gmatch("([^\n]*)\n") do
		n = n + 1
		if line:sub(1, 1) == "#" and not t.columns then take_key(t, line, n)
		elseif not t.columns then take_columns(t, line, n)
		else take_row(t, line, n)
		end
	end
	check_header(t)
	return t
end
return M
