ours64 = function(n) return flash_alone("warp_specialized", n, 64) end
naive64 = function(n) return flash_alone("naive", n, 64) end
-- bounds of one head of D = 64 in us; both passes of naive attention: 11 n^2 w
fwd64_us = flash_matmul_ms(ours64(16384), "fwd")*1e3
naive_bound_ms = 11*65536^2*2/rate("copy")/1e6
predicted_gain = naive_bound_ms/(flash_bound(ours64(65536), "fwd")
	+ flash_bound(ours64(65536), "bwd"))
replayed_us = of("(fwd_replay_ms + bwd_replay_ms)*1e3")
naive_longest = all(flash_grid{n=65536, d=64}, "variant == 'naive' \z
	or 5*replayed_us(it) < replayed_us(flash_alone('naive', 65536, 64, dtype))")
-- where naive attention's backward pass takes less time, replayed
slower_back = pick(flash_grid{variant={"warp_specialized", "split_fp16"}},
	"bwd_replay_ms > flash_alone('naive', n, d, dtype).bwd_replay_ms")
gain64 = naive64(65536).both_ms/ours64(65536).both_ms
memory_gain = naive64(65536).peak_MiB/ours64(65536).peak_MiB
-- from 32768 to 65536: the peak, and does the rate of the backward pass rise?
peak_growth = function(variant) return flash_alone(variant, 65536, 64).peak_MiB
	/flash_alone(variant, 32768, 64).peak_MiB end
rate_rises = function(d) return increasing({32768, 65536},
	"flash_rate(flash_alone('warp_specialized', it, d), 'bwd')", {d=d}) end
