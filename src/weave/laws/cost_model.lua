-- cost_model.lua: laws of its tables
tables("cost_model", "machine constant")
law("a constant of the cost model is not negative", "value >= 0")
law("what stretches takes longer, errors are small",
	"unit ~= '1' or between(value, 0, 4) and (value >= 1 or value < 0.7)")
tables("cost_model-collectives",
	"machine device transport collective dtype ranks bytes")
law("the error of a collective is that of its times",
	"close(error, predicted_ms / measured_ms - 1, 0, 2e-4)")
law("constants of collectives are fitted to two ranks in fp32",
	"role == 'checked' or role == 'fitted' and ranks == 2 and dtype == 'fp32'")
tables("cost_model-steps", "machine of size context precision batch strategy " ..
	"prefetch bucket_mb wire ranks tensor")
law("only predicted steps have an earlier prediction, with its error",
	"role ~= 'predicted' or",
	"close(ahead_error, ahead_ms / measured_ms - 1, 0, 2e-4)")
law("the error of a step is that of its times",
	"close(error, predicted_ms / measured_ms - 1, 0, 2e-4)")
law("the error of an unaided step is that of its times",
	"close(unaided_error, unaided_ms / measured_ms - 1, 0, 2e-4)")
law("a predicted step has no less to compute than half of one device's",
	"predicted_ms >= single_ms / 2")
law("and no more to send than all of it, stretched",
	"predicted_ms <= 4 * (single_ms + predicted_alone_ms)")
tables("cost_model-memory", "machine size context precision batch strategy " ..
	"prefetch ranks tensor")
law("the error of memory is that of its bytes",
	"close(error, predicted_MiB / measured_MiB - 1, 0, 5e-3)")
law("predicted memory is near the measured",
	"close(predicted_MiB, measured_MiB, 0.05)")

tables("cost_model-public", "source model hardware devices parts")
law("published devices are the product of what divides",
	"devices == data * tensor * parts * stages")
law("the error of a published run is that of its value",
	"close(error, predicted / value - 1, 0, 2e-4) and",
	"close(middle_error, middle_predicted / value - 1, 0, 2e-4)")
law("a source is fitted to one row",
	"(role == 'fitted') == (devices == first('source').devices and",
	"model == first('source').model and tensor == first('source').tensor)")
law("a source has one efficiency", "fixed('first_efficiency', 'source') and",
	"fixed('middle_efficiency', 'source')")
law("the first row of a source is met",
	"close(first('source').error, 0, 0, 1e-3)")
law("seconds of a published step are its time",
	"unit ~= 's' or close(predicted, step_ms / 1000, 1e-3)")
law("a published step holds its parts",
	"between(step_ms, (compute_ms + bubble_ms) * 0.999, (compute_ms + bubble_ms",
	"+ comm_ms) * 2)")
tables("cost_model-regimes", "hardware model devices tokens")
law("a device's rate is its tokens over the step",
	"close(tokens_per_s, tokens / devices / step_ms * 1e3, 1e-3)")
law("FLOPs of a token are the model's",
	"close(mfu / tokens_per_s, first('hardware model').mfu /",
	"first('hardware model').tokens_per_s, 0.05, 1e-4)")
law("what divides divides the devices",
	"devices % (tensor * stages) == 0 and tensor <= 8 and stages <= 64")
law("a way is a fraction of the peak, and fits",
	"between(mfu, 0, 1) and between(GB, 0, 180)")
law("a way without stages is not much faster than the best",
	"plain_ms >= step_ms * 0.97")
law("hidden communication and bubble are fractions",
	"between(hidden, 0, 1) and between(bubble, 0, 1)")
tables("cost_model-scaling", "hardware model mode devices")
law("the rate of a device in scaling",
	"close(tokens_per_s, tokens / devices / step_ms * 1e3, 1e-3)")
law("strong scaling has one batch, weak scaling one for each device",
	"tokens == (mode == 'strong' and 4194304 or 8192 * devices)")
law("efficiency is the rate against the first",
	"between(efficiency, 0, 3) and between(mfu, 0, 1) and",
	"between(hidden, 0, 1) and between(bubble, 0, 1) and between(GB, 0, 180)")
tables("cost_model-hiding", "hardware model strategy devices")
law("stretch asks for more tokens",
	"tokens == 'none' or unstretched_tokens <= tokens")
law("more devices ask for more tokens by formula",
	"formula_tokens >= first('hardware model strategy').formula_tokens")
