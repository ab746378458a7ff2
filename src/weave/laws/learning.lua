-- learning.lua: laws of its tables
tables("learning", "precision step")
law("equal odds cost ln 256", "close(uniform_nats, log(256), 1e-6)")
law("more context, fewer nats",
	"uniform_nats > unigram_nats and unigram_nats > bigram_nats and bigram_nats",
	"> bigram_bound_nats")
law("one text, one model",
	"fixed('bytes', 'status') and fixed('parameters', 'status') and",
	"fixed('unigram_nats', 'status') and fixed('bigram_nats', 'status') and",
	"fixed('bigram_bound_nats', 'status')")
law("no loss is far over equal odds",
	"between(train_nats, 0, uniform_nats + 1) and between(held_out_nats, 0,",
	"uniform_nats + 1)")
law("held-out loss is near that of training",
	"between(held_out_nats / train_nats, 0.7, 2)")
law("loss changes little between rows",
	"step < 50 or between(held_out_nats / before('precision').held_out_nats,",
	"0.7, 1.5) and between(train_nats / before('precision').train_nats, 0.7,",
	"1.5)")
law("steps go on",
	"step == 0 or step > before('precision').step and step <=",
	"before('precision').step + 20")
law("steps take as long as the first, within three times",
	"between(step_ms / first('precision').step_ms, 1/3, 3)")
