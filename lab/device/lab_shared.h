/* What the lab's host code and its GPU kernels agree on: matrix views, random data, the error of one element.
 * Data are a function of (seed, line, position) alone, so any part of any operand can be made again anywhere.
 * "Lines" run along k: rows of A, columns of B; ranges and outliers are arranged within a line. */
#ifndef LAB_SHARED_H
#define LAB_SHARED_H

#include <float.h>
#include <math.h>
#include <stdint.h>

#ifdef __CUDACC__
#define LAB_INLINE static __device__ __forceinline__
#else
#define LAB_INLINE static inline
#endif

#define LAB_POISON 0x7fc0beefu /* a quiet NaN that no arithmetic produces: whatever still holds it was not written */
#define LAB_FINITE_POISON 0x461c4000u /* 1e4: a result that uses it is wrong, and no guard against NaN sees it */

typedef enum lab_data {
    LAB_SIGNED,   /* U(-1,1) */
    LAB_POSITIVE, /* U(0,1) */
    LAB_NORMAL,   /* N(0,1) */
    LAB_SPAN10,   /* exponents uniform over 2^10, 2^24, 2^40, 2^100 within a line */
    LAB_SPAN24,
    LAB_SPAN40,
    LAB_SPAN100,
    LAB_SPARSE,   /* 90% zeros */
    LAB_INTEGERS, /* -8 ... 8: products and short sums are exact */
    LAB_SCALED,   /* lines scaled by 2^60 or 2^-60 */
    LAB_SPIKE,    /* one element a line is 2^30 times larger */
    /* The following are meant to break methods that split or scale operands. A and B play different parts. */
    LAB_ACROSS,    /* positions scaled by 2^e, -60 <= e <= 60, in A, and by 2^-e in B: every term counts alike */
    LAB_TRAP,      /* odd positions of A tiny, and in half of B's lines they alone are not zero */
    LAB_UNIT,      /* B's lines are unit vectors: results are elements of A */
    LAB_HALVES,    /* half of the lines' halves are zero: results that are exactly zero, or half as long */
    LAB_CONSTANT,  /* all alike: errors of one product add up instead of averaging out */
    LAB_OUTLIERS,  /* every 512th position 300 times larger */
    LAB_SUBNORMAL, /* A below FP32's normal range, as far as its last number, the products within */
    LAB_LARGE,     /* A up to the largest float */
    LAB_SOFTMAX,   /* A: a line's gradient of cross entropy, one element against all others; in every second
                    * 128 lines it mostly comes last along k */
    LAB_FIXED, /* x D in A, x / D in B, both shifted along the lines: the BLAS grading test of fixed-point arithmetic */
    LAB_FUZZ,  /* lines of random span, zeros and steps */
    LAB_SPECIAL, /* a quarter of the lines hold one NaN or Inf */
    LAB_DATA_COUNT,
    LAB_OF_B = 256
} lab_data;

/* Element (i, j) lies at at[i * line_step + j * step]. */
typedef struct lab_view {
    float *at;
    int64_t line_step, step;
} lab_view;

typedef struct lab_fill_args {
    lab_view view;
    int64_t lines, length;
    uint64_t seed;
    int32_t data; /* a lab_data; plus LAB_OF_B for the lines of B */
} lab_fill_args;

/* What a reference computes. c64 = act(alpha*A*B + beta*C0 + bias), size = |alpha||A||B| + |beta||C0| + |bias|, and
 * chain is c64 by FP32 FMAs in k order. All three are dense m x n. So is `reach`, which may be NULL: how far the
 * chain's partial sums lie apart (0 is one of them), plus the sizes of what is added to them, over size. */
typedef struct lab_reference_args {
    lab_view a, b, c0; /* (i, p), (p, j), (i, j) */
    int64_t m, n, k;
    float alpha, beta;
    const float *bias;
    int32_t bias_kind, activation; /* as in rung_gemm, for the view's rows and columns */
    double *c64, *size;
    float *chain, *reach;
} lab_reference_args;

/* What a comparison counts. worst: the largest error as float bits, above the low 32 bits of its element's index;
 * share: likewise the largest error over its element's own bound. */
typedef struct lab_tally {
    uint64_t worst;
    uint64_t share;
    uint64_t wrong;    /* NaN or Inf where the reference has none, or the reverse */
    uint64_t wrong_at; /* the first of them; UINT64_MAX: none */
    uint64_t touched;  /* words outside C's m x n that changed */
    uint64_t touched_at;
    uint64_t hash;
    double sum, magnitude; /* of a vector's elements: the reference of a sum, and the scale of its error */
} lab_tally;

/* What an element may err, in u: more_u + max(least_u, reach_u * reach), and 2^-149 for each rounding near zero. */
typedef struct lab_bound {
    double more_u, least_u, reach_u, roundings;
} lab_bound;

typedef struct lab_compare_args {
    lab_view c;
    int64_t m, n;
    const double *c64, *size;
    const float *reach; /* NULL: elements have no bound of their own */
    lab_bound bound;
    lab_tally *tally;
} lab_compare_args;

