/* Tensor cores. For mma the lanes' registers hold a warp's fragments. For wgmma each thread works out its own part of
 * the warpgroup's tile from the operands in shared memory, when it is issued. A step adds its products and the
 * accumulator as Hopper's tensor cores do: they are aligned to the largest exponent among them and cut off behind 25
 * fractional bits, and the sum is rounded toward zero. Operands are read as the descriptor says: k innermost, rows of
 * 128 bytes, 16-byte units swizzled within 8 rows. */
#include "lens.h"

#include <math.h>
#include <string.h>

#define PC ((uintptr_t)__builtin_return_address(0))

enum { F16 = 0, BF16 = 1, TF32 = 2 };

enum {
    DEPTH_MAX = 16,     /* products of one step */
    STEP_BYTES = 32,    /* of a row, that a step takes */
    KNOWN_ROWS = 16384, /* for each unit of shared memory one */
    FRACTION_BITS = 25, /* of an aligned term, behind the largest exponent */
    LEAST_F32 = -126,   /* the exponent of the smallest normal numbers: smaller numbers are aligned as these are */
    LEAST_F16 = -14,
    NO_EXPONENT = -4096, /* that of a zero, which no other term is aligned to */
};

/* The values of one row or column for the k that one step takes, and their exponents. */
typedef struct factors {
    float value[DEPTH_MAX];
    int exponent[DEPTH_MAX];
} factors;

RUNG_LENS_API void rung_lens_mma_tf32(float *d, const uint32_t *a, const uint32_t *b);
RUNG_LENS_API void rung_lens_wgmma(float *d, uint64_t a, uint64_t b, int keep, int n, int type);
RUNG_LENS_API void rung_lens_wgmma_commit(void);
RUNG_LENS_API void rung_lens_wgmma_wait(int groups_left);

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

static int exponent_of(float x, int least)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    int exponent = (int)(bits >> 23 & 255) - 127;
    if (x == 0.0f)
        return NO_EXPONENT;
    return exponent < least ? least : exponent;
}

static void factors_of(factors *to, const unsigned char *from, int type)
{
    int bytes = type == TF32 ? 4 : 2;
    for (int p = 0; p < STEP_BYTES / bytes; p++) {
        uint32_t bits = 0;
        memcpy(&bits, from + p * bytes, (size_t)bytes);
        if (type == F16) {
            to->value[p] = halves[bits];
        } else {
            bits = type == BF16 ? bits << 16 : bits & 0xffffe000u;
            memcpy(&to->value[p], &bits, 4);
        }
        to->exponent[p] = exponent_of(to->value[p], type == F16 ? LEAST_F16 : LEAST_F32);
    }
}

/* What a piece of shared memory held when its factors were last worked out: the threads of a warpgroup read the same
 * rows. */
typedef struct known_row {
    unsigned char bytes[STEP_BYTES];
    int type; /* of the factors, + 1; 0 before there are any */
    factors factors;
} known_row;

/* Returns the factors of a row for one step. They stay until a piece of memory is read that takes their place. */
static const factors *row_of(uint32_t start, int row, int type)
{
    static known_row known[KNOWN_ROWS];
    const unsigned char *from = unit(start, row, 0);
    unsigned char bytes[STEP_BYTES];
    memcpy(bytes, from, STEP_BYTES / 2);
    memcpy(bytes + STEP_BYTES / 2, unit(start, row, STEP_BYTES / 2), STEP_BYTES / 2);
    known_row *k = &known[(size_t)(from - lens_module_now->shared) / (STEP_BYTES / 2) % KNOWN_ROWS];
    if (k->type != type + 1 || memcmp(k->bytes, bytes, STEP_BYTES) != 0) {
        memcpy(k->bytes, bytes, STEP_BYTES);
        k->type = type + 1;
        factors_of(&k->factors, bytes, type);
    }
    return &k->factors;
}

