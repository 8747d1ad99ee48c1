/* Distributed products with all ranks in one process, on the CPU: every layout against FP64, the same bits on any grid,
 * redistribution, and what bad input is answered. */
#define _GNU_SOURCE /* clock_gettime */
#include "../support.h"
#include "layouts.h"

#include <time.h>

static rung_multi *local(int ranks)
{
    static const int cpus[8] = {-1, -1, -1, -1, -1, -1, -1, -1};
    rung_multi *multi;
    rung_multi_config config;
    rung_multi_config_init(&config);
    config.ranks = ranks;
    config.devices = cpus;
    config.threads = 1;
    assert_ok(rung_multi_create(&multi, &config));
    assert_int_equal(rung_multi_ranks(multi), ranks);
    assert_int_equal(rung_multi_held_ranks(multi), ranks);
    return multi;
}

/* Where nothing is said of ranks there is one a GPU, and one on the CPU where there is no GPU. */
static void without_a_gpu_there_is_one_rank(void **state)
{
    (void)state;
    static const int cpu[1] = {-1};
    setenv("RUNG_LIBCUDA", "/nowhere", 1);
    for (int named = 0; named < 2; named++) {
        rung_multi *multi;
        rung_multi_config config;
        rung_multi_config_init(&config);
        config.devices = named ? cpu : NULL;
        config.threads = 1;
        assert_ok(rung_multi_create(&multi, &config));
        assert_int_equal(rung_multi_ranks(multi), 1);
        assert_int_equal(rung_multi_held_ranks(multi), 1);
        rung_multi_destroy(multi);
    }
    unsetenv("RUNG_LIBCUDA");
}

typedef struct parts {
    float *a[8], *b[8], *c[8];
} parts;

static void parts_new(parts *p, const rung_matrix d[3], int ranks, int poison_c, const layout_case *t)
{
    for (int r = 0; r < ranks; r++) {
        p->a[r] = part_new(&d[0], r, 0);
        p->b[r] = part_new(&d[1], r, 1);
        p->c[r] = part_new(&d[2], r, 2);
        for (int64_t j = 0; poison_c && j < rung_matrix_cols(&d[2], r); j++)
            for (int64_t i = 0; i < rung_matrix_rows(&d[2], r); i++) {
                int64_t gi = global_index(i, d[2].mb, r / d[2].grid_cols, d[2].grid_rows, d[2].row_source),
                        gj = global_index(j, d[2].nb, r % d[2].grid_cols, d[2].grid_cols, d[2].col_source);
                if (gi >= t->ic - 1 && gi < t->ic - 1 + t->m && gj >= t->jc - 1 && gj < t->jc - 1 + t->n)
                    p->c[r][i + j * d[2].ld] = NAN; /* beta = 0: must not be read */
            }
    }
}

static void parts_free(parts *p, int ranks)
{
    for (int r = 0; r < ranks; r++) {
        free(p->a[r]);
        free(p->b[r]);
        free(p->c[r]);
    }
}

static rung_status run(rung_multi *multi, const layout_case *t, const rung_matrix d[3], parts *p)
{
    return case_run(multi, t, d, p->a, p->b, p->c);
}

static void check(rung_multi *multi, const layout_case *t, int ranks)
{
    rung_matrix d[3];
    parts p = {0};
    case_matrices(t, d);
    parts_new(&p, d, ranks, t->beta == 0.0f, t);
    int right = run(multi, t, d, &p) == RUNG_SUCCESS;
    if (!right)
        fprintf(stderr, "%s\n", rung_last_error());
    for (int r = 0; r < ranks && right; r++)
        right = part_right(t, &d[2], r, p.c[r], 2.0 + (double)t->k);
    if (!right) {
        print_case(t);
        fail_msg("a distributed product is wrong");
    }
    parts_free(&p, ranks);
}

static void every_layout(void **state)
{
    (void)state;
    int counts[] = {1, 2, 3, 4, 6};
    for (int i = 0; i < 5; i++) {
        rung_multi *multi = local(counts[i]);
        for (int j = 0; j < 160; j++) {
            layout_case t = case_at(j, counts[i], j % 4 == 0);
            check(multi, &t, counts[i]);
        }
        rung_multi_destroy(multi);
    }
}

