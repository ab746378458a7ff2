-- values of [](#flame_graph)
xl_row = timed_row("xl", 512)
head_GFLOP = 2*xl_row.batch*xl_row.context*xl_row.d_model*vocabulary/1e9
block_bound = ((xl_row.fwd_GFLOP - head_GFLOP)/gemm_rate
	+ softmax_bound("xl", 512) + swiglu_bound("xl", 512) + rope_bound("xl", 512)
	+ norm_bound("xl", 512))/xl_layers
by_flops = 7/48*softmax_GB("xl", 512)/xl_row.fwd_GFLOP
-- FLOPs of one block at context 512, and the head's fraction of linear layers
block_FLOP = function(size)
	return 2048*(2*block_weights(shapes[size]) + 4*512*shapes[size].C)
end
head_part = function(blocks) return vocabulary*shapes.small.C
	/(vocabulary*shapes.small.C + blocks*block_weights(shapes.small)) end
flame = on("h100").flame_graph{size="xl", context=512, precision="fp32"}
boxes = flame{fusion="eager"}
part = by(flame, "fusion, stack")
ffn_box = part("eager", "step;forward;layer;feed-forward")
attention_box = part("eager", "step;forward;layer;attention")
softmax_box = part("eager", "step;forward;layer;attention;softmax")
layer_box = part("eager", "step;forward;layer")
tiles_box = part("fused", "step;forward;layer;attention;flash")
norm_share = by(flame{box="norm"}, "fusion", "sum(it.fraction)")
norm_width = sum(boxes{box="norm"}.width_ms)
-- fraction of matmuls in a half of all blocks
gemm_share = function(half)
	local inside = "step;forward;layer;" .. half
	return sum(boxes("stack:find(inside, 1, true) == 1 and stack:find('gemm')",
		{inside=inside}).width_ms)/part("eager", inside).width_ms
end
-- GB/s of the elementwise steps of the norms in blocks, which move 8 bytes an
-- element
in_norms = boxes("stack:find('forward;layer;norm;', 1, true)")
norm_steps = map(in_norms{box={"rmsnorm_forward: map #1 of Array",
	"rmsnorm_forward: map #1 of Array, PerRow",
	"rmsnorm_forward: map #2 of Array, PerColumn", "map_kernel<SQUARE, 4>",
	"map_kernel<MULTIPLY, 4>"}},
	"8/28*norm_GB('xl', 512)*calls/(2*xl_layers + 1)/width_ms*1e3")
shares_near_bytes = near(softmax_box.width_ms, softmax_bound("xl", 512), 0.1)
	and between(norm_width/norm_bound("xl", 512), 0.75, 1)
in_time = on("h100").flame_graph_timeline{size="xl", context=512}
cycles = count(in_time{fusion="eager", range="layer"})
-- from the start of each block to the start of the next
periods = function(fusion)
	local list = {}
	local starts = in_time{fusion=fusion, range="layer"}.start_ms
	for i = 2, #starts do list[i - 1] = starts[i] - starts[i - 1] end
	return list
end
period = function(fusion) return median(periods(fusion)) end
off_median = function(fusion)
	local list = {table.unpack(periods(fusion), 2)}
	return max(max(list) - period(fusion), period(fusion) - min(list))
		/period(fusion)
end
forward_ms = by(in_time{range="forward"}, "fusion", "end_ms - start_ms")
first_excess = periods("eager")[1]/period("eager") - 1
