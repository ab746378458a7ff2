-- values of [](#sec-formats)
-- the bits of a positive number in a format of E and M, rounded to nearest
bits_of = function(x, E, M)
	local e = floor(log(x, 2))
	local m = floor((x/2.0^e - 1)*2.0^M + 0.5)
	if m == 2^M then e, m = e + 1, 0 end
	local n, out = (e + 2^(E - 1) - 1)*2^M + m, {}
	for k = E + M, 0, -1 do
		table.insert(out, floor(n/2.0^k) % 2 == 1 and "1" or "0")
	end
	return out
end
-- calls of the drawing's macros: a name for each row, a cell for each bit
format_cells = function(formats)
	local out = {}
	for row, f in ipairs(formats) do
		table.insert(out, string.format("\\name{%d}{%s}{%d}{%d}", row - 1, f[1],
			f[2], f[3]))
		for k, b in ipairs(bits_of(0.01, f[2], f[3])) do
			table.insert(out, string.format("\\%s{%d}{%d}{%s}", k == 1 and "sign"
				or k <= 1 + f[2] and "expo" or "fraq", k - 1, row - 1, b))
		end
	end
	return table.concat(out)
end
format_row = by(mixed_precision_accumulation_formats, "format")
format_list = map({"fp32", "tf32", "bf16", "fp16"}, function(name)
	local f = format_row(name)
	return {name, math.tointeger(f.exponent_bits),
		math.tointeger(f.fraction_bits)}
end)
format_picture = {Wide=format_list[1][2], Long=format_list[1][3],
	Cells=format_cells(format_list)}
bf16_range = near(format_row("bf16").smallest_normal,
	format_row("fp32").smallest_normal, 0)
	and near(format_row("bf16").largest, format_row("fp32").largest, 0.01)
