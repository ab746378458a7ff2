-- nsys_profile.lua: laws of its tables
tables("nsys_profile", "size context precision fusion range")
law("kernels are activities",
	"integer(kernels) and integer(activities) and between(kernels, 1,",
	"activities)")
law("most activities are kernels", "kernels >= 0.5 * activities")
law("busy time is that of the classes, of which five run at once at most",
	"between((matmul_ms + softmax_ms + norm_ms + attention_ms + ffn_ms +",
	"optimizer_ms + rest_ms) / busy_ms, 0.99, 5)")
law("busy is part of the time projected", "busy_ms <= projected_ms + 1e-4")
law("the busy fraction is their ratio",
	"close(busy_fraction, busy_ms / projected_ms, 2e-3, 1e-4)")
law("a range takes the time that is projected, within four times",
	"event_ms < 0.1 or between(projected_ms / event_ms, 0.05, 4)")
law("profiling costs less than five times",
	"between(profiled_ms / unprofiled_ms, 1/5, 5)")
law("a phase by events takes as long as profiled, within five times",
	"between(event_ms / profiled_ms, 1/5, 5)")
law("a part of a phase takes no longer than the phase",
	"(range):match('^%a+$') ~= nil or event_ms <= other{range =",
	"(range):match('^%a+')}.event_ms * 1.05")
law("a part of a phase is busy no longer than the phase",
	"(range):match('^%a+$') ~= nil or busy_ms <= other{range =",
	"(range):match('^%a+')}.busy_ms + 1e-4")

law("a phase grows with context, within three times of its square",
	"scales('unprofiled_ms', 'context', 0, 2, 3) and scales('profiled_ms',",
	"'context', 0, 2, 3.5) and scales('event_ms', 'context', 0, 2, 3.5)")
law("each context has many ranges", "rows('context') > 4")
law("a phase takes what was timed before, within four times",
	"between(unprofiled_ms / of('benchmarking_script', {size = size, context =",
	"context, precision = precision, fusion = fusion})[({forward = 'fwd',",
	"backward = 'bwd', optimizer = 'opt'})[range] .. '_ms'], 1/4, 4)")
tables("nsys_profile-kernels", "size context precision fusion range rank")
law("a mean is the total over the calls",
	"close(mean_us, total_ms * 1000 / calls, 2e-3, 0.06 / calls)")
law("a mean is between least and most",
	"min_us <= mean_us + 1e-3 and mean_us <= max_us + 1e-3")
law("some call takes the mean or more: the total is within n times the most",
	"max_us + (calls - 1) * min_us <= 1000 * total_ms + 0.06 + 1e-3 * calls")
law("one call at the least and others at the most make the total or more",
	"min_us + (calls - 1) * max_us >= 1000 * total_ms - 0.06 - 1e-3 * calls")
law("kernels stand in order of time",
	"rank == 1 or rank == before('size context precision fusion range').rank + 1",
	"and total_ms <= before('size context precision fusion range').total_ms")
law("fractions are of one whole",
	"close(fraction * first('size context precision fusion range').total_ms,",
	"total_ms * first('size context precision fusion range').fraction, 5e-3,",
	"1e-4 * first('size context precision fusion range').total_ms)")

law("the fractions are no more than one",
	"total('fraction', 'size context precision fusion range') <= 1.001")
law("a kernel is part of its phase",
	"total_ms <= of('nsys_profile', {size = size, context = context, precision =",
	"precision, fusion = fusion, range = range}).busy_ms * 1.1")
law("each context has several kernels", "rows('context') > 4")
tables("nsys_profile-overhead", "what")
law("all are repeated thousands of times, several of them as often",
	"integer(count) and count >= 1000 and rows('count') > 1")
law("what is logged costs more",
	"what ~= 'allocation, logged' or each_ns >= other{what =",
	"'allocation'}.each_ns / 1.5")
law("ranges with events cost more",
	"what ~= 'range, events' and what ~= 'range, kernels' or each_ns >=",
	"other{what = 'range'}.each_ns / 1.5")
law("launches cost what the peaks say, within five times",
	"what ~= 'launch' or between(each_ns / 1000 / of('peaks', {quantity =",
	"'launch'}).value, 0.2, 5)")
law("no cost is over a millisecond", "between(each_ns, 0.1, 1e6)")
tables("nsys_profile-timeline", "size context precision fusion lane start_us")
law("what begins ends", "start_us <= end_us")
law("a step begins at zero and holds all of it, to a tenth",
	"end_us <= 1.1 * first('fusion').end_us and first('fusion').start_us == 0")

law("in a lane one follows another",
	"kind ~= before('fusion lane kind').kind or start_us >= before('fusion lane",
	"kind').start_us - 0.02")
law("ranges of a lane do not overlap",
	"kind ~= 'range' or start_us >= before('fusion lane').end_us - 0.02")
law("a timeline is of one context", "rows('') == rows('context')")
law("a lane is for ranges or for kernels",
	"integer(lane) and (kind == 'range') == (first('lane').kind == 'range')")
law("nothing takes twenty times as long as its first, and ten ms",
	"end_us - start_us <= 20 * (first('fusion kind name').end_us - first('fusion",
	"kind name').start_us) + 10000")
