-- laws.lua: hold the rows of all tables against the laws
local report, files = require "report", require "files"
local data, query = require "data", require "query"
local format, law_words = require "format", require "law_words"
local M = {laws = {}, uses = law_words.uses}
local scope

-- read the laws
local function begin(names, keys)
	scope = {keys = keys}
	for name in names:gmatch("%S+") do
		name = name:gsub("%-", "%%-"):gsub("%*", ".*")
		table.insert(scope, "^" .. name .. "$")
	end
end

local function add(name, ...)
	for _, l in ipairs(M.laws) do
		if l.name == name then error("the law " .. name .. " stands twice") end
	end
	table.insert(M.laws, {name = name, test = table.concat({...}, " "),
		scope = scope, fits = 0})
end

local here = package.searchpath("laws", package.path):match("^(.*)/")
local _, found = files.run('ls "$1"/laws/*.lua', here)
for path in found:gmatch("[^\n]+") do
	assert(loadfile(path, "t", {tables = begin, law = add}))()
end

-- compile a test
local env = setmetatable({}, {__index = function(_, name)
	local now = law_words.now
	local i = now.t.at[name]
	if i then return law_words.number(now.row[i]) end
	local word = law_words.words[name] or format[name]
	if word == nil then query.fail("%s has no column %s", now.t.path, name) end
	return word
end})

local compiled = {}

local function compile(test)
	local f, err = compiled[test], nil
	if f then return f end
	f, err = load("return " .. test, "=law", "t", env)
	if not f then query.fail("%s", err) end
	compiled[test] = f
	return f
end

-- find the rows that break a law
local function broken_rows(law, t, test)
	local f, now, broken = compile(test), {t = t, law = law}, {}
	law_words.now = now
	for _, row in ipairs(t.rows) do
		now.row = row
		local ok, verdict = pcall(f)
		if ok and verdict == false then
			table.insert(broken, row)
		elseif ok and verdict ~= true then
			query.fail("it is neither true nor false")
		elseif not ok and verdict ~= law_words.skip then
			error(verdict, 0)
		end
	end
	return broken
end

-- write out a law over a stem
local function variants(law, t)
	local pattern = law.test:match("[%w_]*%$[%w_]*")
	if not pattern then return {law.test} end
	local list = {}
	for _, column in ipairs(t.columns) do
		local stem = column:match("^" .. pattern:gsub("%$", "(.+)") .. "$")
		local all = stem
		for name in law.test:gmatch("[%w_]*%$[%w_]*") do
			all = all and t.at[name:gsub("%$", stem)]
		end
		if all then table.insert(list, (law.test:gsub("%$", stem))) end
	end
	return list
end

-- say which row breaks a law
local function values(t, row, text)
	local parts, seen = {}, {}
	for name in text:gmatch("[%a_][%w_]*") do
		if t.at[name] and not seen[name] then
			table.insert(parts, name .. " " .. row[t.at[name]])
		end
		seen[name] = true
	end
	return table.concat(parts, ", ")
end

local function complaint(law, t, test)
	local ok, broken = pcall(broken_rows, law, t, test)
	if not ok then
		if type(broken) == "table" and broken.known then return nil end
		local why = type(broken) == "table" and broken.text or tostring(broken)
		return ("the law \"%s\": %s"):format(law.name, why:gsub("^law:%d+: ", ""))
	elseif #broken > 0 then
		local row = broken[1]
		local keys = values(t, row, law.scope.keys)
		return ("%s:%d: %sagainst the law \"%s\": %s (%s)%s"):format(t.path,
			row.line, keys == "" and "" or keys .. ": ", law.name, test,
			values(t, row, test),
			#broken > 1 and (", and %d rows more"):format(#broken - 1) or "")
	end
end

-- judge a table
local function covers(law, t)
	for _, pattern in ipairs(law.scope) do
		if t.name:match(pattern) then return true end
	end
end

function M.table(t, say)
	for _, law in ipairs(M.laws) do
		for _, test in ipairs(covers(law, t) and variants(law, t) or {}) do
			law.fits = law.fits + 1
			local text = complaint(law, t, test)
			if text then say(law, text) end
		end
	end
end

-- judge all tables
function M.files()
	local list = {}
	for _, machines in pairs(data.tables) do
		for _, c in pairs(machines) do table.insert(list, c) end
	end
	table.sort(list, function(a, b) return a.path < b.path end)
	return list
end

function M.all()
	for _, c in ipairs(M.files()) do
		local ok, t = pcall(data.load, c, 0)
		if ok then M.table(t, function(law, text)
			if c.machine == "local" then report.warn(text) return end
			report.at(report.locate('law("' .. law.name .. '"'), text)
		end) end
	end
end
return M
