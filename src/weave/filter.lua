-- filter.lua: evaluate, check and show what the prose says about data
local here = PANDOC_SCRIPT_FILE:match("^(.*)/[^/]*$") or "."
package.path = here .. "/?.lua;" .. package.path
local report, data = require "report", require "data"
local lint, claims = require "lint", require "claims"
local evaluate = require "evaluate"
local tables, figures = require "tables", require "figures"
local tabular, drawings = require "tabular", require "drawings"
local registry, lists = require "registry", require "lists"
local answers, highlight = require "answers", require "highlight"
local laws, exercises = require "laws", require "exercises"

local state = {line = 1, ids = {}, away = {}}
local mode = os.getenv("WEAVE_MODE")

-- collect identifiers
local function collect(element, kind, default)
	local id = element.identifier
	if id == "" then return end
	local line = tonumber(element.attributes.line) or default or state.line
	if state.ids[id] then
		report.at(line, ("label %s stands twice (first on line %d)"):format(id,
			state.ids[id].line))
	else
		state.ids[id] = {kind = kind, line = line}
	end
end

local collector = {traverse = "topdown"}
function collector.RawBlock(r)
	if r.format == "nwline" then state.line = tonumber(r.text) end
	collector.Math(r)
end
function collector.Header(h)
	collect(h, h.level == 1 and "chapter" or "section")
	local a = h.attributes
	if h.classes:includes("problem") or a.tables or a.tests then
		registry.register(h)
	end
end
function collector.Div(d)
	collect(d, d.classes:includes("drawing") and "figure" or "table")
end
function collector.Table(t)
	local id, line = tables.label(t)
	if id then collect({identifier = id, attributes = {line = line}}, "table") end
end
function collector.Image(i) collect(i, "figure") end
function collector.Span(s) collect(s, "section") end
function collector.Math(m)
	for id in m.text:gmatch("\\label{([^}]*)}") do
		collect({identifier = id, attributes = {}}, "equation")
	end
end
collector.RawInline = collector.Math

-- name what a reference points to
local names = {chapter = "Chapter", section = "Section", table = "Table",
	figure = "Figure", equation = "Equation"}

local inlines = {}

-- refer to what is left out
local function elsewhere(link, id)
	local where = "§\u{a0}" .. state.away[id]
	if #link.content == 0 or link.classes:includes("page") then
		return pandoc.Str(where)
	end
	local out = link.content:walk(inlines)
	out:insert(pandoc.Str(" (" .. where .. ")"))
	return out
end

local function reference(link)
	local id = link.target:match("^#(.+)$")
	if not id then return nil end
	local target = state.ids[id]
	if not target and state.away[id] then return elsewhere(link, id) end
	if not target then
		local line = tonumber(link.attributes.line)
			or report.locate("(#" .. id .. ")", state.line)
		report.at(line, "nothing has the label " .. id)
		return pandoc.Str("??")
	end
	local class = link.classes:includes("page") and "page"
		or #link.content == 0 and "to" or "text"
	return pandoc.Link(link.content:walk(inlines), link.target, "",
		pandoc.Attr("", {class}, {what = names[target.kind]}))
end

-- evaluate inline elements
local function mark(place)
	return pandoc.Span(place and {pandoc.Str(place)} or {}, {class = "machine"})
end

local function value(code)
	local line = tonumber(code.attributes.line) or state.line
	local v, place = evaluate.evaluate(code.text, line, code.attributes["else"])
	if v == nil then return pandoc.Str("??") end
	if type(v) == "table" and v.math then
		return {pandoc.Math("InlineMath", v.math), mark(place)}
	elseif math.type(v) == "integer" or type(v) == "string" then
		return {tabular.text(tostring(v)), mark(place)}
	end
	report.at(line, ("`%s` is %s; print it with a formatter"):format(code.text,
		type(v) == "number" and "a bare number" or "not text"))
	return pandoc.Str("??")
end

local function claim(span)
	local a = span.attributes
	local line = tonumber(a.line) or state.line
	local verdict, place = claims.decide {test = a.test, otherwise = a["else"],
		line = line, problem = registry.current and registry.current.id}
	local content = span.content
	if type(verdict) == "string" then
		content = pandoc.Inlines(tables.inlines(verdict))
	end
	return {pandoc.Span(content:walk(inlines)), mark(place)}
end

local function solution(span)
	for name in (span.attributes.problem or "none"):gmatch("%S+") do
		local known = state.ids[name] or state.away[name] and {kind = "section"}
		if not known or known.kind ~= "section" then
			report.at(tonumber(span.attributes.line) or state.line,
				"a chunk solves " .. name .. ", which is no problem here")
		end
	end
	return {}
end

function inlines.Code(c)
	if c.classes:includes("lua") then return value(c) end
	for _, class in ipairs(c.classes) do
		if class ~= "marked" then
			report.at(state.line, ("`%s` has the class %s, which is none of code")
				:format(c.text, class))
		end
	end
end
function inlines.Link(l) return reference(l) end
local other = {html = "paper", latex = "web"}
local edition = mode == "notes" and "whole" or "notes"

function inlines.Span(s)
	if s.classes:includes("claim") then return claim(s) end
	if s.classes:includes("solves") then return solution(s) end
	if other[FORMAT] and s.classes:includes(other[FORMAT])
		or s.classes:includes(edition) then return {} end
end
inlines.traverse = "topdown"

-- evaluate blocks
local blocks = {traverse = "topdown"}
for kind, f in pairs(inlines) do blocks[kind] = f end

