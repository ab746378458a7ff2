-- two H200: what is said of GPUs is said of their recorded tables
h200 = on("h200x2")
ok_of = function(rows, conditions)
	local all = conditions or {}
	all.status = "ok"
	return rows(all)
end
