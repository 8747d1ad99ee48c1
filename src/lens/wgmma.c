/* wgmma: each thread works out its own part of the warpgroup's tile from the operands in shared memory, when it is
 * issued. Sums are made in double and rounded once: more exact than the hardware, which truncates. Operands are read as
 * the descriptor says: K-major, rows of 128 bytes, 16-byte units swizzled within 8 rows. */
#include "lens.h"

#include <math.h>
#include <string.h>

#define PC ((uintptr_t)__builtin_return_address(0))

enum { F16 = 0, BF16 = 1, TF32 = 2 };

RUNG_LENS_API void rung_lens_wgmma(float *d, uint64_t a, uint64_t b, int keep, int n, int type);

static float from_half(uint16_t h)
{
    int exponent = h >> 10 & 31, fraction = h & 1023;
    float value = exponent == 31 ? (fraction ? NAN : INFINITY)
                  : exponent     ? ldexpf((float)(1024 + fraction), exponent - 25)
                                 : ldexpf((float)fraction, -24);
    return h >> 15 ? -value : value;
}

static float halves[65536];
static bool halves_ready;

static uint32_t start_of(uint64_t descriptor)
{
    return (uint32_t)(descriptor & 0x3fff) << 4;
}

static const unsigned char *unit(uint32_t start, int row, int byte)
{
    uint32_t linear = start + (uint32_t)row * 128 + (uint32_t)byte;
    return lens_module_now->shared + (linear ^ ((linear >> 7 & 7) << 4));
}

/* The k values of a row that one instruction takes: 32 bytes. */
static void row_of(float *to, uint32_t start, int row, int type)
{
    for (int half = 0; half < 2; half++) {
        const unsigned char *from = unit(start, row, half * 16);
        for (int i = 0; i < 16;) {
            uint32_t bits = 0;
            memcpy(&bits, from + i, type == TF32 ? 4 : 2);
            if (type == F16) {
                *to++ = halves[bits];
            } else {
                bits = type == BF16 ? bits << 16 : bits & 0xffffe000u;
                memcpy(to++, &bits, 4);
            }
            i += type == TF32 ? 4 : 2;
        }
    }
}

static void look(uintptr_t pc, uint32_t start, int rows)
{
    for (int row = 0; row < rows; row++)
        for (int half = 0; half < 2; half++)
            lens_shadow_shared(pc, (uint32_t)(unit(start, row, half * 16) - lens_module_now->shared), 16, false);
}

void rung_lens_wgmma(float *d, uint64_t a, uint64_t b, int keep, int n, int type)
{
    int t = (lens_now.current - (int)(lens_now.rank * lens_now.block_threads)) % 128, lane = t % 32,
        depth = type == TF32 ? 8 : 16;
    float rows[2][16], column[16];
    uint32_t a_start = start_of(a), b_start = start_of(b);
    for (int h = 0; !halves_ready && h < 65536; h++)
        halves[h] = from_half((uint16_t)h);
    halves_ready = true;
    if (lane == 0) {
        look(PC, a_start + (uint32_t)(t / 32) * 16 * 128, 16);
        look(PC, b_start, n);
    }
    if (t == 0)
        lens_bulk(PC, RUNG_LENS_SHARED, RUNG_LENS_MMA, lens_module_now->shared + b_start, (64.0 + n) * 32, 0);
    for (int h = 0; h < 2; h++)
        row_of(rows[h], a_start, t / 32 * 16 + lane / 4 + h * 8, type);
    for (int j = 0; j < n / 8; j++)
        for (int e = 0; e < 2; e++) {
            row_of(column, b_start, j * 8 + lane % 4 * 2 + e, type);
            for (int h = 0; h < 2; h++) {
                float *to = &d[j * 4 + h * 2 + e];
                double sum = keep ? *to : 0;
                for (int p = 0; p < depth; p++)
                    sum += (double)rows[h][p] * column[p];
                *to = (float)sum;
            }
        }
}
