-- data_parallel_calcs.lua: laws of its tables
tables("data_parallel_calcs fsdp_calcs tp_calcs", "hardware pass")
law("N is the bound without its fraction", "N == floor(bound * (1 + 1e-6))")
law("computing is 6BDF over N devices, twice that backward",
	"close(compute_ms, (pass == 'backward' and 12 or 6) * batch * d_model * d_ff",
	"/ N / TFLOPs / 1e9, 0.01)")
law("computing on one device more",
	"close(next_compute_ms, (pass == 'backward' and 12 or 6) * batch * d_model *",
	"d_ff / (N + 1) / TFLOPs / 1e9, 0.01)")
tables("data_parallel_calcs-curve fsdp_calcs-curve tp_calcs-curve",
	"hardware pass N")
law("computing against N",
	"close(compute_ms, (pass == 'backward' and 12 or 6) * batch * d_model * d_ff",
	"/ N / TFLOPs / 1e9, 1e-5)")
tables("*_calcs-schedule", "X Y batch d_model d_ff pass")
law("a device computes its part",
	"close(flops, (pass == 'backward' and 12 or 6) * batch * d_model * d_ff / X",
	"/ Y, 1e-9)")
law("the bytes of TP are those of an all-reduce of a chunk",
	"close(y_nbytes, 4 * (Y - 1) / Y * batch * d_model / X, 1e-9)")
law("FLOPs counted are those of the formula, or of chunks rounded up",
	"between(flops_counted, flops, 2 * flops)")
law("bytes counted along X are those, or of chunks rounded up",
	"between(x_counted, x_nbytes - 1e-3, 2 * x_nbytes)")
law("bytes counted along Y are those, or of chunks rounded up",
	"between(y_counted, y_nbytes - 1e-3, 2 * y_nbytes)")

tables("data_parallel_calcs", "hardware pass")
law("data parallelism: the bound is 1 + BW/C",
	"close(bound, 1 + batch * GBps / TFLOPs / 1e3, 1e-5)")
tables("data_parallel_calcs data_parallel_calcs-curve", "hardware pass N")
law("data parallelism: two trips of the weights",
	"close(send_ms, 12 * (N - 1) / N * d_model * d_ff / GBps / 1e6, 1e-3)")
tables("data_parallel_calcs", "hardware pass")
law("data parallelism: two trips on one device more",
	"close(next_send_ms, 12 * N / (N + 1) * d_model * d_ff / GBps / 1e6, 1e-3)")
tables("data_parallel_calcs-schedule", "X Y batch d_model d_ff pass")
law("data parallelism: backward sends the gradients round",
	"close(x_nbytes, (pass == 'backward' and 12 or 0) * (X - 1) / X * d_model *",
	"d_ff / Y, 1e-9)")
