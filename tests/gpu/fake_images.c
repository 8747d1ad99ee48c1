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

#ifdef TABLE /* with a list of what it holds, kernels are loaded ahead of need */
__attribute__((visibility("default"))) const char rung_resources[] =
    "sm80_small_f32_32x32x32_s1_nn 64 0 0 0 sm80_small_f32_32x32x32_s1\n"
    "l01_naive 64 0 0 0 l01_naive\n"
    "lab_fill 64 0 0 0 lab_kernels\n"
    "sm90_tmapair_f32_64x256x16_s4_nn 64 0 0 0 sm90_tmapair_f32_64x256x16_s4\n"
    "sm90_tmapair_f32_64x256x16_s4_tn 64 0 0 0 sm90_tmapair_f32_64x256x16_s4\n"
    "row_copy 64 0 0 0 row_copy\n";
#endif
