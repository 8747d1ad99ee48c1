/* What the guard of the fp16x3 method is told of lines, by groups: those of a block are joined as if they were one
 * group, and what is said of a pair of blocks depends on neither the order of the groups nor that of the operands. */
#include "support.h"

#include <math.h>
#include <string.h>

/* The words of device code that the file needs. */
#define RUNG_LENS
#define RUNG_DEVICE static inline __attribute__((unused))

typedef struct uint4 {
    unsigned x, y, z, w;
} uint4;

static const struct {
    unsigned x;
} threadIdx = {0};

static inline unsigned max(unsigned a, unsigned b)
{
    return a > b ? a : b;
}

static inline float __uint_as_float(unsigned bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline int __clz(int x)
{
    return x ? __builtin_clz((unsigned)x) : 32;
}

static inline int __shfl_xor_sync(unsigned mask, int value, int lane)
{
    (void)mask, (void)lane;
    return value;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion" /* device code counts in floats */
#include "device/f16x3_guard.h"
#pragma GCC diagnostic pop

enum { LINES = 24, ROUNDS = 20000 };

static uint64_t dice = 5;

static unsigned below(unsigned count)
{
    dice = dice * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(dice >> 33) % count;
}

static unsigned bits_of(float x)
{
    unsigned bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* Adds a line to a group, as the split does (split_report). */
static void add(f16x3_group *g, float largest, float share, int stands_out, int has_tail)
{
    g->max_bits = max(g->max_bits, bits_of(largest));
    if (!isfinite(largest))
        return;
    g->peak_bits = max(g->peak_bits, bits_of(share));
    g->alone += stands_out ? 1u + ((unsigned)has_tail << F16X3_TAIL_BIT) : 0u;
}

/* Draws a block's lines: all together in *whole, and dealt to some groups. */
static void draw(int k, f16x3_group *whole, f16x3_group *parts, int count)
{
    const int wild = below(40) == 0;
    memset(whole, 0, sizeof *whole);
    memset(parts, 0, (size_t)count * sizeof *parts);
    for (int i = 0; i < LINES; i++) {
        const float largest =
            wild && below(9) == 0 ? INFINITY : ldexpf(1.0f + (float)below(100) / 128, (int)below(90) - 45);
        const float share = below(3) ? 1.5f / (float)k : (float)(1 + below(64)) / 64;
        const int stands_out = share >= F16X3_ALONE, has_tail = stands_out && below(4) == 0;
        add(whole, largest, share, stands_out, has_tail);
        add(&parts[below((unsigned)count)], largest, share, stands_out, has_tail);
    }
}

static void groups_are_joined_as_one(void **state)
{
    (void)state;
    int safe = 0;
    for (int round = 0; round < ROUNDS; round++) {
        const int k = 1 << (5 + below(9)), count = 1 + (int)below(4);
        const f16x3_guard g = {.k = k, .min_terms = 2.0f};
        f16x3_group whole[2], parts[2][4], turned[4], a, b;
        for (int side = 0; side < 2; side++) {
            draw(k, &whole[side], parts[side], count);
            a = f16x3_join(parts[side], count);
            assert_memory_equal(&a, &whole[side], sizeof a);
            for (int i = 0; i < count; i++)
                turned[i] = parts[side][count - 1 - i];
            b = f16x3_join(turned, count);
            assert_memory_equal(&b, &whole[side], sizeof b);
        }
        const int is_safe = f16x3_pair_safe(&g, whole[0], whole[1]);
        assert_int_equal(is_safe, f16x3_pair_safe(&g, whole[1], whole[0]));
        if (whole[0].max_bits >= 0x7f800000u || whole[1].max_bits >= 0x7f800000u)
            assert_false(is_safe);
        f16x3_group larger = whole[0]; /* what is larger, or stands out more, is not safer */
        larger.max_bits += (unsigned)below(30) << 23;
        larger.peak_bits = max(larger.peak_bits, bits_of((float)(1 + below(64)) / 64));
        if (!whole[0].alone && !whole[1].alone)
            assert_true(is_safe >= f16x3_pair_safe(&g, larger, whole[1]));
        safe += is_safe;
    }
    assert_in_range(safe, ROUNDS / 50, ROUNDS - ROUNDS / 50);
}

/* Where an eighth of the lines that stand out has a long tail, and the others are dense, the block is computed. */
static void tails_count_by_their_share(void **state)
{
    (void)state;
    const int k = 4096;
    const f16x3_guard g = {.k = k, .min_terms = 2.0f};
    f16x3_group few[4], dense = {bits_of(1.0f), bits_of(2.0f / (float)k), 0, 0};
    for (int alone = 1; alone <= 64; alone++)
        for (int tailed = 0; tailed <= alone; tailed++) {
            memset(few, 0, sizeof few);
            for (int i = 0; i < alone; i++)
                add(&few[i % 4], 1.0f, 1.0f, 1, i >= alone - tailed);
            const f16x3_group all = f16x3_join(few, 4);
            assert_int_equal(f16x3_tails(all, dense, k), tailed * 8 >= alone);
            dense.peak_bits = bits_of(F16X3_DENSE / (float)k);
            assert_int_equal(f16x3_tails(all, dense, k), tailed * 8 >= alone);
            dense.peak_bits++; /* no longer dense */
            assert_false(f16x3_tails(all, dense, k));
            dense.peak_bits = bits_of(2.0f / (float)k);
            assert_false(f16x3_pair_safe(&g, all, all)); /* neither is dense */
        }
    memset(few, 0, sizeof few);
    assert_false(f16x3_tails(f16x3_join(few, 4), dense, k)); /* none stands out */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(groups_are_joined_as_one),
                                       cmocka_unit_test(tails_count_by_their_share)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
