-- sec-cost-evidence.lua: the rows behind what is said of the cost model
-- error of what ranks add to one's step
cost_added = function(rows)
	local list = {}
	for _, r in ipairs(each(rows)) do
		local added = r.measured_ms - r.single_ms
		if added > 0.05*r.single_ms then
			list[#list + 1] = math.abs(r.predicted_ms - r.measured_ms)/added
		end
	end
	return list
end
cost_over = function(rows)                   -- how many are predicted too slow
	local n = 0
	for _, r in ipairs(each(rows)) do n = n + (r.error > 0 and 1 or 0) end
	return n
end
cost_unaided = cost_model_steps(function(r)  -- of other widths, as constants are
	return r.role == "checked" and r.machine == cost_gpu
		and r.precision == cost_model{machine=cost_gpu, constant="call"}.precision
end)

cost_group = function(size)                  -- of two, tensor parallelism
	return cost_ahead{ranks=2, tensor=2, size=size}
end
cost_off = function(size) return math.abs(cost_group(size).ahead_error) end
cost_off_four = function(size)               -- of two groups of two
	return abs(cost_ahead{ranks=4, tensor=2, size=size}.ahead_error)
end
cost_shared = map(four.tensor_parallel{precision="bf16", tp=2, dp=2},
	function(r) return waits_of(r)/r.alone_ms end)
cost_alone_over = function(kind)    -- isolated collectives over the model's
	return median(map(cost_said_of(4, kind), function(r)
		return r.alone_ms/r.predicted_alone_ms
	end))
end
cost_alone_two = median(map(cost_said_of(2, "fsdp"), function(r)
	return r.alone_ms/r.predicted_alone_ms
end))

cost_collectives = function(gpus)
	return cost_model_collectives(function(r)
		return r.role == "checked" and r.bytes > 1e6
			and (r.device == "cuda") == gpus
	end)
end
cost_near = function(gpus)
	return cost_within(cost_collectives(gpus), "error", 0.1)
end
cost_heads = argmax(cost_memory, "error")

nodes_of = function(column)
	local list = {}
	for i, r in ipairs(nodes_ok) do list[i] = math.abs(r[column]) end
	return #list > 0 and list or {0}
end
-- errors of isolated collectives, and their time by rendezvous over eager
nodes_off, nodes_slow, nodes_answered = {}, {}, {}
for i, r in ipairs(nodes_ok) do
	nodes_off[i] = math.abs(r.predicted_alone_ms/r.alone_ms - 1)
	if r.Gbps < 10 then
		table.insert(nodes_slow, nodes_off[i])
		table.insert(nodes_answered, r.rendezvous_ms/r.alone_ms)
	end
end

-- the row that is farthest off, and one rank's step on the same links
nodes_worst = nodes_ok[1]
for _, r in ipairs(nodes_ok) do
	if math.abs(r.error) > math.abs(nodes_worst.error) then nodes_worst = r end
end
nodes_beside = {}
for _, r in ipairs(nodes_ok) do
	if r.nodes == nodes_worst.nodes and r.Gbps == nodes_worst.Gbps then
		table.insert(nodes_beside, r.single_ms)
	end
end
nodes_varied = max(nodes_beside) - min(nodes_beside)
nodes_away = math.abs(nodes_worst.measured_ms - nodes_worst.predicted_ms)

nodes_hidden = function(r, step, alone)      -- of the collectives, beside passes
	return math.max(0, r.single_ms + r[alone] - r[step])/r[alone]
end
nodes_name = function(r)
	local names = {ddp="DDP", zero1="ZeRO-1", fsdp="FSDP"}
	return names[r.strategy] .. " on " .. word(r.nodes) .. " nodes over "
		.. int(r.Gbps) .. " Gbit/s"
end

cost_wider = cost_model_public(function(r)   -- by the middle row
	return r.source == "Megatron-LM, 2021" and r.devices ~= 1024
end)
cost_megatron_worst = argmin(cost_rest("Megatron-LM, 2021"), "error")
cost_later = cost_rest("Megatron-LM, 2021")(function(r)
	return r.devices > 256
end)
cost_later_least, cost_later_most = over_all(cost_later, function(r)
	return abs(r.error)
end)
cost_later_small, cost_later_large = over_all(cost_later, function(r)
	return tonumber(r.model:match("^[%d.]+"))  -- billions
end)
cost_one = function(name, devices, column, model)
	return cost_model_public{source=name, devices=devices, model=model}[column]
end

cost_best = function(model, mode, devices)
	return cost_model_scaling{hardware="H100", model=model, mode=mode,
		devices=devices}
end
cost_needs = function(strategy)
	local r = cost_hide("405B", strategy, 8)
	return r.unstretched_tokens/r.formula_tokens
end
cost_over_formula = function(model)
	local r = cost_hide(model, "fsdp", 8)
	return r.unstretched_tokens/r.formula_tokens
end

cost_band = cost_model_regimes(function(r)
	return r.hardware == "H100" and r.model == "xl" and r.plain_way == "zero1"
end)
cost_falls = function(model)
	local rows = cost_model_scaling(function(r)
		return r.hardware == "H100" and r.model == model and r.mode == "strong"
			and r.way ~= "none"
	end)
	return rows{devices=131072}.mfu < max(rows.mfu)/10
end
cost_shortest = argmin(cost_model_scaling(function(r)
	return r.hardware == "H100" and r.model == "8B" and r.mode == "strong"
		and r.way ~= "none"
end), "step_ms")
cost_gain = map(cost_model_regimes(function(r)
	return r.hardware == "H100" and r.model == "70B" and r.plain_way ~= "none"
		and r.plain_strategy == "fsdp" and r.plain_tensor == 1
end), function(r) return r.plain_ms/r.step_ms - 1 end)