/* Panels of k after the first add to C, whatever lies transposed. */
static void several_panels(void **state)
{
    (void)state;
    rung_multi *multi = local(4);
    for (int trans = 0; trans < 4; trans++) {
        layout_case t = whole_case((grid){2, 2}, 150, 700, 1100);
        t.trans_a = trans & 1, t.trans_b = trans >> 1;
        t.beta = trans % 2 ? 0.0f : -0.5f;
        memcpy(t.mb, (int64_t[]){64, 300, 75}, sizeof t.mb);
        memcpy(t.nb, (int64_t[]){300, 64, 350}, sizeof t.nb);
        check(multi, &t, 4);
    }
    rung_multi_destroy(multi);
}

/* What ran when, on CPUs: each copy and product of a call lies within it, under its rank, its lane and its operand. */
static void spans_say_what_ran(void **state)
{
    (void)state;
    rung_multi *multi = local(4);
    const rung_span *spans;
    layout_case t = whole_case((grid){2, 2}, 150, 170, 300);
    memcpy(t.mb, (int64_t[]){64, 300, 75}, sizeof t.mb);
    memcpy(t.nb, (int64_t[]){300, 64, 85}, sizeof t.nb);
    assert_ok(rung_multi_trace(multi, 1));
    struct timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    check(multi, &t, 4);
    clock_gettime(CLOCK_MONOTONIC, &to);
    const double took_us = (double)(to.tv_sec - from.tv_sec) * 1e6 + (double)(to.tv_nsec - from.tv_nsec) * 1e-3;
    const int count = rung_multi_spans(multi, &spans);
    int products[4] = {0}, copies = 0;
    double last_us = 0.0, rank_us[4] = {0};
    for (int i = 0; i < count; i++) {
        const int is_product = strncmp(spans[i].lane, "product", 7) == 0,
                  of_b = strncmp(spans[i].what, "B panel ", 8) == 0;
        assert_in_range(spans[i].rank, 0, 3);
        products[spans[i].rank] += is_product;
        copies += !is_product && (of_b || strncmp(spans[i].what, "A panel ", 8) == 0);
        if (spans[i].start_us < 0.0 || spans[i].stop_us < spans[i].start_us)
            fail_msg("%s, %s: from %g to %g us", spans[i].lane, spans[i].what, spans[i].start_us, spans[i].stop_us);
        assert_true(spans[i].start_us >= rank_us[spans[i].rank]); /* a rank does one thing at a time */
        rank_us[spans[i].rank] = spans[i].stop_us;
        last_us = spans[i].stop_us > last_us ? spans[i].stop_us : last_us;
    }
    assert_true(products[0] && products[1] && products[2] && products[3] && copies >= 8);
    assert_true(last_us <= 2.0 * took_us + 1e4);
    assert_ok(rung_multi_trace(multi, 0));
    rung_multi_destroy(multi);
}

/* What RUNG_MULTI_PANEL says is how k is cut. (What it cannot mean is refused: test_settings.c.) */
static void k_is_cut_as_the_environment_says(void **state)
{
    (void)state;
    enum { K = 3000, OTHERWISE = 6 }; /* panels of 512 */
    static const struct {
        const char *text;
        int panels;
    } cases[] = {
        {"", OTHERWISE},           {"1000", 3}, {"2000:2000:1000", 3}, /* 1536, 1000, 464 */
        {"500:3000:3000", 4},                                          /* 500, 500, 1000, 1000 */
        {"3000:3000:500", 4},                                          /* 1536, 768, 512, 184 */
        {"2000:2000:1000:2:3", 3},                                     /* two bands, three chunks */
    };
    const char *before = getenv("RUNG_MULTI_PANEL");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        setenv("RUNG_MULTI_PANEL", cases[i].text, 1);
        rung_multi *multi = local(1);
        const rung_span *spans;
        int panels = 0;
        layout_case t = whole_case((grid){1, 1}, 5, 6, K);
        memcpy(t.mb, (int64_t[]){5, K, 5}, sizeof t.mb);
        memcpy(t.nb, (int64_t[]){K, 6, 6}, sizeof t.nb);
        assert_ok(rung_multi_trace(multi, 1));
        check(multi, &t, 1);
        const int count = rung_multi_spans(multi, &spans);
        for (int s = 0; s < count; s++) {
            int panel;
            if (sscanf(spans[s].what, "C panel %d", &panel) == 1 && panel + 1 > panels)
                panels = panel + 1;
        }
        if (panels != cases[i].panels)
            fail_msg("RUNG_MULTI_PANEL=%s cuts %d steps into %d panels, not %d", cases[i].text, K, panels,
                     cases[i].panels);
        rung_multi_destroy(multi);
    }
    if (before)
        setenv("RUNG_MULTI_PANEL", before, 1);
    else
        unsetenv("RUNG_MULTI_PANEL");
}

