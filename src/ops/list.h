/* ops/list.h: OPERATION(type, name, parameters) for every operation */

// declare elementary operations
/* y[i] = value, rounded to y.type */
OPERATION(void, fill, (Device *d, Array y, double value, size_t n))
/* y[i] = sd * random_truncated(seed, stream, first + i, bound) */
OPERATION(void, draw, (Device *d, Array y, size_t n, double sd, double bound,
	uint64_t seed, uint64_t stream, uint64_t first))
/* y = x, rounded to y.type */
OPERATION(void, cast, (Device *d, Array y, Array x, size_t n))
/* can matmul read an array of type `stored` as `wanted`, without a cast? */
OPERATION(bool, reads, (Device *d, Type stored, Type wanted))
/* y = a + b */
OPERATION(void, add, (Device *d, Array y, Array a, Array b, size_t n))
/* mean: one element, TYPE_REAL; *nonfinite: 1 if the mean is infinite or NaN,
 * else 0 */
OPERATION(void, mean, (Device *d, Array mean, int32_t *nonfinite, Array x,
	size_t n))
/* *count += the number of infinities and NaNs in x */
OPERATION(void, count_nonfinite, (Device *d, int32_t *count, Array x, size_t n))
/* y = max(x, 0) */
OPERATION(void, relu_forward, (Device *d, Array y, Array x, size_t n))
/* dx = dy where x > 0, else 0 */
OPERATION(void, relu_backward, (Device *d, Array dx, Array dy, Array x,
	size_t n))

// declare the matmul
/* sums in fp32 or wider and rounds once to C.type; A and B have one type */
OPERATION(void, matmul, (Device *d, Array C, Array A, Array B, Matmul shape))

// declare elementary operations
/* one elementary operation, at once: the caller wants elementary() */
OPERATION(void, elementary, (Device *d, const struct Elementary *e))

// declare layers
/* x (N, C) = the rows of table (V, C) that the N tokens name; a token below 0
 * has a row of zeros, and no gradient */
OPERATION(void, embedding_forward, (Device *d, Array x, Array table,
	const int32_t *tokens, size_t N, size_t C))
/* dtable (V, C) = beta dtable + the sum of each token's row of dx (N, C); beta
 * is 0 or 1 */
OPERATION(void, embedding_backward, (Device *d, Array dtable, double beta,
	Array dx, const int32_t *tokens, size_t N, size_t C, size_t V))

/* y = g x rho, rho = 1/sqrt(mean(x^2) + eps) for each row; y, x: (rows, C),
 * g: (C), rho: (rows) */
OPERATION(void, rmsnorm_forward, (Device *d, Array y, Array rho, Array x,
	Array g, size_t rows, size_t C, double eps))
/* adds to dx (rows, C) and to dg (C) */
OPERATION(void, rmsnorm_backward, (Device *d, Array dx, Array dg, Array dy,
	Array x, Array g, Array rho, size_t rows, size_t C))

/* y, x: (B, T, H, D); cosine, sine: (T or more, D/2), by position; pairs of
 * neighbouring elements are rotated; direction: +1 forward, -1 backward */
OPERATION(void, rope, (Device *d, Array y, Array x, Array cosine, Array sine,
	size_t B, size_t T, size_t H, size_t D, int direction))

/* S, P, dS, dP: (matrices, T, T), rows are queries; elements right of the
 * diagonal are not read, and P and dS are 0 there. P = softmax(scale S); dS is
 * the gradient of S before the scaling */
OPERATION(void, softmax_forward, (Device *d, Array P, Array S, double scale,
	size_t matrices, size_t T))
OPERATION(void, softmax_backward, (Device *d, Array dS, Array dP, Array P,
	double scale, size_t matrices, size_t T))

/* h = a sigmoid(a) b, elementwise */
OPERATION(void, swiglu_forward, (Device *d, Array h, Array a, Array b,
	size_t n))
/* the gradients of a and b, given that of h; da may lie over dh */
OPERATION(void, swiglu_backward, (Device *d, Array da, Array db, Array dh,
	Array a, Array b, size_t n))

/* y = g * (x - mean) * rstd + b for each row; y, x: (rows, C), g, b: (C), mean,
 * rstd (reciprocal deviation): (rows); b.at, db.at NULL: no shift */
OPERATION(void, layernorm_forward, (Device *d, Array y, Array mean, Array rstd,
	Array x, Array g, Array b, size_t rows, size_t C, double eps))
