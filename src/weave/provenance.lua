-- provenance.lua: say where the numbers of a table come from
local data = require "data"
local M = {}

function M.scale(t)
	local scale = t.meta.scale or "course"
	if scale == "course" then return nil end
	local rest = scale:match("^small%W*(.-)%)?$")
	if not rest then return scale end
	return rest == "" and "scaled down" or "scaled down: " .. rest
end

function M.where(t)
	local place = t.machine == "local" and "this machine" or t.machine
	return t.meta.device and place .. " (" .. t.meta.device .. ")" or place
end

-- write the end of a caption
function M.caption(tables)
	local out, seen = {}, {}
	for _, t in ipairs(tables) do
		local scale, computed = M.scale(t), t.meta.scale == "computed"
		local text = (computed and "Computed by " .. t.meta.program
			or "Measured on " .. M.where(t)) .. ", " .. t.meta.date:sub(1, 10)
		if scale and not computed then text = text .. "; " .. scale end
		if data.freshness(t) == "stale" then
			text = text .. "; made with earlier code"
		end
		if t.meta.complete ~= "yes" then text = text .. "; unfinished run" end
		if not seen[text] then table.insert(out, text .. ".") end
		seen[text] = true
	end
	local text = table.concat(out, " "):gsub("(Computed by [%w_]+)(, [%d-]+)%. "
		.. "Computed by ([%w_]+)%2%.", "%1 and %3%2.")
	return pandoc.Span({pandoc.Str(text)}, {class = "provenance"})
end
return M
