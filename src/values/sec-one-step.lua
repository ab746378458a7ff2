-- sec-one-step.lua: FLOPs, bytes and times of a large step, as planned
large = {V=151936, C=4096, F=11008, L=34, H=32, T=32768}
large_block = 4*large.C^2 + 3*large.C*large.F
large_P = large.L*(large_block + 2*large.C) + 2*large.V*large.C + large.C
-- TFLOP of a sequence: matmuls of the blocks, of the head; attention
large_TF = {blocks=6*large.T*large.L*large_block*1e-12,
	head=6*large.T*large.V*large.C*1e-12, fwd=2*large.L*large.T^2*large.C*1e-12,
	bwd=5*large.L*large.T^2*large.C*1e-12}
large_all = large_TF.blocks + large_TF.head + large_TF.fwd + large_TF.bwd
large_model = large_all - large_TF.bwd/5
class_best_2026 = 3837
-- ms at the H100's measured rates; attention as its kernel was timed
large_flash = flash_on("warp_specialized", 32, 32768, 128)
large_element_GB = large.T*large.L*(44*large.C + 18*large.F)*1e-9
large_loss_GB = 3*2*large.T*large.V*1e-9
large_adamw_GB = 16*large_P/2*1e-9
large_ms = {blocks=large_TF.blocks/rate("bf16")*1e3,
	head=large_TF.head/rate("bf16")*1e3, fwd=large.L*large_flash.fwd_ms,
	bwd=large.L*large_flash.bwd_ms, elements=large_element_GB/rate("copy")*1e3,
	loss=large_loss_GB/rate("copy")*1e3, adamw=large_adamw_GB/rate("copy")*1e3}
large_bound = large_all/rate("bf16")*1e3
large_predicted = large_ms.blocks + large_ms.head + large_ms.fwd + large_ms.bwd
	+ large_ms.elements + large_ms.loss + large_ms.adamw
large_share = function(part) return large_ms[part]/large_predicted end
-- GB that a block keeps, of a sequence
large_keep = function(c, f) return large.T*(2*(c*large.C + f*large.F) + 4*large.H
	+ 8)*1e-9 end
large_kept = large.L*large_keep(6, 2)
large_again = function(GB) return GB*1e9*large.C/rate("bf16")*1e-9 end
large_slots = 8*large.V*large.C*1e-9
large_state = {ddp=8*large_P*1e-9, zero2=5*large_P*1e-9,
	early=4*large_P*1e-9 + large_slots, fsdp=5*large_P*1e-9 + large_slots,
	mixed=18*large_P*1e-9, masters=9*large_P*1e-9}
-- blocks that drop gate and up before the rest fits an H200, and their GB
large_GB = 2*2*large.T*large.F*1e-9
h200_GB = meta(h200.fsdp_accounting, "memory_MiB")*2^20*1e-9
h100_GB = h100_MiB*2^20*1e-9
large_dropped = function(state) return max(0,
	ceil((state + large_kept - h200_GB)/large_GB)) end
large_link = on("h200x2").distributed_communication_single_node_collectives{
	device="cuda", transport="nccl", collective="all-gather", ranks=2,
	bytes=1000000000}.busbw_GBps
large_send_GB = 2*large_P*1e-9
large_send_ms = large_send_GB/large_link*1e3
