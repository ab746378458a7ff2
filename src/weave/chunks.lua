-- chunks.lua: relations among chunks, and the index of identifiers
local M = {}

-- know languages by the suffix of a file
local suffixes = {c = "c", h = "c", cu = "c", cuh = "c", lua = "lua",
	sh = "sh", mk = "mk", Makefile = "mk", gp = "gp",
	awk = "awk", py = "py", tex = "tex"}

function M.language(file)
	local base = file:match("[^/]+$") or file
	return suffixes[base:match("%.(%w+)$") or base] or "text"
end

-- number the chunks and join those of one name
function M.number(pieces)
	local book = {chunks = {}, named = {}, order = {}}
	for _, p in ipairs(pieces) do
		if p.kind == "code" and p.name then
			table.insert(book.chunks, p)
			p.id = #book.chunks
			if not book.named[p.name] then
				book.named[p.name] = {name = p.name, parts = {},
					used_in = {}, root = not p.name:find(" ")}
				table.insert(book.order, book.named[p.name])
			end
			table.insert(book.named[p.name].parts, p)
		end
	end
	return book
end

-- find where each chunk is used
local function references(piece)
	local found = {}
	for _, line in ipairs(piece.lines) do
		for _, t in ipairs(line) do
			if type(t) == "table" and t.ref then
				table.insert(found, t)
			end
		end
	end
	return found
end

function M.connect(book)
	for _, p in ipairs(book.chunks) do
		local seen = {}
		for _, t in ipairs(references(p)) do
			local target = book.named[t.ref]
			if target and not seen[t.ref] then
				table.insert(target.used_in, p)
				target.root = false
				seen[t.ref] = true
			end
		end
	end
end

-- give every chunk the language of its root
local function spread(book, entry, lang, file)
	if entry.lang then return end
	entry.lang = lang
	for _, p in ipairs(entry.parts) do
		p.lang, p.file = lang, file
		for _, t in ipairs(references(p)) do
			local target = book.named[t.ref]
			if target then spread(book, target, lang, file) end
		end
	end
end

function M.spread_languages(book)
	for _, e in ipairs(book.order) do
		if e.root then spread(book, e, M.language(e.name), e.name) end
	end
	for _, p in ipairs(book.chunks) do p.lang = p.lang or "text" end
end

-- collect definitions and uses of identifiers
local function entry(index, lang, name)
	index[lang] = index[lang] or {}
	local e = index[lang][name]
	if not e then
		e = {name = name, lang = lang, defs = {}, uses = {}}
		index[lang][name] = e
	end
	return e
end

function M.index(book)
	local index = {}
	for _, p in ipairs(book.chunks) do
		for _, name in ipairs(p.defs) do
			table.insert(entry(index, p.lang, name).defs, p)
		end
	end
	for _, p in ipairs(book.chunks) do
		local names = index[p.lang] or {}
		for name in pairs(p.uses) do
			local e = names[name]
			if e and not pandoc.List.includes(e.defs, p) then
				table.insert(e.uses, p)
			end
		end
	end
	book.index = index
end

-- link an identifier to its definition
local preference = {"c", "lua", "sh", "mk", "gp", "awk", "py", "tex", "text"}

function M.definition(book, name, lang)
	for _, l in ipairs(lang and {lang} or preference) do
		local e = book.index[l] and book.index[l][name]
		if e then return e end
	end
end
return M
