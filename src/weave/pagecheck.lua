-- pagecheck.lua: reads the pages in $WEAVE_OUT, and names what is wrong
local folder = os.getenv("WEAVE_OUT")
local texts, ids, bad = {}, {}, 0

local function complain(...)
	bad = bad + 1
	io.stderr:write(("html: %s: %s\n"):format(...))
end

local function read(name)
	local f = io.open(folder .. "/" .. name, "rb")
	local text = f and f:read("a")
	if f then f:close() end
	return text
end

-- check the labels of a page
local function labels(name, text)
	local seen = {}
	for id in text:gmatch('%sid="([^"]*)"') do
		if seen[id] then complain(name, "the label " .. id .. " stands twice") end
		seen[id] = true
	end
	return seen
end

-- check the links of a page
local function check_links(name, text)
	text = text:gsub('<a%s+href="https://[^"]*"', "")
	for kind, to in text:gmatch('%s(%a+)="([^"]*)"') do
		if kind == "href" or kind == "src" then
			local file, id = to:match("^([^#]*)#?(.*)$")
			file = file == "" and name or file
			local known = texts[file]
				and (id == "" or ids[file] and ids[file][id])
			if (to:match("^%a+:") or to:match("^//")) and to ~= "data:," then
				complain(name, "a link leaves the folder: " .. to)
			elseif not known and to ~= "data:," then
				complain(name, "a link leads nowhere: " .. to)
			end
		end
	end
end

-- check the parts of a page
local function times(text, pattern) return select(2, text:gsub(pattern, "")) end

local function check_parts(name, text)
	local weight = #text
	for _, file in ipairs {"site.css", "site.js", "search.js"} do
		weight = weight + #(texts[file] or "")
	end
	for img in text:gmatch("<img[^>]*>") do
		weight = weight + #(texts[img:match('src="([^"]*)"')] or "")
		if not img:match('alt="%s*[^"%s]') then
			complain(name, "no words: " .. img)
		end
	end
	if weight >= 1000000 then complain(name, "has a megabyte") end
	if times(text, "<h1[%s>]") ~= 1 then
		complain(name, "not one heading of the first level")
	end
	if not text:match("<title>[^<]*[^<%s]") then
		complain(name, "no title")
	end
	if not text:match('<html lang="%a') then complain(name, "no language") end
	local prose = text:gsub("<code.-</code>", ""):gsub("<annot.-</annot", "")
	local stray = text:match("[\1-\8\14-\31]")
		or prose:match("\\%a+{") and "TeX"
	if stray then complain(name, ("a stray %q"):format(stray)) end
	for _, tag in ipairs {"table", "figure", "details", "section", "ul", "pre"} do
		local a = times(text, "<" .. tag .. "[%s>]")
		local b = times(text, "</" .. tag .. ">")
		if a ~= b then
			complain(name, ("%d <%s> and %d </%s>"):format(a, tag, b, tag))
		end
	end
end

-- check all pages
function Pandoc()
	local list = pandoc.pipe("find", {folder, "-type", "f", "-printf", "%P\n"},
		"")
	for name in list:gmatch("[^\n]+") do
		texts[name] = read(name)
		if #texts[name] >= 1000000 then complain(name, "has a megabyte") end
		if name:match("%.html$") then ids[name] = labels(name, texts[name]) end
	end
	for name in pairs(ids) do
		check_links(name, texts[name])
		check_parts(name, texts[name])
	end
	os.exit(bad == 0 and next(ids) and 0 or 1)
end
