-- tabular.lua: lay out the rows of a table as LaTeX
local M = {}
local raw = function(s) return pandoc.RawInline("latex", s) end

local function numeric(text)
	text = text:gsub("^−", "-")	-- three bytes, no member of a set
	return text:match("^[+-]?[%d.,]+%%?$") or text:match("^[+-]?%d.*±")
		or text:match("^[+-]?[%d.]+e[+-]?%d+$") or text == "—" or text == "oom"
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
local function append(out, cell)
	if type(cell) == "string" then
		table.insert(out, pandoc.Str(cell))
	elseif cell.math then
		table.insert(out, pandoc.Math("InlineMath", cell.math))
	else
		for _, inline in ipairs(cell) do table.insert(out, inline) end
	end
end

local function put_row(out, row)
	for j, cell in ipairs(row) do
		if j > 1 then table.insert(out, raw " & ") end
		append(out, cell)
	end
	table.insert(out, raw "\\\\\n")
end
local function put_rows(out, x)
	for k, row in ipairs(x.rows) do
		if k > 1 and row.group ~= x.rows[k - 1].group then
			table.insert(out, raw "\\addlinespace\n")
		end
		put_row(out, row)
	end
end
local function put_caption(out, x)
	if not x.caption then return end
	table.insert(out, raw "\\caption{")
	append(out, x.caption)
	table.insert(out, raw("}" .. (x.label and "\\label{" .. x.label .. "}"
		or "")))
end
local function size(x)
	local total = 0
	for j = 1, #x.head do
		local widest = utf8.len(pandoc.utils.stringify(x.head[j]))
		for _, row in ipairs(x.rows) do
			local c = row[j]
			widest = math.max(widest, type(c) == "string" and utf8.len(c) or 6)
		end
		total = total + widest + 2
	end
	return total <= 78 and "\\footnotesize" or total <= 139 and "\\scriptsize"
		or "\\tiny"
end
local short = {"\\begin{nwtable}\n", "\\nwfit{\\begin{tabular}{@{}",
	"\\bottomrule\\end{tabular}}\n\\end{nwtable}"}
local long = {"\\begin{nwlong}", "\\begin{longtable}{@{}",
	"\\end{longtable}\\end{nwlong}"}

function M.layout(x)
	local is_long = #x.rows > 30 and not x.framed
	local begin, open, close = table.unpack(is_long and long or short)
	local out = {raw(begin)}
	put_caption(out, x)
	if is_long then table.insert(out, raw("\\nwlining" .. size(x))) end
	table.insert(out, raw(open .. (x.align or alignment(x)) .. "@{}}\\toprule\n"))
	put_row(out, x.head)
	if is_long then
		table.insert(out, raw "\\midrule\\endfirsthead\\toprule\n")
		put_row(out, x.head)
	end
	table.insert(out, raw(is_long
		and "\\midrule\\endhead\\bottomrule\\endfoot\n" or "\\midrule\n"))
	put_rows(out, x)
	table.insert(out, raw(close))
	return pandoc.Plain(out)
end
return M
