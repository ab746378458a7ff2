-- cost_model.lua: errors of the cost model, and what its maps say
cost_of = by(cost_model, "constant, machine", "value")
cost_gpu = each(cost_model)[1].machine       -- constants of maps are its
cost_gets = function(constant) return cost_of(constant, cost_gpu) end
cost_abs = function(rows, column) return map(rows, "abs(it[column])",
	{column=column}) end
-- how many rows are within an error
cost_within = function(rows, column, most) return count(cost_abs(rows, column),
	"it <= most", {most=most}) end
cost_checked = by(cost_model_steps{role="checked"}, "machine")
cost_tests = cost_checked(cost_gpu)
cost_waits = of("strategy == 'naive' or strategy == 'flat'")
cost_serial = cost_tests("cost_waits(it)")
cost_beside = cost_tests("not cost_waits(it)")
cost_stretch = by(h200_over{precision="bf16", kind="overlap"}, "size",
	"bwd_ms/single_bwd_ms")
-- of their collectives
cost_alone = map(cost_tests, "abs(predicted_alone_ms/alone_ms - 1)")
cost_ahead = cost_model_steps{machine=cost_gpu, role="predicted"}
cost_way = function(strategy, tensor) return tensor > 1 and "tensor"
	or strategy end
cost_kinds = {bucketed="ddp", zero1="ddp", zero2="ddp", naive="ddp", flat="ddp",
	overlap="ddp", sharded="sharded", fsdp="fsdp", tensor="tensor"}
cost_said_of = function(gpus, kind)
	return cost_ahead{ranks=gpus}("not kind or kind == cost_kinds[cost_way( \z
		strategy, tensor)]", {kind=kind or false})
end
cost_groups = cost_ahead("tensor > 1")
cost_sign = function(...) return count(cost_said_of(...), "ahead_error > 0") end
cost_errors = function(gpus, kind)
	local list = cost_abs(cost_said_of(gpus, kind), "ahead_error")
	return ("%s, %s (%d)"):format(pct(median(list)), pct(max(list)), #list)
end
cost_slower = map(cost_groups, "alone_ms/predicted_alone_ms")  -- as above, each
cost_memory = cost_model_memory{status="ok", machine=cost_gpu}
-- steps over several nodes, and how many are within 15 %
nodes_ok = several_nodes{status="ok"}
nodes_sharded = nodes_ok{nodes=2, Gbps=1, strategy="sharded"}
cost_rest = by(cost_model_public{role="checked"}, "source")
cost_source = function(name, column) return max(cost_abs(cost_rest(name),
	column or "error")) end
cost_steady = max(cost_rest({"TorchTitan, eager", "TorchTitan, compiled",
	"Llama 3", "MegaScale", "Megatron-LM, 2024"}), "abs(error)")
cost_hide = by(cost_model_hiding{hardware="H100"}, "model, strategy, devices")
-- tokens without stretch over the formula's, and with stretch over without
cost_eight = cost_model_hiding{hardware="H100", devices=8, model={"8B", "405B"}}
-- where more than data parallelism wins
cost_split_to = max(cost_model_regimes{hardware="H100", model="xl"}(
	"way ~= 'none' and (tensor > 1 or stages > 1)"), "tokens/devices")
-- those that are drawn
cost_gathers = cost_model_regimes{hardware="H100", plain_strategy="fsdp",
	model={"xl", "8B", "70B", "405B"}}("plain_way ~= 'none'")
cost_piped = function(piped)                 -- how many
	return count(cost_gathers, "(stages > 1) == piped", {piped=piped})
end
