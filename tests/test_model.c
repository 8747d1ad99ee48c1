/* The model of a GPU's time and the floors under it: each number that they are given counts, in each part of the time
 * that it should, and in no other one. */
#include "lab/explain.h"
#include "lab/lens.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* All that the model is given. */
typedef struct given {
    lab_chip chip;
    lab_lens_totals totals;
    double scale, m, n, k, blocks;
    lab_occupancy occupancy;
} given;

static lab_model model_of(const given *g, rung_arith arith)
{
    lab_model out;
    memset(&out, 0, sizeof out);
    lab_model_of(&g->chip, arith, &g->totals, g->scale, g->m, g->n, g->k, g->blocks, &g->occupancy, &out);
    return out;
}

/* Returns which parts of the time differ, by name. */
static const char *moved(const lab_model *x, const lab_model *y)
{
    static char text[100];
    const double parts[][2] = {{x->fma_us, y->fma_us},
                               {x->issue_us, y->issue_us},
                               {x->shared_us, y->shared_us},
                               {x->l1_us, y->l1_us},
                               {x->memory_us, y->memory_us}};
    static const char *const names[] = {"fma ", "issue ", "shared ", "l1 ", "memory "};
    text[0] = '\0';
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i][0] != parts[i][1])
            strcat(text, names[i]);
    return text;
}

static given usual(void)
{
    given g = {.scale = 2, .m = 1024, .n = 512, .k = 256, .blocks = 400};
    for (size_t i = 0; i < sizeof g.totals / sizeof(double); i++)
        ((double *)&g.totals)[i] = 1000;
    const lab_chip *chip = lab_chips;
    while (strcmp(chip->name, "h200") != 0)
        chip++;
    g.chip = *chip;
    g.occupancy.blocks = 2;
    return g;
}

#define TOTAL(field, parts)                                                                                            \
    {                                                                                                                  \
#field, offsetof(given, totals.field), parts                                                                   \
    }
#define INPUT(field, parts)                                                                                            \
    {                                                                                                                  \
#field, offsetof(given, field), parts                                                                          \
    }

static void each_number_counts(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        size_t at;
        const char *parts;
    } numbers[] = {TOTAL(global_load_requests, "issue "),
                   TOTAL(global_store_requests, "issue "),
                   TOTAL(async_requests, "issue "),
                   TOTAL(shared_load_requests, "issue "),
                   TOTAL(shared_store_requests, "issue "),
                   TOTAL(shared_load_wavefronts, "shared l1 "),
                   TOTAL(shared_store_wavefronts, "shared l1 "),
                   TOTAL(async_wavefronts, "shared l1 "),
                   TOTAL(global_load_sectors, "l1 "),
                   TOTAL(global_store_sectors, "l1 "),
                   TOTAL(async_sectors, "l1 "),
                   TOTAL(global_lines, "l1 "),
                   INPUT(scale, "issue shared l1 "),
                   INPUT(m, "fma issue memory "),
                   INPUT(n, "fma issue memory "),
                   INPUT(k, "fma issue memory "),
                   INPUT(blocks, "fma issue shared l1 "),
                   INPUT(chip.clock_ghz, "fma issue shared l1 "),
                   INPUT(chip.memory_tb_s, "memory ")};
    const given g = usual();
    const lab_model was = model_of(&g, RUNG_F32);
    size_t in_totals = 0;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        given other = g;
        *(double *)((char *)&other + numbers[i].at) *= 1e4;
        const lab_model now = model_of(&other, RUNG_F32);
        if (strcmp(moved(&was, &now), numbers[i].parts) != 0)
            fail_msg("%s moves %s, not %s", numbers[i].name, moved(&was, &now), numbers[i].parts);
        in_totals += numbers[i].at >= offsetof(given, totals) && numbers[i].at < offsetof(given, scale);
    }
    for (size_t i = 0; i < sizeof g.totals / sizeof(double); i++) { /* all others move nothing */
        given other = g;
        int listed = 0;
        ((double *)&other.totals)[i] *= 1e4;
        for (size_t j = 0; j < sizeof numbers / sizeof *numbers; j++)
            listed |= numbers[j].at == offsetof(given, totals) + i * sizeof(double);
        const lab_model now = model_of(&other, RUNG_F32);
        assert_int_equal(moved(&was, &now)[0] != '\0', listed);
    }
    assert_int_equal(in_totals, 12);
}

