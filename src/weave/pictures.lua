-- pictures.lua: plots and drawings as SVG, in the folder of the pages
local files = require "files"
local M = {taken = {}}

function M.take(pdf)
	local svg = pdf:gsub("/", "-"):gsub("^figures.", "figures/")
		:gsub("pdf$", "svg")
	M.taken[pdf] = svg
	return svg
end

-- write paths in few bytes
local box = "M ([%d.]+) ([%d.]+) L ([%d.]+) %2 L %3 ([%d.]+) L %1 %4 Z"

local function small(svg)
	local out, last = {}, nil
	svg = svg:gsub(' d="[^"]*', function(path)
		return (path:gsub("(%.%d%d)%d+", "%1"):gsub(box, "M%1 %2H%3V%4H%1Z"))
	end)
	for line in svg:gmatch("[^\n]+") do
		local style, path = line:match(
			'^<path (.*)d="([^"]*) M [%d. -]+"/>$')
		if style and style == last then
			table.insert(out, " " .. path)
		else
			table.insert(out, (last and '"/>\n' or "") .. (style
				and "<path " .. style .. 'd="' .. path
				or line .. "\n"))
		end
		last = style
	end
	return table.concat(out)
end

function M.finish(out)
	files.run('mkdir -p "$1/figures"', out)
	for pdf, name in pairs(M.taken) do
		local svg = out .. "/" .. name
		local ok, why = files.run('pdftocairo -svg "$1" "$2" 2>&1', pdf, svg)
		if not ok then error(pdf .. ": " .. why, 0) end
		files.write(svg, small(files.read(svg)))
	end
end
return M
