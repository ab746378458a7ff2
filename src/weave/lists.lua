-- lists.lua: the list of experiments and the provenance of all tables
local registry, data = require "registry", require "data"
local provenance, tabular = require "provenance", require "tabular"
local M = {}

local function code(text) return pandoc.Code(text) end

-- list the tables of one problem
local function evidence(p)
	local rows = {}
	for _, name in ipairs(p.tables) do
		local t, state, complete = registry.state(name)
		if t then
			if complete ~= "yes" then state = state .. ", unfinished" end
			table.insert(rows, {{code(name)}, t.machine, t.meta.date:sub(1, 10),
				state})
		end
	end
	if #rows == 0 then rows[1] = {{}, {}, {}, {}} end
	return rows
end
local heads = {"problem", "points", FORMAT == "html" and "section" or "page",
	"table", "machine", "date", "code"}

function M.experiments()
	local out, total = pandoc.Blocks {tabular.row(heads)}, 0
	for _, p in ipairs(registry.problems) do
		total = total + (p.points or 0)
		local problem = {{pandoc.Link({code(p.id)}, "#" .. p.id)},
			tostring(p.points or "—"),
			{pandoc.Link({}, "#" .. p.id, "", {class = "page"})}}
		for k, row in ipairs(evidence(p)) do
			local cells = pandoc.List(k == 1 and problem or {{}, {}, {}})
			out:insert(tabular.row(cells .. row))
		end
	end
	out:extend {pandoc.HorizontalRule(), tabular.row {"total", tostring(total)}}
	return pandoc.Div(out, {class = "experiment-list"})
end

-- describe one table
local keys = {"device", "memory_MiB", "libraries", "seed", "scale", "command"}

local function describe(t, before)
	local out = pandoc.Blocks {tabular.row {{code(t.name)},
		t.machine == "local" and "this machine" or t.machine,
		t.meta.date:gsub("T(%d+:%d+).*", " %1 UTC"),
		t.meta.complete == "yes" and "" or "unfinished run"}}
	for k, key in ipairs(keys) do
		local value = t.meta[key]
		if value and (k > 4 or value ~= before[key]) then
			out:insert(tabular.row {key:gsub("_MiB", " in MiB"),
				key == "command" and {code(value)} or value})
		end
		before[key] = t.meta[key]
	end
	local state, now = data.freshness(t)
	local digest = {code(t.meta.digest), pandoc.Str(", " .. state)}
	if state == "stale" then
		digest[2].text = digest[2].text .. ": now "
		digest[3] = code(now)
	end
	out:insert(tabular.row {"digest", digest})
	return pandoc.Div(out, {class = "source"})
end

-- list the provenance of all tables
function M.provenance()
	local out, list = pandoc.Blocks {}, {}
	for path, used in pairs(data.touched) do
		table.insert(list, {path = path, table = used.table})
	end
	table.sort(list, function(a, b) return a.path < b.path end)
	local before = {}
	for _, e in ipairs(list) do out:insert(describe(e.table, before)) end
	return pandoc.Div(out, {class = "sources"})
end
return M
