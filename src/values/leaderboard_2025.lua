-- the class's shape: a kernel's row, the bound in ms, GFLOP of both passes
board = function(variant) return flash_on(variant, 16, 16384, 64) end
board_bound = flash_bound(flash_lead64, "fwd") + flash_bound(flash_lead64, "bwd")
-- graph replays of both passes
board_added = function(variant) return board(variant).fwd_replay_ms
	+ board(variant).bwd_replay_ms end
