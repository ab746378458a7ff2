-- pictures.lua: plots and drawings as SVG, in the folder of the pages
local M = {taken = {}}
local folder = (os.getenv("WEAVE_DIR") or "build/weave") .. "/figures"

function M.take(path)
	local name = path:sub(#folder + 2):gsub("/", "-")
	table.insert(M.taken, {path = path, name = name})
	return "figures/" .. name
end

function M.finish(out)
	pandoc.pipe("mkdir", {"-p", out .. "/figures"}, "")
	for _, p in ipairs(M.taken) do
		pandoc.pipe("cp", {p.path, out .. "/figures/" .. p.name}, "")
	end
end
return M
