-- values of [](#flame_graph)
xl_row = timed_row("xl", 512)
head_GFLOP = 2*xl_row.batch*xl_row.context*xl_row.d_model*vocabulary/1e9
block_bound = ((xl_row.fwd_GFLOP - head_GFLOP)/gemm_rate
	+ softmax_bound("xl", 512) + swiglu_bound("xl", 512) + rope_bound("xl", 512)
	+ norm_bound("xl", 512))/xl_layers
by_flops = 7/48*softmax_bound("xl", 512)*copy_rate/1e3/xl_row.fwd_GFLOP
norms_by_flops = 4/28*norm_bound("xl", 512)*copy_rate/1e3/xl_row.fwd_GFLOP
-- FLOPs of a block for a token, halved; the head's fraction of linear layers
block_FLOP = function(s) return block_weights(s) + 2*512*s.C end
head_part = function(blocks) return vocabulary*shapes.small.C
	/(vocabulary*shapes.small.C + blocks*block_weights(shapes.small)) end
boxes = on("h100").flame_graph{size="xl", context=512, precision="fp32",
	fusion="eager"}
part = by(boxes, "stack")
layer_box = part("step;forward;layer")
ffn_box = part("step;forward;layer;feed-forward")
attention_box = part("step;forward;layer;attention")
softmax_box = part("step;forward;layer;attention;softmax")
norm_part = sum(boxes{box="norm"}.fraction)
norm_width = sum(boxes{box="norm"}.width_ms)
in_time = on("h100").flame_graph_timeline{size="xl", context=512, range="layer"}
cycles = count(in_time{fusion="eager"})
-- from the start of each block to the start of the next
periods = function(fusion)
	local list, starts = {}, in_time{fusion=fusion}.start_ms
	for i = 2, #starts do list[i - 1] = starts[i] - starts[i - 1] end
	return list
end
period = function(fusion) return median(periods(fusion)) end
steady_period = function(fusion) return all({table.unpack(periods(fusion), 2)},
	"near(it, period, 0.01)", {period=period(fusion)}) end
