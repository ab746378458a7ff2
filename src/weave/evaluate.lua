-- evaluate.lua: evaluate expressions against recorded and shown tables
local report, data = require "report", require "data"
local query, format = require "query", require "format"
local M = {defined = {}}

-- resolve a name
function M.use(world, t)
	if not pandoc.List.includes(world.used, t) then
		table.insert(world.used, t)
	end
end

local function resolve(world, name)
	if format[name] ~= nil then return format[name] end
	world.asked[name] = true
	if world.defs[name] ~= nil then
		world.borrowed = world.borrowed or world.from[name]
		for _, t in ipairs(world.sources[name] or {}) do
			M.use(world, t)
		end
		return world.defs[name]
	end
	if world.lost[name] then data.known() end
	local file = data.by_name[name]
	if data.missing[name] then
		query.fail("%s", data.no_table(data.missing[name]))
	elseif not file then
		query.fail("%s is neither defined nor a table (tables/*/%s.tsv)", name,
			name)
	end
	local t = data.choose(file, world.shown, world.line)
	M.use(world, t)
	return query.new(t, t.rows)
end

-- make the two worlds
local function make(shown)
	local world = {shown = shown, used = {}, lost = {}, defs = {},
		sources = {}, fresh = {}, from = {}, asked = {}, env = {}}
	local function assign(_, name, value)
		if format[name] ~= nil then
			query.fail("%s is a word of the vocabulary; choose another name",
				name)
		end
		if value == nil then query.fail("%s has no value", name) end
		if type(value) == "function" then
			local i = debug.getinfo(value, "S")
			if i.what == "Lua" and i.lastlinedefined - i.linedefined >= 25 then
				query.fail("%s has %d lines, and 25 are allowed", name,
					i.lastlinedefined - i.linedefined + 1)
			end
		end
		world.defs[name] = value
		table.insert(world.fresh, name)
	end
	setmetatable(world.env, {__newindex = assign,
		__index = function(_, name) return resolve(world, name) end})
	return world
end

M.recorded, M.shown = make(false), make(true)

function format.on(machine)
	return setmetatable({}, {__index = function(_, name)
		local t = data.choose(machine .. "/" .. (data.by_name[name] or name),
			true, M.line)
		return query.new(t, t.rows)
	end})
end

-- run a piece of Lua in a world
local function explain(err)
	if type(err) ~= "table" then
		err = {text = tostring(err):gsub("^[%w ]+:%d+: ", "")}
	end
	local level, info = 2, debug.getinfo(2, "Sl")
	while info and info.source ~= "=expression" do
		level = level + 1
		info = debug.getinfo(level, "Sl")
	end
	err.offset = info and info.currentline - 1 or 0
	return err
end

function M.run(world, code, line)
	world.used, world.borrowed = {}, nil
	world.line, M.line = line, line
	format.last, query.names = nil, world.env
	local f, err = load(code, "=expression", "t", world.env)
	if f then return xpcall(f, explain) end
	local at, text = err:match("^expression:(%d+): (.*)$")
	return false, {text = text or err, offset = (tonumber(at) or 1) - 1}
end

-- borrow from the recorded world
local function from_local(world)
	for _, t in ipairs(world.used) do
		if t.machine == "local" then return true end
	end
	return false
end

local function borrow(line)
	local from = M.recorded.used[1]
	local place = from and from.machine or "another machine"
	report.warn(("%s:%s: this machine's table cannot answer; what was "
		.. "recorded on %s is shown"):format(report.file, line, place))
	return place
end

-- ask both worlds
function M.ask(line, question, otherwise)
	local ok, recorded = question(M.recorded)
	if not ok then return report.error(line, recorded) end
	local found, shown = question(M.shown)
	if found then return shown, M.shown.borrowed end
	if shown.text and from_local(M.shown) then
		if otherwise then return otherwise end
		if not shown.denied then return recorded, borrow(line) end
	end
	report.error(line, shown)
end

function M.evaluate(code, line, otherwise)
	return M.ask(line, function(world)
		local ok, v = M.run(world, "return " .. code, line)
		if ok and v == nil then
			return false, {text = ("`%s` has no value"):format(code)}
		end
		return ok, v
	end, otherwise)
end

-- find the names that a definition would have made
local function names_in(code)
	local found = {}
	for names in code:gmatch("([%a_][%w_, ]*)=%f[^=]") do
		for name in names:gmatch("[%w_]+") do found[name] = true end
	end
	for name in code:gmatch("function%s+([%a_][%w_]*)") do
		found[name] = true
	end
	return found
end

function M.define(code, line, file, first)
	local succeeded = {}
	for _, world in ipairs {M.recorded, M.shown} do
		world.fresh = {}
		local ok, err = M.run(world, code, line)
		for _, name in ipairs(world.fresh) do
			world.sources[name] = {table.unpack(world.used)}
			M.defined[name] = {line = line, file = file, first = first}
		end
		succeeded[world] = ok
		if not ok then
			local lost = names_in(code)
			if world.shown and succeeded[M.recorded] and err.text
				and from_local(world) then
				local place = borrow(line)
				for name in pairs(lost) do
					world.defs[name] = M.recorded.defs[name]
					world.sources[name] = M.recorded.sources[name]
					world.from[name] = place
				end
			else
				if err.text and file then
					report.at(line, ("%s:%d: %s"):format(file,
						first + err.offset, err.text))
				elseif err.text then
					report.at(line + 1 + err.offset, err.text)
				end
				for name in pairs(lost) do world.lost[name] = true end
			end
		end
	end
end

-- carry out definitions
function M.unused()
	if #report.list > 0 then return end
	for name, d in pairs(M.defined) do
		if not M.recorded.asked[name] and not M.shown.asked[name] then
			local where = d.file and ("%s:%d: "):format(d.file, d.first) or ""
			report.at(d.line, where .. name .. " is used nowhere")
		end
	end
end
return M
