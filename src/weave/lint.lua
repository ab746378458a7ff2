-- lint.lua: find typed numbers in prose
local report = require "report"
local M = {}

-- know the exceptions
local allowed = {["2.7B"] = true, ["10B"] = true, ["1D"] = true,
	["2D"] = true, ["3D"] = true, ["4D"] = true}
local exempt = {given = true, question = true, experiments = true,
	provenance = true}

local function is_exempt(element)
	for _, class in ipairs(element.classes) do
		if exempt[class] then return true end
	end
	return false
end

-- look at the words of a string
local separators = {"\u{a0}", "–", "—", "×", "≈", "±", "−", "→", "…", "“",
	"”", "‘", "’"}

local function check_words(state, text)
	for _, s in ipairs(separators) do text = text:gsub(s, " ") end
	for word in text:gmatch("%S+") do
		word = word:match("^[^%w]*(.-)[^%w%%]*$")
		if word:find("%d") and not word:match("^%a") and not allowed[word]
			and not word:match("^%d+%-bits?$") then
			report.at(report.locate(word, state.line), ("typed number %s: "
				.. "compute it, or mark it [%s]{.given}"):format(word, word))
		end
	end
end

-- look at a formula
local function check_formula(state, text)
	for number in text:gmatch("%d+%.%d+") do
		report.at(report.locate(number, state.line), ("typed number %s in a "
			.. "formula: compute it, or mark it {.given}"):format(number))
	end
end

-- skip what is exempt
local function checker(state)
	local f = {traverse = "topdown"}
	function f.RawBlock(r)
		if r.format == "nwline" then state.line = tonumber(r.text) end
	end
	function f.Div(d) if is_exempt(d) then return d, false end end
	function f.Span(s)
		if is_exempt(s) then return s, false end
		local otherwise = s.attributes["else"]
		if otherwise then M.check_text(otherwise, s.attributes.line) end
	end
	function f.Link(l)
		if not l.target:match("^#") then return l, false end
	end
	function f.Str(s) check_words(state, s.text) end
	function f.Math(m) check_formula(state, m.text) end
	return f
end

-- check the prose
function M.check(blocks, line)
	blocks:walk(checker {line = line or 1})
end

function M.check_text(text, line)
	M.check(pandoc.read(text, "markdown-citations").blocks, tonumber(line))
end
return M
