-- tp_calcs.lua: bounds of tensor parallelism
tp_forward = tp_calcs{pass="forward"}
fast_tp = map(tp_forward("hardware ~= 'H100 NIC'"), "N")
