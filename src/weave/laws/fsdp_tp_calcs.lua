-- fsdp_tp_calcs.lua: laws of its tables
tables("fsdp_tp_calcs", "hardware axes")
law("a mesh of X times Y", "N == X * Y")
law("the bound is that of both axes", "close(bound, bound_X * bound_Y, 1e-3)")
law("overlapped, each axis has its own bound",
	"axes == 'summed' or close(bound_X, 1 + batch * GBps / TFLOPs / 1e3, 1e-3)",
	"and close(bound_Y, 1 + 1.5 * d_ff * GBps / TFLOPs / 1e3, 1e-3)")
law("summed, the axes share it",
	"axes == 'overlapped' or close((bound_X - 1) / (batch * GBps / TFLOPs / 1e3)",
	"+ (bound_Y - 1) / (1.5 * d_ff * GBps / TFLOPs / 1e3), 1, 1e-3)")
law("the best mesh is not over the bound, nor under half of it",
	"between(N, bound / 2, bound)")
law("computing is 6BDF over the mesh",
	"close(compute_ms, 6 * batch * d_model * d_ff / N / TFLOPs / 1e9, 0.01)")
law("sending along both axes",
	"close(send_ms, (axes == 'summed' and sum or max)(6 * (X - 1) / X * d_model",
	"* d_ff / Y, 4 * (Y - 1) / Y * batch * d_model / X) / GBps / 1e6, 0.01)")
law("the mesh is compute-bound", "send_ms <= compute_ms * 1.0001")
tables("fsdp_tp_calcs-region", "hardware percent")
law("X up to its bound",
	"close(X, 1 + percent / 100 * batch * GBps / TFLOPs / 1e3, 1e-5)")
law("Y overlapped",
	"close(Y_overlapped, 1 + 1.5 * d_ff * GBps / TFLOPs / 1e3, 1e-5)")
law("Y summed",
	"close(Y_summed, 1 + 1.5 * d_ff * GBps / TFLOPs / 1e3 * (1 - percent / 100),",
	"1e-5)")

law("the most devices are as many at each X",
	"close(Y_of_most_overlapped * X, first('hardware').Y_of_most_overlapped,",
	"1e-4) and close(Y_of_most_summed * X, first('hardware').Y_of_most_summed,",
	"1e-4)")
law("no Y is over the most",
	"Y_overlapped <= Y_of_most_overlapped * 1.0001 and Y_summed <=",
	"Y_of_most_summed * 1.0001")
law("a machine is the same in all rows",
	"fixed('TFLOPs', 'hardware') and fixed('GBps', 'hardware') and",
	"fixed('batch', 'hardware') and fixed('d_model', 'hardware') and",
	"fixed('d_ff', 'hardware')")