/* Computes the whole C of one product, on a grid. */
static float *product_on(int ranks, grid g, int64_t mb, int64_t nb, int trans_a, int trans_b, int64_t m, int64_t n,
                         int64_t k)
{
    rung_multi *multi = local(ranks);
    layout_case t = whole_case(g, m, n, k);
    t.trans_a = trans_a;
    t.trans_b = trans_b;
    memcpy(t.mb, (int64_t[]){mb, nb, mb}, sizeof t.mb);
    memcpy(t.nb, (int64_t[]){nb, mb, nb}, sizeof t.nb);
    rung_matrix d[3];
    parts p = {0};
    case_matrices(&t, d);
    parts_new(&p, d, ranks, 0, &t);
    assert_ok(run(multi, &t, d, &p));
    float *whole = malloc((size_t)(d[2].m * d[2].n) * sizeof *whole);
    assert_ok(rung_gather(multi, ranks - 1, (const float *const *)p.c, &d[2], whole, d[2].m));
    parts_free(&p, ranks);
    rung_multi_destroy(multi);
    return whole;
}

/* Under the thread sanitizer products take long: fewer results there, as many panels of k. */
#ifdef __SANITIZE_THREAD__
enum { SLOW = 1 };
#else
enum { SLOW = 0 };
#endif

static void same_bits(void **state)
{
    (void)state;
    static const struct {
        int ranks;
        grid g;
        int64_t mb, nb;
    } grids[] = {{2, {2, 1}, 64, 64}, {2, {1, 2}, 17, 130}, {4, {2, 2}, 150, 11},
                 {4, {1, 4}, 31, 64}, {4, {4, 1}, 8, 8},    {6, {3, 2}, 1, 3}};
    for (int trans = 0; trans < 4; trans++) {
        int64_t m = SLOW ? 161 : 301, n = SLOW ? 137 : 270, k = 1100; /* three panels */
        size_t bytes = (size_t)(m + 1) * (size_t)(n + 2) * sizeof(float);
        float *one = product_on(1, (grid){1, 1}, 512, 512, trans & 1, trans >> 1, m, n, k);
        for (size_t i = 0; i < sizeof grids / sizeof *grids; i++) {
            float *other =
                product_on(grids[i].ranks, grids[i].g, grids[i].mb, grids[i].nb, trans & 1, trans >> 1, m, n, k);
            assert_memory_equal(one, other, bytes);
            free(other);
        }
        free(one);
    }
}

static void scatter_and_gather(void **state)
{
    (void)state;
    rung_multi *multi = local(6);
    int64_t m = 71, n = 45;
    float *whole = malloc((size_t)((m + 3) * n) * sizeof *whole), *back = calloc((size_t)(m * n), sizeof *back);
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < m + 3; i++)
            whole[i + j * (m + 3)] = i < m ? element(0, i, j) : NAN;
    rung_matrix d[2];
    rung_matrix_init(&d[0], m, n, 5, 9, 3, 2);
    rung_matrix_init(&d[1], m, n, 16, 4, 2, 3);
    d[0].row_source = 2, d[1].col_source = 1;
    float *p[2][6];
    for (int i = 0; i < 2; i++)
        for (int r = 0; r < 6; r++)
            p[i][r] = calloc((size_t)(d[i].ld * (rung_matrix_cols(&d[i], r) + 1)), sizeof(float));
    assert_ok(rung_scatter(multi, 3, whole, m + 3, p[0], &d[0]));
    assert_ok(rung_redistribute(multi, m, n, (const float *const *)p[0], 1, 1, &d[0], p[1], 1, 1, &d[1]));
    assert_ok(rung_gather(multi, 5, (const float *const *)p[1], &d[1], back, m));
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < m; i++)
            assert_true(back[i + j * m] == element(0, i, j));
    for (int i = 0; i < 2; i++)
        for (int r = 0; r < 6; r++)
            free(p[i][r]);
    free(whole);
    free(back);
    rung_multi_destroy(multi);
}

