-- peaks.lua: laws of its tables
tables("peaks", "quantity")
law("the median of a peak is between the least and the most",
	"min > 0 and min <= value and value <= max")
law("the deviation of a peak is one that its range allows",
	"between(sd, 0.98 * (max - min) / sqrt(2 * (runs - 1)), 0.51 * (max - min) *",
	"sqrt(runs / (runs - 1)))")
law("peaks are taken of one number of runs",
	"integer(runs) and fixed('runs', 'status')")
law("no format below fp32 is slower by half",
	"unit ~= 'TFLOP/s' or value >= other{quantity = 'fp32'}.value / 2")
law("reading, writing and copying use one memory",
	"unit ~= 'GB/s' or between(value / other{quantity = 'copy'}.value, 0.4, 2.5)")
law("a replay costs no more than a launch",
	"quantity ~= 'replay' or value <= other{quantity = 'launch'}.value")
