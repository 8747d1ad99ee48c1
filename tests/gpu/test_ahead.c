/* After a GPU's first kernel a thread loads the library's others, where the GPU has room for them; calls go on finding
 * and loading theirs meanwhile (under the thread sanitizer, too). */
#include "fake_libcuda.h"
#include "rung.h"
#include "rung_tools.h"

#include <dirent.h>
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LISTED = 3, SIZE = 256 }; /* kernel files of fake_images.c's list that are the library's own */

#ifdef __SANITIZE_THREAD__ /* what the stand-in does is no subject of it */
__attribute__((visibility("default"))) const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
    return "called_from_lib:libfake_libcuda.so";
}
#endif

static int failed(const char *what)
{
    fprintf(stderr, "test_ahead: %s: %s\n", what, rung_last_error());
    return 1;
}

static void wait_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

/* One product of the GPU; *loaded is how many kernel files there are a while later, or once there are `most`. */
static int multiply(fake *gpu, int device, int most, int *loaded)
{
    rung_config config;
    rung_context *context;
    rung_tools *tools;
    void *memory;
    rung_gemm g;
    if (rung_tools_open(&tools, device) != RUNG_SUCCESS || rung_tools_alloc(tools, SIZE * SIZE * 4, &memory))
        return failed("memory");
    rung_config_init(&config);
    config.device = device;
    config.pointers = RUNG_POINTERS_DEVICE;
    rung_gemm_init(&g);
    g.layout = RUNG_ROW_MAJOR;
    g.m = g.n = g.k = 16, g.lda = g.ldb = g.ldc = 16;
    g.a = memory, g.b = (float *)memory + 4096, g.c = (float *)memory + 8192;
    if (rung_context_create(&context, &config) != RUNG_SUCCESS || rung_gemm_run(context, &g) != RUNG_SUCCESS)
        return failed("product");
    for (int tries = 0; tries < 400 && *(volatile int *)&gpu->libraries < most; tries++)
        wait_ms(50);
    wait_ms(200);
    *loaded = gpu->libraries;
    rung_context_destroy(context);
    rung_tools_free(tools, memory);
    rung_tools_close(tools);
    return 0;
}

static int threads_now(void)
{
    int threads = 0;
    DIR *folder = opendir("/proc/self/task");
    for (const struct dirent *entry; folder && (entry = readdir(folder));)
        threads += entry->d_name[0] != '.';
    if (folder)
        closedir(folder);
    return threads;
}

#ifdef __SANITIZE_THREAD__ /* it starts a thread of its own with the program's first one */
enum { MOST_LEFT = 2 };
#else
enum { MOST_LEFT = 1 };
#endif

/* Runs the tiles that the thread has loaded, in all forms of the list, once the thread is gone: nothing is loaded for
 * them anew. */
static int use_loaded(fake *gpu, rung_context *context, float *memory)
{
    static const struct {
        const char *tile;
        rung_transpose trans;
    } all[] = {{ONE_TILE, RUNG_NO_TRANS}, {OTHER_TILE, RUNG_NO_TRANS}, {OTHER_TILE, RUNG_TRANS}};
    while (threads_now() > MOST_LEFT)
        wait_ms(50);
    gpu->log[0] = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        rung_plan *plan;
        rung_gemm g;
        rung_gemm_init(&g);
        g.layout = RUNG_ROW_MAJOR;
        g.trans_a = all[i].trans;
        g.m = g.n = g.k = g.lda = g.ldb = g.ldc = SIZE;
        g.a = memory, g.b = g.a + SIZE * SIZE, g.c = memory + 2 * SIZE * SIZE;
        if (rung_plan_create_kernel(&plan, context, &g, all[i].tile) != RUNG_SUCCESS ||
            rung_plan_run(plan, &g) != RUNG_SUCCESS)
            return failed(all[i].tile);
        rung_plan_destroy(plan);
        if (strstr(gpu->log, "cuLibrary"))
            return failed("what was loaded ahead is loaded again");
    }
    return 0;
}

/* Products that want many kernels: meanwhile, as the thread loads some of them, or once it has. Then what it has loaded
 * is used, and nothing was locked that would have told this thread of it. */
static int multiply_meanwhile(fake *gpu, int device, int meanwhile)
{
    static const int sizes[] = {256, 1, 16, 40, 64, 100, 128, 7, 200};
    rung_config config;
    rung_context *context;
    rung_tools *tools;
    void *memory;
    if (rung_tools_open(&tools, device) != RUNG_SUCCESS || rung_tools_alloc(tools, 4 * SIZE * SIZE * 4, &memory))
        return failed("memory");
    rung_config_init(&config);
    config.device = device;
    config.pointers = RUNG_POINTERS_DEVICE;
    if (rung_context_create(&context, &config) != RUNG_SUCCESS)
        return failed("context");
    const int before = *(volatile int *)&gpu->libraries;
    float *a = memory, *b = a + SIZE * SIZE, *c = b + SIZE * SIZE;
    if (rung_sgemm(context, RUNG_ROW_MAJOR, 0, 0, 16, 16, 16, 1.0f, a, SIZE, b, SIZE, 0.0f, c, SIZE) != RUNG_SUCCESS)
        return failed("product");
    if (meanwhile == 0 && use_loaded(gpu, context, memory))
        return 1;
    for (int round = 0;
         round < 100 || (round < 4000 && meanwhile && *(volatile int *)&gpu->libraries - before < LISTED); round++) {
        const int m = sizes[round % 9], n = sizes[round / 9 % 9], trans = round % 2;
        if (rung_sgemm(context, RUNG_ROW_MAJOR, trans, !trans, m, n, 64, 1.0f, a, SIZE, b, SIZE, 0.0f, c, SIZE) !=
            RUNG_SUCCESS)
            return failed("product");
    }
    rung_context_destroy(context);
    rung_tools_free(tools, memory);
    rung_tools_close(tools);
    return 0;
}

