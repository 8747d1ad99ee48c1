/* Tells what `rung verify` and `rung fuzz` try and by which bounds they judge: for every kernel how many cases of each
 * depth there are and a sum over their texts; drawn calls, and how ranks lie that get them; random data; bounds of
 * every arithmetic. A case that is
 * lost, or a bound that grows, lets wrong kernels pass and shows nowhere else. tests/gpu/launches.sh compares this with
 * results/tried.txt. usage: tried - [every] (every: also the cases that are summed up) */
#include "gpu/sums.h"
#include "lab/case.h"
#include "lab/fuzz.h"
#include "lab/host.h"
#include "lab/names.h"
#include "lab/verify.h"
#include "rung_multi.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int every;

static void tell_cases(const char *of, const rung_kernel *kernel, rung_math math, rung_backend_id backend)
{
    static const char *const depths[] = {"quick", "full", "huge", "pairs"};
    printf("%s", of);
    for (int depth = LAB_QUICK; depth <= LAB_PAIRS; depth++) {
        uint64_t sum = 1;
        lab_cases cases;
        char text[LAB_CASE_TEXT];
        if (lab_cases_for(kernel, math, backend, (lab_depth)depth, &cases) != RUNG_SUCCESS)
            exit(2);
        for (int i = 0; i < cases.count; i++) {
            lab_case_print(&cases.list[i], text);
            if (every)
                printf("\n%s %s %s%s", of, depths[depth], text, cases.list[i].accuracy ? " for accuracy" : "");
            sum = mix_text(sum, text) + (uint64_t)cases.list[i].accuracy;
        }
        printf("%s %s %d cases %08x", depth == LAB_QUICK ? ":" : ",", depths[depth], cases.count, folded(sum));
        free(cases.list);
    }
    putchar('\n');
}

static void tell_every_kernels_cases(void)
{
    static const char *const maths[] = {"strict", "accurate", "fast"};
    for (int i = 0; i < rung_kernel_count(); i++) {
        const rung_kernel *kernel = rung_kernel_at(i);
        if (kernel->role != RUNG_REDUCE)
            tell_cases(kernel->name, kernel, RUNG_STRICT, kernel->backend);
    }
    rung_kernel aligned = *rung_kernel_find("avx2_f32_6x16"); /* no row asks for addresses, but one may */
    aligned.align_bytes = 16;
    tell_cases("avx2_f32_6x16-aligned", &aligned, RUNG_STRICT, aligned.backend);
    for (int math = RUNG_STRICT; math <= RUNG_FAST; math++)
        for (int gpu = 0; gpu < 2; gpu++) {
            char name[64];
            snprintf(name, sizeof name, "library-%s-%s", gpu ? "gpu" : "cpu", maths[math]);
            tell_cases(name, NULL, (rung_math)math, gpu ? RUNG_BACKEND_CUDA : RUNG_BACKEND_CPU);
        }
}

static void tell_drawn_calls(void)
{
    enum { PRINTED = 6, CALLS = 2000 };
    static const int64_t most[] = {20, 100, 1000};
    for (int i = 0; i < 3; i++) {
        uint64_t sum = 1;
        for (int call = 0; call < CALLS; call++) {
            lab_case c;
            char text[LAB_CASE_TEXT];
            lab_fuzz_case(1, (uint64_t)call, most[i], &c);
            lab_case_print(&c, text);
            if (call < PRINTED || every)
                printf("drawn up to %lld %s\n", (long long)most[i], text);
            sum = mix_text(sum, text);
        }
        printf("drawn up to %lld all %08x\n", (long long)most[i], folded(sum));
    }
}

static char layout[700];

/* The entry of ranks calls this one, which computes nothing. */
rung_status rung_psgemm(rung_multi *multi, rung_transpose trans_a, rung_transpose trans_b, int64_t m, int64_t n,
                        int64_t k, float alpha, const float *const *a, int64_t ia, int64_t ja,
                        const rung_matrix *desc_a, const float *const *b, int64_t ib, int64_t jb,
                        const rung_matrix *desc_b, float beta, float *const *c, int64_t ic, int64_t jc,
                        const rung_matrix *desc_c)
{
    const rung_matrix *x[] = {desc_a, desc_b, desc_c};
    const int64_t from[][2] = {{ia, ja}, {ib, jb}, {ic, jc}};
    int used = snprintf(layout, sizeof layout, "%d%d %lldx%lldx%lld %g %g", (int)trans_a, (int)trans_b, (long long)m,
                        (long long)n, (long long)k, (double)alpha, (double)beta);
    (void)multi, (void)a, (void)b, (void)c;
    for (int i = 0; i < 3; i++)
        used += snprintf(layout + used, sizeof layout - (size_t)used,
                         ", %lldx%lld from %lld,%lld in %lldx%lld on %dx%d after %d,%d ld %lld", (long long)x[i]->m,
                         (long long)x[i]->n, (long long)from[i][0], (long long)from[i][1], (long long)x[i]->mb,
                         (long long)x[i]->nb, (int)x[i]->grid_rows, (int)x[i]->grid_cols, (int)x[i]->row_source,
                         (int)x[i]->col_source, (long long)x[i]->ld);
    return RUNG_SUCCESS;
}

