-- format.lua: the vocabulary of expressions in the prose
local query, data = require "query", require "data"
local M = {}
local fail = query.fail

-- check arguments
local function number(x, who)
	if type(x) == "number" then
		if x ~= x then fail("%s of not-a-number", who) end
		return x
	end
	fail("%s needs a number, not %s", who, query.is(x) and "rows: name a column"
		or type(x) == "table" and "a list: take its mean, median, min or max"
		or tostring(x))
end

local function numbers(who, x, f, ...)
	if type(f) == "string" or type(f) == "function" then
		x = M.map(x, f, ...)
	end
	local list = type(x) == "table" and not query.is(x) and x or {x, f, ...}
	if #list == 0 then fail("%s of nothing", who) end
	for _, v in ipairs(list) do number(v, who) end
	return list
end

-- compute statistics
function M.sum(...)
	local s = 0
	for _, v in ipairs(numbers("sum", ...)) do s = s + v end
	return s
end

function M.mean(...)
	local list = numbers("mean", ...)
	return M.sum(list) / #list
end

function M.median(...)
	local list = {table.unpack(numbers("median", ...))}
	table.sort(list)
	local h = #list // 2
	return #list % 2 == 1 and list[h + 1] or (list[h] + list[h + 1]) / 2
end

function M.min(...) return math.min(table.unpack(numbers("min", ...))) end
function M.max(...) return math.max(table.unpack(numbers("max", ...))) end
function M.ends(...) return M.min(...), M.max(...) end

function M.count(x, f, with)
	if f then
		local n = 0
		f = query.expression(f, with)
		for _, r in ipairs(M.each(x)) do n = n + (f(r) and 1 or 0) end
		return n
	end
	if query.is(x) then return #query.inside(x).rows end
	return type(x) == "table" and #x or 1
end
M.abs, M.sqrt, M.log, M.floor, M.ceil = math.abs, math.sqrt, math.log,
	math.floor, math.ceil
M.tonumber, M.tostring, M.ipairs, M.pairs = tonumber, tostring, ipairs, pairs
M.math, M.string, M.table = math, string, table

-- test relations
function M.between(x, low, high)
	number(x, "between")
	M.last = ("between(%.4g, %.4g, %.4g)"):format(x, low, high)
	return x >= low and x <= high
end

function M.near(x, y, relative)
	number(x, "near")
	M.last = ("near(%.6g, %.6g, %.3g)"):format(x, y, relative)
	return math.abs(x - y) <= relative * math.abs(y)
end

function M.increasing(...)
	local list = numbers("increasing", ...)
	for i = 2, #list do
		if not (list[i] > list[i - 1]) then return false end
	end
	return true
end

-- look at single rows
local function extreme(s, text, better)
	if not query.is(s) then fail("argmin and argmax need rows") end
	local best, value
	local f = query.expression(text)
	for _, r in ipairs(query.each(s)) do
		local v = number(f(r), "argmin")
		if not best or better(v, value) then best, value = r, v end
	end
	return best
end

function M.argmin(s, column)
	return extreme(s, column, function(a, b) return a < b end)
end

function M.argmax(s, column)
	return extreme(s, column, function(a, b) return a > b end)
end

function M.each(s) return query.is(s) and query.each(s) or s end

function M.all(s, f, with)
	f = query.expression(f, with)
	for _, r in ipairs(M.each(s)) do
		if not f(r) then return false end
	end
	return true
end

M.of = query.expression

function M.map(s, f, with)
	f = query.expression(f, with)
	return pandoc.List.map(M.each(s), function(r) return f(r) end)
end

function M.pick(s, f, with)
	f = query.expression(f, with)
	local list = pandoc.List {}
	for _, r in ipairs(M.each(s)) do
		if f(r) then list:insert(r) end
	end
	return list
end

function M.by(s, columns, text)
	return function(...)
		local wanted, values = {}, {...}
		for column in columns:gmatch("[%w_]+") do
			table.insert(wanted, column)
		end
		local conditions = {}
		for i, column in ipairs(wanted) do conditions[column] = values[i] end
		local r = s(conditions)
		if text then return query.expression(text)(r) end
		return r
	end
