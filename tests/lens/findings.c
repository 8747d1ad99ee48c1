/* What the lens keeps of what it finds, and how it names it: each place and kind once, block and thread also in a
 * cluster, where the threads of all its blocks are counted together; what is too much is counted, each place and kind
 * once. Without memory the program ends: a launch must not seem better than it is. */
#include "lens.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static int asked, wrong;

const lens_array *lens_array_at(const lens_module *module, uint32_t offset)
{
    static const lens_array array = {.name = "tile", .offset = 128, .bytes = 64};
    (void)module;
    return offset - array.offset < array.bytes ? &array : NULL;
}

static void expect(const char *what, const char *got, const char *want)
{
    asked++;
    if (strcmp(got, want) == 0)
        return;
    wrong++;
    printf("FAILED: %s: '%s', not '%s'\n", what, got, want);
}

static void expect_number(const char *what, long got, long want)
{
    char numbers[2][32];
    snprintf(numbers[0], sizeof numbers[0], "%ld", got);
    snprintf(numbers[1], sizeof numbers[1], "%ld", want);
    expect(what, numbers[0], numbers[1]);
}

/* Returns how the only finding of a thread of this launch is told. */
static const char *told(unsigned cluster, int thread, int line)
{
    static char text[600];
    rung_lens_launch launch;
    uintptr_t *pcs;
    lens_now.cluster = cluster;
    lens_now.block_threads = 64;
    lens_now.threads = 64 * cluster;
    lens_now.current = thread;
    lens_findings_begin();
    lens_find(RUNG_LENS_RACE, 1000, "reads %s", "what nobody wrote");
    lens_findings_end(&launch, &pcs);
    rung_lens_finding *f = (rung_lens_finding *)(uintptr_t)launch.findings;
    f[0].line = line;
    snprintf(f[0].file, sizeof f[0].file, "/a/folder/kernel.cu");
    lens_finding_compose(f);
    snprintf(text, sizeof text, "%d: %s", launch.finding_count, f[0].text);
    free(f);
    free(pcs);
    return text;
}

static int without_memory;

void *__real_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);

void *__wrap_malloc(size_t bytes)
{
    return without_memory ? NULL : __real_malloc(bytes);
}

void *__wrap_realloc(void *memory, size_t bytes)
{
    return without_memory ? NULL : __real_realloc(memory, bytes);
}

/* Returns the signal by which a launch ends that finds something at so many places and has no memory to keep it. */
static int ends_without_memory(int places)
{
    int state;
    pid_t child = fork();
    if (child == 0) {
        rung_lens_launch launch;
        uintptr_t *pcs;
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        lens_findings_begin();
        without_memory = 1;
        for (int i = 0; i < places; i++)
            lens_find(RUNG_LENS_RACE, (uintptr_t)i, "somewhere");
        if (places <= LENS_MOST_FINDINGS)
            lens_findings_end(&launch, &pcs);
        _exit(0);
    }
    waitpid(child, &state, 0);
    return WIFSIGNALED(state) ? WTERMSIG(state) : 0;
}

int main(void)
{
    rung_lens_launch launch;
    uintptr_t *pcs;
    char text[128];
    expect_number("without memory for one beyond", ends_without_memory(LENS_MOST_FINDINGS + 1), SIGABRT);
    expect_number("without memory for those kept", ends_without_memory(1), SIGABRT);
    lens_now.index[0] = 4, lens_now.index[1] = 2, lens_now.index[2] = 7;
    expect("alone", told(1, 63, 12), "1: block (4,2,7), thread 63, kernel.cu line 12: reads what nobody wrote");
    expect("no line", told(1, 0, 0), "1: block (4,2,7), thread 0: reads what nobody wrote");
    expect("first of a cluster", told(2, 63, 1),
           "1: block (4,2,7), thread 63, kernel.cu line 1: reads what nobody wrote");
    expect("second of a cluster", told(2, 64, 1),
           "1: block (5,2,7), thread 0, kernel.cu line 1: reads what nobody wrote");
    expect("last of a cluster", told(4, 255, 1),
           "1: block (7,2,7), thread 63, kernel.cu line 1: reads what nobody wrote");
    lens_findings_begin();
    for (int i = 0; i < 3 * LENS_MOST_FINDINGS; i++) {
        lens_find(RUNG_LENS_RACE, 1 + (uintptr_t)i, "number %d", i);
        lens_find(RUNG_LENS_RACE, 1 + (uintptr_t)i / 2, "again");
    }
    lens_find(RUNG_LENS_RACE, 3 * LENS_MOST_FINDINGS, "again, the last one");
    lens_findings_end(&launch, &pcs);
    expect_number("kept", launch.finding_count, LENS_MOST_FINDINGS);
    expect_number("left out", launch.findings_left_out, 2 * LENS_MOST_FINDINGS);
    for (int i = 0; i < launch.finding_count; i++) {
        snprintf(text, sizeof text, "number %d", i);
        expect("in order", launch.findings[i].text, text);
        expect_number("its place", (long)pcs[i], 1 + i);
    }
    lens_findings_begin();
    lens_find(RUNG_LENS_RACE, 9, "one kind");
    lens_find(RUNG_LENS_OUT_OF_BOUNDS, 9, "another one at the same place");
    lens_findings_end(&launch, &pcs);
    expect_number("two kinds", launch.finding_count, 2);
    expect_number("of the launch before", launch.findings_left_out, 0);
    lens_findings_begin();
    for (int i = 0; i < 4 * LENS_MOST_FINDINGS; i++)
        lens_find(i % 2 ? RUNG_LENS_RACE : RUNG_LENS_OUT_OF_BOUNDS, (uintptr_t)i / 2 % LENS_MOST_FINDINGS,
                  "each twice");
    lens_findings_end(&launch, &pcs);
    expect_number("two kinds of as many places", launch.finding_count, LENS_MOST_FINDINGS);
    expect_number("the other half", launch.findings_left_out, LENS_MOST_FINDINGS);
    expect("before the array", lens_where_shared(124, text, sizeof text), "shared memory at byte 124");
    expect("in the array", lens_where_shared(136, text, sizeof text), "shared tile at byte 8 (float 2)");
    static unsigned char shared[256];
    static lens_module module = {.shared = shared,
                                 .arrays = {{.name = "late", .offset = 192}, {.name = "tile", .offset = 128}}};
    const uintptr_t at = (uintptr_t)shared;
    lens_module_now = &module;
    expect("no shared variable", lens_beside_shared(at, text, sizeof text) ? text : "none", "none");
    module.array_count = 2;
    expect("before shared memory", lens_beside_shared(at - 4, text, sizeof text), "132 bytes before shared tile");
    expect("at its first byte", lens_beside_shared(at, text, sizeof text),
           "shared memory at byte 0, which no variable holds");
    expect("far behind it", lens_beside_shared(at + LENS_MOST_SHARED_BYTES - 1, text, sizeof text),
           "shared memory at byte 232447, which no variable holds");
    expect("too far", lens_beside_shared(at + LENS_MOST_SHARED_BYTES, text, sizeof text) ? text : "none", "none");
    expect("as far before it", lens_beside_shared(at - LENS_MOST_SHARED_BYTES, text, sizeof text),
           "232576 bytes before shared tile");
    expect("too far before it", lens_beside_shared(at - LENS_MOST_SHARED_BYTES - 1, text, sizeof text) ? text : "none",
           "none");
    printf("%d answers, %d of them wrong\n", asked, wrong);
    return wrong > 0;
}
