#include "model/sizes.h"

const NamedShape model_sizes[NSIZES] = {
#define SHAPE_OF(id, name, ...) { name, { __VA_ARGS__ } },
	SIZES_OF(SHAPE_OF, SHAPE_OF)
};