/* A buffer of `words`, of which `batch` matrices of `lines` x `length` elements may be written. */
typedef struct lab_region_args {
    const uint32_t *words_at;
    int64_t words, first, lines, length, ld, stride, batch;
    lab_tally *tally;
} lab_region_args;

LAB_INLINE uint64_t lab_mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

LAB_INLINE float lab_unit(uint64_t bits) /* [0, 1), 24 bits */
{
    return (float)(bits >> 40) * 5.9604644775390625e-8f;
}

LAB_INLINE float lab_signed(uint64_t bits) /* [-1, 1) */
{
    return (float)(bits >> 40) * 1.1920928955078125e-7f - 1.0f;
}

LAB_INLINE float lab_spanned(uint64_t bits, int binades)
{
    int exponent = (int)((bits >> 8 & 0xffff) * (uint64_t)(binades + 1) >> 16) - binades / 2;
    float magnitude = ldexpf(1.0f + lab_unit(bits), exponent);
    return bits & 1 ? -magnitude : magnitude;
}

LAB_INLINE float lab_special(uint64_t line_bits, uint64_t bits, int64_t position, int64_t length)
{
    if ((line_bits & 3) == 0 && position == (int64_t)((line_bits >> 8) % (uint64_t)length)) {
        if (line_bits & 4)
            return NAN;
        return line_bits & 64 ? INFINITY : -INFINITY;
    }
    return lab_signed(bits);
}

/* Returns a power of two: they go from 2^E down to 2^-E along a line, E = 62 - log2 n. */
LAB_INLINE float lab_fixed(const lab_fill_args *f, int64_t line, int64_t position)
{
    int64_t n = f->length, q = (line + position) % n;
    int of_b = f->data & LAB_OF_B, top = 62, e;
    for (int64_t size = 1; size < n; size *= 2)
        top--;
    e = n > 1 ? top - (int)(2 * top * q / (n - 1)) : 0;
    return ldexpf(1.0f + lab_unit(lab_mix((uint64_t)q)), of_b ? -e : e);
}

LAB_INLINE float lab_softmax(const lab_fill_args *f, int64_t line, uint64_t line_bits, uint64_t bits, int64_t position)
{
    int64_t target = (line & 128) && line % 6 ? f->length - 1 : (int64_t)((line_bits >> 8) % (uint64_t)f->length);
    return position == target ? -1.0f : expf(4.0f * lab_signed(bits)) / (6.8f * (float)f->length);
}

LAB_INLINE float lab_fuzz(uint64_t line_bits, uint64_t bits, int64_t position)
{
    static const int spans[8] = {0, 2, 8, 16, 24, 32, 48, 72};
    int span = spans[line_bits >> 20 & 7], step = spans[line_bits >> 24 & 7];
    uint64_t block = lab_mix(line_bits + (uint64_t)(position >> (line_bits >> 28 & 7)));
    if ((bits >> 4 & 15) < (line_bits >> 32 & 15) * (line_bits >> 36 & 1))
        return 0.0f;
    return ldexpf(lab_spanned(bits, span), -(int)(block % (uint64_t)(step + 1)));
}

LAB_INLINE float lab_value(const lab_fill_args *f, int64_t line, int64_t position)
{
    uint64_t line_bits = lab_mix(f->seed * 0x2545f4914f6cdd1du + (uint64_t)line);
    uint64_t bits = lab_mix(line_bits + (uint64_t)position * 0xd1342543de82ef95u);
    int of_b = (f->data & LAB_OF_B) != 0;
    switch (f->data & ~LAB_OF_B) {
    case LAB_POSITIVE: return lab_unit(bits);
    case LAB_NORMAL: return sqrtf(-2.0f * logf(lab_unit(bits) + 2.98e-8f)) * cosf(6.2831853f * lab_unit(lab_mix(bits)));
    case LAB_SPAN10: return lab_spanned(bits, 10);
    case LAB_SPAN24: return lab_spanned(bits, 24);
    case LAB_SPAN40: return lab_spanned(bits, 40);
    case LAB_SPAN100: return lab_spanned(bits, 100);
    case LAB_SPARSE: return bits % 10 ? 0.0f : lab_signed(lab_mix(bits));
    case LAB_INTEGERS: return (float)(int)(bits % 17) - 8.0f;
    case LAB_SCALED: return lab_signed(bits) * ldexpf(1.0f, line_bits & 1 ? 60 : -60);
    case LAB_SPIKE:
        return lab_signed(bits) *
               (position == (int64_t)((line_bits >> 8) % (uint64_t)f->length) ? 1073741824.0f : 1.0f);
    case LAB_ACROSS: {
        int e = (int)(lab_mix((uint64_t)position) % 121) - 60;
        return ldexpf(lab_signed(bits), of_b ? -e : e);
    }
    case LAB_TRAP:
        if (of_b)
            return (line_bits & 1) && !(position & 1) ? 0.0f : lab_signed(bits);
        return position & 1 ? ldexpf(lab_signed(bits), -8 - (int)(line_bits >> 8 & 31)) : lab_signed(bits);
    case LAB_UNIT: return of_b ? (float)(position == line % f->length) : lab_signed(bits);
    case LAB_HALVES:
        return (line & 1) && (position < f->length / 2) == (of_b == (line >> 1 & 1)) ? 0.0f : lab_signed(bits);
    case LAB_CONSTANT: return of_b ? 0.333333343f : 0.7f;
    case LAB_OUTLIERS: return lab_signed(bits) * (position % 512 == 3 ? 300.0f : 1.0f);
    case LAB_SUBNORMAL:
        if (of_b)
            return lab_signed(bits) * 1e20f;
        return position % 5 == 2 ? (bits & 1 ? -0x1.fffffcp-127f : 0x1.fffffcp-127f) : lab_signed(bits) * 1e-39f;
    case LAB_LARGE: return of_b ? lab_signed(bits) * 0.01f : lab_signed(bits) * FLT_MAX;
    case LAB_SOFTMAX: return of_b ? lab_signed(bits) : lab_softmax(f, line, line_bits, bits, position);
    case LAB_FIXED: return lab_fixed(f, line, position);
    case LAB_FUZZ: return lab_fuzz(line_bits, bits, position);
    case LAB_SPECIAL: return lab_special(line_bits, bits, position, f->length);
    default: return lab_signed(bits);
    }
}

