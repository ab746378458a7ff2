-- report.lua: collect complaints, print them in order
local M = {file = "writeup.nw", list = {}, warnings = {}}

function M.at(line, text, alone)
	for _, c in ipairs(M.list) do
		if c.text == text and not alone then
			if c.line ~= line then c.more[line] = true end
			return
		end
	end
	table.insert(M.list, {line = tonumber(line) or 0, text = text,
		more = {}, order = #M.list})
end

function M.error(line, err)	-- one that nobody has complained about
	if err.text then M.at(line, err.text) end
end

function M.warn(text)
	if not M.warnings[text] then io.stderr:write("weave: ", text, "\n") end
	M.warnings[text] = true
end

-- print the complaints
local function also(c)
	local lines = {}
	for l in pairs(c.more) do table.insert(lines, tonumber(l) or 0) end
	if #lines == 0 then return "" end
	table.sort(lines)
	return (" (also line%s %s)"):format(#lines > 1 and "s" or "",
		table.concat(lines, ", "))
end

-- find the line on which a text stands
local source

function M.locate(text, from)
	if not source then
		source = {}
		for line in io.lines(M.file) do table.insert(source, line) end
	end
	local last = from and math.min(from + 200, #source) or #source
	for n = from or 1, last do
		if source[n]:find(text, 1, true) then return n end
	end
	return from or 0
end

function M.print()
	table.sort(M.list, function(a, b)
		if a.line ~= b.line then return a.line < b.line end
		return a.order < b.order
	end)
	for _, c in ipairs(M.list) do
		io.stderr:write(M.file, ":", c.line, ": ", c.text, also(c), "\n")
	end
	return #M.list
end
return M
