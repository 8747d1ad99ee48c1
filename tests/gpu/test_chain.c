/* Chains of launches, with a driver of the test's own that keeps graphs: whatever ran before on which stream, what a
 * chain runs is what was added to it, each launch once, after what it waits for; graphs are kept and go as the rule
 * says; a call that fails loses no launch, doubles none, and leaves nothing behind.
 */
#include "own_driver.h"

#include "cuda/driver/chain.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 6, KEPT = 32, STREAMS = 3, NODES = 4096, GRAPHS = 2048 };

/* ---- launches ---- */

/* This is all that a launch has. */
typedef struct wanted {
    uintptr_t function;
    unsigned grid[3], threads, shared_bytes, cluster, bytes;
    rung_chain_order order;
    unsigned char argument[RUNG_CHAIN_ARGUMENT_BYTES];
} wanted;

typedef struct run {
    wanted launch;
    unsigned waits_for; /* bits: of those before it in its chain */
    int priority;
} run;

static run ran[2 * MOST];
static int ran_count, calls, fails_at;
static uintptr_t ran_on;

static CUresult next_call(void)
{
    return ++calls == fails_at ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}

/* ---- the driver ---- */

static struct node {
    int graph, index;
    run what;
} nodes[NODES];
static struct graph {
    int alive, exec_alive, count, of_stream;
    int node[MOST];
    run exec[MOST]; /* what an executable graph runs is its own copy */
} graphs[GRAPHS];
static int node_count, graph_count, graphs_alive, execs_alive;

static wanted launch_of(const CUDA_KERNEL_NODE_PARAMS *p)
{
    assert_null(p->extra);
    assert_int_equal(p->blockDimY, 1);
    assert_int_equal(p->blockDimZ, 1);
    wanted w = {.function = (uintptr_t)p->func,
                .grid = {p->gridDimX, p->gridDimY, p->gridDimZ},
                .threads = p->blockDimX,
                .shared_bytes = p->sharedMemBytes,
                .cluster = 1};
    memcpy(&w.bytes, p->kernelParams[0], sizeof w.bytes); /* each argument begins with its size */
    memcpy(w.argument, p->kernelParams[0], w.bytes);
    return w;
}

static CUresult stream_id(CUstream stream, unsigned long long *id)
{
    *id = (uintptr_t)stream * 10;
    return next_call();
}

static int priority_of(uintptr_t stream)
{
    return stream == 1 ? 0 : -(int)stream;
}

static CUresult stream_priority(CUstream stream, int *priority)
{
    *priority = priority_of((uintptr_t)stream);
    return next_call();
}

static CUresult graph_create(CUgraph *graph, unsigned flags)
{
    assert_int_equal(flags, 0);
    assert_true(relaxed > 0);
    if (next_call() != CUDA_SUCCESS)
        return CUDA_ERROR_UNKNOWN;
    assert_true(++graph_count < GRAPHS);
    graphs[graph_count].alive = 1;
    graphs_alive++;
    *graph = (CUgraph)(uintptr_t)graph_count;
    return CUDA_SUCCESS;
}

static struct graph *graph_at(CUgraph graph)
{
    struct graph *g = &graphs[(uintptr_t)graph];
    assert_true(g->alive);
    return g;
}

static CUresult graph_add_kernel(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                                 const CUDA_KERNEL_NODE_PARAMS *p)
{
    struct graph *g = graph_at(graph);
    if (next_call() != CUDA_SUCCESS)
        return CUDA_ERROR_UNKNOWN;
    assert_true(++node_count < NODES && g->count < MOST);
    struct node *n = &nodes[node_count];
    *n = (struct node){.graph = (int)(uintptr_t)graph, .index = g->count, .what = {.launch = launch_of(p)}};
    for (size_t i = 0; i < count; i++) {
        const struct node *before = &nodes[(uintptr_t)after[i]];
        assert_int_equal(before->graph, n->graph);
        n->what.waits_for |= 1u << before->index;
    }
    g->node[g->count++] = node_count;
    *node = (CUgraphNode)(uintptr_t)node_count;
    return CUDA_SUCCESS;
}

