-- alternate_ring_all_reduce.lua: laws of its tables
tables("alternate_ring_all_reduce", "N elements")
law("a ring takes 2(N-1) steps", "ring_steps == 2 * (N - 1)")
law("it sends 2(N-1)/N of the array from each device",
	"close(ring_nbytes, 2 * (N - 1) / N * 2 * elements, 1e-9)")
law("chunks round up by less than an element a step",
	"between(ring_counted - ring_nbytes, -1e-3, ring_steps * 2)")
law("sums on a ring are the same everywhere", "ring_differ == 0")
law("whole arrays take N-1 steps", "alternate_steps == N - 1")
law("whole arrays are sent N-1 times",
	"alternate_nbytes == (N - 1) * 2 * elements")
law("whole arrays sent are counted so", "alternate_counted == alternate_nbytes")
law("no more elements differ than there are",
	"between(alternate_differ, 0, elements)")
law("more devices, more orders of summation",
	"alternate_differ >= below('N', 'alternate_differ').alternate_differ")
law("above two devices a quarter of the sums differ",
	"N <= 2 and alternate_differ == 0 or N > 2 and alternate_differ > elements /",
	"4")
