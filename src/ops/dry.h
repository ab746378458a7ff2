/* ops/dry.h: operations that ask for memory and do nothing else */
#ifndef OPS_DRY_H
#define OPS_DRY_H

#include "ops/ops.h"

/* device_open_dry, with operations that ask for memory as those of the device
 * that it stands for */
Device *dry_device(const char *like);

#endif