/* adds to dx (rows, C), dg (C) and db (C) */
OPERATION(void, layernorm_backward, (Device *d, Array dx, Array dg, Array db,
	Array dy, Array x, Array g, Array mean, Array rstd, size_t rows, size_t C))

// declare the loss and the optimizer
/* losses, lse (log of the sum of exponentials): (N); logits, dlogits: (N, V);
 * targets: (N), each below V. dlogits may lie over logits; scale: 1/N for the
 * gradient of the mean */
OPERATION(void, cross_entropy_forward, (Device *d, Array losses, Array lse,
	Array logits, const int32_t *targets, size_t N, size_t V))
OPERATION(void, cross_entropy_backward, (Device *d, Array dlogits, Array logits,
	Array lse, const int32_t *targets, double scale, size_t N, size_t V))

/* Updates w, m and v, which have one type, by the gradient g. low: a copy of w
 * in low.type, written too; low.at NULL: no copy. Nothing happens if *skip is
 * not 0; skip may be NULL. Arrays of n elements */
OPERATION(void, adamw, (Device *d, Array w, Array low, Array g, Array m, Array v,
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

// declare the fused operations
OPERATION(void, fused_rmsnorm_forward, (Device *d, NormForward f, size_t rows,
	size_t C))
OPERATION(void, fused_rmsnorm_backward, (Device *d, NormBackward b, size_t rows,
	size_t C))
/* qkv: (B, T, 3, H, D); rotates q and k in place */
OPERATION(void, fused_rope, (Device *d, Array qkv, Array cosine, Array sine,
	size_t B, size_t T, size_t H, size_t D, int direction))
/* shapes and meaning as softmax_forward and softmax_backward */
OPERATION(void, fused_softmax_forward, (Device *d, Array P, Array S,
	double scale, size_t matrices, size_t T))
OPERATION(void, fused_softmax_backward, (Device *d, Array dS, Array dP, Array P,
	double scale, size_t matrices, size_t T))
/* ab: (rows, 2, F), gate before up; h: (rows, F) */
OPERATION(void, fused_swiglu_forward, (Device *d, Array h, Array ab,
	size_t rows, size_t F))
/* dab: the gradient of ab (rows, 2, F), may lie over ab; h: the forward's
 * output, made again, may lie over dh */
OPERATION(void, fused_swiglu_backward, (Device *d, Array dab, Array h, Array dh,
	Array ab, size_t rows, size_t F))
/* losses (N), and the gradient dlogits (N, V), which may lie over logits;
 * dlogits.at NULL: no gradient */
OPERATION(void, fused_cross_entropy, (Device *d, Array losses, Array dlogits,
	Array logits, const int32_t *targets, double scale, size_t N, size_t V))
/* as adamw, with gradients that are summed; low: a copy of w in low.type,
 * low.at NULL: no copy */
OPERATION(void, fused_adamw, (Device *d, Array w, Array low, Gradients g,
	Array m, Array v, size_t n, const AdamWStep *step, const int32_t *skip))

// declare the fused operations on attention
/* is there FlashAttention for heads of D elements of this type? */
OPERATION(bool, supports_attention, (Device *d, Type type, size_t D))
/* bytes that attention_backward holds beside its arguments in one block, or, g
 * NULL, attention_forward */
OPERATION(size_t, attention_scratch, (Device *d, const Attention *a,
	const AttentionGradient *g))
/* reads q, k, v; writes o, L */
OPERATION(void, attention_forward, (Device *d, Attention a))
/* reads all of a */
OPERATION(void, attention_backward, (Device *d, Attention a,
	AttentionGradient g))

// declare the fused operations
/* bytes of scratch memory that fused_rmsnorm_backward takes, at most */
OPERATION(size_t, rmsnorm_scratch, (Device *d, const NormBackward *b,
	size_t rows, size_t C))

/* terms: (3, N) of TYPE_REAL, for each row of logits the maximum, the sum of
 * exp(z - maximum), and the target's logit, 0 where the target is below 0 */
OPERATION(void, partial_cross_entropy, (Device *d, Array terms, Array logits,
	const int32_t *targets, size_t N, size_t V))
/* losses and dlogits as fused_cross_entropy has them, for the rank's columns of a
 * row; terms: (ranks, 3, N) */
OPERATION(void, joined_cross_entropy, (Device *d, Array losses, Array dlogits,
	Array logits, Array terms, int ranks, const int32_t *targets, double scale,
	size_t N, size_t V))
