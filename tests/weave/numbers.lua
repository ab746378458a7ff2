-- numbers.lua: are the numbers in the pages $PAGES those in the file $TEX, and in
-- the text $TEXT of the PDF?
local function read(path)
	local f = assert(io.open(path, "rb"))
	local text = f:read("a")
	f:close()
	return text
end

-- take the text from what TeX sets
local function from_tex(text)
	text = text:match("\\mainmatter(.*)")
	local lines = {}
	for line in text:gmatch("[^\n]*") do
		if not line:match("^%%nw") and not line:match("^\\nwl")
			and not line:match("^\\nwhead") and not line:match("^\\nwfoot") then
			table.insert(lines, line)
		end
	end
	text = table.concat(lines, "\n")
	for _, name in ipairs {"nwindex", "nwexperiments", "tikzpicture"} do
		text = text:gsub("\\begin{" .. name .. "}.-\\end{" .. name .. "}", "")
	end
	text = text:gsub("\\midrule\\endfirsthead.-\\endfoot", "")
	text = text:gsub("\\texorpdfstring(%b{})%b{}", "%1")
	text = text:gsub("\\hyperref%b[]", ""):gsub("\\nwto%b{}%b{}", "")
	text = text:gsub("\\nwproblem%b{}%b{}%b{}", "")
	text = text:gsub("\\nwglanced%b{}%b{}%b{}", "")
	text = text:gsub("\\nwglance%b{}%b{}%b{}", "")
	text = text:gsub("\\setcounter%b{}%b{}", "")
	text = text:gsub("\\setlist%b[]%b{}", "")
	for _, name in ipairs {"label", "pageref", "hypertarget", "href",
		"nwgraphic", "needspace", "nwneeds", "markboth", "nwid", "nwref"} do
		text = text:gsub("\\" .. name .. "%b{}", "")
	end
	return text
end

-- take the text from a page
local function from_page(text)
	text = text:match("<main.->(.*)<nav class=\"turn\""):gsub("&#%d+;", "")
	text = text:gsub("<math.-<annotation[^>]*>(.-)</annotation>.-</math>", "%1")
	for _, pattern in ipairs {"<details.-</details>", "<pre.-</pre>",
		'<ul class="index">.-</ul>', '<div class="sections">.-</div>',
		'<th scope="col">problem<.-</table>', '<p class="problem">.-</p>',
		'<h2 class="glance">.-</h2>', '<span class="n">.-</span>',
		'<a class="to".-</a>', '<a class="page".-</a>', ' %[[^%]]*%]</p>',
		"<span>%(%d+%.%d+%)</span>", "<[^>]*>"} do
		text = text:gsub(pattern, " ")
	end
	return text
end

local function numbers(text, list)
	for number in text:gmatch("%d[%d.,]*") do
		table.insert(list, (number:gsub("[.,]+$", "")))
	end
	return list
end

-- compare references with TeX's labels
local function check_references(name, text, aux)
	for to, number in text:gmatch('<a class="to" href="([^"]*)">%a+ ([%d.]*)') do
		local id = to:match("#(.*)$") or to:match("^(.*)%.html$")
		local labels = "\\newlabel{" .. id .. "}{{"
		local at, after = aux:find(labels, 1, true)
		local on_paper = at and aux:match("^[^}]*", after + 1)
		if number ~= on_paper then
			print(("%s: %s is %s, in the PDF %s"):format(name, id, number,
				on_paper))
			os.exit(1)
		end
	end
end

-- compare cells with the text of the PDF
local function add_cells(page, list)
	for cell in page:gmatch("<td[^>]*>(.-)</td>") do
		cell = cell:gsub("<math.-</math>", " "):gsub("<[^>]*>", " ")
		numbers(cell, list)
	end
end

local function check_cells(cells, text)
	local count = {}
	for _, number in ipairs(numbers(text, {})) do
		count[number] = (count[number] or 0) + 1
	end
	for _, number in ipairs(cells) do
		count[number] = (count[number] or 0) - 1
		if count[number] < 0 then
			print(number .. " stands in a cell, and not in the PDF")
			os.exit(1)
		end
	end
end
function Pandoc()
	local folder, a, b, cells = os.getenv("PAGES"), {}, {}, {}
	local aux = read((os.getenv("TEX"):gsub("tex$", "aux")))
	numbers(from_tex(read(os.getenv("TEX"))), a)
	local list = read(folder .. "/search.js"):match("pages: %[\n(.-)\n%],")
	for file in list:gmatch('%["([^"]*)"') do
		local page = read(folder .. "/" .. file)
		check_references(file, page, aux)
		numbers(from_page(page), b)
		add_cells(page, cells)
	end
	for k = 1, math.max(#a, #b) do
		if a[k] ~= b[k] then
			local from = math.max(1, k - 5)
			print(("number %d of %d and %d differs: %s | %s"):format(k, #a, #b,
				table.concat(a, " ", from, math.min(k + 3, #a)),
				table.concat(b, " ", from, math.min(k + 3, #b))))
			os.exit(1)
		end
	end
	check_cells(cells, read(os.getenv("TEXT")))
	print(("%d numbers are the same, %d of them in cells"):format(#a, #cells))
	os.exit(#a > 0 and #cells > 0 and 0 or 1)
end
