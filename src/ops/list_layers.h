/* ops/list_layers.h: layers, forward and backward, of ops/list.h */

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
FORMULA(void, rmsnorm_forward, (Device *d, Array y, Array rho, Array x,
	Array g, size_t rows, size_t C, double eps))
/* adds to dx (rows, C) and to dg (C) */
FORMULA(void, rmsnorm_backward, (Device *d, Array dx, Array dg, Array dy,
	Array x, Array g, Array rho, size_t rows, size_t C))

/* y, x: (B, T, H, D); cosine, sine: (T or more, D/2), by position; pairs of
 * neighbouring elements are rotated; direction: +1 forward, -1 backward */
FORMULA(void, rope, (Device *d, Array y, Array x, Array cosine, Array sine,
	size_t B, size_t T, size_t H, size_t D, int direction))

/* S, P, dS, dP: (matrices, T, T), rows are queries; elements right of the
 * diagonal are not read, and P and dS are 0 there. P = softmax(scale S); dS is
 * the gradient of S before the scaling */
FORMULA(void, softmax_forward, (Device *d, Array P, Array S, double scale,
	size_t matrices, size_t T))
FORMULA(void, softmax_backward, (Device *d, Array dS, Array dP, Array P,
	double scale, size_t matrices, size_t T))

/* h = a sigmoid(a) b, elementwise */
FORMULA(void, swiglu_forward, (Device *d, Array h, Array a, Array b,
	size_t n))
/* the gradients of a and b, given that of h; da may lie over dh */
FORMULA(void, swiglu_backward, (Device *d, Array da, Array db, Array dh,
	Array a, Array b, size_t n))

/* y = g * (x - mean) * rstd + b for each row; y, x: (rows, C), g, b: (C), mean,
 * rstd (reciprocal deviation): (rows); b.at, db.at NULL: no shift */
OPERATION(void, layernorm_forward, (Device *d, Array y, Array mean, Array rstd,
	Array x, Array g, Array b, size_t rows, size_t C, double eps))
/* adds to dx (rows, C), dg (C) and db (C) */
OPERATION(void, layernorm_backward, (Device *d, Array dx, Array dg, Array db,
	Array dy, Array x, Array g, Array mean, Array rstd, size_t rows, size_t C))
