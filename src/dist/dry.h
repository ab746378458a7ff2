/* dist/dry.h: a rank of a job that nobody has started */
#ifndef DIST_DRY_H
#define DIST_DRY_H

#include "dist/link.h"

/* a link over which each other rank sends what this one sends */
Link *link_dry(int rank, int ranks);

#endif
