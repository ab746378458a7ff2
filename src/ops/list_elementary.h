/* ops/list_elementary.h: fills, casts, sums and matmuls, of ops/list.h */

// declare elementary operations
/* y[i] = value, rounded to y.type */
FORMULA(void, fill, (Device *d, Array y, double value, size_t n))
/* y[i] = sd * random_truncated(seed, stream, first + i, bound) */
OPERATION(void, draw, (Device *d, Array y, size_t n, double sd, double bound,
	uint64_t seed, uint64_t stream, uint64_t first))
/* y = x, rounded to y.type */
FORMULA(void, cast, (Device *d, Array y, Array x, size_t n))
/* can matmul read an array of type `stored` as `wanted`, without a cast? */
OPERATION(bool, reads, (Device *d, Type stored, Type wanted))
/* y = a + b */
FORMULA(void, add, (Device *d, Array y, Array a, Array b, size_t n))
/* mean: one element, TYPE_REAL; *nonfinite: 1 if the mean is infinite or NaN,
 * else 0 */
OPERATION(void, mean, (Device *d, Array mean, int32_t *nonfinite, Array x,
	size_t n))
/* *count += the number of infinities and NaNs in x */
OPERATION(void, count_nonfinite, (Device *d, int32_t *count, Array x, size_t n))
/* y = max(x, 0) */
FORMULA(void, relu_forward, (Device *d, Array y, Array x, size_t n))
/* dx = dy where x > 0, else 0 */
FORMULA(void, relu_backward, (Device *d, Array dx, Array dy, Array x,
	size_t n))

// declare the matmul
/* sums in fp32 or wider and rounds once to C.type; A and B have one type */
OPERATION(void, matmul, (Device *d, Array C, Array A, Array B, Matmul shape))

// declare elementary operations
/* one elementary operation, at once: the caller wants elementary() */
OPERATION(void, elementary, (Device *d, const struct Elementary *e))
