-- naive_ddp.lua: laws of its table
tables("naive_ddp", "kind wire transport ranks")
law("ranks never differ from one another", "strangers == 0")
law("ranks as one process: two ranks give equal bits",
	"ranks > 2 or (differ == 0 and most_difference == 0)")
law("sums in the order of ranks give equal bits",
	"via ~= 'owner' or (differ == 0 and most_difference == 0)")
law("another order of sums changes weights by little",
	"differ <= parameters and most_difference < 0.05")
law("the first losses are those of one process",
	"close(loss_first, alone_first, 0, 1.5e-6)")
law("the last losses are those of one process",
	"close(loss_last, alone_last, 1e-2)")
law("training on several ranks starts near equal odds",
	"close(loss_first, log(1250), 0.2)")
law("ranks of a job train models of one size",
	"fixed('parameters', 'status') and fixed('steps', 'status') and steps > 1",
	"and integer(parameters)")
law("equal bits give equal losses",
	"differ > 0 or close(loss_last, alone_last, 0, 1.5e-6)")
law("the whole batch has the same gradients, but for rounding",
	"whole_gradient <= (wire == 'bf16' and 2^-7 or 2^-23*sqrt(ranks*tokens))")
law("the whole batch trains to nearly the same loss",
	"close(whole_last, loss_last, 1e-3) and whole_difference < 2e-3*steps")
law("kinds of data parallelism with equal bits give equal losses",
	"differ > 0 or close(loss_last, first('wire ranks').loss_last, 1e-3)")