LAB_INLINE double lab_activate(double x, int activation)
{
    if (activation == 1)
        return x < 0.0 ? 0.0 : x; /* NaN stays */
    if (activation == 2)
        return 0.5 * x * (1.0 + tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
    return x;
}

/* These are one element's sums on their way along k. */
typedef struct lab_sums {
    double sum, size;
    float chain, low, high; /* the chain's least and largest partial sum */
} lab_sums;

LAB_INLINE void lab_finish(const lab_reference_args *r, int64_t i, int64_t j, lab_sums s)
{
    double weight = fabs((double)r->alpha);
    double value = (double)r->alpha * s.sum, scale = weight * s.size;
    double reach = weight * ((double)s.high - (double)s.low);
    float plain = r->alpha * s.chain;
    if (r->alpha == 0.0f || r->k == 0) {
        value = scale = reach = 0.0;
        plain = 0.0f;
    }
    if (r->beta != 0.0f) {
        float c0 = r->c0.at[i * r->c0.line_step + j * r->c0.step];
        value += (double)r->beta * c0;
        scale += fabs((double)r->beta * c0);
        reach += fabs((double)r->beta * c0);
        plain = fmaf(r->beta, c0, plain);
    }
    if (r->bias_kind) {
        float bias = r->bias[r->bias_kind == 1 ? i : j];
        value += bias;
        scale += fabs((double)bias);
        reach += fabs((double)bias);
        plain += bias;
    }
    int64_t at = i * r->n + j;
    r->c64[at] = lab_activate(value, r->activation);
    r->size[at] = scale;
    r->chain[at] = (float)lab_activate(plain, r->activation);
    if (r->reach)
        r->reach[at] = scale > 0.0 ? (float)(reach / scale) : 0.0f;
}

/* Returns the error in units of u = 2^-24; negative when c is NaN or Inf and should not be, or should be and is not.
 * Where sums of this size can overflow on the way, any overflow is allowed. */
LAB_INLINE double lab_error_of(float c, double c64, double size)
{
    if (isnan(c64))
        return isnan(c) ? 0.0 : -1.0;
    if (size * 1.0001 > FLT_MAX && !isinf(size) && !isfinite(c))
        return 0.0;
    if (isinf(c64))
        return (double)c == c64 ? 0.0 : -1.0;
    if (!isfinite(c))
        return -1.0;
    double error = fabs((double)c - c64);
    /* Below the normal range FP32 has a fixed quantum: half of it is no error of the kernel's. */
    error = error <= 1.4012984643248171e-45 ? 0.0 : error;
    return error == 0.0 ? 0.0 : error / size * 16777216.0;
}

/* Returns an element's bound in u, at most 1e30: an error beyond all measure is none of a bound without end. */
LAB_INLINE double lab_bound_of(const lab_bound *b, double size, float reach)
{
    double spread = fmax(b->least_u, b->reach_u * (double)reach);
    double tiny = size > 0.0 ? b->roundings * 1.4012984643248171e-45 / size * 16777216.0 : 0.0;
    return fmin(b->more_u + spread + tiny, 1e30);
}

LAB_INLINE int lab_may_write(const lab_region_args *r, int64_t word)
{
    int64_t at = word - r->first;
    if (at < 0)
        return 0;
    int64_t entry = r->batch > 1 ? at / r->stride : 0;
    entry = entry < r->batch ? entry : r->batch - 1;
    at -= entry * r->stride;
    return at / r->ld < r->lines && at % r->ld < r->length;
}

#endif
