-- communication_accounting.lua: memory, devices and least batches of XXL
xxl_all = communication_accounting{what="all three"}
xxl_token = communication_accounting{what="saved for one token"}.nbytes
at_tokens = by(communication_accounting_sharded, "tokens")
-- the least N if each device has so many tokens of its own
xxl_own = function(tokens)
	local left = 95e9 - tokens*xxl_token
	return left <= 0 and "none" or int(floor(16*xxl_P/left) + 1)
end
on_mesh = by(communication_accounting_batch, "X, Y")
asked, square, tall = on_mesh(16, 4), on_mesh(8, 8), on_mesh(4, 16)
xxl_rho = asked.TFLOPs*1e3/asked.GBps
xxl_F, xxl_N = asked.d_ff, asked.X*asked.Y
per_device = function(batch) return batch == "none" and batch
	or int(ceil(batch/xxl_N)) end
-- tokens of a device on the best mesh of real numbers
best_real = 4*xxl_rho^2/(asked.links_x*asked.links_y*xxl_F)
-- least batch, summed; bytes of an element of a gathered weight
xxl_least = function(X, Y, bytes) return ceil(bytes/2*X*xxl_rho/asked.links_x
	/(1 - Y*xxl_rho/(asked.links_y*xxl_F))) end
xxl_least_right = all(communication_accounting_batch("summed ~= 'none'"),
	"xxl_least(X, Y, 2) == summed")
-- weights and matmuls in eight bits, with the ridge of bf16
least_eight = ceil(16*xxl_rho/asked.links_x
	/(1 - 2*4*xxl_rho/(asked.links_y*xxl_F)))
state_64 = 16*xxl_P/xxl_N/1e9  -- GB of a device
kept = function(Y) return 2*xxl_P/Y/1e9 end  -- GB of gathered weights
-- X = 4 on one axis, Y = 16 on two
turned = ceil(4*xxl_rho/(1 - 16*xxl_rho/(2*xxl_F)))