/* Operands in host memory, tiles of C shared out over the ranks. */
static void host_operands(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= 6; ranks++) {
        rung_multi *multi = local(ranks);
        for (int i = 0; i < 16; i++) {
            product p;
            int64_t m = 1 + (i * 97 + ranks) % (SLOW ? 200 : 600), n = 1 + (i * 211) % (SLOW ? 170 : 500),
                    k = i % 5 == 0 ? 1100 : i * 13;
            product_new(&p, i & 4 ? RUNG_ROW_MAJOR : RUNG_COL_MAJOR, i & 1, i >> 1 & 1, m, n, k, i % 3, 1, (uint64_t)i);
            p.gemm.alpha = i == 7 ? 0.0f : 0.5f;
            p.gemm.beta = i % 3 == 0 ? 0.0f : -0.5f;
            product_reset(&p);
            rung_gemm *g = &p.gemm;
            assert_ok(rung_multi_sgemm(multi, g->layout, g->trans_a, g->trans_b, m, n, k, g->alpha, g->a, g->lda, g->b,
                                       g->ldb, g->beta, g->c, g->ldc));
            product_check(&p, "operands in host memory");
            product_free(&p);
        }
        float x = 1.0f;
        assert_int_equal(rung_multi_sgemm(multi, RUNG_COL_MAJOR, 0, 0, 2, 1, 1, 1.0f, &x, 1, &x, 1, 0.0f, &x, 2),
                         RUNG_INVALID_ARGUMENT);
        assert_int_equal(rung_last_error_argument(), 8);
        rung_multi_destroy(multi);
    }
}

#define refused(call, status, words)                                                                                   \
    do {                                                                                                               \
        assert_int_equal(call, status);                                                                                \
        if (!strstr(rung_last_error(), words))                                                                         \
            fail_msg("'%s' does not say '%s'", rung_last_error(), words);                                              \
    } while (0)

/* Each number of a call that is wrong is told by its name and value. */
static void numbers_are_refused(rung_multi *multi, layout_case t, const rung_matrix d[3], parts *p)
{
    t.ia = d[0].m - t.m + 2; /* one row, then one column beyond the last place */
    refused(run(multi, &t, d, p), RUNG_INVALID_ARGUMENT, "are not inside");
    t.ia = 1, t.ja = d[0].n - t.k + 2;
    refused(run(multi, &t, d, p), RUNG_INVALID_ARGUMENT, "are not inside");
    t.ja = 1;
    int64_t *const sizes[] = {&t.m, &t.n, &t.k};
    int *const transposes[] = {&t.trans_a, &t.trans_b};
    char words[80];
    for (int i = 0; i < 3; i++) {
        const int64_t was = *sizes[i];
        *sizes[i] = -2 - i;
        snprintf(words, sizeof words, "%c is %d: it must not be negative", "mnk"[i], -2 - i);
        refused(run(multi, &t, d, p), RUNG_INVALID_ARGUMENT, words);
        *sizes[i] = was;
    }
    for (int i = 0; i < 2; i++) {
        *transposes[i] = 7 + i;
        snprintf(words, sizeof words, "trans_%c is %d: RUNG_NO_TRANS (0) or RUNG_TRANS (1)", "ab"[i], 7 + i);
        refused(run(multi, &t, d, p), RUNG_INVALID_ARGUMENT, words);
        *transposes[i] = RUNG_NO_TRANS;
    }
}

