/* gemm_choices.h: algorithms of matmuls that were chosen by timing, in a file */
#ifndef OPS_GEMM_CHOICES_H
#define OPS_GEMM_CHOICES_H

#include "device/device.h"

enum { GEMM_NUMBERS = 20, GEMM_WORDS = 8 };
/* steps of a model after which all matmuls have been tried, several times over */
enum { MOST_STEPS_OF_CHOICE = 200 };
typedef struct GemmChoice {
	uint64_t number[GEMM_NUMBERS];   /* sizes, layouts, types: the whole key */
	uint64_t word[GEMM_WORDS];       /* the library's name of the algorithm */
	double first_ms, best_ms;        /* its first proposal; what was chosen */
} GemmChoice;

typedef struct GemmChoices GemmChoices;
/* of one place, a text without tabs that names GPU and library; those of others
 * are kept. No file yet, or an empty one: none. A file that is not of this kind,
 * or has a damaged line: exit 2 */
GemmChoices *gemm_choices_read(const char *path, const char *place);
/* the same for a device: its name, and its libraries with their versions */
GemmChoices *gemm_choices_of(const Device *d, const char *path);
void gemm_choices_free(GemmChoices **c);
/* NULL: there is none for this place */
const GemmChoice *gemm_choices_find(const GemmChoices *c,
	const uint64_t number[GEMM_NUMBERS]);
/* in the place of one that is there */
void gemm_choices_add(GemmChoices *c, const GemmChoice *choice);
/* a matmul's proposals are timed from now on, until its choice is added */
void gemm_choices_begin(GemmChoices *c);
/* matmuls whose proposals are timed; choices for this place, and those of them
 * that were added since the file was read */
typedef struct GemmCounts {
	int begun, choices, added;
} GemmCounts;
GemmCounts gemm_choices_counts(const GemmChoices *c);
/* replaces the file, unless nothing was added */
void gemm_choices_write(const GemmChoices *c);

#endif
