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
