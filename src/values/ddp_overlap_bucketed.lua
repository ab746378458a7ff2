-- one loss for each wire and each value of a column?
same_loss = function(rows, column)
	local loss, same_of = {}, true
	for _, r in ipairs(each(ok_of(rows))) do
		local key = r.wire .. " " .. r[column]
		loss[key] = loss[key] or r.loss
		same_of = same_of and loss[key] == r.loss
	end
	return same_of
end
reserved_least,
	reserved_most = ends(ok_of(h200.ddp_bucketed_benchmarking_ctas,
	{wire="bf16"}), "loss")
learned_by = by(ok_of(h200.optimizer_state_sharding_accounting_times,
	{size="xl", precision="bf16", sums="comm"}), "strategy", "loss")