static CUresult graph_kernel_set(CUgraphNode node, CUkernelNodeAttrID id, const CUkernelNodeAttrValue *value)
{
    struct node *n = &nodes[(uintptr_t)node];
    if (next_call() != CUDA_SUCCESS)
        return CUDA_ERROR_UNKNOWN;
    if (id == CU_LAUNCH_ATTRIBUTE_PRIORITY) {
        n->what.priority = value->priority;
    } else {
        assert_int_equal(id, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
        assert_true(value->clusterDim.y == 1 && value->clusterDim.z == 1);
        n->what.launch.cluster = value->clusterDim.x;
    }
    return CUDA_SUCCESS;
}

static CUresult graph_instantiate(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
    struct graph *g = graph_at(graph);
    assert_int_equal(flags, 0);
    if (next_call() != CUDA_SUCCESS)
        return CUDA_ERROR_UNKNOWN;
    for (int i = 0; i < g->count; i++)
        g->exec[i] = nodes[g->node[i]].what;
    g->exec_alive = 1;
    execs_alive++;
    *exec = (CUgraphExec)(uintptr_t)graph;
    return CUDA_SUCCESS;
}

static CUresult graph_kernel_renew(CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *p)
{
    struct graph *g = &graphs[(uintptr_t)exec];
    const struct node *n = &nodes[(uintptr_t)node];
    assert_true(g->exec_alive);
    assert_int_equal(n->graph, (uintptr_t)exec);
    if (next_call() != CUDA_SUCCESS)
        return CUDA_ERROR_UNKNOWN;
    const unsigned cluster = g->exec[n->index].launch.cluster;
    g->exec[n->index].launch = launch_of(p);
    g->exec[n->index].launch.cluster = cluster;
    return CUDA_SUCCESS;
}

static CUresult graph_launch(CUgraphExec exec, CUstream stream)
{
    struct graph *g = &graphs[(uintptr_t)exec];
    assert_true(g->exec_alive);
    assert_true(g->of_stream == 0 || g->of_stream == (int)(uintptr_t)stream); /* it waits for its own last run */
    assert_int_equal(relaxed, g->of_stream == 0);                             /* the first launch takes memory */
    g->of_stream = (int)(uintptr_t)stream;
    if (next_call() != CUDA_SUCCESS)
        return CUDA_ERROR_UNKNOWN;
    ran_on = (uintptr_t)stream;
    for (int i = 0; i < g->count; i++)
        ran[ran_count++] = g->exec[i];
    return CUDA_SUCCESS;
}

static CUresult graph_exec_destroy(CUgraphExec exec)
{
    assert_true(graphs[(uintptr_t)exec].exec_alive);
    graphs[(uintptr_t)exec].exec_alive = 0;
    execs_alive--;
    return CUDA_SUCCESS;
}

static CUresult graph_destroy(CUgraph graph)
{
    graph_at(graph)->alive = 0;
    graphs_alive--;
    return CUDA_SUCCESS;
}

static CUresult launch(const CUlaunchConfig *c, CUfunction function, void **parameters, void **extra)
{
    CUDA_KERNEL_NODE_PARAMS p = {.func = function,
                                 .gridDimX = c->gridDimX,
                                 .gridDimY = c->gridDimY,
                                 .gridDimZ = c->gridDimZ,
                                 .blockDimX = c->blockDimX,
                                 .blockDimY = c->blockDimY,
                                 .blockDimZ = c->blockDimZ,
                                 .sharedMemBytes = c->sharedMemBytes,
                                 .kernelParams = parameters,
                                 .extra = extra};
    if (next_call() != CUDA_SUCCESS)
        return CUDA_ERROR_UNKNOWN;
    ran[ran_count] = (run){.launch = launch_of(&p), .priority = priority_of((uintptr_t)c->hStream)};
    for (unsigned i = 0; i < c->numAttrs; i++) {
        assert_int_equal(c->attrs[i].id, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
        assert_true(c->attrs[i].value.clusterDim.y == 1 && c->attrs[i].value.clusterDim.z == 1);
        ran[ran_count].launch.cluster = c->attrs[i].value.clusterDim.x;
    }
    ran[ran_count].waits_for = ran_count ? 1u << (ran_count - 1) : 0; /* as a stream's launches do */
    ran_on = (uintptr_t)c->hStream;
    ran_count++;
    return CUDA_SUCCESS;
}

static const rung_driver driver = {.stream_id = stream_id,
                                   .stream_priority = stream_priority,
                                   .graph_create = graph_create,
                                   .graph_add_kernel = graph_add_kernel,
                                   .graph_kernel_set = graph_kernel_set,
                                   .graph_instantiate = graph_instantiate,
                                   .graph_kernel_renew = graph_kernel_renew,
                                   .graph_launch = graph_launch,
                                   .graph_exec_destroy = graph_exec_destroy,
                                   .graph_destroy = graph_destroy,
                                   .launch = launch};

void *__real_calloc(size_t count, size_t bytes), *__wrap_calloc(size_t count, size_t bytes);
static int no_memory;

void *__wrap_calloc(size_t count, size_t bytes)
{
    return no_memory ? NULL : __real_calloc(count, bytes);
}

/* ---- chains ---- */

static uint32_t dice = 1;

static uint32_t roll(uint32_t below)
{
    dice = dice * 1664525u + 1013904223u;
    return (dice >> 8) % below;
}

typedef struct chain {
    int count;
    uintptr_t stream;
    wanted list[MOST];
} chain;

static wanted some_launch(unsigned functions)
{
    wanted w = {.function = 1 + roll(functions),
                .grid = {1 + roll(3), 1 + roll(3), 1 + roll(3)},
                .threads = 32 + 32 * roll(2),
                .shared_bytes = 1024 * roll(2),
                .cluster = 1 + roll(2)};
    w.bytes = (unsigned[]){4, 16, 400, RUNG_CHAIN_ARGUMENT_BYTES}[roll(4)];
    for (unsigned i = 0; i < w.bytes; i++)
        w.argument[i] = (unsigned char)roll(2);
    memcpy(w.argument, &w.bytes, sizeof w.bytes);
    return w;
}

static chain some_chain(unsigned functions)
{
    chain c = {.count = 1 + (int)roll(MOST), .stream = 1 + roll(STREAMS)};
    for (int i = 0; i < c.count; i++) {
        c.list[i] = some_launch(functions);
        c.list[i].order = (rung_chain_order)(roll(2) ? 0 : roll(3));
    }
    return c;
}

/* One thing is another one. */
static void change(wanted *w)
{
    switch (roll(8)) {
    case 0: w->grid[roll(3)]++; break;
    case 1: w->threads += 32; break;
    case 2: w->shared_bytes += 512; break;
    case 3: w->argument[w->bytes - 1] ^= w->bytes > 4; break;
    case 4: w->argument[w->bytes / 2] ^= w->bytes > 8; break;
    case 5: w->cluster = 3 - w->cluster; break;
    case 6: w->function++; break;
    default: break;
    }
}

static unsigned waits_of(const chain *c, int i)
{
    if (i > 0 && c->list[i].order == RUNG_AFTER_LAST)
        return 1u << (i - 1);
    if (i > 0 && c->list[i].order == RUNG_BESIDE_LAST)
        return waits_of(c, i - 1);
    unsigned waited_for = 0;
    for (int before = 0; before < i; before++)
        waited_for |= waits_of(c, before);
    return ((1u << i) - 1) & ~waited_for;
}

static void expect_ran(const chain *c, int singly)
{
    assert_int_equal(ran_count, c->count);
    assert_int_equal(ran_on, c->stream);
    for (int i = 0; i < c->count; i++) {
        wanted got = ran[i].launch, want = c->list[i];
        got.order = want.order; /* that is in what they wait for */
        assert_memory_equal(&got, &want, sizeof want);
        assert_int_equal(ran[i].priority, priority_of(c->stream));
        assert_int_equal(ran[i].waits_for, singly ? i ? 1u << (i - 1) : 0 : waits_of(c, i));
    }
}

/* Begins and adds; returns whether all of it was held back. */
static int add_all(rung_cuda *cuda, const chain *c)
{
    int held = 1;
    ran_count = 0;
    cuda->config.stream = (void *)c->stream;
    rung_chain_begin(cuda);
    for (int i = 0; i < c->count && held; i++) {
        const wanted *w = &c->list[i];
        CUlaunchAttribute attributes[2];
        CUlaunchConfig config = {w->grid[0], w->grid[1],      w->grid[2], w->threads, 1,
                                 1,          w->shared_bytes, NULL,       attributes, 0};
        memset(attributes, 0x77, sizeof attributes);
        if (roll(2)) { /* another attribute may come first */
            attributes[0].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
            config.numAttrs = 1;
        }
        const unsigned before = config.numAttrs;
        rung_launch_in_clusters(&config, attributes, w->cluster);
        assert_int_equal(config.numAttrs - before, w->cluster > 1);
        for (size_t at = sizeof attributes->id; w->cluster > 1 && at < sizeof *attributes;
             at++) /* the dimensions alone */
            assert_true(((const unsigned char *)&attributes[before])[at] <= 2);
        held = rung_chain_add(cuda, &config, (CUfunction)w->function, w->argument, w->bytes, w->order);
    }
    assert_int_equal(ran_count, 0);
    return held;
}

static void begin(rung_cuda *cuda)
{
    memset(cuda, 0, sizeof *cuda);
    memset(graphs, 0, sizeof graphs);
    cuda->driver = &driver;
    calls = fails_at = node_count = graph_count = no_memory = 0;
}

static void end(rung_cuda *cuda)
{
    rung_chain_close(cuda);
    assert_null(cuda->chain);
    assert_int_equal(graphs_alive + execs_alive + relaxed, 0);
}

/* Which graphs are kept: the one that was not used for the longest time makes room. */
typedef struct kept_series {
    uintptr_t stream;
    int count, used;
    uintptr_t function[MOST];
    unsigned cluster[MOST], waits[MOST];
} kept_series;

static int is_kept(kept_series kept[KEPT], const chain *c, int now)
{
    kept_series s = {.stream = c->stream, .count = c->count};
    for (int i = 0; i < c->count; i++) {
        s.function[i] = c->list[i].function;
        s.cluster[i] = c->list[i].cluster;
        s.waits[i] = waits_of(c, i);
    }
    int oldest = 0;
    for (int i = 0; i < KEPT; i++) {
        s.used = kept[i].used;
        if (kept[i].used && memcmp(&kept[i], &s, sizeof s) == 0) {
            kept[i].used = now;
            return 1;
        }
        oldest = kept[i].used < kept[oldest].used ? i : oldest;
    }
    s.used = now;
    kept[oldest] = s;
    return 0;
}

static void what_runs_is_what_was_added(void **state)
{
    (void)state;
    for (unsigned functions = 1; functions <= 4; functions++) {
        enum { SEEN = 48 };
        static chain seen[SEEN];
        static kept_series kept[KEPT];
        rung_cuda cuda;
        int made = 0;
        begin(&cuda);
        memset(kept, 0, sizeof kept);
        for (int i = 0; i < 600 && node_count < NODES - MOST && graph_count < GRAPHS - 1; i++) {
            chain c = some_chain(functions);
            if (i > 0 && roll(4)) {
                c = seen[roll((uint32_t)(i < SEEN ? i : SEEN))];
                change(&c.list[roll((uint32_t)c.count)]);
                if (roll(6) == 0)
                    c.stream = 1 + roll(STREAMS);
            }
            seen[i % SEEN] = c;
            assert_int_equal(add_all(&cuda, &c), 1);
            if (roll(10) == 0) { /* forgotten */
                assert_int_equal(rung_chain_end(&cuda, 0), RUNG_SUCCESS);
                assert_int_equal(ran_count, 0);
                continue;
            }
            assert_int_equal(rung_chain_end(&cuda, 1), RUNG_SUCCESS);
            expect_ran(&c, 0);
            made += !is_kept(kept, &c, i + 1);
            assert_int_equal(graph_count, made);
            assert_true(graphs_alive <= KEPT && execs_alive == graphs_alive);
            ran_count = 0;
            assert_int_equal(rung_chain_end(&cuda, 1), RUNG_SUCCESS); /* it is over */
            assert_int_equal(ran_count, 0);
        }
        end(&cuda);
    }
}

/* What is not held back: what tells no size, what is too large, one more than a chain has, and all outside of one. */
static void what_cannot_be_held_back_is_not(void **state)
{
    (void)state;
    rung_cuda cuda;
    CUlaunchConfig config = {1, 1, 1, 32, 1, 1, 0, NULL, NULL, 0};
    static unsigned char argument[RUNG_CHAIN_ARGUMENT_BYTES + 1];
    begin(&cuda);
    assert_int_equal(rung_chain_add(&cuda, &config, NULL, argument, 4, 0), 0);
    assert_int_equal(rung_chain_end(&cuda, 1), RUNG_SUCCESS);
    rung_chain_begin(&cuda);
    assert_int_equal(rung_chain_add(&cuda, &config, NULL, argument, 0, 0), 0);
    assert_int_equal(rung_chain_add(&cuda, &config, NULL, argument, RUNG_CHAIN_ARGUMENT_BYTES + 1, 0), 0);
    assert_int_equal(rung_chain_end(&cuda, 1), RUNG_SUCCESS); /* nothing was added */
    chain c = some_chain(3);
    while (c.count < MOST)
        c = some_chain(3);
    assert_int_equal(add_all(&cuda, &c), 1);
    assert_int_equal(rung_chain_add(&cuda, &config, NULL, argument, 4, 0), 0);
    assert_int_equal(rung_chain_end(&cuda, 1), RUNG_SUCCESS);
    expect_ran(&c, 0);
    assert_int_equal(rung_chain_add(&cuda, &config, NULL, argument, 4, 0), 0);
    c.list[0].order = RUNG_BESIDE_LAST; /* there is nothing beside which the first could be */
    assert_int_equal(add_all(&cuda, &c), 1);
    ran_count = 0;
    assert_int_equal(rung_chain_end(&cuda, 1), RUNG_SUCCESS);
    c.list[0].order = RUNG_AFTER_ALL;
    expect_ran(&c, 0);
    end(&cuda);
    begin(&cuda);
    no_memory = 1;
    assert_int_equal(add_all(&cuda, &c), 0);
    assert_int_equal(rung_chain_end(&cuda, 1), RUNG_SUCCESS);
    no_memory = 0;
    assert_int_equal(add_all(&cuda, &c), 1);
    assert_int_equal(rung_chain_end(&cuda, 1), RUNG_SUCCESS);
    expect_ran(&c, 0);
    end(&cuda);
}

/* Every call fails once, in a chain that is new and in one whose graph is renewed. */
static void a_failing_call_loses_nothing(void **state)
{
    (void)state;
    for (int which = 0; which < 40; which++)
        for (int at = 1, failed = 1; failed; at++) {
            rung_cuda cuda;
            begin(&cuda);
            dice = (uint32_t)which;
            chain first = some_chain(2), c = first;
            for (int i = 0; i < c.count; i++)
                c.list[i].grid[0] += 7;
            if (which % 2) {
                assert_int_equal(add_all(&cuda, &first), 1);
                assert_int_equal(rung_chain_end(&cuda, 1), RUNG_SUCCESS);
            }
            assert_int_equal(add_all(&cuda, &c), 1);
            calls = 0, fails_at = at;
            rung_status status = rung_chain_end(&cuda, 1);
            failed = calls >= at;
            fails_at = 0;
            assert_int_equal(relaxed, 0);
            if (status == RUNG_SUCCESS)
                expect_ran(&c, failed);
            else
                assert_int_equal(ran_count, 0);
            if (failed && status == RUNG_SUCCESS) { /* the driver made no graph, and is not asked again */
                assert_int_equal(add_all(&cuda, &c), 0);
                assert_int_equal(rung_chain_end(&cuda, 1), RUNG_SUCCESS);
                assert_int_equal(ran_count, 0);
            } else { /* it goes on */
                assert_int_equal(add_all(&cuda, &c), 1);
                assert_int_equal(rung_chain_end(&cuda, 1), RUNG_SUCCESS);
                expect_ran(&c, 0);
            }
            end(&cuda);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_runs_is_what_was_added),
        cmocka_unit_test(what_cannot_be_held_back_is_not),
        cmocka_unit_test(a_failing_call_loses_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
