/* Device code: one module for each chip, librung_sm_90a.so and librung_sm_80.so, beside librung.so. It is opened when a
 * GPU is there. A module holds one fatbin for each kernel file, as the symbol rung_image_<stem>
 * (cmake/cuda.cmake). */
#ifndef RUNG_CUDA_DRIVER_IMAGES_H
#define RUNG_CUDA_DRIVER_IMAGES_H

#include "core/status.h"

/* Opens the module for a chip of this compute capability (90 for 9.0); once for the process. RUNG_DEVICE_IMAGES names
 * another folder. RUNG_NO_DEVICE where this installation has none for the chip. */
rung_status rung_images_open(int arch, const char *gpu_name, void **images);

/* Finds the image of a kernel file. */
rung_status rung_images_find(void *images, const char *stem, const void **image);
/* Returns what the module holds, a line a kernel: "symbol registers stack spill shared stem"; NULL where it does not
 * say. */
const char *rung_images_table(void *images);

#endif