static void bad_input(void **state)
{
    (void)state;
    rung_multi *multi = local(4);
    layout_case t = whole_case((grid){2, 2}, 40, 30, 50);
    memcpy(t.mb, (int64_t[]){7, 8, 9}, sizeof t.mb);
    memcpy(t.nb, (int64_t[]){8, 9, 7}, sizeof t.nb);
    rung_matrix d[3], good[3];
    parts p = {0};
    case_matrices(&t, d);
    parts_new(&p, d, 4, 0, &t);
    memcpy(good, d, sizeof d);
    assert_ok(run(multi, &t, d, &p));
#define broken(field, value, words)                                                                                    \
    d[0].field = value;                                                                                                \
    refused(run(multi, &t, d, &p), RUNG_INVALID_ARGUMENT, words);                                                      \
    memcpy(d, good, sizeof d)
    broken(m, -1, "descriptor of A: m is -1: it must not be negative");
    broken(n, -2, "descriptor of A: n is -2: it must not be negative");
    broken(mb, 0, "descriptor of A: mb is 0: a block has at least 1");
    broken(grid_rows, 0, "descriptor of A: grid_rows is 0: it must be at least 1");
    broken(row_source, -1, "descriptor of A: row_source is -1: it must be a row of the grid");
    broken(row_source, d[0].grid_rows, "descriptor of A: row_source is 2: it must be a row of the grid");
    broken(col_source, -1, "descriptor of A: col_source is -1: it must be a column of the grid");
    broken(col_source, d[0].grid_cols, "descriptor of A: col_source is 2: it must be a column of the grid");
    broken(m, 1, "are not inside");
    broken(nb, 0, "descriptor of A: nb is 0: a block has at least 1");
    broken(grid_rows, 5, "descriptor of A: a grid of 5 x 2 needs 10 ranks, there are 4");
    broken(grid_cols, 0, "grid_cols is 0");
    broken(row_source, 9, "descriptor of A: row_source is 9: it must be a row of the grid");
    broken(col_source, 9, "descriptor of A: col_source is 9: it must be a column of the grid");
    broken(ld, INT64_MAX / 4, "descriptor of A: rank 0's part spans more than 2^63 bytes");
    /* The elements of its columns have a number yet, and their bytes have none; the first such, too. */
    const int64_t cols = rung_matrix_cols(d, 0);
    broken(ld, INT64_MAX / cols, "descriptor of A: rank 0's part spans more than 2^63 bytes");
    broken(ld, INT64_MAX / (4 * cols) + 1, "descriptor of A: rank 0's part spans more than 2^63 bytes");
    broken(ld, 0, "ld is 0");
    t.ja = 0;
    refused(run(multi, &t, d, &p), RUNG_INVALID_ARGUMENT, "(1, 0), counted from 1");
    t.ja = 1;
    numbers_are_refused(multi, t, d, &p);
    float *kept = p.b[0];
    p.b[0] = NULL;
    refused(run(multi, &t, d, &p), RUNG_INVALID_ARGUMENT, "rank 0's part of B is NULL");
    p.b[0] = (float *)((char *)kept + 2);
    refused(run(multi, &t, d, &p), RUNG_INVALID_ARGUMENT, ") is not aligned to 4 bytes");
    refused(run(multi, &t, d, &p), RUNG_INVALID_ARGUMENT, "rank 0's part of B (");
    p.b[0] = kept;
    refused(rung_redistribute(multi, -1, 2, (const float *const *)p.a, 1, 1, &d[0], p.c, 1, 1, &d[2]),
            RUNG_INVALID_ARGUMENT, "m and n are -1 and 2: they must not be negative");
    refused(rung_redistribute(multi, 2, -1, (const float *const *)p.a, 1, 1, &d[0], p.c, 1, 1, &d[2]),
            RUNG_INVALID_ARGUMENT, "m and n are 2 and -1: they must not be negative");
    refused(rung_redistribute(multi, 1, 1, (const float *const *)p.a, INT64_MIN, 1, &d[0], p.c, 1, 1, &d[2]),
            RUNG_INVALID_ARGUMENT, "elements of A from (-9223372036854775808, 1), counted from 1, are not inside");
    refused(rung_redistribute(multi, 1, 1, (const float *const *)p.a, 1, 1, &d[0], p.c, 1, INT64_MIN, &d[2]),
            RUNG_INVALID_ARGUMENT, "elements of B from (1, -9223372036854775808), counted from 1, are not inside");
    refused(rung_scatter(multi, 4, kept, 1000, p.a, &d[0]), RUNG_INVALID_ARGUMENT, "root is 4: ranks go from 0 to 3");
    refused(rung_gather(multi, 0, (const float *const *)p.a, &d[0], NULL, 1000), RUNG_INVALID_ARGUMENT,
            "whole is NULL on the root, rank 0");
    refused(rung_multi_create(NULL, NULL), RUNG_INVALID_ARGUMENT, "NULL");
    assert_ok(run(multi, &t, d, &p)); /* the context took no harm */
    parts_free(&p, 4);
    rung_multi_destroy(multi);
    rung_multi_destroy(NULL);
}