/* The limit is the longest part, whichever that is, and its time is the model's. */
static void each_part_can_be_the_limit(void **state)
{
    (void)state;
    static const struct {
        size_t at;
        double times;
        const char *limit;
    } cases[] = {{offsetof(given, k), 1e5, "FMA pipe"},
                 {offsetof(given, totals.async_requests), 1e9, "issue slots"},
                 {offsetof(given, totals.async_wavefronts), 1e9, "shared memory"},
                 {offsetof(given, totals.async_sectors), 1e9, "L1 and shared memory's pipe"},
                 {offsetof(given, totals.global_lines), 1e9, "L1 and shared memory's pipe"},
                 {offsetof(given, chip.memory_tb_s), 1e-9, "device memory"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        given g = usual();
        *(double *)((char *)&g + cases[i].at) *= cases[i].times;
        const lab_model out = model_of(&g, RUNG_F32);
        const double parts[] = {out.fma_us, out.issue_us, out.shared_us, out.l1_us, out.memory_us};
        double most = 0;
        for (int j = 0; j < 5; j++)
            most = parts[j] > most ? parts[j] : most;
        assert_string_equal(out.limit, cases[i].limit);
        assert_true(out.us <= most && out.us * 1.001 > most); /* of two that are equal the first */
    }
}

/* A full round of blocks takes as long as one block a multiprocessor less would; one block more begins another round.
 */
static void rounds_are_whole(void **state)
{
    (void)state;
    given g = usual();
    const double slots = 2.0 * g.chip.sms;
    const double full = model_of((g.blocks = slots, &g), RUNG_F32).shared_us;
    const double more = model_of((g.blocks = slots + 1, &g), RUNG_F32).shared_us;
    const double two = model_of((g.blocks = 2 * slots, &g), RUNG_F32).shared_us;
    assert_true(more > 1.9 * full && more < 2.0 * full + 1e-9);
    assert_true(two > 0.999 * full && two < 1.001 * full);
    assert_true(model_of((g.blocks = 1, &g), RUNG_F32).shared_us > 0.99 * g.chip.sms * full);
    assert_true(model_of((g.blocks = slots / 2, &g), RUNG_F32).waves == 0.5);
}

/* Each arithmetic multiplies as many pieces as it has, on the unit that it names, and FMAs are no tensor core's. */
static void floors_are_of_their_arithmetic(void **state)
{
    (void)state;
    const given g = usual();
    lab_floors f32, f;
    lab_floors_of(&g.chip, RUNG_F32, 64, 32, 16, &f32);
    assert_true(f32.flops == 2.0 * 64 * 32 * 16 && f32.bytes == 4.0 * (64 * 16 + 16 * 32 + 64 * 32));
    for (int arith = RUNG_F32 + 1; arith <= RUNG_F16X3_ALONE; arith++) {
        lab_floors_of(&g.chip, (rung_arith)arith, 64, 32, 16, &f);
        assert_true(f.products > 0 && f.flops == f.products * f32.flops && f.bytes == f32.bytes);
        assert_true(f.memory_us == f32.memory_us && f.fma_us > 0 && strstr(f.unit, "tensor cores") != NULL);
        assert_true(f.intensity == f.flops / f.bytes && f.ridge > f32.ridge * 2);
    }
}

/* How many blocks of a kernel a multiprocessor holds, and what limits them: warps count whole. */
static void blocks_of_a_multiprocessor(void **state)
{
    (void)state;
    static const struct {
        int threads, registers, shared_bytes, by_registers, by_threads, by_shared, blocks, percent;
        const char *limiter;
    } rows[] = {{32, 16, 0, 128, 64, 228, 32, 50, "blocks"},       {33, 16, 0, 64, 32, 228, 32, 100, "threads"},
                {64, 16, 0, 64, 32, 228, 32, 100, "threads"},      {257, 40, 0, 5, 7, 228, 5, 70, "registers"},
                {1000, 32, 0, 2, 2, 228, 2, 100, "registers"},     {96, 255, 0, 2, 21, 228, 2, 9, "registers"},
                {256, 32, 99000, 8, 8, 2, 2, 25, "shared memory"}, {1024, 8, 0, 8, 2, 228, 2, 100, "threads"}};
    const given g = usual();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const lab_resources r = {.registers = rows[i].registers};
        lab_occupancy o;
        lab_occupancy_of(&g.chip, &r, rows[i].threads, rows[i].shared_bytes, &o);
        if (o.by_registers != rows[i].by_registers || o.by_threads != rows[i].by_threads ||
            o.by_shared != rows[i].by_shared || o.blocks != rows[i].blocks || o.percent != rows[i].percent ||
            strcmp(o.limiter, rows[i].limiter) != 0)
            fail_msg("%d threads of %d registers: %d by registers, %d by threads, %d by shared memory; %d blocks, %d "
                     "%%, by %s",
                     rows[i].threads, rows[i].registers, o.by_registers, o.by_threads, o.by_shared, o.blocks, o.percent,
                     o.limiter);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_number_counts),         cmocka_unit_test(each_part_can_be_the_limit),
        cmocka_unit_test(rounds_are_whole),           cmocka_unit_test(floors_are_of_their_arithmetic),
        cmocka_unit_test(blocks_of_a_multiprocessor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
