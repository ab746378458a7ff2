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
	double first_ms, best_ms;        /* of the first proposal and the choice */
} GemmChoice;

// declare the list of choices
typedef struct GemmChoices GemmChoices;
/* the choices of one place, a text without tabs that names GPU and library; lines
 * of other places are kept. A missing or empty file gives an empty list; a file
 * that is not of this kind, or has a damaged line, ends the program with 2 */
GemmChoices *gemm_choices_read(const char *path, const char *place);
/* gemm_choices_read for the place of a device: its name, and its libraries with
 * their versions */
GemmChoices *gemm_choices_of(const Device *d, const char *path);
void gemm_choices_free(GemmChoices **c);
/* the choice for a key; NULL: this place has none */
const GemmChoice *gemm_choices_find(const GemmChoices *c,
	const uint64_t number[GEMM_NUMBERS]);
/* adds a choice, or replaces the one with the same key */
void gemm_choices_add(GemmChoices *c, const GemmChoice *choice);
/* notes that a matmul's proposals are timed until its choice is added */
void gemm_choices_begin(GemmChoices *c);
/* begun: matmuls whose proposals are being timed; choices: for this place; added:
 * those of them that were added since the file was read */
typedef struct GemmCounts {
	int begun, choices, added;
} GemmCounts;
GemmCounts gemm_choices_counts(const GemmChoices *c);
/* writes all lines to the file; does nothing if no choice was added */
void gemm_choices_write(const GemmChoices *c);

#endif
