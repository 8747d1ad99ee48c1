/* Every allocation the library makes fails, once and for good: the call must answer RUNG_OUT_OF_MEMORY or cope, and
 * nothing may leak; on the CPU, and with a stand-in for libcuda on GPUs, alone and several. This program's malloc and
 * pthread_create stand in for glibc's; they fail, and keep count, only for calls from librung. Not for sanitizer
 * builds, which bring their own malloc. usage: test_alloc [STAND_IN_FOR_LIBCUDA] */
#define _GNU_SOURCE /* dl_iterate_phdr, RTLD_NEXT */
#include "gpu/fake_libcuda.h"
#include "support.h"

#include "rung_multi.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void __libc_free(void *);

enum { MOST_LIVE = 4096 };

static uintptr_t library_begin, library_end;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *live[MOST_LIVE];
static int live_count;
static long seen, fail_at; /* 1 is the first allocation; 0: none fails */
static int for_good;       /* all after it fail, too */

/* Counts a call from librung. Returns 1 when it is the one to fail. */
static int fails(const void *caller)
{
    if ((uintptr_t)caller < library_begin || (uintptr_t)caller >= library_end)
        return 0;
    pthread_mutex_lock(&lock);
    const long now = ++seen;
    const int result = now == fail_at || (for_good && fail_at && now > fail_at);
    pthread_mutex_unlock(&lock);
    return result;
}

static void *remember(const void *caller, void *memory)
{
    if (!memory || (uintptr_t)caller < library_begin || (uintptr_t)caller >= library_end)
        return memory;
    pthread_mutex_lock(&lock);
    if (live_count < MOST_LIVE)
        live[live_count++] = memory;
    pthread_mutex_unlock(&lock);
    return memory;
}

static void forget(const void *memory)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < live_count; i++)
        if (live[i] == memory) {
            live[i] = live[--live_count];
            break;
        }
    pthread_mutex_unlock(&lock);
}

#define CALLER __builtin_return_address(0)
#pragma GCC visibility push(default) /* librung must find these */

void *malloc(size_t bytes)
{
    return fails(CALLER) ? NULL : remember(CALLER, __libc_malloc(bytes));
}

void *calloc(size_t count, size_t bytes)
{
    return fails(CALLER) ? NULL : remember(CALLER, __libc_calloc(count, bytes));
}

void *realloc(void *memory, size_t bytes)
{
    if (fails(CALLER))
        return NULL;
    forget(memory);
    return remember(CALLER, __libc_realloc(memory, bytes));
}

void *memalign(size_t alignment, size_t bytes);
void *memalign(size_t alignment, size_t bytes)
{
    return fails(CALLER) ? NULL : remember(CALLER, __libc_memalign(alignment, bytes));
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    return fails(CALLER) ? NULL : remember(CALLER, __libc_memalign(alignment, bytes));
}

int posix_memalign(void **memory, size_t alignment, size_t bytes)
{
    if (fails(CALLER))
        return ENOMEM;
    *memory = remember(CALLER, __libc_memalign(alignment, bytes));
    return *memory ? 0 : ENOMEM;
}

void free(void *memory)
{
    if (memory && live_count)
        forget(memory);
    __libc_free(memory);
}

int pthread_create(pthread_t *restrict thread, const pthread_attr_t *restrict attributes, void *(*start)(void *),
                   void *restrict argument)
{
    int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    *(void **)&next = dlsym(RTLD_NEXT, "pthread_create");
    return fails(CALLER) ? EAGAIN : next(thread, attributes, start, argument);
}

#pragma GCC visibility pop

static int find_library(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size, (void)data;
    if (!strstr(info->dlpi_name, "librung.so"))
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X) {
            library_begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            library_end = library_begin + info->dlpi_phdr[i].p_memsz;
        }
    return 1;
}

static float *operands;

/* Returns 1 when the status is one that a failed allocation may give. */
/* Returns whether a call has succeeded, or says what there was no memory for. */
static int fair(rung_status status)
{
    return status == RUNG_SUCCESS || (status == RUNG_OUT_OF_MEMORY && strstr(rung_last_error(), "no memory") != NULL);
}

static int right(rung_status status, const float *c, int64_t k)
{
    return status == RUNG_OUT_OF_MEMORY || (status == RUNG_SUCCESS && fabsf(c[0] - (float)k) <= 1e-3f * (float)k);
}

