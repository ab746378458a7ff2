/* rank_rows.h: the rows of the residual stream on the ranks of a group */
#ifndef MODEL_RANK_ROWS_H
#define MODEL_RANK_ROWS_H

#include "model/state.h"

/* how many tokens of the residual stream this rank has; all without a group */
size_t own_tokens(const Model *m);
/* the rank's own rows of x: (B T, C), a part of x */
Array own_rows(const Model *m, Array x);
/* x holds the own rows; the rows of the other ranks are filled in */
void  gather_rows(Model *m, Array x, const char *what);
/* x has an addend for each row; the own rows end with the sums over all ranks,
 * the other rows with anything */
void  scatter_sums(Model *m, Array x, const char *what);
/* asynchronous gather_rows and scatter_sums: join_group waits for them. No-op on
 * a device without a group */
void  start_gather(Model *m, Array x, const char *what, GroupSlot slot);
void  start_scatter(Model *m, Array x, const char *what, GroupSlot slot);
void  join_group(Model *m, GroupSlot slot);
/* returns the own rows of what all ranks have embedded, summed; drops the
 * argument */
Array keep_own_sums(Model *m, Array embedded);
/* losses of the rows and, unless dlogits.at is NULL, the gradient of the
 * logits */
void  loss_of_group(Model *m, Array losses, Array dlogits, Array logits,
	const int32_t *targets, double scale, size_t n);

#endif
