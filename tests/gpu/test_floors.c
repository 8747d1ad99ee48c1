/* The floor under a kernel's predicted time, by which the planner leaves it unasked, is never above that time: for
 * every production kernel, on chips of many and of few multiprocessors, for products whose tiles are as many as the
 * chip runs at once, twice or half as many, or one more or less, and for drawn ones. */
#include "fake_libcuda.h"

#include "core/backend.h"
#include "cuda/driver/device.h"
#include "core/divide.h"

#include <dlfcn.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { TRIALS = 600 };

static uint64_t dice = 1;

static int draw(int below)
{
    dice = dice * 6364136223846793005u + 1442695040888963407u;
    return (int)((dice >> 33) % (unsigned)below);
}

static int64_t draw_size(int powers)
{
    const int64_t least = (int64_t)1 << draw(powers);
    return least + draw((int)least);
}

/* Draws a product of which half have about as many of the kernel's tiles as multiples and parts of the chip hold. */
static rung_problem draw_problem(const rung_kernel *kernel, int sms)
{
    const int64_t bm = kernel->bm > 0 ? kernel->bm : 64, bn = kernel->bn > 0 ? kernel->bn : 64,
                  bk = kernel->bk > 0 ? kernel->bk : 16;
    rung_problem p;
    memset(&p, 0, sizeof p);
    p.batch = 1;
    if (draw(2)) {
        const int64_t halves = 1 + draw(12), tiles = max64(1, halves * sms / 2 + draw(3) - 1);
        const int64_t across = draw(2) ? 1 : 1 + draw(3);
        p.m = max64(1, tiles / across) * bm - draw(2) * draw((int)bm), p.n = across * bn - draw(2) * draw((int)bn);
        p.k = draw(2) ? bk * (1 + draw(8)) : draw_size(13);
        if (draw(4) == 0) {
            p.m = 1 + draw((int)bm), p.n = 1 + draw((int)bn);
            p.batch = tiles;
        }
    } else {
        p.m = draw_size(13), p.n = draw_size(13), p.k = draw_size(13);
        p.batch = draw(4) ? 1 : draw_size(8);
    }
    p.trans_a = draw(2), p.trans_b = draw(2);
    p.lda = (p.trans_a ? p.m : p.k) + draw(2) * draw(4), p.ldb = (p.trans_b ? p.k : p.n) + draw(2) * draw(4);
    p.ldc = p.n + draw(2) * draw(4);
    if (p.batch > 1) {
        p.stride_a = p.lda * (p.trans_a ? p.k : p.m), p.stride_b = p.ldb * (p.trans_b ? p.n : p.k);
        p.stride_c = p.ldc * p.m;
    }
    p.align_a = p.lda % 4 || p.stride_a % 4 ? 4 : 16, p.align_b = p.ldb % 4 || p.stride_b % 4 ? 4 : 16;
    p.align_c = p.ldc % 4 || p.stride_c % 4 ? 4 : 16;
    p.beta_zero = draw(2);
    p.in_order = draw(8) == 0;
    p.alpha = 1.0f, p.beta = p.beta_zero ? 0.0f : 0.5f;
    p.math = RUNG_FAST;
    return p;
}

static int costs, near; /* near: those little above their floors */

/* What the planner would not ask such a kernel it does not ask here either: transposes and batches that it refuses. */
static int is_asked(const rung_kernel *kernel, const rung_problem *p)
{
    return (kernel->accepts & rung_problem_trans_bit(p)) && (p->batch == 1 || kernel->accepts & RUNG_ACCEPTS_BATCH) &&
           (!p->in_order || kernel->accepts & RUNG_KEEPS_ORDER) &&
           (kernel->align_bytes <= 4 || (p->align_a >= kernel->align_bytes && p->align_b >= kernel->align_bytes));
}

static double cost_of(void *cuda, const rung_kernel *kernel, const rung_problem *p)
{
    rung_choice choice;
    memset(&choice, 0, sizeof choice);
    choice.kernel = kernel;
    choice.limit_us = INFINITY;
    choice.parts = 1;
    return !is_asked(kernel, p) || rung_cuda_backend.estimate(cuda, kernel, p, &choice) ? INFINITY : choice.cost_us;
}

static int is_candidate(void *cuda, const rung_kernel *kernel)
{
    return kernel->backend == RUNG_BACKEND_CUDA && kernel->role == RUNG_PRODUCTION &&
           !rung_cuda_backend.unusable(cuda, kernel);
}

/* Who says that it cannot win, by a floor that nothing is below, must have somebody who does. */
static int is_beaten(void *cuda, const rung_kernel *by_all, const rung_problem *p, double cost_us)
{
    for (int i = 0; i < rung_kernel_count(); i++) {
        const rung_kernel *kernel = rung_kernel_at(i);
        if (kernel != by_all && is_candidate(cuda, kernel) && cost_of(cuda, kernel, p) < cost_us)
            return 1;
    }
    return 0;
}

static void try_kernel(void *cuda, const rung_kernel *kernel, int sms)
{
    for (int trial = 0; trial < TRIALS; trial++) {
        const rung_problem p = draw_problem(kernel, sms);
        double floor_us, cost_us = cost_of(cuda, kernel, &p);
        if (isinf(cost_us))
            continue;
        rung_cuda_backend.floors_us(cuda, &kernel, 1, &p, &floor_us);
        if (isinf(floor_us) ? !is_beaten(cuda, kernel, &p, cost_us) : floor_us * (1.0 - 1e-9) > cost_us)
            fail_msg("%s on %d multiprocessors, %c%c %lldx%lldx%lld ld %lld,%lld,%lld batch %lld%s: floor %.9g, cost "
                     "%.9g us",
                     kernel->name, sms, p.trans_a ? 'T' : 'N', p.trans_b ? 'T' : 'N', (long long)p.m, (long long)p.n,
                     (long long)p.k, (long long)p.lda, (long long)p.ldb, (long long)p.ldc, (long long)p.batch,
                     p.in_order ? " in order" : "", floor_us, cost_us);
        costs++;
        near += floor_us > 0.9 * cost_us;
    }
}

static fake *gpu;

static void no_floor_is_above_the_cost(void **state)
{
    static const int chips[] = {132, 7};
    (void)state;
    for (int chip = 0; chip < 2; chip++) { /* what a device is like is asked once */
        void *cuda;
        rung_config config;
        gpu->sms = chips[chip];
        rung_config_init(&config);
        config.device = chip;
        assert_int_equal(rung_cuda_backend.open(&config, &cuda), RUNG_SUCCESS);
        for (int i = 0; i < rung_kernel_count(); i++) {
            const rung_kernel *kernel = rung_kernel_at(i);
            if (is_candidate(cuda, kernel))
                try_kernel(cuda, kernel, chips[chip]);
        }
        rung_cuda_backend.close(cuda);
    }
    print_message("%d costs, %d of them little above their floors\n", costs, near);
    assert_true(near > costs / 20);
}

int main(int argc, char **argv)
{
    fake_state_function *state;
    void *stand_in = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
    *(void **)&state = stand_in ? dlsym(stand_in, "fake_state") : NULL;
    if (!state)
        return 2;
    setenv("RUNG_LIBCUDA", argv[1], 1);
    gpu = state();
    gpu->devices = 2;
    gpu->arch = 90;
    gpu->idle = 1;
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_floor_is_above_the_cost)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
