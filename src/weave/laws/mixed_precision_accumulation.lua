-- mixed_precision_accumulation.lua: laws of its tables
tables("mixed_precision_accumulation-formats", "format")
law("bytes hold sign, exponent and fraction, or 19 bits of them",
	"bytes == (1 + exponent_bits + fraction_bits) / 8 or format == 'tf32' and",
	"bytes == 4 and exponent_bits + fraction_bits == 18")
law("the smallest normal is 2^(2 - 2^(E-1))",
	"close(smallest_normal, 2 ^ (2 - 2 ^ (exponent_bits - 1)), 1e-3)")
law("the smallest is that over 2^M",
	"close(smallest, smallest_normal / 2 ^ fraction_bits, 1e-3)")
law("the largest is just below 2^2^(E-1)",
	"close(largest, (2 - 2 ^ -fraction_bits) * 2 ^ (2 ^ (exponent_bits - 1) -",
	"1), 1e-4)")
law("the spacing at one is 2^-M",
	"close(spacing_at_one, 2 ^ -fraction_bits, 1e-3)")
tables("mixed_precision_accumulation", "value steps accumulator stored cast")
law("the addend is the value, rounded",
	"close(addend, value, (stored == 'fp32' and 2 ^ -24 or stored == 'fp16' and",
	"2 ^ -11 or 2 ^ -8))")
law("an error is the sum less what is exact",
	"close(error, sum - steps * value, 1e-3, 1e-7)")
law("errors of representing and of adding make it",
	"close(representation_error + accumulation_error, error, 1e-4, 1e-8)")
law("each step represents the value alike",
	"close(representation_error, steps * (addend - value), 1e-3, 1e-10)")
law("sums are of ten", "steps * value == 10")

law("a sum stalls where half its spacing is the addend, or before",
	"integer(stalls_at) and close(stalls_at * value, sum, 0.4) and stalls_at <",
	"steps")
tables("mixed_precision_accumulation-binades",
	"value accumulator stored exponent")
law("a binade begins at a power of two", "close(from, 2 ^ exponent, 1e-8)")
law("its spacing is that of the format",
	"close(ulp, from * 2 ^ -(accumulator == 'fp32' and 23 or accumulator ==",
	"'fp16' and 10 or 7), 1e-8)")
law("the addend in spacings", "close(addend_ulps, value / ulp, 2 ^ -8)")
law("what is kept of it is rounded",
	"abs(kept_ulps - addend_ulps) <= 0.5 or close(kept_ulps, addend_ulps, 1e-7)")
law("additions take the sum from first to last",
	"integer(additions) and (stored ~= accumulator or kept_ulps == 0 or",
	"close(last - first, additions * kept_ulps * ulp, 0.02, value))")
law("a binade holds its first sum", "between(first, from, 2 * from)")
law("sums go on where they were",
	"close(first, before('value accumulator stored').last, 1e-6)")
law("drift is what rounding changes",
	"close(last - first - additions * addend_ulps * ulp, drift, 0.05, 1e-6 *",
	"last)")
tables("mixed_precision_accumulation-trace", "step")
law("a hundredth is added each step", "close(exact, step / 100, 1e-6)")
law("steps are ten apart", "step == 10 or step == before('').step + 10")

law("fp32 and wide sums of narrow numbers stay near",
	"close(fp32, exact, 1e-4) and close(fp32_fp16, exact, 1e-3) and",
	"close(fp32_bf16, exact, 4e-3)")
law("narrow sums stay below or near, and do not fall",
	"close(fp16, exact, 0.1) and bf16 <= exact * 1.3 and fp16 >= before('').fp16",
	"and bf16 >= before('').bf16")
law("the trace ends at the sum of the table",
	"step < 1000 or close(fp32, of('mixed_precision_accumulation', {value =",
	"0.01, accumulator = 'fp32', stored = 'fp32'}).sum, 1e-6)")