/* Each field of each descriptor, and each corner of each sub-matrix, one step outside what it may be. */
static void one_step_outside_is_refused(void **state)
{
    (void)state;
    rung_multi *multi = local(6);
    layout_case t = whole_case((grid){2, 3}, 40, 30, 50);
    memcpy(t.mb, (int64_t[]){7, 8, 9}, sizeof t.mb);
    memcpy(t.nb, (int64_t[]){8, 9, 7}, sizeof t.nb);
    rung_matrix good[3];
    parts p = {0};
    case_matrices(&t, good);
    parts_new(&p, good, 6, 0, &t);
    for (int i = 0; i < 3; i++)
        for (int field = 0; field < 14; field++) {
            layout_case other = t;
            rung_matrix d[3];
            memcpy(d, good, sizeof d);
            int64_t *const corner[] = {&other.ia, &other.ja, &other.ib, &other.jb, &other.ic, &other.jc};
            const int64_t rows[] = {t.m, t.k, t.m}, cols[] = {t.k, t.n, t.n};
            switch (field) {
            case 0: d[i].m = -1; break;
            case 1: d[i].n = -1; break;
            case 2: d[i].mb = 0; break;
            case 3: d[i].nb = 0; break;
            case 4: d[i].grid_rows = 0; break;
            case 5: d[i].grid_rows = 3; break; /* 3 x 3 ranks: there are 6 */
            case 6: d[i].row_source = d[i].grid_rows; break;
            case 7: d[i].col_source = d[i].grid_cols; break;
            case 8: d[i].ld = rung_matrix_rows(&d[i], 0) - 1; break;
            case 9: *corner[2 * i] = 0; break;
            case 10: *corner[2 * i] = d[i].m - rows[i] + 2; break;
            case 11: *corner[2 * i] = INT64_MIN; break;
            case 12: *corner[2 * i + 1] = INT64_MIN; break;
            default: *corner[2 * i + 1] = d[i].n - cols[i] + 2; break;
            }
            if (run(multi, &other, d, &p) != RUNG_INVALID_ARGUMENT || !strchr(rung_last_error(), 'A' + i))
                fail_msg("matrix %c, field %d: '%s'", 'A' + i, field, rung_last_error());
        }
    rung_matrix d[3]; /* and the last rank that a matrix may begin on */
    for (int last = 0; last < 6; last++) {
        memcpy(d, good, sizeof d);
        *(last % 2 ? &d[last / 2].col_source : &d[last / 2].row_source) = -1;
        assert_int_equal(run(multi, &t, d, &p), RUNG_INVALID_ARGUMENT);
    }
    assert_ok(run(multi, &t, good, &p));
    parts_free(&p, 6);
    rung_multi_destroy(multi);
}

static void missing_libraries(void **state)
{
    (void)state;
    rung_multi *multi = (rung_multi *)state;
    rung_multi_config config;
    rung_multi_config_init(&config);
    config.transport = RUNG_TRANSPORT_MPI;
    setenv("RUNG_MPI", "/nowhere/librung_mpi.so", 1);
    refused(rung_multi_create(&multi, &config), RUNG_MISSING_LIBRARY, "librung_mpi.so");
    assert_null(multi);
    setenv("RUNG_MPI", "libm.so.6", 1);
    refused(rung_multi_create(&multi, &config), RUNG_MISSING_LIBRARY,
            "is no MPI transport of Rung: it lacks rung_mpi_transport_open");
    unsetenv("RUNG_MPI");
    config.transport = RUNG_TRANSPORT_NCCL;
    setenv("RUNG_RANK", "0", 1);
    refused(rung_multi_create(&multi, &config), RUNG_INVALID_ARGUMENT, "RUNG_SIZE is 'not set'");
    setenv("RUNG_SIZE", "2", 1);
    refused(rung_multi_create(&multi, &config), RUNG_INVALID_ARGUMENT, "RUNG_ADDRESS");
    unsetenv("RUNG_RANK");
    unsetenv("RUNG_SIZE");
}

