/* The family avx2_f32_6x16 for processors whose units are four floats wide: simd_four.h. */
#define FAMILY avx2_f32_6x16_four
#define UNITS_OF_FOUR
#include "cpu/kernels/avx2_f32_6x16.c"
