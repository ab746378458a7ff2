/* span.h: parameters that lie one behind the other, as an optimizer sees them */
#ifndef MODEL_SPAN_H
#define MODEL_SPAN_H

#include "model/state.h"

/* n elements: master weights; the copy that matmuls read, whose at is NULL
 * if they read the weights themselves; gradients */
typedef struct Span {
	Array weight, compute, gradient;
	size_t n;
	/* the span is a weight, and AdamW writes its codes in the copy's place
	 * (fp8_adamw); NULL: it is not, or does not */
	const struct Fp8Cast *codes;
} Span;

/* lists the spans of the whole model, in order, and returns how many there
 * are; spans has room for shape_nparameters. The eager path has one for each
 * parameter, as an optimizer that walks a list of them, or after
 * model_keep_compute one for each unit; the fused path has as few as
 * possible, and begins one before and after each weight in FP8 */
int model_spans(const Model *m, Span *spans);

#endif
