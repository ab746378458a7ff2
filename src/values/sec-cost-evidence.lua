-- sec-cost-evidence.lua: the rows behind what is said of the cost model
-- error of what ranks add to one's step
cost_added = function(rows)
	return map(rows("measured_ms - single_ms > 0.05*single_ms"),
		"abs(predicted_ms - measured_ms)/(measured_ms - single_ms)")
end
cost_over = function(rows) return count(rows, "error > 0") end  -- too slow
-- of other widths, as constants are
cost_unaided = cost_tests{precision=cost_model{machine=cost_gpu,
	constant="call"}.precision}
-- of two, tensor parallelism
cost_off = by(cost_ahead{ranks=2, tensor=2}, "size", "abs(ahead_error)")
cost_off_four = by(cost_ahead{ranks=4, tensor=2}, "size", "abs(ahead_error)")
cost_shared = map(four.tensor_parallel{precision="bf16", tp=2, dp=2},
	"waits_of(it)/alone_ms")
-- isolated collectives over the model's
cost_alone_over = function(kind) return median(cost_said_of(4, kind),
	"alone_ms/predicted_alone_ms") end
cost_alone_two = median(cost_said_of(2, "fsdp"), "alone_ms/predicted_alone_ms")
cost_collectives = function(gpus) return cost_model_collectives{
	role="checked"}("bytes > 1e6 and (device == 'cuda') == gpus", {gpus=gpus}) end
cost_near = function(gpus) return cost_within(cost_collectives(gpus), "error",
	0.1) end
cost_heads = argmax(cost_memory, "error")
-- errors of isolated collectives, and their time by rendezvous over eager
nodes_off = map(nodes_ok, "abs(predicted_alone_ms/alone_ms - 1)")
nodes_slow = map(nodes_ok("Gbps < 10"), "abs(predicted_alone_ms/alone_ms - 1)")
nodes_answered = map(nodes_ok("Gbps < 10"), "rendezvous_ms/alone_ms")
-- by the middle row
cost_wider = cost_model_public{source="Megatron-LM, 2021"}("devices ~= 1024")
cost_formula = of("unstretched_tokens/formula_tokens")
cost_megatron_worst = argmin(cost_rest("Megatron-LM, 2021"), "error")
cost_later = cost_rest("Megatron-LM, 2021")("devices > 256")
cost_later_least, cost_later_most = ends(cost_later, "abs(error)")
cost_later_small, cost_later_large = ends(cost_later,  -- billions
	"tonumber(model:match('^[%d.]+'))")
cost_one = function(name, devices, column, model) return cost_model_public{
	source=name, devices=devices, model=model}[column] end
cost_best = by(cost_model_scaling{hardware="H100"}, "model, mode, devices")
cost_needs = function(strategy)
	return cost_formula(cost_hide("405B", strategy, 8))
end
cost_over_formula = function(model)
	return cost_formula(cost_hide(model, "fsdp", 8))
end
cost_band = cost_model_regimes{hardware="H100", model="xl", plain_way="zero1"}
cost_strong = by(cost_model_scaling{hardware="H100", mode="strong"}(
	"way ~= 'none'"), "model")
cost_falls = function(model) return cost_strong(model){devices=131072}.mfu
	< max(cost_strong(model).mfu)/10 end
cost_shortest = argmin(cost_strong("8B"), "step_ms")
cost_gain = map(cost_model_regimes{hardware="H100", model="70B", plain_tensor=1,
	plain_strategy="fsdp"}("plain_way ~= 'none'"), "plain_ms/step_ms - 1")
