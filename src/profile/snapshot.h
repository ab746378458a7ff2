/* snapshot.h: the allocator's log as PyTorch's memory snapshot */
#ifndef PROFILE_SNAPSHOT_H
#define PROFILE_SNAPSHOT_H

#include <stdio.h>

#include "device/device.h"

/* writes what device_log_memory logged, and all blocks as they are now; replaces
 * the file, or ends the program */
void snapshot_write(const Device *device, const char *path);
bool snapshot_recognised(FILE *file);  /* is it a snapshot? For file_try */

#endif
