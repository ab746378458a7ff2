naive_row = by(h200.naive_ddp_benchmarking, "size, precision")
naive_share = by(h200.naive_ddp_benchmarking, "size, precision",
	"wait_ms/step_ms")
-- T_1 and the isolated collectives, against the step
naive_off = max(ok_of(h200.naive_ddp_benchmarking), "abs((single_ms \z
	+ alone_ms)/step_ms - 1)")
naive_longer = max(ok_of(h200.naive_ddp_benchmarking), "wait_ms/alone_ms - 1")
-- ms of the sums of xl, with half of the bytes
exercise_naive = (naive_row("xl", "bf16").alone_ms + 435*0.015)/2