static fake *gpu; /* NULL: on the CPU */

/* ---- GPUs: kernels do nothing, so that only answers are looked at, and what stays open ---- */

static int wrong_at(int wrong, rung_status status, int line)
{
    return wrong ? wrong : fair(status) ? 0 : line;
}

/* Products from host memory by every mode, batched and not, kernels by name, plans that are printed, sums. */
static int on_one_gpu(void)
{
    static const char *const kernels[] = {"l02_coalesced", "r05_shuffle"};
    rung_config config;
    rung_context *context = NULL;
    int wrong = 0;
    rung_config_init(&config);
    config.device = 0;
    rung_status status = rung_context_create(&context, &config);
    if (status != RUNG_SUCCESS)
        return wrong_at(!fair(status) || context, status, __LINE__);
    for (int i = 0; i < 9; i++) {
        static const int64_t sizes[][3] = {{600, 300, 200}, {1, 400, 400}, {40, 40, 3000}};
        const int64_t *s = sizes[i / 3];
        rung_gemm g;
        rung_plan *plan = NULL;
        rung_gemm_init(&g);
        g.m = g.lda = g.ldc = s[0], g.n = s[1], g.k = g.ldb = s[2];
        g.a = operands, g.b = operands + (1 << 20), g.c = operands + (2 << 20);
        if (i % 2)
            g.batch = 2, g.stride_c = s[0] * s[1];
        wrong = wrong_at(wrong, rung_context_set_math(context, (rung_math)(i % 3)), __LINE__);
        wrong = wrong_at(wrong, rung_gemm_run(context, &g), __LINE__);
        status = rung_plan_create(&plan, context, &g);
        wrong = wrong_at(wrong, status, __LINE__);
        if (status == RUNG_SUCCESS) {
            char text[4096];
            wrong = rung_plan_print(plan, text, sizeof text) > 0 ? wrong : __LINE__;
            wrong = wrong_at(wrong, rung_plan_run(plan, &g), __LINE__);
        }
        rung_plan_destroy(plan);
    }
    for (int i = 0; i < 2; i++) {
        rung_gemm g;
        rung_plan *plan = NULL;
        rung_gemm_init(&g);
        g.m = g.n = g.k = g.lda = g.ldb = g.ldc = 64;
        g.layout = RUNG_ROW_MAJOR;
        g.a = operands, g.b = operands, g.c = operands + (1 << 20);
        status = rung_plan_create_kernel(&plan, context, &g, kernels[i]);
        wrong = i == 1 || fair(status) ? wrong : __LINE__;
        if (status == RUNG_SUCCESS)
            wrong = wrong_at(wrong, rung_plan_run(plan, &g), __LINE__);
        rung_plan_destroy(plan);
    }
    rung_guard_counts counts;
    wrong = wrong_at(wrong, rung_context_guard_counts(context, &counts), __LINE__);
    wrong = wrong_at(wrong, rung_context_synchronize(context), __LINE__);
    rung_context_destroy(context);
    return wrong;
}

