-- several_nodes.lua: laws of its table
tables("several_nodes", "nodes Gbps strategy")
law("the error of a step over nodes is that of its times",
	"close(error, predicted_ms / measured_ms - 1, 0, 2e-4)")
law("a step over nodes takes no less than what is sent takes on the link",
	"measured_ms >= sent_MB * 8 / Gbps / 1.1 - 1")
law("nor do its collectives, but for what the bucket of the link holds",
	"math.min(alone_ms, rendezvous_ms) >= (sent_MB * 8 - 1.1) / Gbps")
law("a predicted step takes no less than its computing, halved",
	"predicted_ms >= single_ms / 2")
