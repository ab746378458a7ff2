ddp_peer = by(h200.pytorch_ddp_peers{size="xl"}, "impl, precision")
sharded_peer = by(h200.pytorch_ddp_peers_sharded{size="xl"}, "impl")
ddp_added = function(impl, precision)        -- ms of a step
	local r = ddp_peer(impl, precision or "bf16")
	return r.step_ms - r.single_ms
end
