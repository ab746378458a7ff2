nodes_rows = h200.minimal_ddp_flat_benchmarking_nodes
nodes_row = by(nodes_rows{size="xl"}, "kind")
nodes_rate = function(kind) return nodes_row(kind).gradient_MB  -- GB/s
	/nodes_row(kind).alone_ms end
