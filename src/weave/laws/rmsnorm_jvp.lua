-- rmsnorm_jvp.lua: laws of its tables
tables("rmsnorm_jvp", "width step")
law("truncation is h^2 over twice the width",
	"close(truncation, step ^ 2 / (2 * width), 2e-3)")
law("rounding grows as the step shrinks",
	"close(rounding, 2 ^ -53 * sqrt(width) / (2 * step), 2e-3)")
law("half a decade each step",
	"step == first('width').step or between(before('width').step / step, 3, 3.4)")
law("errors of dx are no more than both bounds, times a hundred",
	"between(dx_error, 0, 100 * (truncation + rounding) + 1e-11)")
law("errors of small steps are no less than a hundredth of the truncation",
	"step > 0.1 or dx_error >= truncation / 100")
law("dg is linear: its error is rounding alone, times a thousand",
	"between(dg_error, 0, 1000 * rounding + 1e-13)")
tables("rmsnorm_jvp-best", "width")
law("the best step is where both meet",
	"close(predicted_step, 2 ^ -18 * sqrt(width), 5e-3)")
law("the predicted error is 1.5 * 2^-36",
	"close(predicted_error, 1.5 * 2 ^ -36, 5e-3)")
law("the step found is that, but for a factor of three",
	"between(best_step / predicted_step, 0.33, 3)")
law("the best error is as predicted, but for a factor of twenty",
	"between(dx_error / predicted_error, 0.01, 20)")
law("the best error is that of its step in the sweep, but for a factor of three",
	"between(dx_error / of('rmsnorm_jvp', {width = width, step =",
	"best_step}).dx_error, 0.33, 3)")
