/* account.h: the bytes that a training step holds, from the shapes */
#ifndef MODEL_ACCOUNT_H
#define MODEL_ACCOUNT_H

#include "model/model.h"

typedef struct Account {
	double category[NCATEGORIES];    /* bytes of each, where it has most */
	double total;                    /* bytes, where all together have most */
} Account;

/* of forward and backward of B sequences of T tokens, and AdamW's if `train`.
 * Left out: workspaces of libraries, and what has no row for each token */
Account account_of(const Model *m, size_t B, size_t T, bool train);

#endif
