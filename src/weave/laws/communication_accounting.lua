-- communication_accounting.lua: laws of its tables
tables("communication_accounting", "what")
law("bytes a parameter",
	"what == 'saved for one token' or nbytes == parameters * (what == 'all",
	"three' and 16 or what == \"AdamW's moments\" and 8 or 4)")
law("one model", "fixed('parameters', 'status')")
law("GB are thousands, GiB 1024s",
	"close(GB, nbytes / 1e9, 1e-5) and close(GiB, nbytes / 1024 ^ 3, 1e-5)")
law("GPUs of 80 GB", "gpus == ceil(nbytes / 80e9)")
law("a token saves two bytes of each input",
	"what ~= 'saved for one token' or nbytes == 2 * 126 * (16384 + 53248) and",
	"parameters == 2 * 126 * 16384 * 53248")
tables("communication_accounting-sharded", "tokens")
law("half of what the batch saves stays whole",
	"close(whole_GB, tokens * of('communication_accounting', {what = 'saved for",
	"one token'}).GB / 2, 1e-4)")
law("a device holds its part",
	"N == 'none' or close(device_GB, (of('communication_accounting', {what =",
	"'all three'}).GB + whole_GB) / N + whole_GB, 1e-4)")
law("one device less is too few",
	"close(one_less_GB, (of('communication_accounting', {what = 'all three'}).GB",
	"+ whole_GB) / (N - 1) + whole_GB, 1e-4)")
tables("communication_accounting-batch", "X Y")
law("64 devices", "X * Y == 64")
law("along X the weights are gathered",
	"close(x_nbytes, (X - 1) / X * 4 * 16384 * d_ff / Y, 1e-9)")

law("along Y the rows are reduced",
	"close(y_nbytes, (Y - 1) / Y * 4 * 840 * 64 * 16384 / X, 1e-9)")
law("the schedule's bytes", "x_counted == x_nbytes and y_counted == y_nbytes")
law("the least batch, overlapped",
	"overlapped == 'none' or overlapped == ceil(X * TFLOPs * 1e3 / GBps /",
	"links_x)")
law("the least batch, summed",
	"summed == 'none' or summed == ceil(X * TFLOPs * 1e3 / GBps / links_x / (1 -",
	"Y * TFLOPs * 1e3 / GBps / links_y / d_ff))")
law("the least batch on a ring, overlapped",
	"ring_overlapped == 'none' or ring_overlapped == ceil((X - 1) * TFLOPs * 1e3",
	"/ GBps / links_x)")
law("the least batch on a ring, summed",
	"ring_summed == 'none' or ring_summed == ceil((X - 1) * TFLOPs * 1e3 / GBps",
	"/ links_x / (1 - (Y - 1) * TFLOPs * 1e3 / GBps / links_y / d_ff))")
