-- data_parallel_calcs.lua: bounds, and schedules that were run with data
divided = of("batch == 120")
counted = of("flops == flops_counted and x_nbytes == x_counted and y_nbytes \z
	== y_counted")
more = of("flops_counted >= flops and x_counted >= x_nbytes - 1e-6 \z
	and y_counted >= y_nbytes - 1e-6")
