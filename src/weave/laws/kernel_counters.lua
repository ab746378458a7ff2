-- kernel_counters.lua: laws of its table
tables("kernel_counters", "op variant dtype kernel")
law("a utilisation is a part of what a unit can sustain",
	"between($_pct, 0, 100.5)")
law("a kernel's part of its case", "between(share, 0, 1)")
law("launches are counted", "integer(launches) and launches >= 1")
law("a launch takes time", "launch_us > 0")
law("no SM is clocked more than a step of 15 MHz above its boost",
	"between(SM_GHz, 0.2, boost_GHz + 0.016)")
law("no thread has more registers than there are",
	"integer(registers) and between(registers, 1, 256)")
law("memory gives a kernel no more than a data sheet promises",
	"between(dram_GBps, 0, 1.5 * of('peaks', {quantity = 'copy'}).max)")
law("the longest stall is the first",
	"stall1_pct >= stall2_pct and stall2_pct >= stall3_pct")
law("stalls take no more than all of a warp's time",
	"stall1_pct + stall2_pct + stall3_pct <= 100.5")
