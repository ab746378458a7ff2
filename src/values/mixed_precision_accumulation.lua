-- values of [](#mixed_precision_accumulation): the cases, and their binades
sum_rows = mixed_precision_accumulation
binades = mixed_precision_accumulation_binades
power_text = function(x) return x == 0 and "0" or abs(x) >= 0.1 and fixed(x, 2)
	or sci(x, 2) end
sum_case = function(acc, stored, value) return sum_rows{value=value or 0.01,
	accumulator=acc, stored=stored, cast="no"} end
binade = function(acc, exponent) return binades{value=0.01, accumulator=acc,
	stored=acc, exponent=exponent} end
drifts_add_up = function(acc)
	return near(sum(binades{value=0.01, accumulator=acc, stored=acc}.drift),
		sum_case(acc, acc).accumulation_error, 1e-3)
end
s32, s16 = sum_case("fp32", "fp32"), sum_case("fp16", "fp16")
s32_16, sb = sum_case("fp32", "fp16"), sum_case("bf16", "bf16")
cast16 = sum_rows{value=0.01, accumulator="fp32", stored="fp16", cast="yes"}
printed = {fixed(s32.sum, 4), fixed(s16.sum, 4), fixed(s32_16.sum, 4),
	fixed(cast16.sum, 4), fixed(sb.sum, 1)}
first_case = between(s32_16.error/s32.error, 15.5, 16.5)
	and s32.accumulation_error > 100*abs(s32.representation_error)
-- kinks of the sums: binades by the exponent of their lower end
four16, eight16 = binade("fp16", 2), binade("fp16", 3)
two_b, four_b = binade("bf16", 1), binade("bf16", 2)
four32, eight32 = binade("fp32", 2), binade("fp32", 3)
-- by which part of a spacing the addend is rounded up
up4, up8 = 1 - four32.addend_ulps % 1, 1 - eight32.addend_ulps % 1
-- the step at which the sum in fp16 is farthest above the exact one
worst16 = argmax(mixed_precision_accumulation_trace, "fp16 - exact")
t16, tb = sum_case("fp16", "fp16", 0.001), sum_case("bf16", "bf16", 0.001)
