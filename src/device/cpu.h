/* cpu.h: the host as a device */
#ifndef DEVICE_CPU_H
#define DEVICE_CPU_H

#include "device/backend.h"

extern const Backend cpu_backend;

#endif
