/* sizes.h: the course's six sizes of a model */
#ifndef MODEL_SIZES_H
#define MODEL_SIZES_H

#include "base/choices.h"
#include "model/shape.h"

typedef struct NamedShape {
	const char *name;
	Shape shape;
} NamedShape;

/* names, and the fields of shapes in their order; those that train on one GPU */
#define TRAINED_SIZES_OF(FIRST, NEXT) \
	FIRST(SIZE_SMALL, "small",  10000, 512,  768,  3072, 12, 12,  64, 10000) \
	NEXT(SIZE_MEDIUM, "medium", 10000, 512, 1024,  4096, 24, 16,  64, 10000) \
	NEXT(SIZE_LARGE,  "large",  10000, 512, 1280,  5120, 36, 20,  64, 10000) \
	NEXT(SIZE_XL,     "xl",     10000, 512, 1600,  6400, 48, 25,  64, 10000) \
	NEXT(SIZE_2_7B,   "2.7B",   10000, 512, 2560, 10240, 32, 32,  80, 10000)
#define SIZES_OF(FIRST, NEXT) TRAINED_SIZES_OF(FIRST, NEXT) \
	NEXT(SIZE_10B,    "10B",    10000, 512, 4608, 12288, 50, 36, 128, 10000)
#define SIZES CHOICES(SIZES_OF)
enum { CHOICE_IDS(SIZES_OF) NSIZES, NTRAINED = SIZE_10B };
/* at the course's vocabulary and context */
extern const NamedShape model_sizes[NSIZES];

#endif