local function walked(block)
	if not block or block.content == nil then return block or {} end
	block.content = block.content:walk(inlines)
	return block
end

function blocks.RawBlock(r)
	if r.format == "nwline" then state.line = tonumber(r.text) end
end

function blocks.CodeBlock(c)
	local line = tonumber(c.attributes.line)
	if c.classes:includes("lua") and line then
		evaluate.define(c.text, line)
		return {}
	end
	return highlight.listing(c.text, c.classes[1], function(_, width)
		report.at(line or state.line, ("code line of %d columns, %d fit")
			:format(width, highlight.columns))
	end)
end

function blocks.Para(p)
	local image = p.content[1]
	if image and image.t == "Image" and image.classes:includes("plot") then
		local line = tonumber(image.attributes.line) or state.line
		if #p.content > 1 then
			report.at(line, "text beside a figure, which stands alone")
		end
		return walked(figures.show(image, line, state.framed)), false
	end
end

function blocks.Table(t)
	return walked(tables.plain(t, state.framed)), false
end

-- frame questions and answers
local frames = {question = "Question", answer = "Answer", rule = "Rule",
	predict = "Prediction", note = "Note", exercise = "Exercise"}

local function frame(d, class, line)
	state.framed = true
	local content = d.content:walk(blocks)
	state.framed = false
	local label, id = frames[class], ""
	if class == "question" then answers.ask(d, line) end
	if class == "answer" then
		local which
		which, id = answers.give(d, content, line)
		label = label .. which
	end
	if class == "rule" then id = exercises.remember(content) end
	if class == "exercise" then label, id = exercises.set(line) end
	return pandoc.Div(content, pandoc.Attr(id, {"frame"}, {label = label}))
end

function blocks.Div(d)
	local line = tonumber(d.attributes.line) or state.line
	local class = d.classes[1]
	if class == "chunk" or class == "index" then return d, false end
	if d.classes:includes("table") then
		return walked(tables.show(d, line, state.framed)), false
	end
	if d.classes:includes("drawing") then
		return walked(figures.drawing(d, tables.caption(d.content), line,
			state.framed)), false
	end
	if class == "solution" then
		exercises.solve(d.content:walk(blocks), line)
		return {}, false
	end
	if frames[class] then return frame(d, class, line), false end
end

-- show a problem's heading
local function take_values(id, line)
	local file = "src/values/" .. id .. ".lua"
	local f = id ~= "" and io.open(file)
	local code, first, n = {}, 1, 0
	local function take()
		if #code > 0 then
			evaluate.define(table.concat(code, "\n"), line, file, first)
		end
		code, first = {}, n + 1
	end
	for text in f and f:lines() or function() end do
		if text:match("^%a") and not text:match("^end%f[%W]") then take() end
		n = n + 1
		table.insert(code, text)
	end
	take()
	if f then f:close() end
end

local in_headings = {traverse = "topdown", Link = inlines.Link,
	Code = inlines.Code}

function blocks.Header(h)
	local p = registry.enter(h)
	take_values(h.identifier, tonumber(h.attributes.line) or state.line)
	h.content = h.content:walk(in_headings)
	if not p then return h, false end
	h.classes:insert("evidence")
	return {h, pandoc.Div({}, pandoc.Attr("", {"make"}, {problem = p.id,
		points = p.asked and tostring(p.points) or "",
		level = tostring(h.level)}))}, false
end

-- take over the reader's complaints
local function take_over(meta)
	report.file = pandoc.utils.stringify(meta["weave-file"] or "writeup.nw")
	for _, c in ipairs(meta["weave-complaints"] or {}) do
		report.at(tonumber(pandoc.utils.stringify(c.line)),
			pandoc.utils.stringify(c.text), true)
	end
	for id, number in pairs(meta["weave-away"] or {}) do
		state.away[id] = pandoc.utils.stringify(number)
	end
	meta["weave-file"], meta["weave-complaints"] = nil, nil
	meta["weave-away"] = nil
end

-- filter the document
local function walk_meta(meta)
	for key, v in pairs(meta) do
		local kind = pandoc.utils.type(v)
		state.line = 1
		if kind == "Inlines" then meta[key] = v:walk(inlines) end
		if kind == "Blocks" then meta[key] = v:walk(blocks) end
	end
	return meta
end

function Pandoc(doc)
	take_over(doc.meta)
	figures.draw = mode ~= "lint"
	drawings.draw = figures.draw
	data.scan()
	if mode == "laws" then
		laws.all()
		os.exit(report.print() == 0 and 0 or 1)
	end
	doc.blocks:walk(collector)
	lint.check(doc.blocks)
	if pandoc.utils.type(doc.meta.abstract) == "Blocks" then
		lint.check(doc.meta.abstract)
	end
	doc.blocks = doc.blocks:walk(blocks)
	doc.meta = walk_meta(doc.meta)
	drawings.finish()
	answers.check()
	exercises.check()
	if mode ~= "notes" then
		evaluate.unused()
		laws.all()
		registry.write()
	end
	local faults = report.print()
	if faults > 0 or mode == "lint" then os.exit(faults == 0 and 0 or 1) end
	doc.blocks = doc.blocks:walk {Div = function(d)
		if d.classes:includes("experiments") then return lists.experiments() end
		if d.classes:includes("provenance") then return lists.provenance() end
		if d.classes:includes("glance") then return answers.at_a_glance() end
		if d.classes:includes("rules") then return exercises.rules() end
		if d.classes:includes("solutions") then return exercises.solutions() end
	end}
	return doc
end
