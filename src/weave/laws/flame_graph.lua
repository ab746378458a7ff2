-- flame_graph.lua: laws of its tables
tables("flame_graph", "size context precision fusion stack start_ms")
law("a fraction of the step",
	"close(fraction, width_ms / first('fusion').width_ms, 1e-3, 1e-5)")
law("a box is inside the step",
	"start_ms >= 0 and start_ms + width_ms <= first('fusion').width_ms + 1e-3")
law("boxes of a depth do not overlap",
	"start_ms >= before('fusion depth').start_ms + before('fusion",
	"depth').width_ms - 1e-3")
law("the depth is that of the stack", "depth == #((stack):gsub('[^;]', ''))")
law("boxes are calls, one or more", "integer(calls) and calls >= 1")
law("a step and its forward pass are called once, a layer for each",
	"not ({step = 1, forward = 1, layer = 1})[box] or calls == 1 or box ==",
	"'layer' and calls == of('benchmarking_script', {size = size}).layers")
law("inside a layer, calls are a multiple of the layers",
	"not (stack):find('layer;') or calls % of('benchmarking_script', {size =",
	"size}).layers == 0")
law("a graph is of one context", "fixed('context', 'status')")
tables("flame_graph-timeline", "size context precision fusion depth start_ms")
law("what begins ends here too", "start_ms <= end_ms")
law("a forward pass begins at zero and holds all of it",
	"end_ms <= first('fusion').end_ms + 1e-3 and first('fusion').start_ms == 0")
law("ranges of a depth do not overlap",
	"start_ms >= before('fusion depth').end_ms - 1e-3")
law("ranges begin one after another", "start_ms >= before('fusion').start_ms")

law("a range is at one depth",
	"range == 'norm' or range == 'linear' or fixed('depth', 'fusion range')")
law("a timeline is of one context here too", "fixed('context', 'status')")
