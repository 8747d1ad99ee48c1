/* mma.sync, the tensor cores' instruction of one warp (sm_80): operands and sums lie in registers, dealt out over the
 * lanes. */
#ifndef RUNG_DEVICE_MMA_H
#define RUNG_DEVICE_MMA_H

#include "args.h"

/* d (16 x 8) += a (16 x 8) b (8 x 8), TF32. With g = lane / 4 and t = lane % 4 a lane has
 *   a: (g, t), (g + 8, t), (g, t + 4), (g + 8, t + 4)      row, k
 *   b: (t, g), (t + 4, g)                                  k, column
 *   d: (g, 2 t), (g, 2 t + 1), (g + 8, 2 t), (g + 8, 2 t + 1) */
RUNG_DEVICE void mma_tf32(float d[4], const uint32_t a[4], const uint32_t b[2])
{
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

#endif
