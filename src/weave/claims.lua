-- claims.lua: sentences that are checked against the data
local report, evaluate = require "report", require "evaluate"
local format = require "format"
local M = {list = {}}

local function sides(world, test, line)
	if format.last then return " (" .. format.last .. ")" end
	if test:find(" and ") or test:find(" or ") then return "" end
	local a, op, b = test:match("^(.-)%s*([<>=~]=?)%s*(.+)$")
	if not a or op == "=" then return "" end
	local ok1, x = evaluate.run(world, "return " .. a, line)
	local ok2, y = evaluate.run(world, "return " .. b, line)
	if not (ok1 and ok2) or type(x) ~= type(y) then return "" end
	local function show(v)
		return type(v) == "number" and ("%.6g"):format(v) or tostring(v)
	end
	if type(x) == "table" then return "" end
	return (" (%s %s %s)"):format(show(x), op, show(y))
end
local function judge(world, claim)
	local ok, value = evaluate.run(world, "return " .. claim.test, claim.line)
	local last, is_local = format.last, evaluate.from_local(world)
	local borrowed = world.borrowed
	local paths = pandoc.List.map(world.used, function(t) return t.path end)
	local set = world.shown and "shown" or "recorded"
	table.insert(M.list, {line = claim.line, problem = claim.problem,
		set = set, holds = ok and value == true, test = claim.test})
	if ok and value == true then return true, borrowed end
	local why
	if not ok then
		why = value.text
		is_local = is_local and why and "unknown"
	elseif value == false then
		format.last = last
		why = "claim is false" .. (#paths > 0 and " for " ..
			table.concat(paths, ", ") or "") .. ": " .. claim.test ..
			sides(world, claim.test, claim.line)
	else
		why = "the test of a claim must be true or false: " .. claim.test
	end
	return false, why, is_local
end
function M.decide(claim)
	if not claim.test or claim.test == "" then
		report.at(claim.line, "claim without a test")
		return "text"
	end
	local ok, why = judge(evaluate.recorded, claim)
	if not ok then
		if why then report.at(claim.line, why) end
		return "text"
	end
	local place, is_local = evaluate.machine(evaluate.recorded), nil
	ok, why, is_local = judge(evaluate.shown, claim)
	if ok then return "text", why end
	if is_local and claim.otherwise then return "otherwise" end
	if is_local == "unknown" then
		return "text", place and evaluate.borrow(claim.line)
	end
	if why then report.at(claim.line, why) end
	return "text"
end
return M
