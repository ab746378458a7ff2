low_errors = on("h100").flash_benchmarking_errors{status="ok", dtype="bf16"}
high_errors = on("h100").flash_benchmarking_errors{status="ok", dtype="fp32"}
worst_error = function(r) return max(r.o/r.peer_o, r.dq/r.peer_dq, r.dk/r.peer_dk,
	r.dv/r.peer_dv) end
