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
	local said, seen = pandoc.List {}, {}
	for _, t in ipairs(tables) do
		local scale, computed = M.scale(t), t.meta.scale == "computed"
		local who = computed and t.meta.program or M.where(t)
		local rest = ", " .. t.meta.date:sub(1, 10)
		if scale and not computed then rest = rest .. "; " .. scale end
		if data.freshness(t) == "stale" then
			rest = rest .. "; made with earlier code"
		end
		if t.meta.complete ~= "yes" then rest = rest .. "; unfinished run" end
		local key = (computed and "" or who) .. rest
		if not seen[key] then
			seen[key] = {how = computed and "Computed by " or "Measured on ",
				who = pandoc.List {}, rest = rest}
			said:insert(seen[key])
		end
		if not seen[key].who:includes(who) then seen[key].who:insert(who) end
	end
	local out = said:map(function(x)
		return x.how .. table.concat(x.who, " and ") .. x.rest .. "."
	end)
	return pandoc.Span({pandoc.Str(table.concat(out, " "))},
		{class = "provenance"})
end
return M
