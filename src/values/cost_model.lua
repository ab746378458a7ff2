-- cost_model.lua: errors of the cost model, and what its maps say
cost_of = function(name, machine)
	return cost_model{constant=name, machine=machine}.value
end
cost_machines = function(rows)               -- names, in the order of the table
	local list, seen = {}, {}
	for _, r in ipairs(map(rows, function(r) return r.machine end)) do
		if not seen[r] then list[#list + 1] = r end
		seen[r] = true
	end
	return list
end
cost_gpu = cost_machines(cost_model)[1]      -- constants of maps are its
cost_abs = function(rows, column)
	return map(rows, function(r) return math.abs(r[column]) end)
end
-- how many rows are within an error
cost_within = function(rows, column, most)
	local n = 0
	for _, x in ipairs(cost_abs(rows, column)) do
		n = n + (x <= most and 1 or 0)
	end
	return n
end
cost_count = function(rows) return #cost_abs(rows, "error") end

cost_checked = function(machine)
	return cost_model_steps{role="checked", machine=machine}
end
cost_tests = cost_checked(cost_gpu)
cost_waits = function(r) return r.strategy == "naive" or r.strategy == "flat" end
cost_serial = cost_model_steps(function(r)
	return r.role == "checked" and r.machine == cost_gpu and cost_waits(r)
end)
cost_beside = cost_model_steps(function(r)
	return r.role == "checked" and r.machine == cost_gpu and not cost_waits(r)
end)
cost_stretch = function(size)                -- bf16, each gradient by itself
	local r = h200_over{size=size, precision="bf16", kind="overlap"}
	return r.bwd_ms/r.single_bwd_ms
end
cost_alone = map(cost_tests(function(r) return r.alone_ms end), function(r)
	return abs(r.predicted_alone_ms/r.alone_ms - 1)  -- of their collectives
end)

cost_ahead = cost_model_steps{machine=cost_gpu, role="predicted"}
cost_way = function(strategy, tensor)
	return tensor > 1 and "tensor" or strategy
end
cost_kinds = {bucketed="ddp", zero1="ddp", zero2="ddp", naive="ddp", flat="ddp",
	overlap="ddp", sharded="sharded", fsdp="fsdp", tensor="tensor"}
cost_said_of = function(gpus, kind)
	return cost_ahead(function(r)
		return r.ranks == gpus
			and (not kind or cost_kinds[cost_way(r.strategy, r.tensor)] == kind)
	end)
end
cost_groups = cost_ahead(function(r) return r.tensor > 1 end)
cost_copies = cost_ahead(function(r) return r.tensor == 1 end)
cost_sign = function(gpus, kind)             -- how many are predicted too slow
	local n = 0
	for _, r in ipairs(each(cost_said_of(gpus, kind))) do
		n = n + (r.ahead_error > 0 and 1 or 0)
	end
	return n
end
cost_errors = function(gpus, kind)
	local list = cost_abs(cost_said_of(gpus, kind), "ahead_error")
	if #list == 0 then return "" end
	return ("%s, %s (%d)"):format(pct(median(list)), pct(max(list)), #list)
end
cost_slower = map(cost_groups, function(r)   -- as above, each
	return r.alone_ms/r.predicted_alone_ms
end)
cost_memory = cost_model_memory{status="ok", machine=cost_gpu}

-- steps over several nodes, and how many are within 15 %
nodes_ok = {}
nodes_within = 0
for _, r in ipairs(each(several_nodes)) do
	if r.status == "ok" then
		table.insert(nodes_ok, r)
		nodes_within = nodes_within + (abs(r.error) <= 0.15 and 1 or 0)
	end
end

cost_rest = function(name)                   -- of a source, or of all
	return cost_model_public(function(r)
		return r.role == "checked" and (name == nil or r.source == name)
	end)
end
cost_source = function(name, column)
	return max(cost_abs(cost_rest(name), column or "error"))
end
cost_titan = math.max(cost_source("TorchTitan, eager"),
	cost_source("TorchTitan, compiled"))
cost_steady = math.max(cost_titan, cost_source("Llama 3"),
	cost_source("MegaScale"), cost_source("Megatron-LM, 2024"))

cost_hide = function(model, strategy, devices)
	return cost_model_hiding{hardware="H100", model=model, strategy=strategy,
		devices=devices}
end
-- tokens without stretch over the formula's, and with stretch over without
cost_eight = cost_model_hiding(function(r)
	return r.hardware == "H100" and r.devices == 8
		and (r.model == "8B" or r.model == "405B")
end)
cost_formula_least, cost_formula_most = over_all(cost_eight, function(r)
	return r.unstretched_tokens/r.formula_tokens
end)
cost_stretched = min(map(cost_eight, function(r)
	return r.tokens/r.unstretched_tokens
end))

-- where more than data parallelism wins
cost_split = function(model)
	return cost_model_regimes(function(r)
		return r.hardware == "H100" and r.model == model and r.way ~= "none"
			and (r.tensor > 1 or r.stages > 1)
	end)
end
cost_split_to = max(map(cost_split("xl"), function(r)
	return r.tokens/r.devices
end))
cost_from = min(map(cost_model_regimes(function(r)
	return r.hardware == "H100" and r.model == "xl" and r.way ~= "none"
		and r.tokens/r.devices > cost_split_to
end), function(r) return r.tokens/r.devices end))

cost_gathers = cost_model_regimes(function(r)
	return r.hardware == "H100" and r.plain_way ~= "none"
		and r.plain_strategy == "fsdp" and (r.model == "xl" or r.model == "8B"
		or r.model == "70B" or r.model == "405B")  -- those that are drawn
end)
cost_piped = function(piped)                 -- how many
	local n = 0
	for _, r in ipairs(each(cost_gathers)) do
		n = n + ((r.stages > 1) == piped and 1 or 0)
	end
	return n
end
