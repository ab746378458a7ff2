#!/usr/bin/env bash
# test_calcs.sh: data_parallel_calcs, fsdp_calcs, tp_calcs, fsdp_tp_calcs,
# alternate_ring_all_reduce, communication_accounting: known answers, options
. tests/experiments/expect.sh

for program in data_parallel_calcs fsdp_calcs tp_calcs fsdp_tp_calcs \
	alternate_ring_all_reduce communication_accounting; do
	expect "$program --help" 0 '^ *--sweep' $program --help
	expect "$program: unknown sweep" 2 "'none' is not one of" $program \
		--sweep none
	expect "$program: unexpected argument" 2 "unexpected argument 'x'" \
		$program x
done

# NAME|THE FIRST CELLS OF A ROW|PROGRAM ARGUMENTS; 'any': any cell.
# B W/C is 4 and 3 F W/2C is 3 where B is 8000 and F is 4000
machine='--TFLOPs 1000 --GBps 500'
while IFS='|' read -r name cells command; do
	cells=${cells//any/'[^ ][^ ]*'}
	expect "$name" 0 "^ *${cells// /  *} .*ok\$" $command
done <<END
data parallel|custom backward 1000 500 8000 2560 4000 5 5 0.196608 0.196608|\
data_parallel_calcs $machine --batch 8000 --d-ff 4000
data parallel, a bound between|custom backward any any 9000 any any 5.5 5|\
data_parallel_calcs $machine --batch 9000 --d-ff 4000
data parallel, one device|custom backward any any 1000 any any 1.5 1 any 0|\
data_parallel_calcs $machine --batch 1000 --d-ff 4000
data parallel, 8 devices|custom backward 8 any any any any any 0.12288 0.21504|\
data_parallel_calcs $machine --batch 8000 --d-ff 4000 --sweep curve
FSDP forward|custom forward 1000 500 8000 2560 4000 5 5 0.098304 0.098304|\
fsdp_calcs $machine --batch 8000 --d-ff 4000
FSDP backward|custom backward 1000 500 8000 2560 4000 5 5 0.196608 0.196608|\
fsdp_calcs $machine --batch 8000 --d-ff 4000
TP forward|custom forward 1000 500 8000 2560 4000 4 4 0.12288 0.12288|\
tp_calcs $machine --batch 8000 --d-ff 4000
TP backward|custom backward 1000 500 8000 2560 4000 7 7|\
tp_calcs $machine --batch 8000 --d-ff 4000
TP, 4 devices|custom forward 4 any any any any any 0.12288 0.12288|\
tp_calcs $machine --batch 8000 --d-ff 4000 --sweep curve
both, overlapped|custom overlapped any any any any any 20 5 4 20 5 4|\
fsdp_tp_calcs $machine --batch 8000 --d-ff 4000
both, summed|custom summed any any any any any 7.52083 3.1667 2.375 6 2 3|\
fsdp_tp_calcs $machine --batch 8000 --d-ff 4000
narrow: no TP|custom summed any any any any any 5 5 1 5 5 1|\
fsdp_tp_calcs $machine --batch 8000 --d-ff 400
few rows: no FSDP|custom summed any any any any any 4 1 4 4 1 4|\
fsdp_tp_calcs $machine --batch 800 --d-ff 4000
few rows, overlapped|custom overlapped any any any any any 5.6 1.4 4 4 1 4|\
fsdp_tp_calcs $machine --batch 800 --d-ff 4000
region|H100 NVLink 50 989 450 989000 2560 989000 226 676 338.5 1349.01|\
fsdp_tp_calcs --sweep region --batch 989000 --d-ff 989000
7 rows on 3|3 1 7 10 13 backward 3640 4680 1040 1056 0 0|\
data_parallel_calcs --sweep schedule
10 rows of weights on 3|3 1 7 10 13 backward 3640 4680 1040 1248 0 0|\
fsdp_calcs --sweep schedule
13 columns on 4|1 4 7 10 13 forward 1365 1680 0 0 210 216|\
tp_calcs --sweep schedule
a mesh of 4 x 3|4 3 7 10 13 forward 455 600 195 270 46.66666667 56|\
fsdp_tp_calcs --sweep schedule
ring of 4|4 1000 6 3000 3000 0 3 6000 6000|\
alternate_ring_all_reduce --devices 4 --elements 1000
ring of 3|3 1000 4 2666.666667 2672 0 2 4000 4000|\
alternate_ring_all_reduce --devices 3 --elements 1000
ring of 1|1 1000 0 0 0 0 0 0 0 0|\
alternate_ring_all_reduce --devices 1 --elements 1000
fewer elements than devices|5 2 8 6.4 16 0 4 16 16|\
alternate_ring_all_reduce --devices 5 --elements 2
memory in all|all three 219848638464 3517578215424 3517.58 3276 44|\
communication_accounting --sweep memory
memory of AdamW|AdamW's moments 219848638464 1758789107712 any any 22|\
communication_accounting --sweep memory
memory of a token|saved for one token 219848638464 17547264|\
communication_accounting --sweep memory
2 GPUs are just enough|all three 20 320 any any 2|\
communication_accounting --d-model 2 --d-ff 5 --blocks 1 --gpu-GB 160e-9
sharded: 0 tokens|0 0 38 92.568 95.07|\
communication_accounting --sweep sharded
sharded: 2048 tokens|2048 17.9684 46|communication_accounting --sweep sharded
sharded: 8192 tokens|8192 71.8736 156|communication_accounting --sweep sharded
sharded: 10828 tokens|10828 95.0009 none - -|\
communication_accounting --sweep sharded
batch: 16 x 4|16 4 20445 25302|communication_accounting --sweep batch
batch: 8 x 8|8 8 any 16594|communication_accounting --sweep batch
batch: 1 x 64|1 64 none none none none 0 0|\
communication_accounting --sweep batch
batch: 1 x 1|1 1 1278 1343 1 1 0 0 0 0|\
communication_accounting --sweep batch --devices 1
batch: slow links|1 1 above 10000000 above 10000000 1 1|\
communication_accounting --sweep batch --devices 1 --GBps 0.04 --d-ff 1048576 \
--links-x 1 --links-y 16
END

# NAME|PATTERN|PROGRAM ARGUMENTS: one line and exit status 2
both='needs both --TFLOPs and --GBps'
above='memories and rates: expected'
while IFS='|' read -r name pattern command; do
	expect "$name" 2 "$pattern" $command
	check "$name: one line" [ "$(wc -l <"$out/said")" = 1 ]
done <<END
no rows|'0' is not an integer in 1..|data_parallel_calcs --batch 0
no width|'0' is not an integer in 1..|tp_calcs --d-ff 0
half a row|'1.5' is not an integer|fsdp_calcs --batch 1.5
a machine that does not send|$both|data_parallel_calcs --TFLOPs 1000
a machine that does not compute|$both|fsdp_calcs --GBps 500
a negative rate|$both|tp_calcs --TFLOPs -1 --GBps 500
two negative rates|$both|fsdp_tp_calcs --TFLOPs -1000 --GBps -500
a rate that is no number|'nan' is not a finite|tp_calcs --TFLOPs nan --GBps 500
an infinite rate|'inf' is not a finite|fsdp_calcs --TFLOPs 1000 --GBps inf
too many devices|bounds of up to .* devices|fsdp_tp_calcs --batch 1000000000000
too many for a machine|bounds of up to|data_parallel_calcs --TFLOPs 1 --GBps 500
a ring below 0|'-1' is not an integer|alternate_ring_all_reduce --devices -1
too many elements|'4194305' is|alternate_ring_all_reduce --elements 4194305
too large a ring|4096 devices of 4194304 elements are too many|\
alternate_ring_all_reduce --devices 4096 --elements 4194304
a rate beyond all|$both|tp_calcs --TFLOPs 1e308 --GBps 1e308
no memory|$above|communication_accounting --device-GB 0
no memory of a GPU|$above|communication_accounting --gpu-GB 0
memory below 0|$above|communication_accounting --sweep sharded --device-GB -95
no rate|$above|communication_accounting --sweep batch --GBps 0
memory that is no number|'nan' is not a|communication_accounting --device-GB nan
no mesh|'0' is not an integer in 1..|communication_accounting --devices 0
no links|'0' is not an integer in 1..|communication_accounting --links-x 0
END
exit $failed
