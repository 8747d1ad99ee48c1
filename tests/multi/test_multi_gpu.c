/* Ranks on several GPUs of one process, against the stand-in for libcuda: every layout, streams that run at once or as
 * late as their dependencies allow (a missing one shows as a wrong result), every driver call failing once, nothing
 * leaked. usage: test_multi_gpu <stand-in> */
#include "../gpu/fake_libcuda.h"
#include "../support.h"
#include "layouts.h"
#include "rung_catalog.h"

#include <dirent.h>
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *stand_in;
static fake *gpu;

static int open_fake(void **state)
{
    (void)state;
    setenv("RUNG_LIBCUDA", stand_in, 1);
    setenv("RUNG_MULTI_PANEL", "96", 1);
    setenv("RUNG_MULTI_WAVE", "5000", 1);
    void *library = dlopen(stand_in, RTLD_NOW);
    fake_state_function *get;
    *(void **)&get = library ? dlsym(library, "fake_state") : NULL;
    gpu = get ? get() : NULL;
    assert_non_null(gpu);
    gpu->devices = 4;
    return 0;
}

static rung_status open_gpus(rung_multi **multi, int ranks, double timeout_s)
{
    rung_multi_config config;
    rung_multi_config_init(&config);
    config.ranks = ranks;
    config.timeout_s = timeout_s;
    return rung_multi_create(multi, &config);
}

typedef struct parts {
    float *host[3][4];
    void *device[3][4];
} parts;

static rung_status parts_new(rung_multi *multi, parts *p, const rung_matrix d[3], int ranks)
{
    rung_status status = RUNG_SUCCESS;
    for (int i = 0; i < 3; i++)
        for (int r = 0; r < ranks; r++) {
            int64_t cols = rung_matrix_cols(&d[i], r), bytes = d[i].ld * (cols > 0 ? cols : 1) * 4;
            p->host[i][r] = part_new(&d[i], r, i);
            if (status == RUNG_SUCCESS)
                status = rung_multi_alloc(multi, r, bytes, &p->device[i][r]);
            if (status == RUNG_SUCCESS)
                status = rung_multi_upload(multi, r, p->device[i][r], p->host[i][r], d[i].ld * cols * 4);
        }
    return status;
}

static void parts_free(rung_multi *multi, parts *p, int ranks)
{
    for (int i = 0; i < 3; i++)
        for (int r = 0; r < ranks; r++) {
            rung_multi_free(multi, r, p->device[i][r]);
            free(p->host[i][r]);
        }
}

static rung_status run(rung_multi *multi, const layout_case *t, const rung_matrix d[3], parts *p)
{
    return case_run(multi, t, d, (float *const *)p->device[0], (float *const *)p->device[1],
                    (float *const *)p->device[2]);
}

static int result_right(rung_multi *multi, const layout_case *t, const rung_matrix d[3], parts *p, int ranks)
{
    for (int r = 0; r < ranks; r++) {
        int64_t bytes = d[2].ld * rung_matrix_cols(&d[2], r) * 4;
        if (rung_multi_download(multi, r, p->host[2][r], p->device[2][r], bytes) != RUNG_SUCCESS ||
            !part_right(t, &d[2], r, p->host[2][r], 2.0 + (double)t->k))
            return 0;
    }
    return 1;
}

static void check(rung_multi *multi, const layout_case *t, int ranks)
{
    rung_matrix d[3];
    parts p = {0};
    case_matrices(t, d);
    assert_ok(parts_new(multi, &p, d, ranks));
    rung_status status = run(multi, t, d, &p);
    if (status != RUNG_SUCCESS || !result_right(multi, t, d, &p, ranks) || gpu->faults) {
        print_case(t);
        fail_msg("%s: %s, %d faults", rung_status_name(status), rung_last_error(), gpu->faults);
    }
    parts_free(multi, &p, ranks);
}

static layout_case large(int rows, int cols, int trans)
{
    layout_case t = large_case(rows, cols);
    t.trans_a = trans & 1;
    t.trans_b = trans >> 1;
    return t;
}

/* Panels alike, panels that grow and shrink, and the usual ones. */
static void choose_panels(int i)
{
    static const char *const panels[] = {"96", "64:200:96"};
    if (i % 4 < 2)
        setenv("RUNG_MULTI_PANEL", panels[i % 4], 1);
    else
        unsetenv("RUNG_MULTI_PANEL");
}

