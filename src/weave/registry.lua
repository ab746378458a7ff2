-- registry.lua: problems, and what is known about their tables
local report, files, data = require "report", require "files", require "data"
local claims = require "claims"
local M = {problems = {}, current = nil}

-- register a problem
function M.register(header)
	local a = header.attributes
	local p = {id = header.identifier, title = pandoc.utils.stringify(header),
		asked = header.classes:includes("problem"),
		points = tonumber(a.points), level = header.level, tables = {},
		tests = a.tests or "", line = tonumber(a.line)}
	for name in (a.tables or ""):gmatch("[^%s,]+") do
		table.insert(p.tables, name)
	end
	if p.id == "" then report.at(p.line, "a problem needs an id") end
	if p.asked and not p.points then
		report.at(p.line, "a problem needs points=N")
	end
	table.insert(M.problems, p)
	return p
end

-- follow the headings
local function need(name, line)
	local ok, err = pcall(data.shown, name, line)
	if not ok then report.error(line, err) end
end

function M.enter(header)
	if M.current and header.level <= M.current.level then M.current = nil end
	for _, p in ipairs(M.problems) do
		if p.line == tonumber(header.attributes.line) then
			M.current = p
			for _, name in ipairs(p.tables) do need(name, p.line) end
			return p
		end
	end
end

-- state what is known about one table
local assignment = io.open("assignment.tsv")

function M.state(name)
	local own = assignment and "local/" .. name or name
	local ok, t = pcall(data.choose, own, true, 0)
	if not ok then return nil end
	return t, data.freshness(t), t.meta.complete == "yes" and "yes" or "no"
end

function M.all_tables()
	local seen, list = {}, {}
	local function add(name)
		if not seen[name] then table.insert(list, name) end
		seen[name] = true
	end
	for _, p in ipairs(M.problems) do
		for _, name in ipairs(p.tables) do add(name) end
	end
	local used = {}
	for _, u in pairs(data.touched) do table.insert(used, u.table.name) end
	table.sort(used)
	for _, name in ipairs(used) do add(name) end
	return list
end

-- write a file of the registry
local function write(name, head, lines)
	local out = {table.concat(head, "\t")}
	for _, l in ipairs(lines) do
		for i, v in ipairs(l) do
			l[i] = tostring(v):gsub("[\t\n]", " ")
		end
		table.insert(out, table.concat(l, "\t"))
	end
	files.write(files.work .. "/" .. name .. ".tsv",
		table.concat(out, "\n") .. "\n")
end

-- write the registry
function M.write()
	local lines = {}
	for _, p in ipairs(M.problems) do
		table.insert(p.asked and lines or {}, {p.id, p.title, p.points or 0,
			table.concat(p.tables, " "), p.tests, p.line})
	end
	write("problems", {"problem", "title", "points", "tables", "tests", "line"},
		lines)
	lines = {}
	for _, c in ipairs(claims.list) do
		table.insert(lines, {c.line, c.problem or "-", c.set,
			c.holds and "yes" or "no", c.test})
	end
	write("claims", {"line", "problem", "set", "holds", "test"}, lines)
	lines = {}
	for _, name in ipairs(M.all_tables()) do
		local t, fresh, complete = M.state(name)
		table.insert(lines, t and {name, t.machine, complete, fresh,
			t.meta.date, t.meta.scale or "course"}
			or {name, "-", "no", "unknown", "-", "-"})
	end
	write("tables", {"table", "machine", "complete", "state", "date", "scale"},
		lines)
end
return M
