/* norm_types.h: what a norm takes, forward and backward */
#ifndef OPS_NORM_TYPES_H
#define OPS_NORM_TYPES_H

#include "base/choices.h"
#include "ops/array.h"

/* which kernel of RMSNorm a GPU uses, see ops/norm_plan.h; on a CPU all are
 * one */
#define NORM_VERSIONS_OF(FIRST, NEXT) \
	FIRST(NORM_BY_WIDTH, "by_width") NEXT(NORM_TWO_READS, "two_reads") \
	NEXT(NORM_HELD, "held") NEXT(NORM_PACKS, "packs") \
	NEXT(NORM_AHEAD, "ahead") NEXT(NORM_WARP, "warp") \
	NEXT(NORM_LOOPED, "looped") NEXT(NORM_CLUSTER, "cluster")
typedef enum { CHOICE_IDS(NORM_VERSIONS_OF) NORM_VERSIONS } NormVersion;

/* The forward pass: sum = x + branch, rho = 1/sqrt(mean(sum^2) + eps), y = g
 * sum rho, for rows of C elements. */
typedef struct NormForward {
	Array y;
	Array rho;      /* (rows) TYPE_REAL; rho.at NULL: not kept */
	Array sum;      /* in x.type; written if there is a branch */
	Array x;        /* TYPE_REAL, or the type of y */
	Array branch;   /* in y.type; branch.at NULL: none, and sum is not written */
	Array g;        /* (C) TYPE_REAL, or the type of y */
	size_t x_row, y_row;    /* elements between the starts of rows; 0: C */
	double eps;
	NormVersion version;    /* NORM_BY_WIDTH, or one that norm_plan has for C */
} NormForward;

// declare the arguments of a norm's backward pass
/* The backward pass of it. */
typedef struct NormBackward {
	Array dsum;     /* (rows, C) += the gradient that comes through the norm */
	bool fresh;     /* dsum holds nothing yet and is overwritten */
	Array copy;     /* (rows, C) a copy of dsum in dy.type; copy.at NULL: none */
	Array dg;       /* (C) = beta dg + ...; beta is 0 or 1 */
	double beta;
	/* (rows, C) the forward's output made again, may lie over dy; y.at NULL:
	 * not wanted */
	Array y;
	Array dy, sum;  /* dsum and sum: TYPE_REAL, or all in the type of dy */
	Array g;        /* (C) TYPE_REAL, or the type of dy */
	Array rho;      /* (rows) TYPE_REAL; rho.at NULL: computed from sum */
	double eps;     /* read only where rho is computed */
	size_t x_row, dy_row, dx_row;   /* of sum, dy and dsum; 0: C */
	NormVersion version;
} NormBackward;

#endif