static void tell_drawn_layouts(void)
{
    enum { PRINTED = 3, CALLS = 60 };
    lab_place place;
    lab_verifier verifier;
    uint64_t sum = 1;
    if (lab_place_open(&place, RUNG_DEVICE_CPU, 1) != RUNG_SUCCESS ||
        lab_verifier_open(&verifier, &place, RUNG_STRICT, NULL) != RUNG_SUCCESS ||
        lab_verifier_set_via(&verifier, LAB_RANKS) != RUNG_SUCCESS)
        exit(2);
    for (int call = 0; call < CALLS; call++) {
        lab_case c;
        lab_verdict verdict;
        lab_fuzz_case(1, (uint64_t)call, 20, &c);
        lab_fuzz_plain(&c);
        layout[0] = 0;
        if (lab_verify(&verifier, NULL, &c, &verdict) != RUNG_SUCCESS)
            exit(2);
        if (call < PRINTED || every)
            printf("drawn on ranks %s\n", layout);
        sum = mix_text(sum, layout);
    }
    printf("drawn on ranks all %08x\n", folded(sum));
    lab_verifier_close(&verifier);
    lab_place_close(&place);
}

/* Sums, not bits: the system's functions of mathematics may round otherwise on another machine. */
static void tell_data(void)
{
    enum { LINES = 70, LENGTH = 1100 };
    static float memory[LINES * LENGTH];
    for (int data = 0; data < 2 * LAB_DATA_COUNT; data++) {
        const int kind = data % LAB_DATA_COUNT, of_b = data / LAB_DATA_COUNT;
        double sum = 0.0, apart = 0.0;
        int zeros = 0, special = 0;
        lab_fill_args args = {.view = {memory, LENGTH, 1}, .lines = LINES, .length = LENGTH, .seed = 5};
        args.data = kind + of_b * LAB_OF_B;
        lab_host_fill(&args, 1);
        for (int i = 0; i < LINES * LENGTH; i++) {
            zeros += memory[i] == 0.0f;
            special += !isfinite(memory[i]);
            if (memory[i] != 0.0f && isfinite(memory[i])) {
                sum += log2(fabs((double)memory[i]));
                apart += (i % 17 - 8) * copysign(1.0 + (double)(i / LENGTH % 5), (double)memory[i]);
            }
        }
        printf("data-%s-%s %d zeros, %d of no number, magnitudes 2^%.2f, signs %.0f\n", lab_data_names[kind],
               of_b ? "b" : "a", zeros, special, sum / (LINES * LENGTH), apart);
    }
}

static void tell_bounds(void)
{
    static const struct {
        rung_arith arith;
        const char *name;
    } ariths[] = {{RUNG_F32, "f32"},
                  {RUNG_TF32, "tf32"},
                  {RUNG_TF32X3, "tf32x3"},
                  {RUNG_BF16X6, "bf16x6"},
                  {RUNG_F16X3, "f16x3"},
                  {RUNG_F16X3_CHAIN, "f16x3-chain"},
                  {RUNG_F16X3_ALONE, "f16x3-alone"}};
    static const int64_t depths[] = {0, 1, 16, 257, 4096, 32768};
    static const double chains[][2] = {
        {0.0, 0.0}, {3.0, 2.0}, {2.0, 5.0}, {1.0, 20.0}, {1e9, 1.0}}; /* the chain's error, a vendor's */
    for (size_t i = 0; i < sizeof ariths / sizeof *ariths; i++)
        for (int d = 0; d < 6; d++) {
            printf("bounds-%s k %lld:", ariths[i].name, (long long)depths[d]);
            for (int c = 0; c < 5; c++)
                printf(" %.6g", lab_bound_u(NULL, ariths[i].arith, depths[d], chains[c][0], chains[c][1]));
            for (int fused = 0; fused < 2; fused++)
                for (int alike = 0; alike < 3; alike++) {
                    static const lab_data data[] = {LAB_SIGNED, LAB_CONSTANT, LAB_FIXED};
                    const lab_bound b = lab_bound_each(ariths[i].arith, depths[d], data[alike], fused);
                    printf("; %.6g %.6g %.6g %.6g", b.more_u, b.least_u, b.reach_u, b.roundings);
                }
            putchar('\n');
        }
}

int main(int count, char **words)
{
    every = count > 2 && strcmp(words[2], "every") == 0;
    tell_every_kernels_cases();
    tell_drawn_calls();
    tell_drawn_layouts();
    tell_data();
    tell_bounds();
    return 0;
}
