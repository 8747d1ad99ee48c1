/* cuda_fp16.h under the lens: it has the conversions that kernels use, bit by bit. */
#ifndef RUNG_LENS_CUDA_FP16_H
#define RUNG_LENS_CUDA_FP16_H

/* Each function has one line, as in a table. */
/* clang-format off */

struct __half {
    unsigned short bits;
};

RUNG_LENS_INLINE unsigned short __half_as_ushort(__half h) { return h.bits; }
RUNG_LENS_INLINE __half __ushort_as_half(unsigned short bits) { return __half{bits}; }

/* Rounds to nearest, ties to even. What is too large becomes Inf, what is too small a subnormal. */
RUNG_LENS_INLINE __half __float2half_rn(float x)
{
    unsigned u = __float_as_uint(x), sign = u >> 16 & 0x8000u, size = u & 0x7fffffffu;
    if (size > 0x7f800000u)
        return __half{(unsigned short)0x7fff};
    if (size >= 0x477ff000u) /* 65520 and more */
        return __half{(unsigned short)(sign | 0x7c00u)};
    if (size < 0x38800000u) { /* below 2^-14: a multiple of 2^-24, which adding 0.5 rounds to */
        float shifted = __uint_as_float(size) + 0.5f;
        return __half{(unsigned short)(sign | (__float_as_uint(shifted) - 0x3f000000u))};
    }
    size += 0xc8000fffu + (size >> 13 & 1);
    return __half{(unsigned short)(sign | size >> 13)};
}

RUNG_LENS_INLINE float __half2float(__half h)
{
    unsigned sign = (unsigned)(h.bits & 0x8000) << 16, exponent = h.bits >> 10 & 31, fraction = h.bits & 1023;
    if (exponent == 31)
        return __uint_as_float(sign | 0x7f800000u | fraction << 13);
    if (exponent == 0)
        return __uint_as_float(sign | __float_as_uint((float)fraction * 0x1p-24f));
    return __uint_as_float(sign | (exponent + 112) << 23 | fraction << 13);
}

#endif