static void every_order_of_streams(void **state)
{
    (void)state;
    static const unsigned eager[] = {0u, ~0u, 0x55555555u, 0xccccccccu, 0x0f0f0f0fu, 0x01010101u, 0x80808080u};
    for (size_t i = 0; i < sizeof eager / sizeof *eager; i++) {
        rung_multi *multi;
        gpu->eager = eager[i];
        choose_panels((int)i);
        assert_ok(open_gpus(&multi, 4, 20.0));
        layout_case t = large(2, 2, (int)i % 4);
        check(multi, &t, 4);
        for (int j = 0; j < 12; j++) {
            t = case_at((int)i * 12 + j, 4, j % 2);
            check(multi, &t, 4);
        }
        rung_multi_destroy(multi);
    }
    uint64_t seed = 1;
    for (int i = 0; i < 16; i++) {
        rung_multi *multi;
        gpu->eager = (unsigned)pick(&seed, 1 << 30);
        choose_panels(i / 4);
        assert_ok(open_gpus(&multi, 4, 20.0));
        layout_case t = large(2, 2, i % 4);
        t.k = 300;
        check(multi, &t, 4);
        rung_multi_destroy(multi);
    }
    choose_panels(0);
    gpu->eager = 0;
}

static void fewer_ranks(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= 3; ranks++) {
        rung_multi *multi;
        assert_ok(open_gpus(&multi, ranks, 20.0));
        layout_case t = large(ranks, 1, 0);
        check(multi, &t, ranks);
        for (int j = 0; j < 12; j++) {
            t = case_at(j, ranks, 0);
            check(multi, &t, ranks);
        }
        rung_multi_destroy(multi);
    }
}

static char said[512]; /* by the last use, where it failed */

/* Makes one whole use in which the n-th driver call fails. It ends with the right result or with an error, and leaves
 * nothing; where all later calls fail too, as on a GPU that is lost, it only ends. */
static int use(long fail_call, int all_later)
{
    rung_multi *multi = NULL;
    parts p = {0};
    rung_matrix d[3];
    layout_case t = case_at(9, 2, 1);
    t.m = t.n = 40, t.k = 200, t.alpha = 1.0f;
    case_matrices(&t, d);
    int memory = gpu->memory, events = gpu->events, streams = gpu->streams, pinned = gpu->pinned;
    gpu->calls = 0;
    gpu->fail_call = fail_call;
    gpu->lost_call = all_later ? fail_call : 0;
    gpu->fail_result = 719;
    rung_status status = open_gpus(&multi, 2, 20.0);
    if (status == RUNG_SUCCESS) {
        status = parts_new(multi, &p, d, 2);
        if (status == RUNG_SUCCESS)
            status = run(multi, &t, d, &p);
    }
    int failed = gpu->calls >= fail_call && fail_call > 0;
    snprintf(said, sizeof said, "%s", status == RUNG_SUCCESS ? "" : rung_last_error());
    if (all_later)
        return failed;
    gpu->fail_call = 0;
    if (status == RUNG_SUCCESS && multi)
        assert_true(result_right(multi, &t, d, &p, 2));
    if (status != RUNG_SUCCESS && !strstr(rung_last_error(), " failed: CUDA_ERROR_"))
        fail_msg("call %ld failing is told as: %s", fail_call, rung_last_error());
    parts_free(multi, &p, 2);
    rung_multi_destroy(multi);
    if (gpu->memory != memory || gpu->events != events || gpu->streams != streams || gpu->pinned != pinned)
        fail_msg("call %ld failing leaves %d blocks, %d events, %d streams, %d pinned", fail_call, gpu->memory - memory,
                 gpu->events - events, gpu->streams - streams, gpu->pinned - pinned);
    return failed;
}

