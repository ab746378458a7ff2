-- tabular.lua: lay out the rows of a table as a grid
local M = {}

-- align columns
local function numeric(text)
	text = text:gsub("^−", "-")	-- three bytes, no member of a set
	return text:match("^[+-]?[%d.,]+%%?$") or text:match("^[+-]?%d.*±")
		or text:match("^[+-]?[%d.]+e[+-]?%d+$") or text == "—" or text == "oom"
		or text == "none"
		or text:match("^[+-]?[%d.,]+\u{a0}[%a/µ]+$")
end

local function alignment(x)
	local align = ""
	for j = 1, #x.head do
		local right = true
		for _, row in ipairs(x.rows) do
			local c = row[j]
			if type(c) == "string" and not numeric(c) and not row.words then
				right = false
			end
		end
		align = align .. (right and "r" or "l")
	end
	return align
end

-- put the cells of one row together
function M.text(s) return pandoc.Str((s:gsub("'", "’"))) end

local function cell(c)
	if type(c) == "string" then c = {M.text(c)}
	elseif c.math then c = {pandoc.Math("InlineMath", c.math)} end
	return pandoc.Span(c, {class = "cell"})
end

function M.row(cells)
	local out = pandoc.Inlines {}
	for j, c in ipairs(cells) do out[j] = cell(c) end
	return pandoc.Plain(out)
end

-- put a table together
function M.layout(x)
	local out = pandoc.Blocks {pandoc.Plain(x.caption or {}), M.row(x.head)}
	for k, row in ipairs(x.rows) do
		if k > 1 and row.group ~= x.rows[k - 1].group then
			out:insert(pandoc.HorizontalRule())
		end
		out:insert(M.row(row))
	end
	return pandoc.Div(out, pandoc.Attr(x.label or "", {"grid"}, {
		align = x.align or alignment(x),
		long = #x.rows > 30 and not x.framed and "yes" or "no",
		floats = (x.label or "") ~= "" and not x.framed and "yes" or "no"}))
end
return M
