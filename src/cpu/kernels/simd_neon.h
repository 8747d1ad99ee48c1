/* The few vector operations the kernel body needs, in NEON: 4 lanes, 32 registers. Every 64-bit Arm has it. */
#ifndef RUNG_CPU_SIMD_NEON_H
#define RUNG_CPU_SIMD_NEON_H

#include <arm_neon.h>

#define VL 4
typedef float32x4_t vf;
typedef int vmask; /* the number of leading lanes */

#define VFN static inline __attribute__((always_inline))

VFN vmask v_mask(int lanes)
{
    return lanes;
}
VFN vf v_zero(void)
{
    return vdupq_n_f32(0.0f);
}
VFN vf v_all(float x)
{
    return vdupq_n_f32(x);
}
VFN vf v_load(const float *p)
{
    return vld1q_f32(p);
}
VFN vf v_load_halves(const float *low, const float *high)
{
    return vcombine_f32(vld1_f32(low), vld1_f32(high));
}
VFN vf v_load_some(const float *p, vmask lanes)
{
    vf x = v_zero();
    if (lanes == 4)
        return vld1q_f32(p);
    if (lanes == 1)
        return vld1q_lane_f32(p, x, 0);
    if (lanes >= 2)
        x = vcombine_f32(vld1_f32(p), vdup_n_f32(0.0f));
    return lanes == 3 ? vld1q_lane_f32(p + 2, x, 2) : x;
}
VFN void v_store(float *p, vf x)
{
    vst1q_f32(p, x);
}
VFN void v_store_low(float *p, vf x)
{
    vst1_f32(p, vget_low_f32(x));
}
VFN void v_store_high(float *p, vf x)
{
    vst1_f32(p, vget_high_f32(x));
}
VFN void v_store_some(float *p, vf x, vmask lanes)
{
    if (lanes == 4)
        vst1q_f32(p, x);
    else if (lanes == 1)
        vst1q_lane_f32(p, x, 0);
    else if (lanes >= 2)
        v_store_low(p, x);
    if (lanes == 3)
        vst1q_lane_f32(p + 2, x, 2);
}
VFN void v_store_past(float *p, vf x)
{
    vst1q_f32(p, x); /* a store past the caches is a hint for pairs here; none is planned for 4 lanes */
}
VFN vf v_add(vf x, vf y)
{
    return vaddq_f32(x, y);
}
VFN vf v_mul(vf x, vf y)
{
    return vmulq_f32(x, y);
}
/* The operations of a tile's loop stay in the order they are written in: left the choice, the compiler loads ahead and
 * spills sums. */
VFN vf v_tile_load(const float *p)
{
    vf x;
    __asm__ volatile("ldr %q0, %1" : "=w"(x) : "m"(*(const float(*)[4])p));
    return x;
}
VFN vf v_tile_all(const float *p)
{
    vf x;
    __asm__ volatile("ld1r {%0.4s}, %1" : "=w"(x) : "Q"(*p));
    return x;
}
VFN vf v_fma(vf x, vf y, vf z)
{
    __asm__ volatile("fmla %0.4s, %1.4s, %2.4s" : "+w"(z) : "w"(x), "w"(y));
    return z;
}
/* Writes the sums of the lanes of four vectors. */
VFN void v_sums(float *to, const vf x[4])
{
    vst1q_f32(to, vpaddq_f32(vpaddq_f32(x[0], x[1]), vpaddq_f32(x[2], x[3])));
}

/* r[i] lane j becomes r[j] lane i. */
VFN void v_transpose(vf r[VL])
{
    float32x4x2_t low = vzipq_f32(r[0], r[2]), high = vzipq_f32(r[1], r[3]);
    float32x4x2_t left = vzipq_f32(low.val[0], high.val[0]), right = vzipq_f32(low.val[1], high.val[1]);
    r[0] = left.val[0];
    r[1] = left.val[1];
    r[2] = right.val[0];
    r[3] = right.val[1];
}

#endif
