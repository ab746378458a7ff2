-- ddp_bucketed_benchmarking.lua: laws of its predictions
tables("ddp_bucketed_benchmarking ddp_bucketed_benchmarking-transports",
	"size context batch precision fusion kind bucket_mb wire transport ctas " ..
	"sums ranks")
law("the simulation forms as many buckets as the reducer",
	"formed == buckets")
law("no more buckets than twice what fits",
	"(buckets - 1) * bucket_mb <= 2 * gradient_MB")
law("larger buckets are fewer", "buckets <= below('bucket_mb',",
	"'buckets').buckets")
law("what is simulated takes no less than a step without communication",
	"simulated_ms >= single_ms - 2e-4 and ideal_ms >= single_ms - 2e-4")
law("work on both queues stretches, and no more than four times",
	"between(stretch, 1, 4) and between(comm_stretch, 1, 4)")
law("stretched work takes no less than unstretched",
	"simulated_ms >= ideal_ms - 2e-4")
law("what is simulated takes no more than computing and all collectives",
	"ideal_ms <= single_ms + buckets * o_us * 1e-3 + (1 + 1e-4) * " ..
	"gradient_MB / w_GBps + 2e-3")
law("a link costs something, and carries something", "o_us >= 0 and w_GBps > 0")
law("on a GPU the collectives alone take what the link's fit says",
	"not gpu() or between((buckets * o_us * 1e-3 + gradient_MB / w_GBps) /",
	"alone_ms, 0.5, 2)")
tables("ddp_bucketed_benchmarking-ctas",
	"size context batch precision fusion kind bucket_mb wire transport ctas " ..
	"spare_sms sums ranks")
law("matmuls leave nothing, or as many multiprocessors as there are blocks",
	"spare_sms == 0 or spare_sms == ctas")
law("the number of blocks changes no sum",
	"loss == first('size precision wire spare_sms').loss")