/* Each setting that a launcher gives and each field of the configuration: what cannot be is told, and by its value. */
static void settings_that_cannot_be_are_told(void **state)
{
    (void)state;
    static const char *const names[] = {"RUNG_RANK", "RUNG_SIZE", "RUNG_ADDRESS", "RUNG_SECRET"};
#define LAUNCHER ": a launcher sets RUNG_RANK (0, 1 ...), RUNG_SIZE and RUNG_ADDRESS (host:port, rank 0's)"
#define CHARACTERS_63 "012345678901234567890123456789012345678901234567890123456789012"
    static const struct {
        const char *values[4], *words;
    } cases[] = {
        {{"x", "2", "", ""}, "RUNG_RANK is 'x'" LAUNCHER},
        {{"-1", "2", "", ""}, "RUNG_RANK is '-1'" LAUNCHER},
        {{"1 ", "2", "", ""}, "RUNG_RANK is '1 '" LAUNCHER},
        {{"1048577", "2", "", ""}, "RUNG_RANK is '1048577'" LAUNCHER},
        {{"0", "0", "", ""}, "RUNG_SIZE is '0'" LAUNCHER},
        {{"0", "", "", ""}, "RUNG_SIZE is ''" LAUNCHER},
        {{"0", "1048577", "", ""}, "RUNG_SIZE is '1048577'" LAUNCHER},
        {{"2", "2", "", ""}, "RUNG_RANK is 2 but RUNG_SIZE 2"},
        {{"1048576", "1048576", "", ""}, "RUNG_RANK is 1048576 but RUNG_SIZE 1048576"},
        {{"0", "2", "", ""}, "RUNG_ADDRESS is not set: host:port where rank 0 can be reached"},
        {{"0", "2", "203.0.113.1:1", ""},
         "other machines can reach RUNG_ADDRESS 203.0.113.1:1: set RUNG_SECRET to the same text for every rank, so "
         "that strangers are not let in"},
        {{"0", "2", "203.0.113.1:1", CHARACTERS_63 "3"}, "RUNG_SECRET has 64 characters: at most 63 are used"},
        {{"0", "2", "127.0.0.1:0", CHARACTERS_63}, "rank 1 has not come within 0.1 s"},
    };
#undef LAUNCHER
    rung_multi *multi;
    rung_multi_config config;
    rung_multi_config_init(&config);
    config.transport = RUNG_TRANSPORT_NCCL;
    config.timeout_s = 0.1;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int j = 0; j < 4; j++)
            setenv(names[j], cases[i].values[j], 1);
        assert_int_not_equal(rung_multi_create(&multi, &config), RUNG_SUCCESS);
        if (!strstr(rung_last_error(), cases[i].words))
            fail_msg("'%s' does not say '%s'", rung_last_error(), cases[i].words);
    }
    for (int j = 0; j < 4; j++)
        unsetenv(names[j]);
#define wrong(field, value, words)                                                                                     \
    rung_multi_config_init(&config);                                                                                   \
    config.field = value;                                                                                              \
    refused(rung_multi_create(&multi, &config), RUNG_INVALID_ARGUMENT, words)
    wrong(transport, (rung_transport)3, "transport is 3: local (0), MPI (1) or NCCL (2)");
    wrong(transport, (rung_transport)-1, "transport is -1: local (0), MPI (1) or NCCL (2)");
    wrong(math, (rung_math)3, "math is 3: strict (0), accurate (1) or fast (2)");
    wrong(math, (rung_math)-1, "math is -1: strict (0), accurate (1) or fast (2)");
    wrong(ranks, -1, "ranks is -1: a process holds 1 to 64");
    wrong(ranks, 65, "ranks is 65: a process holds 1 to 64");
    wrong(threads, -1, "threads is -1: it must not be negative");
    wrong(timeout_s, -1.0, "timeout_s is -1: 0 (the default) or the longest wait in seconds");
    wrong(timeout_s, 1.1e9, "timeout_s is 1.1e+09: 0 (the default) or the longest wait in seconds");
    wrong(timeout_s, strtod("nan", NULL), "nan: 0 (the default) or the longest wait in seconds");
    wrong(memory_bytes, -1, "memory_bytes is -1: it must not be negative");
#undef wrong
}

/* Descriptors of all small numbers: what a rank holds is counted element by element; a number that cannot be is told by
 * the first call that uses it, whichever it is. */
