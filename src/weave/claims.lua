-- claims.lua: sentences that are checked against the data
local report, evaluate = require "report", require "evaluate"
local format = require "format"
local M = {list = {}}

-- show the two sides of a comparison
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

-- test a claim in one world
local function judge(world, claim)
	local ok, value = evaluate.run(world, "return " .. claim.test, claim.line)
	table.insert(M.list, {line = claim.line, problem = claim.problem,
		set = world.shown and "shown" or "recorded",
		holds = ok and value == true, test = claim.test})
	if not ok or value == true then return ok, value end
	local text = "the test of a claim must be true or false: " .. claim.test
	if value == false then
		local used = world.used
		local paths = pandoc.List.map(used, function(t) return t.path end)
		text = "claim is false" .. (#paths > 0 and " for " or "")
			.. table.concat(paths, ", ") .. ": " .. claim.test
			.. sides(world, claim.test, claim.line)
		world.used = used
	end
	return false, {denied = true, text = text}
end

-- decide which text to print
function M.decide(claim)
	if not claim.test or claim.test == "" then
		return report.at(claim.line, "claim without a test")
	end
	return evaluate.ask(claim.line, function(world)
		return judge(world, claim)
	end, claim.otherwise)
end
return M
