/* category.h: what memory of a device is for */
#ifndef DEVICE_CATEGORY_H
#define DEVICE_CATEGORY_H

#include "base/choices.h"

#define CATEGORIES_OF(FIRST, NEXT) \
	FIRST(MEM_PARAMETER, "parameter") NEXT(MEM_GRADIENT, "gradient") \
	NEXT(MEM_OPTIMIZER, "optimizer") NEXT(MEM_ACTIVATION, "activation") \
	NEXT(MEM_TEMPORARY, "temporary")
typedef enum { CHOICE_IDS(CATEGORIES_OF) NCATEGORIES } Category;
extern const char *const category_names[NCATEGORIES];

#endif
