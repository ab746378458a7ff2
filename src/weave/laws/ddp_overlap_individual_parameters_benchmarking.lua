-- ddp_overlap_individual_parameters_benchmarking.lua: laws of its timeline
tables("ddp_overlap_individual_parameters_benchmarking-timeline",
	"kind queue class name start_us")
law("what a queue did ends after it began",
	"end_us >= start_us and start_us >= 0")
law("a queue does one thing at a time",
	"gpu() or start_us >= before('kind queue').end_us - 0.05 or",
	"class == 'optimizer'")
law("sums stand in the communication queue",
	"(class == 'all-reduce') == (queue == 'communication')")
law("a timeline has many spans", "rows('kind') > 8")
law("a forward pass is before the backward pass",
	"class ~= 'forward' or end_us <= last('kind queue').start_us + 0.05")
law("stamps cost little of a GPU's step",
	"not gpu() or recorded_ms <= 1.05*step_ms")
