-- tp_calcs.lua: laws of its tables
tables("tp_calcs", "hardware pass")
law("TP: the bound is 1 + 1.5FW/C, backward 1 + 3FW/C",
	"close(bound, 1 + (pass == 'backward' and 3 or 1.5) * d_ff * GBps / TFLOPs /",
	"1e3, 1e-5)")
law("TP: an all-reduce on one device more",
	"close(next_send_ms, 4 * N / (N + 1) * batch * d_model / GBps / 1e6, 1e-3)")
tables("tp_calcs tp_calcs-curve", "hardware pass N")
law("TP: an all-reduce of the rows",
	"close(send_ms, 4 * (N - 1) / N * batch * d_model / GBps / 1e6, 1e-3)")
tables("tp_calcs-schedule", "X Y batch d_model d_ff pass")
law("TP: nothing is sent along X", "x_nbytes == 0 or X > 1")