/* Of calls that fail one after another the first one is told. */
static void assert_the_first_is_told(long call)
{
    char alone[sizeof said];
    memcpy(alone, said, sizeof said);
    pid_t child = fork();
    if (child == 0) {
        use(call, 1);
        if (strcmp(said, alone) != 0)
            print_error("call %ld alone: %s\nbefore others: %s\n", call, alone, said);
        _exit(strcmp(said, alone) != 0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void every_call_may_fail(void **state)
{
    (void)state;
    long n = 1;
    use(0, 0); /* loads kernels, which stay */
    while (use(n, 0)) {
        if (said[0] && n % 3 == 0)
            assert_the_first_is_told(n);
        n++;
    }
    assert_true(n > 200);
    assert_int_equal(gpu->faults, 0);
}

static void host_case(rung_multi *multi, int i, int pinned, int64_t m, int64_t n, int64_t k)
{
    product p;
    product_new(&p, i & 4 ? RUNG_ROW_MAJOR : RUNG_COL_MAJOR, i & 1, i >> 1 & 1, m, n, k, i % 3, 1, (uint64_t)i);
    p.gemm.alpha = i == 7 ? 0.0f : 0.5f;
    p.gemm.beta = i % 3 == 0 ? 0.0f : -0.5f;
    product_reset(&p);
    rung_gemm *g = &p.gemm;
    const float *from[3] = {g->a, g->b, g->c};
    size_t counts[3] = {p.count_a, p.count_b, p.count_c};
    float *at[3] = {(float *)(uintptr_t)g->a, (float *)(uintptr_t)g->b, g->c};
    for (int j = 0; j < 3 && pinned; j++) {
        assert_ok(rung_multi_host_alloc(multi, (int64_t)counts[j] * 4, (void **)&at[j]));
        memcpy(at[j], from[j], counts[j] * 4);
    }
    assert_ok(rung_multi_sgemm(multi, g->layout, g->trans_a, g->trans_b, m, n, k, g->alpha, at[0], g->lda, at[1],
                               g->ldb, g->beta, at[2], g->ldc));
    if (pinned)
        memcpy(g->c, at[2], counts[2] * 4);
    for (int j = 0; j < 3 && pinned; j++)
        rung_multi_host_free(multi, at[j]);
    product_check(&p, pinned ? "operands in pinned memory" : "operands in host memory");
    product_free(&p);
    assert_int_equal(gpu->faults, 0);
}

/* Multiplies operands in pageable memory, which reach the GPUs and leave them by way of pinned buffers. */
static rung_status run_from_host(rung_multi *multi, product *p)
{
    const rung_gemm *g = &p->gemm;
    return rung_multi_sgemm(multi, g->layout, g->trans_a, g->trans_b, g->m, g->n, g->k, g->alpha, g->a, g->lda, g->b,
                            g->ldb, g->beta, g->c, g->ldc);
}

static int threads_now(void)
{
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    assert_non_null(tasks);
    for (const struct dirent *task; (task = readdir(tasks));)
        count += task->d_name[0] != '.';
    closedir(tasks);
    return count;
}

/* The process may use one thread: it copies by itself, however many CPUs there are. (Before other tests: workers stay.)
 */
static void copies_keep_to_the_threads_of_the_process(void **state)
{
    (void)state;
    rung_multi *multi;
    assert_ok(open_gpus(&multi, 2, 20.0));
    host_case(multi, 2, 1, 300, 200, 100); /* what else there is of threads has started */
    const int before = threads_now();
    assert_ok(rung_process_set_threads(1));
    host_case(multi, 2, 0, 300, 200, 100);
    assert_ok(rung_process_set_threads(0));
    assert_true(threads_now() <= before);
    rung_multi_destroy(multi);
}

/* What a failed product would still have brought to host memory does not come with the next one. */
static void a_failed_product_is_forgotten(void **state)
{
    (void)state;
    rung_multi *multi;
    product p, q;
    product_new(&p, RUNG_COL_MAJOR, 0, 0, 40, 30, 20, 1, 1, 1);
    product_new(&q, RUNG_COL_MAJOR, 0, 0, 50, 20, 10, 1, 1, 2);
    float *were = malloc(p.count_c * 4);
    int gone_on = 0;
    assert_ok(open_gpus(&multi, 2, 20.0));
    product_reset(&p);
    assert_ok(run_from_host(multi, &p)); /* loads kernels and fills the rings */
    gpu->calls = 0;
    product_reset(&p);
    assert_ok(run_from_host(multi, &p));
    const long calls = gpu->calls;
    assert_true(calls > 10);
    for (long call = 1; call <= calls; call++) {
        product_reset(&p);
        product_reset(&q);
        gpu->calls = 0;
        gpu->fail_call = call;
        gpu->fail_result = 719;
        const rung_status failed = run_from_host(multi, &p);
        gpu->fail_call = 0;
        if (failed != RUNG_SUCCESS &&
            (failed != RUNG_DEVICE_ERROR || !strstr(rung_last_error(), " failed: CUDA_ERROR_")))
            fail_msg("call %ld of %ld failing is told as: %s", call, calls, rung_last_error());
        memcpy(were, p.gemm.c, p.count_c * 4);
        if (run_from_host(multi, &q) != RUNG_SUCCESS) { /* a GPU that could not be waited for is given up */
            assert_non_null(strstr(rung_last_error(), "can only be destroyed"));
            rung_multi_destroy(multi);
            assert_ok(open_gpus(&multi, 2, 20.0));
            continue;
        }
        gone_on += failed != RUNG_SUCCESS;
        product_check(&q, "after one that failed");
        if (memcmp(were, p.gemm.c, p.count_c * 4) != 0)
            fail_msg("call %ld of %ld failing: the next product wrote into the failed one's C", call, calls);
    }
    assert_true(gone_on > 10);
    rung_multi_destroy(multi);
    free(were);
    product_free(&p);
    product_free(&q);
}

/* A whole matrix in host memory is dealt out to the GPUs and collected again. */
static void whole_matrices_come_and_go(void **state)
{
    (void)state;
    enum { M = 71, N = 45, PAD = 3, RANKS = 4 };
    rung_multi *multi;
    rung_matrix d;
    float *whole = malloc((M + PAD) * N * sizeof *whole), *back = calloc(M * N, sizeof *back);
    void *local[RANKS];
    for (int j = 0; j < N; j++)
        for (int i = 0; i < M + PAD; i++)
            whole[i + j * (M + PAD)] = i < M ? (float)(i * N + j) : NAN;
    assert_ok(open_gpus(&multi, RANKS, 20.0));
    rung_matrix_init(&d, M, N, 5, 9, 2, 2);
    d.row_source = 1;
    for (int r = 0; r < RANKS; r++)
        assert_ok(rung_multi_alloc(multi, r, d.ld * (rung_matrix_cols(&d, r) + 1) * 4, &local[r]));
    assert_ok(rung_scatter(multi, 3, whole, M + PAD, (float *const *)local, &d));
    assert_ok(rung_gather(multi, 1, (const float *const *)local, &d, back, M));
    for (int j = 0; j < N; j++)
        for (int i = 0; i < M; i++)
            assert_true(back[i + j * M] == (float)(i * N + j));
    for (int r = 0; r < RANKS; r++)
        rung_multi_free(multi, r, local[r]);
    rung_multi_destroy(multi);
    free(whole);
    free(back);
    assert_int_equal(gpu->faults, 0);
}

/* Panels of 96, tiles of C that do not fit at once, both kinds of host memory, any order of streams. */
static void host_operands(void **state)
{
    (void)state;
    uint64_t seed = 5;
    for (int ranks = 1; ranks <= 4; ranks++)
        for (int i = 0; i < 10; i++) {
            rung_multi *multi;
            rung_multi_config config;
            rung_multi_config_init(&config);
            config.ranks = ranks;
            config.memory_bytes = i % 2 ? 3 << 20 : 0; /* room for tiles of some 256 x 512 */
            gpu->eager = i < 2 ? (unsigned)-i : (unsigned)pick(&seed, 1 << 30);
            choose_panels(i / 2);
            assert_ok(rung_multi_create(&multi, &config));
            host_case(multi, i, i % 4 < 2, 1 + (i * 397 + ranks * 100) % 900, 1 + (i * 211) % 700, 40 * i);
            rung_multi_destroy(multi);
        }
    choose_panels(0);
    gpu->eager = 0;
}

/* What a context has borrowed for a product is its own for the next one: that goes in the same tiles, and nothing is
 * borrowed anew. */
static void products_run_again_in_their_memory(void **state)
{
    (void)state;
    const int64_t there = gpu->memory_left;
    for (int i = 0; i < 4; i++) {
        rung_multi *multi;
        const int ranks = 1 + i % 2;
        gpu->memory_left = (int64_t)(3 + i) << 20; /* all of each GPU, which is less than the product takes at once */
        assert_ok(open_gpus(&multi, ranks, 20.0));
        const int64_t before = gpu->held_bytes;
        gpu->moved_bytes = 0;
        host_case(multi, i, 1, 900, 1000, 300);
        const int64_t moved = gpu->moved_bytes, held = gpu->held_bytes - before;
        assert_true(held > 0);
        gpu->memory_left -= held / ranks;
        for (int again = 0; again < 2; again++) {
            gpu->moved_bytes = 0;
            host_case(multi, i, 1, 900, 1000, 300);
            assert_int_equal(gpu->moved_bytes, moved);
            assert_int_equal(gpu->held_bytes - before, held);
        }
        rung_multi_destroy(multi);
        gpu->memory_left = there;
    }
}

/* GPUs lie in a grid over C by which the least has to come to them: each row of it has its rows of A, each column its
 * columns of B. */
static void the_least_is_brought(void **state)
{
    (void)state;
    static const int64_t shapes[][2] = {{900, 40}, {40, 900}, {300, 300}, {700, 300}, {1, 500}, {500, 1}};
    enum { K = 90 };
    for (int ranks = 1; ranks <= 4; ranks++)
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
            rung_multi *multi;
            const int64_t m = shapes[i][0], n = shapes[i][1];
            int64_t least = INT64_MAX;
            for (int rows = 1; rows <= ranks; rows++) {
                const int64_t bytes = 4 * K * (m * (ranks / rows) + n * rows);
                least = ranks % rows == 0 && bytes < least ? bytes : least;
            }
            assert_ok(open_gpus(&multi, ranks, 20.0));
            gpu->moved_bytes = 0;
            host_case(multi, 12, 1, m, n, K); /* beta is 0, nothing transposed */
            if (gpu->moved_bytes != least)
                fail_msg("%lld x %lld x %d on %d GPUs moves %lld bytes, the least is %lld", (long long)m, (long long)n,
                         K, ranks, (long long)gpu->moved_bytes, (long long)least);
            rung_multi_destroy(multi);
        }
}

/* Many tiles of C through few buffers, with one stream that hurries or one that dawdles, whichever: nothing is begun
 * where what lies there is still on its way, with and without an old C. */
static void tiles_wait_for_their_buffers(void **state)
{
    (void)state;
    enum { STREAMS = 12 };
    for (int form = 0; form < 4; form++) {
        rung_multi *multi;
        rung_multi_config config;
        rung_multi_config_init(&config);
        config.ranks = 1 + form % 2;
        config.memory_bytes = 1 << 20;
        choose_panels(form);
        gpu->eager = 0;
        assert_ok(rung_multi_create(&multi, &config));
        for (int stream = 0; stream < 2 * STREAMS; stream++) {
            gpu->eager = stream < STREAMS ? 1u << stream : ~(1u << (stream - STREAMS));
            host_case(multi, form < 2 ? 0 : 1, form & 1, 900, 1100, 12); /* four tiles down: slots are three */
        }
        rung_multi_destroy(multi);
    }
    choose_panels(0);
    gpu->eager = 0;
}

/* More pieces than a ring has buffers; bands. */
static void large_host_operands(void **state)
{
    (void)state;
    rung_multi *multi;
    assert_ok(open_gpus(&multi, 1, 20.0));
    host_case(multi, 1, 0, 3000, 2600, 5);
    host_case(multi, 2, 1, 2600, 3000, 5);
    host_case(multi, 1, 0, 150001, 1, 3); /* one line alone is cut before threads copy it */
    host_case(multi, 5, 0, 1, 150001, 3);
    rung_multi_destroy(multi);
    assert_ok(open_gpus(&multi, 4, 20.0));
    host_case(multi, 3, 1, 5000, 4200, 2);
    rung_multi_destroy(multi);
    rung_multi_config config;
    rung_multi_config_init(&config);
    config.memory_bytes = 1 << 19;
    product p;
    product_new(&p, RUNG_COL_MAJOR, 0, 0, 600, 600, 500, 0, 1, 1);
    assert_ok(rung_multi_create(&multi, &config));
    assert_int_equal(rung_multi_sgemm(multi, RUNG_COL_MAJOR, 0, 0, 600, 600, 500, 1.0f, p.gemm.a, p.gemm.lda, p.gemm.b,
                                      p.gemm.ldb, 0.0f, p.gemm.c, p.gemm.ldc),
                     RUNG_OUT_OF_MEMORY);
    assert_non_null(strstr(rung_last_error(), "smallest tile"));
    rung_multi_destroy(multi);
    product_free(&p);
}

/* What a larger product did not get of memory is asked for anew, and what a smaller one had before it is gone. */
static void memory_that_was_refused_is_not_there(void **state)
{
    (void)state;
    rung_multi *multi;
    product large;
    product_new(&large, RUNG_COL_MAJOR, 0, 0, 400, 300, 200, 0, 1, 1);
    large.gemm.beta = 0.0f;
    assert_ok(open_gpus(&multi, 2, 20.0));
    host_case(multi, 1, 0, 200, 150, 100);
    gpu->fail_name = "cuMemAlloc_v2";
    gpu->fail_result = 2;
    assert_int_equal(run_from_host(multi, &large), RUNG_OUT_OF_MEMORY);
    gpu->fail_name = NULL;
    host_case(multi, 1, 0, 200, 150, 100);
    product_reset(&large);
    assert_ok(run_from_host(multi, &large));
    product_check(&large, "after memory was refused");
    rung_multi_destroy(multi);
    product_free(&large);
}

/* A broken context answers each call by the failure that broke it, and moves nothing any more, though the GPUs would.
 */
static void is_of_no_more_use(rung_multi *multi, const layout_case *t, const rung_matrix d[3], parts *p)
{
    float whole[4] = {0.0f};
    float *const *const device[3] = {(float *const *)p->device[0], (float *const *)p->device[1],
                                     (float *const *)p->device[2]};
    const long calls = gpu->calls;
    for (int call = 0; call < 8; call++) {
        const rung_status status =
            call == 0 ? run(multi, t, d, p)
            : call == 1
                ? rung_redistribute(multi, 1, 1, (const float *const *)device[0], 1, 1, &d[0], device[2], 1, 1, &d[2])
            : call == 2 ? rung_scatter(multi, 0, p->host[0][0], d[0].m, device[0], &d[0])
            : call == 3 ? rung_gather(multi, 0, (const float *const *)device[0], &d[0], p->host[0][0], d[0].m)
            : call == 4 ? rung_multi_sgemm(multi, RUNG_COL_MAJOR, 0, 0, 1, 1, 1, 1.0f, whole, 1, whole + 1, 1, 0.0f,
                                           whole + 2, 1)
            : call == 5 ? rung_multi_upload(multi, 0, p->device[0][0], whole, 4)
            : call == 6 ? rung_multi_download(multi, 0, whole, p->device[0][0], 4)
                        : rung_multi_barrier(multi);
        assert_int_equal(status, RUNG_DEVICE_ERROR);
        if (!strstr(rung_last_error(), "can only be destroyed, since an earlier call failed: ") ||
            !strstr(rung_last_error(), "not finished within"))
            fail_msg("call %d of a broken context: %s", call, rung_last_error());
    }
    assert_int_equal(gpu->calls, calls);
}

/* A GPU that never finishes: the call ends with an error in time, the context is of no more use, its memory stays. */
static void a_lost_gpu(void **state)
{
    (void)state;
    rung_multi *multi;
    parts p = {0};
    rung_matrix d[3];
    layout_case t = large(2, 1, 0);
    case_matrices(&t, d);
    assert_ok(open_gpus(&multi, 2, 2.0));
    assert_ok(parts_new(multi, &p, d, 2));
    gpu->fail_name = "cuStreamQuery";
    gpu->fail_result = 600; /* not ready */
    assert_int_equal(run(multi, &t, d, &p), RUNG_DEVICE_ERROR);
    assert_non_null(strstr(rung_last_error(), "not finished within"));
    is_of_no_more_use(multi, &t, d, &p);
    int memory = gpu->memory;
    parts_free(multi, &p, 2);
    rung_multi_destroy(multi);
    assert_int_equal(gpu->memory, memory);
    gpu->fail_name = NULL;
}

static void spans_are_taken(void **state)
{
    (void)state;
    rung_multi *multi;
    const rung_span *spans;
    assert_ok(open_gpus(&multi, 4, 20.0));
    assert_ok(rung_multi_trace(multi, 1));
    layout_case t = large(2, 2, 0);
    check(multi, &t, 4);
    int count = rung_multi_spans(multi, &spans), products = 0, copies = 0;
    for (int i = 0; i < count; i++) {
        products += strncmp(spans[i].lane, "product", 7) == 0;
        copies += strcmp(spans[i].lane, "copy in") == 0;
        assert_in_range(spans[i].rank, 0, 3);
    }
    assert_true(products >= 4 * 6 && copies >= 4 * 6);
    for (int i = 0; i < 6; i++) /* more than a list of them has room for at first */
        check(multi, &t, 4);
    const int more = rung_multi_spans(multi, &spans);
    assert_true(more >= 7 * (count - 4) && more > 4 * 64);
    for (int i = 0; i < more; i++)
        assert_true(spans[i].rank >= 0 && spans[i].rank < 4 && spans[i].stop_us >= spans[i].start_us &&
                    spans[i].lane[0] && spans[i].what);
    assert_ok(rung_multi_trace(multi, 0));
    rung_multi_destroy(multi);
}

/* Returns which arithmetic and chips the launched kernels are made for: a bit for each pair. */
static unsigned made_for(void)
{
    static const int archs[] = {75, 80, 90};
    unsigned seen = 0;
    for (const char *line = gpu->launched; *line; line = strchr(line, '\n') + 1)
        for (int i = 0; i < rung_kernel_count(); i++) {
            const rung_kernel *kernel = rung_kernel_at(i);
            const size_t length = strlen(kernel->name);
            for (int arch = 0; arch < 3 && strncmp(line, kernel->name, length) == 0; arch++)
                seen |= (kernel->arch == archs[arch]) << (8 * arch + (int)kernel->arith);
        }
    return seen;
}

/* Multiplies without looking at the result; returns what the kernels were made for. */
static unsigned kernels_for(rung_multi *multi, int64_t m, int64_t n, int64_t k)
{
    const int64_t shape[3][2] = {{m, k}, {k, n}, {m, n}};
    rung_matrix d[3];
    void *at[3];
    for (int i = 0; i < 3; i++) {
        rung_matrix_init(&d[i], shape[i][0], shape[i][1], 64, 64, 1, 1);
        assert_ok(rung_multi_alloc(multi, 0, shape[i][0] * shape[i][1] * 4, &at[i]));
    }
    const float *a = at[0], *b = at[1];
    float *c = at[2];
    gpu->launched[0] = 0;
    assert_ok(rung_psgemm(multi, RUNG_NO_TRANS, RUNG_NO_TRANS, m, n, k, 1.0f, &a, 1, 1, &d[0], &b, 1, 1, &d[1], 0.0f,
                          &c, 1, 1, &d[2]));
    for (int i = 0; i < 3; i++)
        rung_multi_free(multi, 0, at[i]);
    return made_for();
}

/* Products over ranks have bits that depend on k alone: also a small one, for which another kernel would be faster,
 * goes by the arithmetic of a large one. */
static void arithmetic_does_not_depend_on_sizes(void **state)
{
    (void)state;
    static const int64_t sizes[][2] = {{1500, 1200}, {8, 8}, {64, 200}, {129, 1}, {500, 300}, {40, 1500}};
    static const int64_t depths[] = {1, 7, 33, 130, 1000};
    gpu->arch = 90;
    gpu->idle = 1;
    setenv("RUNG_MULTI_PANEL", "1000", 1);
    for (int math = RUNG_STRICT; math <= RUNG_FAST; math++) {
        rung_multi_config config;
        rung_multi *multi;
        rung_multi_config_init(&config);
        config.ranks = 1;
        config.math = (rung_math)math;
        assert_ok(rung_multi_create(&multi, &config));
        for (size_t i = 0; i < sizeof depths / sizeof *depths; i++) {
            const unsigned first = kernels_for(multi, sizes[0][0], sizes[0][1], depths[i]);
            assert_true(first != 0);
            for (size_t j = 1; j < sizeof sizes / sizeof *sizes; j++)
                if (kernels_for(multi, sizes[j][0], sizes[j][1], depths[i]) != first)
                    fail_msg("math %d: %lld x %lld x %lld goes by kernels of other arithmetic than %lld x %lld:\n%s",
                             math, (long long)sizes[j][0], (long long)sizes[j][1], (long long)depths[i],
                             (long long)sizes[0][0], (long long)sizes[0][1], gpu->launched);
        }
        rung_multi_destroy(multi);
    }
    choose_panels(0);
    gpu->idle = 0;
    gpu->arch = 80;
    assert_int_equal(gpu->faults, 0);
}

/* A copy that is not waited for does not come later, into memory that the caller has given to others. */
static void a_failed_download_is_over(void **state)
{
    (void)state;
    enum { FLOATS = 64, CALLS = 40 };
    float *to = malloc(FLOATS * sizeof *to), *from = calloc(FLOATS, sizeof *from);
    int failed = 0;
    gpu->eager = 0; /* a copy is made once somebody asks for it */
    for (long call = 1; call <= CALLS; call++) {
        rung_multi *multi;
        void *device;
        assert_ok(open_gpus(&multi, 1, 20.0));
        assert_ok(rung_multi_alloc(multi, 0, FLOATS * 4, &device));
        assert_ok(rung_multi_upload(multi, 0, device, from, FLOATS * 4));
        gpu->calls = 0;
        gpu->fail_call = call;
        gpu->fail_result = 719;
        const rung_status status = rung_multi_download(multi, 0, to, device, FLOATS * 4);
        gpu->fail_call = 0;
        failed += status != RUNG_SUCCESS;
        for (int i = 0; i < FLOATS; i++)
            to[i] = 5.0f;
        rung_multi_free(multi, 0, device);
        rung_multi_destroy(multi);
        for (int i = 0; i < FLOATS; i++)
            if (to[i] != 5.0f)
                fail_msg("call %ld failing: what was downloaded came after the call", call);
    }
    assert_true(failed > 3);
    free(to);
    free(from);
}

/* A GPU that reaches no more others by itself is copied from and to by the driver, as one that reaches none. */
static void gpus_may_reach_too_many(void **state)
{
    (void)state;
    rung_multi *multi;
    layout_case t = large(2, 2, 1);
    gpu->fail_name = "cuCtxEnablePeerAccess";
    gpu->fail_result = 711;
    assert_ok(open_gpus(&multi, 4, 20.0));
    gpu->fail_name = NULL;
    check(multi, &t, 4);
    rung_multi_destroy(multi);
}

static void devices_are_checked(void **state)
{
    (void)state;
    rung_multi *multi;
    assert_int_equal(open_gpus(&multi, 5, 1.0), RUNG_NO_DEVICE);
    assert_non_null(strstr(rung_last_error(), "GPU 4 was asked for, this machine has 4"));
    const int mixed[] = {0, RUNG_DEVICE_CPU};
    rung_multi_config config;
    rung_multi_config_init(&config);
    config.ranks = 2;
    config.devices = mixed;
    assert_int_equal(rung_multi_create(&multi, &config), RUNG_INVALID_ARGUMENT);
    assert_non_null(strstr(rung_last_error(), "all GPUs or all CPUs"));
}

static int open_before;

static int things_open(void)
{
    return gpu->memory + gpu->pinned + gpu->streams + gpu->events;
}

/* Whatever the test before left behind when it failed. */
static int no_failure(void **state)
{
    (void)state;
    gpu->fail_name = NULL;
    gpu->fail_call = 0;
    open_before = things_open();
    return 0;
}

/* Contexts are closed with all that they had. */
static int nothing_left_open(void **state)
{
    (void)state;
    if (things_open() > open_before)
        print_error("%d blocks, %d pinned ones, %d streams, %d events are open, %d things more than before\n",
                    gpu->memory, gpu->pinned, gpu->streams, gpu->events, things_open() - open_before);
    return things_open() > open_before;
}

int main(int argc, char **argv)
{
    stand_in = argc > 1 ? argv[1] : "";
    if (argc > 2) /* these tests alone, such as 'tiles*' */
        cmocka_set_test_filter(argv[2]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(copies_keep_to_the_threads_of_the_process, no_failure, nothing_left_open),
        cmocka_unit_test_setup_teardown(every_order_of_streams, no_failure, nothing_left_open),
        cmocka_unit_test_setup_teardown(fewer_ranks, no_failure, nothing_left_open),
        cmocka_unit_test_setup_teardown(every_call_may_fail, no_failure, NULL),
        cmocka_unit_test_setup_teardown(a_lost_gpu, no_failure, NULL),
        cmocka_unit_test_setup_teardown(host_operands, no_failure, nothing_left_open),
        cmocka_unit_test_setup_teardown(products_run_again_in_their_memory, no_failure, nothing_left_open),
        cmocka_unit_test_setup_teardown(the_least_is_brought, no_failure, nothing_left_open),
        cmocka_unit_test_setup_teardown(tiles_wait_for_their_buffers, no_failure, nothing_left_open),
        cmocka_unit_test_setup_teardown(large_host_operands, no_failure, nothing_left_open),
        cmocka_unit_test_setup_teardown(memory_that_was_refused_is_not_there, no_failure, nothing_left_open),
        cmocka_unit_test_setup_teardown(a_failed_product_is_forgotten, no_failure, nothing_left_open),
        cmocka_unit_test_setup_teardown(whole_matrices_come_and_go, no_failure, nothing_left_open),
        cmocka_unit_test_setup_teardown(spans_are_taken, no_failure, nothing_left_open),
        cmocka_unit_test_setup_teardown(arithmetic_does_not_depend_on_sizes, no_failure, nothing_left_open),
        cmocka_unit_test_setup_teardown(a_failed_download_is_over, no_failure, nothing_left_open),
        cmocka_unit_test_setup_teardown(gpus_may_reach_too_many, no_failure, nothing_left_open),
        cmocka_unit_test_setup_teardown(devices_are_checked, no_failure, nothing_left_open)};
    return cmocka_run_group_tests(tests, open_fake, NULL);
}
