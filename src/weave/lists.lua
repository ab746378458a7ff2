-- lists.lua: the list of experiments and the provenance of all tables
local registry, data = require "registry", require "data"
local provenance, highlight = require "provenance", require "highlight"
local M = {}

local code = highlight.code

local function evidence(p)
	local rows = {}
	for _, name in ipairs(p.tables) do
		local t, state, complete = registry.state(name)
		if t then
			if complete ~= "yes" then state = state .. ", unfinished" end
			table.insert(rows, ("\\nwevidence{%s}{%s}{%s}{%s}"):format(
				code(name), highlight.escape(t.machine), t.meta.date:sub(1, 10),
				state))
		end
	end
	if #rows == 0 then return "\\nwevidence{}{}{}{}" end
	return table.concat(rows, "\\nwnext\n")
end

function M.experiments()
	local out, total = {"\\begin{nwexperiments}"}, 0
	for _, p in ipairs(registry.problems) do
		total = total + (p.points or 0)
		table.insert(out, ("\\nwexperiment{%s}{%s}{%s}"):format(p.id,
			code(p.id), p.points or "—"))
		table.insert(out, evidence(p))
	end
	table.insert(out, ("\\nwtotal{%d}\\end{nwexperiments}"):format(total))
	return pandoc.RawBlock("latex", table.concat(out, "\n"))
end
local keys = {"device", "memory_MiB", "libraries", "seed", "scale", "command"}

local function describe(t, before)
	local state, now = data.freshness(t)
	local date = t.meta.date:gsub("T(%d+:%d+).*", " %1 UTC")
	local out = {("\\nwsource{%s}{%s}{%s}{%s}"):format(code(t.name),
		highlight.escape(t.machine == "local" and "this machine" or t.machine),
		highlight.escape(date), t.meta.complete == "yes" and "" or
		"unfinished run")}
	for k, key in ipairs(keys) do
		local value = t.meta[key]
		if value and (k > 4 or value ~= before[key]) then
			value = key == "command" and code(value) or highlight.escape(value)
			table.insert(out, ("\\nwkey{%s}{%s}"):format(
				highlight.escape(key:gsub("_MiB", " in MiB")), value))
		end
		before[key] = t.meta[key]
	end
	local digest = code(t.meta.digest) .. ", " .. state
	if state == "stale" then digest = digest .. ": now " .. code(now) end
	table.insert(out, "\\nwkey{digest}{" .. digest .. "}\\nwsourceend")
	return table.concat(out, "\n")
end
function M.provenance()
	local out, list = {"\\begin{nwprovenancelist}"}, {}
	for path, used in pairs(data.touched) do
		table.insert(list, {path = path, table = used.table})
	end
	table.sort(list, function(a, b) return a.path < b.path end)
	local before = {}
	for _, e in ipairs(list) do
		table.insert(out, describe(e.table, before))
	end
	table.insert(out, "\\end{nwprovenancelist}")
	return pandoc.RawBlock("latex", table.concat(out, "\n"))
end
return M