end

function M.known(row, column)
	local i = query.is(row) and query.inside(row)
	if not i then fail("known needs a row") end
	local cell = i.rows[1][i.table.at[column]]
	return cell ~= nil and query.value(cell) ~= nil
end

-- print digits
local function commas(s)
	local sign, whole, rest = s:match("^(-?)(%d+)(.*)$")
	if not whole then return s end
	if #whole > 4 then
		whole = whole:reverse():gsub("(%d%d%d)", "%1,"):reverse()
	end
	return sign:gsub("-", "−") .. whole:gsub("^,", "") .. rest
end

local function digits(x, n)
	number(x, "a formatter")
	if x == 0 then return "0" end
	n = n or 3
	local size = ("%.*e"):gsub("*", math.max(0, n - 1)):format(x):match("e(.*)")
	local decimals = math.max(0, n - 1 - tonumber(size))
	return commas(("%.*f"):gsub("*", decimals):format(x))
end

M.digits, M.commas = digits, commas

-- print quantities
local nbsp = "\u{a0}"

local function with(unit, factor)
	return function(x, n)
		return digits(number(x, unit) * (factor or 1), n) .. nbsp .. unit
	end
end

M.ms, M.us, M.s = with "ms", with "µs", with "s"
M.MiB, M.GiB, M.GB = with "MiB", with("GiB", 1 / 1024), with "GB"
M.GBps, M.TFlops = with "GB/s", with "TFLOP/s"

function M.unit(x, unit, n) return digits(x, n) .. nbsp .. unit end

function M.time(ms, n)
	number(ms, "time")
	if ms >= 1000 then return M.s(ms / 1000, n) end
	if ms < 0.1 then return M.us(ms * 1000, n) end
	return M.ms(ms, n)
end

function M.pct(x, n)
	x = 100 * number(x, "pct")
	return digits(x, n or math.abs(x) < 99.5 and 2 or 3) .. "%"
end

function M.ratio(x, n) return digits(x, n or 3) end

function M.range(n, ...)
	local print = type(n) == "function" and n or function(x)
		if type(n) == "string" then return M.fixed(x, n) end
		return digits(x, n)
	end
	local low, high = print(M.min(...)), print(M.max(...))
	return low == high and low or low .. " to " .. high
end

function M.cell(r, column, places)
	if r.status ~= "ok" then return "oom" end
	return places and M.fixed(r[column], places) or r[column]
end
function M.fixed(x, n) return commas(("%." .. n .. "f"):format(x)) end
function M.text(v) return tostring(v) end

function M.int(x)
	number(x, "int")
	return commas(("%d"):format(math.floor(x + 0.5)))
end

function M.sci(x, n)
	if number(x, "sci") == 0 then return "0" end
	local m, e = ("%." .. (n or 2) - 1 .. "e"):format(x):match("(.*)e(.*)")
	return {math = ("%s\\times10^{%d}"):format(m, tonumber(e))}
end

function M.pm(x, sd, n)
	if query.is(x) then return M.pm(x[sd .. "_ms"], x[sd .. "_sd_ms"], n) end
	local function decimals(s) return #(s:match("%.(%d*)") or "") end
	local places = math.max(decimals(digits(number(x, "pm"), n)),
		decimals(digits(number(sd, "pm"), 1)))
	return M.fixed(x, places) .. nbsp .. "±" .. nbsp .. M.fixed(sd, places)
end

-- print small counts in words
local names = {[0] = "no", "one", "two", "three", "four", "five", "six",
	"seven", "eight", "nine", "ten", "eleven", "twelve"}

function M.word(n)
	number(n, "word")
	return names[n] or M.int(n)
end

-- read the header of a table
function M.meta(s, key)
	if not query.is(s) then fail("meta needs a table") end
	local value = query.inside(s).table.meta[key]
	if not value then
		fail("%s has no key %s", query.inside(s).table.path, tostring(key))
	end
	return value
end

function M.device(s) return M.meta(s, "device") end
return M