/* A process that is forked while a thread loads has no such thread, and does not wait for it when it exits. */
static int fork_meanwhile(fake *gpu, int device)
{
    int loaded, ended = 0, code = -1;
    __atomic_store_n(&gpu->hold, 1, __ATOMIC_RELEASE);
    if (multiply(gpu, device, 0, &loaded))
        return 1;
    const pid_t child = fork();
    if (child == 0)
        exit(0);
    for (int tries = 0; tries < 200 && !ended; tries++) {
        wait_ms(50);
        ended = waitpid(child, &code, WNOHANG) != 0;
    }
    __atomic_store_n(&gpu->hold, 0, __ATOMIC_RELEASE);
    if (!ended) {
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
    return ended && code == 0 ? 0 : failed("a forked process does not end as it should");
}

/* What cannot be loaded, as where no memory is left, is where the thread stops: it asks for nothing else. */
static int stops_at_a_failure(fake *gpu, int device)
{
    int loaded, tries = 0;
    while (threads_now() > MOST_LEFT) /* another GPU's is still at it */
        wait_ms(20);
    __atomic_store_n(&gpu->hold, 1, __ATOMIC_RELEASE);
    if (multiply(gpu, device, 0, &loaded))
        return 1;
    gpu->log[0] = 0;
    gpu->fail_result = 2; /* no memory, for each file but the one that the thread is at */
    gpu->fail_name = "cuLibraryLoadData";
    __atomic_store_n(&gpu->hold, 0, __ATOMIC_RELEASE);
    while (threads_now() > MOST_LEFT)
        wait_ms(20);
    gpu->fail_name = NULL;
    for (const char *at = gpu->log; (at = strstr(at, "cuLibraryLoadData ")); at++)
        tries++;
    return tries == 1 ? 0 : failed("the thread goes on after a failure, or has met none");
}

/* ---- a process of its own, which ends while a thread loads: it waits for the thread before libcuda is taken down ----
 */

static fake *ending;

static void let_the_thread_go_on(void)
{
    __atomic_store_n(&ending->hold, 0, __ATOMIC_RELEASE);
}

/* Runs after all handlers that were registered later, as libcuda's would. */
static void expect_no_other_thread(void)
{
    if (threads_now() <= MOST_LEFT)
        return;
    fprintf(stderr, "test_ahead: a thread is left where libcuda is taken down\n");
    _exit(1);
}

static int end_while_loading(fake *gpu)
{
    int loaded;
    ending = gpu;
    gpu->memory_left = (int64_t)8 << 30;
    gpu->hold = 1;
    if (atexit(expect_no_other_thread) || multiply(gpu, 0, 0, &loaded) || atexit(let_the_thread_go_on))
        return 1;
    return 0;
}

static int ends_in_order(char **words)
{
    int code = -1;
    const pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", words[0], words[1], "end", (char *)NULL);
        _exit(2);
    }
    waitpid(child, &code, 0);
    return code == 0 ? 0 : failed("a process that ends while a thread loads");
}

int main(int count, char **words)
{
    int first, second;
    if (count < 2 || setenv("RUNG_LIBCUDA", words[1], 1))
        return 2;
    void *library = dlopen(words[1], RTLD_NOW);
    fake_state_function *state;
    *(void **)&state = library ? dlsym(library, "fake_state") : NULL;
    if (!state)
        return failed(words[1]);
    fake *gpu = state();
    gpu->arch = 90, gpu->devices = 6, gpu->idle = 1, gpu->eager = ~0u;
    if (count > 2 && strcmp(words[2], "end") == 0)
        return end_while_loading(gpu);
    if (count > 2) { /* "alone": one product and the end, where few_threads.sh lets no thread begin */
        gpu->memory_left = (int64_t)8 << 30;
        return multiply(gpu, 0, 1, &first);
    }
    if (ends_in_order(words))
        return 1;
    gpu->memory_left = (int64_t)1 << 30;
    if (multiply(gpu, 0, 1, &first))
        return 1;
    gpu->memory_left = (int64_t)8 << 30;
    if (multiply(gpu, 1, first + LISTED, &second))
        return 1;
    if (multiply_meanwhile(gpu, 2, 1) || multiply_meanwhile(gpu, 3, 0) || fork_meanwhile(gpu, 4) ||
        stops_at_a_failure(gpu, 5))
        return 1;
    const int faults = gpu->faults;
    printf("%d kernel files loaded where there is little room, %d more elsewhere, %d faults\n", first, second - first,
           faults);
    if (gpu->copied) {
        fprintf(stderr,
                "test_ahead: the driver copies the code of %d kernel files, which takes it as long as the rest\n",
                gpu->copied);
        return 1;
    }
    if (gpu->open_to_signals) {
        fprintf(stderr, "test_ahead: the thread that loads takes the program's signals\n");
        return 1;
    }
    return first == 0 || first > 2 || second - first < LISTED || second - first > LISTED + 1 || faults ? 1 : 0;
}
