/* Tiny products, on every family of kernels and as for every processor: each is what FP64 says, on several threads each
 * element of C is added up as on one, and nothing else is written. */
#include "support.h"

#include "rung_catalog.h"
#include "cpu/gemm_rules.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE_MOST = 400, FLOATS = 1 << 17, FLOATS_OF_C = 1 << 14 };
#ifdef __SANITIZE_THREAD__ /* which is slow */
enum { DRAWN = 150, SHARED_LEAST = 10 };
#else
enum { DRAWN = 1500, SHARED_LEAST = 100 };
#endif

/* A team of one thread, which comes as each of those that were asked for, one after the other. */
static int team_number, team_jobs;

static void run_one_by_one(void (*fn)(void *), void *data, unsigned threads, unsigned flags)
{
    (void)flags;
    team_jobs++;
    for (team_number = (int)threads - 1; team_number >= 0; team_number--)
        fn(data);
}

static int number_in_team(void)
{
    return team_number;
}

static int most_in_team(void)
{
    return RUNG_MOST_THREADS;
}

static int not_inside(void)
{
    return 0;
}

static const rung_team team = {run_one_by_one, number_in_team, most_in_team, not_inside};

static float a[FLOATS], b[FLOATS], before[FLOATS_OF_C], alone[FLOATS_OF_C], shared[FLOATS_OF_C];

static int64_t draw(uint64_t *seed, double most)
{
    return (int64_t)exp(log(most) * (0.5 + 0.5 * (double)random_float(seed)));
}

/* Draws a product that may be worth a second thread, if it is tiny. */
static rung_cpu_args draw_product(uint64_t *seed, int number)
{
    enum { WORK_LEAST = 100000, WORK_MOST = RUNG_TINY_WORK, PADS = 3 };
    rung_cpu_args p = {.alpha = number % 5 ? 1.0f : 0.5f, .beta = number % 3 ? 0.0f : 0.25f, .batch = 1};
    int64_t work;
    do {
        p.m = draw(seed, SIDE_MOST);
        p.n = draw(seed, SIDE_MOST);
        p.k = draw(seed, SIDE_MOST);
        work = p.m * p.n * p.k;
    } while (work < WORK_LEAST || work > WORK_MOST);
    int pad = number / 4 % PADS;
    p.trans_a = number & 1;
    p.trans_b = number >> 1 & 1;
    p.lda = (p.trans_a ? p.m : p.k) + pad;
    p.ldb = (p.trans_b ? p.k : p.n) + pad;
    p.ldc = p.n + pad;
    p.a = a;
    p.b = b;
    p.c = alone;
    return p;
}

/* Returns how many of the drawn products the threads shared. */
static int share_drawn(const rung_kernel *row, const rung_processor *cpu, const char *processor)
{
    uint64_t seed = 20261128;
    rung_pool *pool = rung_pool_create();
    assert_non_null(pool);
    rung_pool_use_team(pool, &team);
    team_jobs = 0;
    for (int i = 0; i < DRAWN; i++) {
        rung_cpu_args p = draw_product(&seed, i);
        p.kernel = rung_cpu_kernel_of(row);
        p.cpu = cpu;
        p.pool = pool;
        memcpy(alone, before, sizeof alone);
        if (p.m * p.ldc > FLOATS_OF_C || !rung_gemm_if_tiny(&p, 1))
            continue;
        int threads = 2 + i % 12, jobs = team_jobs;
        memcpy(shared, before, sizeof shared);
        p.c = shared;
        assert_true(rung_gemm_if_tiny(&p, threads));
        if (memcmp(shared, alone, sizeof shared) != 0)
            fail_msg("%s as on %s: %lld x %lld x %lld, %s%s, lda %lld, ldb %lld, beta %g: other bits on %d threads "
                     "than on one (%s)",
                     row->name, processor, (long long)p.m, (long long)p.n, (long long)p.k, p.trans_a ? "T" : "N",
                     p.trans_b ? "T" : "N", (long long)p.lda, (long long)p.ldb, (double)p.beta, threads,
                     team_jobs > jobs ? "shared" : "not shared");
    }
    rung_pool_destroy(pool);
    return team_jobs;
}

