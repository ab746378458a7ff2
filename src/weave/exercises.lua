-- exercises.lua: rules to remember, exercises and their solutions
local report, registry = require "report", require "registry"
local M = {list = {}, remembered = {}}

-- note rules and exercises
function M.remember(content)
	local id = ("rule:%d"):format(#M.remembered + 1)
	table.insert(M.remembered, {problem = registry.current, id = id,
		content = content})
	return id
end

function M.set(line)
	table.insert(M.list, {line = line, number = #M.list + 1})
	return "Exercise " .. #M.list, ("exercise:%d"):format(#M.list)
end

function M.solve(content, line)
	local exercise = M.list[#M.list]
	if not exercise or exercise.solution then
		return report.at(line, "a solution without an exercise before it")
	end
	exercise.solution = content
end

-- complain about exercises without a solution
function M.check()
	if io.open("assignment.tsv") then return end
	for _, e in ipairs(M.list) do
		if not e.solution then
			report.at(e.line, "an exercise needs a solution, ::: {.solution}")
		end
	end
end

-- list rules and solutions
local function led_by(text, target, content)
	local out = pandoc.Blocks(content):clone()
	local link = pandoc.Strong {pandoc.Link(text, "#" .. target, "",
		pandoc.Attr("", {"text"}))}
	if out[1] and out[1].t == "Para" then
		out[1] = pandoc.Para(pandoc.Inlines {link, pandoc.Space()}
			.. out[1].content)
	else
		out:insert(1, pandoc.Para {link})
	end
	return out
end

function M.rules()
	local out = pandoc.Blocks {}
	for _, r in ipairs(M.remembered) do
		local p = r.problem
		out:extend(led_by(p and p.id or "Rule", r.id, r.content))
	end
	return out
end

function M.solutions()
	local out = pandoc.Blocks {}
	for _, e in ipairs(M.list) do
		out:extend(led_by(e.number .. ".", "exercise:" .. e.number,
			e.solution or {}))
	end
	return out
end
return M
