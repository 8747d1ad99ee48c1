/* What a drop-in reads from the environment, and the driver that it names. A drop-in has no caller who would see a
 * status, so a value that means nothing is told in a line on stderr, once, and the default holds. */
#ifndef RUNG_SHIM_SETTINGS_H
#define RUNG_SHIM_SETTINGS_H

#include "rung.h"

/* Returns whether the variable is 1. */
int setting_flag(const char *variable);

/* Says so where it is neither that nor 0, empty or not set. Libraries read flags when they are loaded, in each process
 * of a preload: this is said where a product comes. */
void setting_tell_flag(const char *drop_in, const char *variable);

/* Reads RUNG_MATH. */
rung_math setting_math(const char *drop_in, rung_math otherwise);

/* Reads RUNG_DEVICE: cpu, gpu, or a GPU's number. */
int setting_device(const char *drop_in, int otherwise);

/* Returns a function of the driver that the program has loaded, or else of RUNG_LIBCUDA's, or of the system's; NULL:
 * there is none. */
void *driver_function(const char *name);

#endif
