/* ops/list_fused.h: the operations of the fused path, of ops/list.h */

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
/* adamw with gradients that are summed; low: a copy of w in low.type, low.at
 * NULL: no copy */
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
