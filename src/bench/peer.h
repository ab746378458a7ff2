/* peer.h: rows that PyTorch measures, by a script in src/experiments */
#ifndef BENCH_PEER_H
#define BENCH_PEER_H

#include "base/choices.h"
#include "bench/option_rows.h"
#include "bench/row.h"

/* runs the script with these arguments for limit_s seconds at most; a line of
 * its answer that sets columns and the status, as column=value, is a row. One
 * whose status would be ok, but with a number that is not finite, has diverged,
 * and its status says so. There is a row too when it could not run, ended early
 * or took too long */
void peer_measure(Row *row, long limit_s, const char *script,
	const char *arguments, ...) __attribute__((format(printf, 4, 5)));

/* who computes a row */
#define SIDES_OF(FIRST, NEXT) FIRST(OURS, "ours") NEXT(PYTORCH, "PyTorch")
#define SIDES CHOICES(SIDES_OF)
enum { CHOICE_IDS(SIDES_OF) };

/* which rows of training steps are wanted; NULL: all */
typedef struct PeerFilter { const char *impl, *size, *precision; } PeerFilter;
#define PEER_OPTIONS(only, IMPLS)                                             \
	IMPL_OPTION_AS(&(only).impl, OPT_TEXT, "NAME",                        \
		"one implementation: " IMPLS),                                \
	SIZE_OPTION_AS(&(only).size, OPT_TEXT, "NAME", "one size"),           \
	PRECISION_OPTION_AS(&(only).precision, OPT_TEXT, "NAME", "fp32 or bf16")
bool peer_wanted(const PeerFilter *only, const char *impl, const char *size,
	const char *precision);

#endif