/* Matrices in blocks of both kinds of ranks, products of them and from host memory, with the trace. */
static int on_ranks(int device, int ranks)
{
    rung_multi_config config;
    rung_multi *multi = NULL;
    rung_matrix d, e;
    const int devices[] = {device, device < 0 ? device : 1};
    float *a[2] = {NULL}, *b[2] = {NULL};
    const rung_span *spans;
    int wrong = 0;
    rung_multi_config_init(&config);
    config.ranks = ranks;
    config.devices = devices;
    config.threads = device < 0;
    rung_status status = rung_multi_create(&multi, &config);
    if (status != RUNG_SUCCESS)
        return wrong_at(!fair(status) || multi, status, __LINE__);
    rung_matrix_init(&d, 90, 90, 20, 30, ranks, 1);
    rung_matrix_init(&e, 90, 90, 90, 7, 1, ranks);
    int has_all = 1;
    for (int r = 0; r < ranks; r++)
        for (int i = 0; i < 2; i++) {
            status = rung_multi_alloc(multi, r, 90 * 90 * 4, (void **)(i ? &b[r] : &a[r]));
            wrong = wrong_at(wrong, status, __LINE__);
            has_all &= status == RUNG_SUCCESS;
        }
    wrong = wrong_at(wrong, rung_multi_trace(multi, 1), __LINE__);
    if (has_all) {
        const float *const *from = (const float *const *)a, *const *other = (const float *const *)b;
        wrong = wrong_at(wrong, rung_scatter(multi, 0, operands, 90, a, &d), __LINE__);
        wrong = wrong_at(wrong, rung_redistribute(multi, 90, 90, from, 1, 1, &d, b, 1, 1, &e), __LINE__);
        wrong = wrong_at(wrong,
                         rung_psgemm(multi, RUNG_NO_TRANS, RUNG_TRANS, 80, 80, 80, 1.0f, other, 1, 1, &e, other, 2, 3,
                                     &e, 0.0f, a, 1, 1, &d),
                         __LINE__);
        wrong = wrong_at(wrong, rung_gather(multi, ranks - 1, from, &d, operands + (1 << 20), 90), __LINE__);
    }
    if (device >= 0)
        wrong = wrong_at(wrong,
                         rung_multi_sgemm(multi, RUNG_ROW_MAJOR, RUNG_NO_TRANS, RUNG_NO_TRANS, 300, 200, 100, 1.0f,
                                          operands, 100, operands, 200, 0.0f, operands + (2 << 20), 200),
                         __LINE__);
    wrong = rung_multi_spans(multi, &spans) >= 0 ? wrong : __LINE__;
    for (int r = 0; r < ranks; r++) {
        rung_multi_free(multi, r, a[r]);
        rung_multi_free(multi, r, b[r]);
    }
    rung_multi_destroy(multi);
    return wrong;
}

static int gpu_scenario(void)
{
    int wrong = on_one_gpu();
    wrong = wrong ? wrong : on_ranks(0, 2);
    wrong = wrong ? wrong : on_ranks(RUNG_DEVICE_CPU, 2);
    if (gpu->faults || gpu->memory + gpu->pinned + gpu->streams + gpu->events + gpu->graphs || gpu->pushed ||
        gpu->relaxed)
        wrong = wrong ? wrong : __LINE__;
    return wrong;
}

/* Uses a bit of everything. Returns the line that went wrong, 0 for none. */
static int scenario(void)
{
    if (gpu)
        return gpu_scenario();
    static const int64_t shapes[][3] = {{8, 8, 8},     {200, 200, 200}, {200, 1, 200},
                                        {1, 200, 200}, {16, 16, 4000},  {500, 4, 500}};
    rung_config config;
    rung_config_init(&config);
    config.device = RUNG_DEVICE_CPU;
    config.threads = 2;
    rung_context *context;
    rung_status status = rung_context_create(&context, &config);
    if (status != RUNG_SUCCESS)
        return fair(status) && !context ? 0 : __LINE__;
    int wrong = 0;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0] && !wrong; i++)
        for (int call = 0; call < 8;
             call++) { /* whichever of a product and a batch comes first finds no workspace there */
            const int64_t m = shapes[i][0], n = shapes[i][1], k = shapes[i][2];
            const int form = call >> 1, batch = 1 + ((call ^ (int)i) & 1);
            const rung_transpose ta = (rung_transpose)(form & 1), tb = (rung_transpose)(form >> 1);
            float *c = operands + (1 << 20);
            memset(c, 0, (size_t)(batch * m * n) * sizeof *c);
            if (batch == 1)
                status = rung_sgemm(context, RUNG_ROW_MAJOR, ta, tb, m, n, k, 1.0f, operands, ta ? m : k, operands,
                                    tb ? k : n, 0.0f, c, n);
            else
                status = rung_sgemm_strided_batched(context, RUNG_ROW_MAJOR, ta, tb, m, n, k, 1.0f, operands,
                                                    ta ? m : k, 0, operands, tb ? k : n, 0, 0.0f, c, n, m * n, batch);
            wrong = right(status, c, k) && right(status, c + (batch - 1) * m * n, k) ? wrong : __LINE__;
        }
    status = rung_sgemm_strided_batched(context, RUNG_COL_MAJOR, 0, 0, 20, 20, 20, 1.0f, operands, 20, 400, operands,
                                        20, 400, 0.0f, operands + (1 << 20), 20, 400, 5);
    wrong = right(status, operands + (1 << 20), 20) ? wrong : __LINE__;
    wrong = fair(rung_context_set_threads(context, 3)) ? wrong : __LINE__;
    rung_gemm gemm;
    rung_gemm_init(&gemm);
    gemm.m = gemm.n = gemm.k = gemm.lda = gemm.ldb = gemm.ldc = 100;
    gemm.a = gemm.b = operands;
    gemm.c = operands + (1 << 20);
    rung_plan *plan;
    status = rung_plan_create(&plan, context, &gemm);
    if (status == RUNG_SUCCESS) {
        char text[4096];
        rung_plan_print(plan, text, sizeof text);
        wrong = right(rung_plan_run(plan, &gemm), gemm.c, 100) ? wrong : __LINE__;
    }
    wrong = fair(status) ? wrong : __LINE__;
    rung_plan_destroy(plan);
    float sum;
    status = rung_ssum(context, 100000, operands, &sum);
    wrong = fair(status) && (status || fabsf(sum - 1e5f) < 100) ? wrong : __LINE__;
    rung_context_destroy(context);
    return wrong;
}

