/* ops/list_training.h: losses and optimizers, of ops/list.h */

// declare the loss and the optimizer
/* losses, lse (log of the sum of exponentials): (N); logits, dlogits: (N, V);
 * targets: (N), each below V. dlogits may lie over logits; scale: 1/N for the
 * gradient of the mean */
FORMULA(void, cross_entropy_forward, (Device *d, Array losses, Array lse,
	Array logits, const int32_t *targets, size_t N, size_t V))
FORMULA(void, cross_entropy_backward, (Device *d, Array dlogits, Array logits,
	Array lse, const int32_t *targets, double scale, size_t N, size_t V))

/* Updates w, m and v, which have one type, by the gradient g. low: a copy of w
 * in low.type, written too; low.at NULL: no copy. Nothing happens if *skip is
 * not 0; skip may be NULL. Arrays of n elements */
FORMULA(void, adamw, (Device *d, Array w, Array low, Array g, Array m, Array v,
	size_t n, const AdamWStep *step, const int32_t *skip))
/* velocity = momentum velocity + unscale g; w -= rate velocity; low: a copy of
 * w in low.type, written too. velocity.at NULL: w -= rate unscale g; low.at
 * NULL: no copy. skip as for adamw */
OPERATION(void, sgd, (Device *d, Array w, Array low, Gradients g,
	Array velocity, size_t n, const SgdStep *step, const int32_t *skip))
/* *sum += the squares of g, always in one order; sum: one element, TYPE_REAL */
OPERATION(void, add_squares, (Device *d, Array sum, Gradients g, size_t n))
/* *factor *= min(1, most / (|*factor| sqrt(*squares) + 1e-6)), where squares is
 * the sum of squares of gradients that will be multiplied by *factor */
OPERATION(void, clip, (Device *d, real *factor, Array squares, double most))
