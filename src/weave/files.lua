-- files.lua: read and write whole files, run commands
local M = {work = os.getenv("WEAVE_DIR") or "build/weave"}

function M.read(path)
	local f = io.open(path, "rb")
	if not f then return nil end
	local text = f:read("a")
	f:close()
	return text
end

function M.write(path, text)
	local f = assert(io.open(path, "wb"))
	f:write(text)
	f:close()
end

function M.run(command, ...)	-- what follows the command is its $1, $2 ...
	local ok, out = pcall(pandoc.pipe, "bash", {"-c", command, "weave", ...},
		"")
	return ok, ok and out or type(out) == "table" and out.output
		or tostring(out)
end
return M
