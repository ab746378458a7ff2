-- pictures.lua: plots and drawings as SVG, in the folder of the pages
local M = {drawings = {}, taken = {}}
local folder = (os.getenv("WEAVE_DIR") or "build/weave") .. "/figures"

local function exists(path)
	local f = io.open(path)
	if f then f:close() end
	return f ~= nil
end

function M.drawing(picture)
	local path = ("%s/drawing-%s.svg"):format(folder,
		pandoc.utils.sha1(picture):sub(1, 12))
	if not exists(path) then
		table.insert(M.drawings, {path = path, text = picture})
	end
	return path
end

function M.take(path)
	local name = path:sub(#folder + 2):gsub("/", "-")
	table.insert(M.taken, {path = path, name = name})
	return "figures/" .. name
end
local function typeset(here)
	local f = assert(io.open(folder .. "/drawings.tex", "w"))
	for _, d in ipairs(M.drawings) do
		f:write("\\begin{alone}", d.text, "\\end{alone}\n")
	end
	f:close()
	return pcall(pandoc.pipe, "sh", {"-c", ([[cp '%s/drawing.tex' '%s' &&
		cd '%s' && xelatex -interaction=nonstopmode -halt-on-error drawing.tex
		]]):format(here, folder, folder)}, "")
end

function M.finish(here, out)
	pandoc.pipe("mkdir", {"-p", folder, out .. "/figures"}, "")
	if #M.drawings > 0 and not typeset(here) then
		return "TeX cannot set a drawing: see " .. folder .. "/drawing.log"
	end
	for k, d in ipairs(M.drawings) do
		pandoc.pipe("pdftocairo", {"-svg", "-f", tostring(k), "-l", tostring(k),
			folder .. "/drawing.pdf", d.path}, "")
	end
	for _, p in ipairs(M.taken) do
		pandoc.pipe("cp", {p.path, out .. "/figures/" .. p.name}, "")
	end
end
return M
