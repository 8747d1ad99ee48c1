/* A module of device code that holds none: an image for every kernel file, which only the stand-in for libcuda takes.
 */
#include <stdint.h>

typedef struct image {
    uint32_t magic, stem_bytes;
    const char *stem;
} image;

#define IMAGE(id)                                                                                                      \
    extern const image rung_image_##id;                                                                                \
    __attribute__((visibility("default"))) const image rung_image_##id = {0xba55ed50u, sizeof #id, #id};
#include "image_list.h" /* made by the build: IMAGE(stem) for each kernel file */

#ifdef ONE_TILE /* with a list of what it holds, kernels are loaded ahead of need: two tiles' names, from the build */
#define LINE(entry, stem) entry " 64 0 0 0 " stem "\n"
__attribute__((visibility("default"))) const char rung_resources[] =
    LINE(ONE_TILE "_nn", ONE_TILE) LINE("l01_naive", "l01_naive") LINE("lab_fill", "lab_kernels")
        LINE("row_copy", "row_copy") LINE(OTHER_TILE "_nn", OTHER_TILE) LINE(OTHER_TILE "_tn", OTHER_TILE);
#endif