static void descriptors_of_any_numbers(void **state)
{
    (void)state;
    enum { RANKS = 6, KINDS = 4, FIELDS = 6 };
    static const int64_t numbers[FIELDS][KINDS] = {{-1, 0, 1, 13}, {-3, 0, 5, 7}, {0, -1, 1, 4},
                                                   {0, -2, 3, 9},  {0, -1, 2, 3}, {0, -5, 1, 2}};
    static const char *const names[FIELDS] = {"m", "n", "mb", "nb", "grid_rows", "grid_cols"};
    rung_multi *multi = local(RANKS);
    float memory[256] = {0}, *places[RANKS];
    for (int i = 0; i < RANKS; i++)
        places[i] = memory;
    for (int at = 0; at < 1 << 2 * FIELDS; at++) {
        int64_t x[FIELDS];
        int wrong = -1;
        rung_matrix d;
        for (int i = FIELDS - 1; i >= 0; i--) {
            x[i] = numbers[i][at >> 2 * i & 3];
            wrong = x[i] < (i < 2 ? 0 : 1) ? i : wrong;
        }
        rung_matrix_init(&d, x[0], x[1], x[2], x[3], (int)x[4], (int)x[5]);
        if (wrong >= 0) {
            char words[64];
            snprintf(words, sizeof words, "descriptor of A: %s is %lld: ", names[wrong], (long long)x[wrong]);
            assert_int_equal(d.ld, 1);
            for (int rank = -1; rank <= RANKS; rank++) { /* how much to allocate is asked before any call */
                assert_int_equal(rung_matrix_rows(&d, rank), 0);
                assert_int_equal(rung_matrix_cols(&d, rank), 0);
            }
            assert_int_equal(rung_scatter(multi, 0, memory, 20, places, &d), RUNG_INVALID_ARGUMENT);
            if (!strstr(rung_last_error(), words))
                fail_msg("'%s' does not say '%s'", rung_last_error(), words);
            continue;
        }
        for (d.row_source = 0; d.row_source < d.grid_rows; d.row_source++)
            for (int rank = -2; rank < RANKS + 1; rank++) {
                const int row = rank / d.grid_cols, col = rank % d.grid_cols, inside = rank >= 0 && row < d.grid_rows;
                int64_t rows = 0, cols = 0;
                for (int64_t i = 0; i < d.m && inside; i++)
                    rows += (i / d.mb + d.row_source) % d.grid_rows == row;
                for (int64_t j = 0; j < d.n && inside; j++)
                    cols += j / d.nb % d.grid_cols == col;
                assert_int_equal(rung_matrix_rows(&d, rank), rows);
                assert_int_equal(rung_matrix_cols(&d, rank), cols);
                if (rank == 0 && d.row_source == 0)
                    assert_int_equal(d.ld, rows > 1 ? rows : 1);
            }
    }
    rung_multi_destroy(multi);
    rung_matrix d;
    rung_matrix_init(&d, 8, 8, 1, 1, 1 << 17, 1 << 17); /* more ranks than an int counts */
    assert_int_equal(rung_matrix_rows(&d, 0), 1);
    assert_int_equal(rung_matrix_cols(&d, 7), 1);
    assert_int_equal(rung_matrix_cols(&d, 8), 0);
    assert_int_equal(rung_matrix_rows(NULL, 0), 0);
    assert_int_equal(rung_matrix_cols(NULL, 0), 0);
}

/* C on an operand is refused as rung_sgemm refuses it: tiles of C that are done would be read as parts of A or B. C
 * between an operand's lines is not. */
static void a_result_on_its_operand_is_refused(void **state)
{
    (void)state;
    enum { N = 40 };
    rung_multi *multi = local(2);
    static float memory[3 * N * N], apart[N * N];
    for (int i = 0; i < 3 * N * N; i++)
        memory[i] = (float)(i % 7);
    float *a = memory, *b = memory + N * N, *on_a = a + N * N - 1, *on_b = b + 1;
    refused(rung_multi_sgemm(multi, RUNG_COL_MAJOR, 0, 0, N, N, N, 1.0f, a, N, b, N, 0.0f, a, N), RUNG_INVALID_ARGUMENT,
            "overlaps a (");
    refused(rung_multi_sgemm(multi, RUNG_ROW_MAJOR, 0, 0, N, N, N, 1.0f, a, N, b, N, 0.0f, on_b, N),
            RUNG_INVALID_ARGUMENT, "overlaps b (");
    refused(rung_multi_sgemm(multi, RUNG_COL_MAJOR, 0, 1, N, N, N, 1.0f, a, N, apart, N, 0.0f, on_a, N),
            RUNG_INVALID_ARGUMENT, "overlaps a (");
    assert_int_equal(rung_last_error_argument(), 12);
    assert_ok(rung_multi_sgemm(multi, RUNG_COL_MAJOR, 0, 0, N / 2, N, N, 1.0f, a, N, b, N, 0.0f, a + N / 2, N));
    assert_ok(rung_multi_sgemm(multi, RUNG_COL_MAJOR, 0, 0, N, N, N, 0.0f, a, N, b, N, 0.5f, a, N));
    rung_multi_destroy(multi);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(without_a_gpu_there_is_one_rank),
                                       cmocka_unit_test(every_layout),
                                       cmocka_unit_test(same_bits),
                                       cmocka_unit_test(several_panels),
                                       cmocka_unit_test(spans_say_what_ran),
                                       cmocka_unit_test(scatter_and_gather),
                                       cmocka_unit_test(bad_input),
                                       cmocka_unit_test(descriptors_of_any_numbers),
                                       cmocka_unit_test(one_step_outside_is_refused),
                                       cmocka_unit_test(host_operands),
                                       cmocka_unit_test(a_result_on_its_operand_is_refused),
                                       cmocka_unit_test(missing_libraries),
                                       cmocka_unit_test(settings_that_cannot_be_are_told),
                                       cmocka_unit_test(k_is_cut_as_the_environment_says)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
