-- fsdp_calcs.lua: laws of its tables
tables("fsdp_calcs", "hardware pass")
law("FSDP: the bound is 1 + BW/C",
	"close(bound, 1 + batch * GBps / TFLOPs / 1e3, 1e-5)")
law("FSDP: a trip of the weights forward, two backward; rows round up",
	"between(send_ms / ((pass == 'backward' and 12 or 6) * (N - 1) / N * d_model",
	"* d_ff / GBps / 1e6), 0.999, 1.2)")
law("FSDP: a trip on one device more",
	"between(next_send_ms / ((pass == 'backward' and 12 or 6) * N / (N + 1) *",
	"d_model * d_ff / GBps / 1e6), 0.999, 1.2)")
tables("fsdp_calcs-schedule fsdp_tp_calcs-schedule",
	"X Y batch d_model d_ff pass")
law("FSDP: weights are gathered, gradients scattered",
	"close(x_nbytes, (pass == 'backward' and 12 or 6) * (X - 1) / X * d_model *",
	"d_ff / Y, 1e-9)")
