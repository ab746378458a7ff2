-- answers.lua: every part of every question has an answer; answers at a glance
local report, registry = require "report", require "registry"
local tabular = require "tabular"
local M = {list = {}, asked = {}}

-- note what a question asks
local function asked_of(sentences, part)
	return tonumber(sentences) or part ~= ""
		and tonumber((" " .. sentences):match(" " .. part .. "=(%d+)")) or nil
end

function M.ask(div, line)
	local problem, parts, lettered = registry.current, {}, true
	if not problem then
		return report.at(line, "a question outside a problem's section")
	end
	div:walk {OrderedList = function(l)
		local before = (l.start or 1) - 1
		if l.style ~= "LowerAlpha" or before + #l.content > 26 then
			report.at(line, ("a question's items are (a) to (z); here is a list "
				.. "of style %s from %d on"):format(l.style, before + 1))
			lettered = false
			return
		end
		for i = 1, #l.content do
			table.insert(parts, string.char(96 + before + i))
		end
	end}
	if not lettered then return end
	if #parts == 0 then parts[1] = "" end
	for _, part in ipairs(parts) do
		table.insert(M.asked, {problem = problem, part = part, line = line,
			sentences = asked_of(div.attributes.sentences or "", part)})
	end
end

-- complain about a long answer
local function sentences(content)
	local n = 0
	local function count(block)
		local text = pandoc.utils.stringify(block)
		text = text:gsub("%f[%w]%l%.", "") .. " "    -- p. 7, i.e.
		n = n + select(2, text:gsub("[.!?][\"\u{201d})]*%s", ""))
		if not text:match("[.!?:][\"\u{201d})]*%s$") then n = n + 1 end
	end
	content:walk {traverse = "topdown", Para = count, Plain = count,
		Div = function(d)
			if d.classes:includes "grid" then return {}, false end
		end}
	return n
end

local function check_length(problem, part, content, line)
	for _, q in ipairs(M.asked) do
		local most = q.problem == problem and q.part == part and q.sentences
		if most and sentences(content) > most + 1 then
			report.at(line, ("%s has %d sentences, and %d are asked for"):format(
				problem.id, sentences(content), most))
		end
	end
end

-- note an answer and its short form
function M.give(div, content, line)
	local problem, a, short = registry.current, div.attributes, nil
	content:walk {Span = function(s)
		if s.classes:includes("glance") then short = s.content end
	end}
	if not problem then
		report.at(line, "an answer outside a problem's section")
		return "", ""
	end
	if not short then
		report.at(line, "an answer needs a sentence [...]{.glance}")
	end
	local part, label = a.part or "", ("ans:%d"):format(#M.list + 1)
	check_length(problem, part, content, line)
	table.insert(M.list, {problem = problem, part = part, short = short,
		edition = a.edition, label = label, line = line})
	return (part ~= "" and " (" .. part .. ")" or "")
		.. (a.edition and ", edition " .. a.edition or ""), label
end

-- complain about questions without an answer
local function called(part)
	return part == "" and "the question" or "part (" .. part .. ")"
end
function M.check()
	for _, q in ipairs(M.asked) do
		local found = false
		for _, a in ipairs(M.list) do
			found = found or a.problem == q.problem and a.part == q.part
		end
		if not found then
			report.at(q.line, ("%s: %s has no answer"):format(q.problem.id,
				called(q.part)))
		end
	end
	for _, a in ipairs(M.list) do
		local asked, found = false, a.edition ~= nil
		for _, q in ipairs(M.asked) do
			asked = asked or q.problem == a.problem
			found = found or q.problem == a.problem and q.part == a.part
		end
		if asked and not found then
			report.at(a.line, ("%s: %s was not asked"):format(a.problem.id,
				called(a.part)))
		end
	end
end

-- list the answers at a glance
function M.at_a_glance()
	local out, last = pandoc.Blocks {}, nil
	for _, a in ipairs(M.list) do
		if a.problem ~= last then
			local title = a.problem.title:gsub("^Problem %b(): ", "")
			out:insert(pandoc.Div({tabular.row {
				{pandoc.Link({pandoc.Code(a.problem.id)}, "#" .. a.problem.id)},
				title}}, {class = "answered"}))
		end
		last = a.problem
		out:insert(pandoc.Div({pandoc.Plain(a.short or {})}, pandoc.Attr("",
			{"short"}, {part = a.part ~= "" and "(" .. a.part .. ")" or "",
			edition = a.edition or "", to = a.label})))
	end
	return out
end
return M