static double power_of_two(int exponent)
{
    uint64_t bits = (uint64_t)(exponent + 1023) << 52;
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Rounds to FP32, toward zero. */
static float cut(double x)
{
    float y = (float)x;
    return fabs((double)y) > fabs(x) ? nextafterf(y, 0.0f) : y;
}

/* Does one step of one sum. Products are exact in double; a product lies below 4 at its exponent, so 17 terms fit in 64
 * bits. */
static float step(float sum, const factors *a, const factors *b, int depth)
{
    int largest = exponent_of(sum, LEAST_F32);
    double check = sum;
    for (int p = 0; p < depth; p++) {
        int exponent = a->exponent[p] + b->exponent[p];
        largest = exponent > largest ? exponent : largest;
        check += (double)a->value[p] * b->value[p];
    }
    if (largest <= NO_EXPONENT / 2 || !isfinite(check))
        return (float)check; /* it is zeros, or Inf and NaN, which go as in IEEE sums */
    double scale = power_of_two(FRACTION_BITS - largest);
    int64_t total = (int64_t)((double)sum * scale);
    for (int p = 0; p < depth; p++)
        total += (int64_t)((double)a->value[p] * b->value[p] * scale);
    return cut((double)total * power_of_two(largest - FRACTION_BITS));
}

static void look(uintptr_t pc, uint32_t start, int rows)
{
    for (int row = 0; row < rows; row++)
        for (int half = 0; half < 2; half++)
            lens_shadow_engine_read(pc, (uint32_t)(unit(start, row, half * 16) - lens_module_now->shared), 16,
                                    LENS_TENSOR_CORE);
}

static void fragment_value(factors *to, int k, uint32_t bits)
{
    bits &= 0xffffe000u;
    memcpy(&to->value[k], &bits, 4);
    to->exponent[k] = exponent_of(to->value[k], LEAST_F32);
}

/* Adds a (16 x 8) b (8 x 8) to d (16 x 8) of a warp in TF32. Lane 4 g + t has a: (g, t), (g + 8, t), (g, t + 4), (g +
 * 8, t + 4); b: (t, g), (t + 4, g); d: (g, 2 t), (g, 2 t + 1), (g + 8, 2 t), (g + 8, 2 t + 1). */
void rung_lens_mma_tf32(float *d, const uint32_t *a, const uint32_t *b)
{
    uint64_t first[32], second[32], right[32];
    factors row, column;
    int lane = lens_now.current % 32;
    lens_gather(PC, (uint64_t)a[1] << 32 | a[0], first);
    lens_gather(PC, (uint64_t)a[3] << 32 | a[2], second);
    lens_gather(PC, (uint64_t)b[1] << 32 | b[0], right);
    for (int i = 0; i < 4; i++) {
        int from_row = lane / 4 * 4, from_column = (lane % 4 * 2 + i % 2) * 4, upper = i < 2;
        for (int t = 0; t < 4; t++) {
            fragment_value(&row, t, (uint32_t)(first[from_row + t] >> (upper ? 0 : 32)));
            fragment_value(&row, t + 4, (uint32_t)(second[from_row + t] >> (upper ? 0 : 32)));
            fragment_value(&column, t, (uint32_t)right[from_column + t]);
            fragment_value(&column, t + 4, (uint32_t)(right[from_column + t] >> 32));
        }
        d[i] = step(d[i], &row, &column, 8);
    }
}

void rung_lens_wgmma(float *d, uint64_t a, uint64_t b, int keep, int n, int type)
{
    int t = (lens_now.current - (int)(lens_now.rank * lens_now.block_threads)) % 128, lane = t % 32,
        depth = type == TF32 ? 8 : 16;
    const unsigned group_end = ((unsigned)lens_now.current - lens_now.rank * lens_now.block_threads) / 128 * 128 + 128;
    if (group_end > lens_now.block_threads) {
        lens_find(RUNG_LENS_TRAP, PC, "multiplies with a warpgroup that lacks threads: it has 128, and the block %u",
                  lens_now.block_threads);
        lens_abandon();
    }
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
    factors rows[2];
    for (int h = 0; h < 2; h++)
        rows[h] = *row_of(a_start, t / 32 * 16 + lane / 4 + h * 8, type);
    for (int j = 0; j < n / 8; j++)
        for (int e = 0; e < 2; e++) {
            const factors *column = row_of(b_start, j * 8 + lane % 4 * 2 + e, type);
            for (int h = 0; h < 2; h++) {
                float *to = &d[j * 4 + h * 2 + e];
                *to = step(keep ? *to : 0.0f, &rows[h], column, depth);
            }
        }
}

/* The first lane of a warp reads for all, so its groups are the warp's. */
enum { KEPT_GROUPS = 64 };
static uint32_t group_stamps[LENS_WARPS][KEPT_GROUPS];

void rung_lens_wgmma_commit(void)
{
    unsigned group = lens_now.thread[lens_now.current].product_groups++;
    if (lens_now.current % 32 == 0)
        group_stamps[lens_now.current / 32][group % KEPT_GROUPS] = lens_engine_stamp(LENS_TENSOR_CORE);
}

void rung_lens_wgmma_wait(int groups_left)
{
    lens_converge(PC); /* no lane gives a stage back that another one has not read */
    unsigned first = (unsigned)lens_now.current / 32 * 32;
    unsigned done = lens_now.thread[lens_now.current].product_groups - (unsigned)groups_left;
    unsigned known = lens_now.thread[first].product_groups;
    if ((int)done > 0 && done <= known && known - done < KEPT_GROUPS)
        lens_engine_done(LENS_TENSOR_CORE, group_stamps[first / 32][(done - 1) % KEPT_GROUPS]);
}