/* Draws a product of any sides, of which in every second one C has a side of one to four. */
static rung_cpu_args draw_any(uint64_t *seed, int number)
{
    enum { LONGEST = 4096, FEW = 4, PADS = 4 };
    rung_cpu_args p = {.alpha = number % 5 ? 1.0f : -0.5f, .beta = number % 3 ? 0.0f : 0.25f, .batch = 1, .c = alone};
    do {
        p.m = draw(seed, number % 2 ? LONGEST : FEW);
        p.n = draw(seed, number % 4 == 2 ? FEW : LONGEST);
        p.k = draw(seed, LONGEST);
    } while (p.m * p.k > FLOATS / 2 || p.k * p.n > FLOATS / 2 || p.m * p.n > FLOATS_OF_C / 2);
    p.trans_a = number >> 2 & 1;
    p.trans_b = number >> 3 & 1;
    int pad = number >> 4 & (PADS - 1);
    p.lda = (p.trans_a ? p.m : p.k) + pad;
    p.ldb = (p.trans_b ? p.k : p.n) + pad;
    p.ldc = p.n + pad;
    p.a = a;
    p.b = b;
    return p;
}

/* Returns whether an element of C is what FP64 says, but for one rounding for each step and three more. */
static int is_right(const rung_cpu_args *p, int64_t i, int64_t j)
{
    double sum = 0.0, size = 0.0, old = p->beta == 0.0f ? 0.0 : (double)p->beta * (double)before[i * p->ldc + j];
    for (int64_t q = 0; q < p->k; q++) {
        double term = (double)p->a[p->trans_a ? q * p->lda + i : i * p->lda + q] *
                      (double)p->b[p->trans_b ? j * p->ldb + q : q * p->ldb + j];
        sum += term;
        size += fabs(term);
    }
    double apart = fabs(p->c[i * p->ldc + j] - (p->alpha * sum + old));
    return apart <= ldexp((double)(p->k + 3) * (size + fabs(old)), -24);
}

/* Returns how many of the drawn products were tiny. */
static int check_drawn(const rung_kernel *row, const rung_processor *cpu, const char *processor)
{
    uint64_t seed = 20261130;
    int tiny = 0;
    for (int number = 0; number < DRAWN; number++) {
        rung_cpu_args p = draw_any(&seed, number);
        p.kernel = rung_cpu_kernel_of(row);
        p.cpu = cpu;
        memcpy(alone, before, sizeof alone);
        if (p.m * p.ldc > FLOATS_OF_C || p.m * p.n * p.k > RUNG_TINY_WORK || !rung_gemm_if_tiny(&p, 1))
            continue;
        tiny++;
        for (int64_t at = 0; at < FLOATS_OF_C; at++) {
            int64_t i = at / p.ldc, j = at % p.ldc;
            int is_in_c = i < p.m && j < p.n;
            if (is_in_c ? !is_right(&p, i, j) : alone[at] != before[at])
                fail_msg("%s as on %s: %lld x %lld x %lld, %s%s, lda %lld, ldb %lld, beta %g: C[%lld][%lld] is %g%s",
                         row->name, processor, (long long)p.m, (long long)p.n, (long long)p.k, p.trans_a ? "T" : "N",
                         p.trans_b ? "T" : "N", (long long)p.lda, (long long)p.ldb, (double)p.beta, (long long)i,
                         (long long)j, (double)alone[at], is_in_c ? "" : ", outside of it");
        }
    }
    return tiny;
}

/* Has `check` look at each family of kernels that this CPU has, as on each processor. It returns how many products it
 * met with, of which `least` are wanted. */
static void for_each_family(int (*check)(const rung_kernel *, const rung_processor *, const char *), int least)
{
    static const char *const processors[] = {"zen1", "zen3", "zen4", "zen5", "emerald"};
    uint64_t seed = 1;
    for (int i = 0; i < FLOATS; i++) {
        a[i] = random_float(&seed);
        b[i] = random_float(&seed);
    }
    for (int i = 0; i < FLOATS_OF_C; i++)
        before[i] = random_float(&seed);
    unsigned features = rung_cpu_features();
    for (int i = 0; i < rung_kernel_count(); i++) {
        const rung_kernel *row = rung_kernel_at(i);
        if (row->backend != RUNG_BACKEND_CPU || row->role != RUNG_PRODUCTION ||
            (rung_cpu_feature_bits(row->cpu_needs) & ~features))
            continue;
        for (size_t j = 0; j < sizeof processors / sizeof processors[0]; j++) {
            setenv("RUNG_CPU_PLAN", processors[j], 1);
            const rung_processor cpu = rung_cpu_processor();
            int count = check(row, &cpu, processors[j]);
            if (count < least)
                fail_msg("%s as on %s: %d of %d products were met with, expected %d at least", row->name, processors[j],
                         count, DRAWN, least);
        }
    }
}

static void threads_that_share_tiles_change_no_bit(void **state)
{
    (void)state;
    for_each_family(share_drawn, SHARED_LEAST);
}

static void tiny_products_are_right(void **state)
{
    (void)state;
    for_each_family(check_drawn, DRAWN / 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(threads_that_share_tiles_change_no_bit),
                                       cmocka_unit_test(tiny_products_are_right)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
