-- several_nodes.lua: laws of its tables
tables("several_nodes", "nodes Gbps strategy")
law("the error of a step over nodes is that of its times",
	"close(error, predicted_ms / measured_ms - 1, 0, 2e-4)")
law("a step over nodes takes no less than what is sent takes on the link",
	"measured_ms >= sent_MB * 8 / Gbps / 1.1 - 1")
law("nor do its collectives, but for what the bucket of the link holds",
	"math.min(alone_ms, rendezvous_ms) >= (sent_MB * 8 - 1.1) / Gbps")
law("a predicted step takes no less than its computing, halved",
	"predicted_ms >= single_ms / 2")
tables("several_nodes-buckets", "nodes Gbps bucket_mb")
law("over nodes larger buckets are fewer", "buckets <= below('bucket_mb',",
	"'buckets').buckets")
law("over nodes what is simulated takes no less than a step of one rank",
	"simulated_ms >= single_ms - 2e-4")
law("over nodes stretched work takes no less than unstretched",
	"simulated_ms >= ideal_ms - 2e-4")
law("a step takes no less than its gradients on the link",
	"step_ms >= (gradient_MB * 8 - 1.1) / Gbps")
