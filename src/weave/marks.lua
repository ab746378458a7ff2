-- marks.lua: code as text with marks, and its translation
local M = {}

function M.mark(kind, argument, text)
	return "\1" .. kind .. argument .. "\2" .. text .. "\3"
end

-- translate a marked text
function M.translate(text, words, kinds)
	local out, behind, i = {}, {}, 1
	while true do
		local a = text:find("[\1\3]", i)
		if not a then break end
		if a > i then out[#out + 1] = words(text:sub(i, a - 1)) end
		if text:byte(a) == 3 then
			out[#out + 1], i = table.remove(behind), a + 1
		else
			local kind, argument, after = text:match("^(%a)([^\2]*)\2()", a + 1)
			out[#out + 1], behind[#behind + 1] = kinds[kind](argument)
			i = after
		end
	end
	out[#out + 1] = words(text:sub(i))
	return table.concat(out)
end

function M.plain(text)
	return (text:gsub("\1[^\2]*\2", ""):gsub("\3", ""))
end
return M
