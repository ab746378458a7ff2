nodes_rows = h200.minimal_ddp_flat_benchmarking_nodes

nodes_row = function(kind) return nodes_rows{size="xl", kind=kind} end

nodes_rate = function(kind)                  -- GB/s
	return nodes_row(kind).gradient_MB/nodes_row(kind).alone_ms
end

nodes_waits = min(map(ok_of(nodes_rows), function(r)
	return r.wait_ms/r.step_ms
end))
