-- alter.lua: alters numbers of tables, one at a time, and counts what laws name
local root = PANDOC_SCRIPT_FILE:match("^(.*)/tests/weave/")
package.path = root .. "/src/weave/?.lua;" .. package.path
local data, judge = require "data", require "laws"
local trials = 120

-- judge the tables as they are
data.scan()
local files = {}
for _, c in ipairs(judge.files()) do
	local t = data.load(c, 0)
	judge.table(t, function(_, text) print(text) end)
	table.insert(files, t)
end
for _, law in ipairs(judge.laws) do
	if law.fits == 0 then print("no table for the law " .. law.name) end
end
for name in pairs(judge.uses) do
	if not data.tables[name] then print("no table " .. name) end
end

-- draw a number of a table
local state = 1

local function random(n)
	state = (state * 1103515245 + 12345) % (1 << 31)
	return (state >> 8) % n + 1
end

local function draw()
	for _ = 1, 1000 do
		local t = files[random(#files)]
		local row, j = t.rows[random(#t.rows)], random(#t.columns)
		local x = tonumber(row[j])
		if x and x ~= 0 then return t, row, j, x end
	end
end

-- alter it, and judge again
local function named(t)
	local law
	local function judged(other)
		other.groups = nil
		judge.table(other, function(l) law = law or l.name end)
	end
	judged(t)
	for name in pairs(judge.uses[t.name] or {}) do
		local other = data.tables[name][t.machine]
		if other and not law then judged(other.data) end
	end
	return law
end

local count = 0
for _ = 1, trials do
	local t, row, j, x = draw()
	local old, factor = row[j], random(2) == 1 and 3 or 0.3
	row[j] = ("%.9g"):format(factor * x)
	local law = named(t)
	print(("%s:%d: %s %s, now %s: %s"):format(t.path, row.line, t.columns[j],
		old, row[j], law or "-"))
	row[j], t.groups, count = old, nil, count + (law and 1 or 0)
end
print(("%d of %d"):format(count, trials))
