-- the class's shape: a kernel's row, the bound in ms, GFLOP of both passes
board = function(variant) return flash_on(variant, 16, 16384, 64) end
board_bound = flash_bound(flash_lead64, "fwd") + flash_bound(flash_lead64, "bwd")
-- graph replays of both passes
board_added = function(variant) return board(variant).fwd_replay_ms
	+ board(variant).bwd_replay_ms end
board_order = board("warp_specialized-atomic").both_ms < flash_lead64.both_ms
	and flash_lead64.both_ms < board("pytorch-cudnn").both_ms
	and board_added("warp_specialized") < board("pytorch-cudnn").both_ms
	and board_added("warp_specialized-atomic") < board("pytorch-cudnn").both_ms
board_below = function(variant) return max(board(variant).both_ms,
	board_added(variant)) < 5.364 end