static void *run_scenario(void *line)
{
    *(int *)line = scenario();
    return NULL;
}

/* The same on a thread of its own: what a thread keeps is made anew, and must be gone when it has ended. On a GPU there
 * are so many more allocations that it takes too long. */
static int scenario_on_a_thread(void)
{
    pthread_t thread;
    int line = __LINE__;
    if (gpu)
        return scenario();
    if (pthread_create(&thread, NULL, run_scenario, &line) == 0)
        pthread_join(thread, NULL);
    return line;
}

/* Once, or from then on: a second try finds no memory either. */
static void every_allocation_fails(void **state)
{
    for_good = *state != NULL;
    fail_at = 0;
    assert_int_equal(scenario_on_a_thread(), 0); /* what is made once a process is made now */
    int kept = live_count;
    seen = 0;
    assert_int_equal(scenario_on_a_thread(), 0);
    long sites = seen;
    assert_int_equal(live_count, kept);
    assert_true(sites > 0);
    for (long site = 1; site <= sites; site++) {
        seen = 0;
        fail_at = site;
        int line = scenario_on_a_thread();
        fail_at = 0;
        if (line)
            fail_msg("allocation %ld of %ld failing%s: wrong at line %d: %s", site, sites, for_good ? " for good" : "",
                     line, rung_last_error());
        if (live_count != kept)
            fail_msg("allocation %ld of %ld failing leaks %d blocks", site, sites, live_count - kept);
    }
    for_good = 0;
    print_message("%ld allocations failed one by one\n", sites);
}

/* What is made once a process fails as well: a child for each of the first allocations, before any product ran here. */
static void the_first_allocations_fail_too(void **state)
{
    (void)state;
    for (long site = 1; site <= (gpu ? 60 : 24); site++) {
        pid_t child = fork();
        if (child == 0) {
            signal(SIGSEGV, SIG_DFL); /* not cmocka's way out, which would leave a lock taken */
            alarm(1000);
            fail_at = site;
            int line = scenario();
            fail_at = 0;
            _exit(line ? 1 : scenario() ? 2 : 0);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        if (WEXITSTATUS(status))
            fail_msg("allocation %ld of a fresh process failing: %s", site,
                     WEXITSTATUS(status) == 1 ? "a wrong answer" : "the next calls do not recover");
    }
}

int main(int count, char **words)
{
    if (count > 1) {
        fake_state_function *state;
        void *stand_in = dlopen(words[1], RTLD_NOW);
        *(void **)&state = stand_in ? dlsym(stand_in, "fake_state") : NULL;
        if (!state)
            return 2;
        setenv("RUNG_LIBCUDA", words[1], 1);
        gpu = state();
        gpu->devices = 2;
        gpu->arch = 90;
        gpu->idle = 1;
    }
    dl_iterate_phdr(find_library, NULL);
    operands = __libc_malloc((3 << 20) * sizeof(float));
    for (int i = 0; i < 3 << 20; i++)
        operands[i] = 1.0f;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_allocations_fail_too),
        cmocka_unit_test(every_allocation_fails),
        cmocka_unit_test_prestate(every_allocation_fails, &for_good),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
