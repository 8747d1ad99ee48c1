/* Chains of launches as graphs. A context keeps a few graphs, each for one series of kernels on one stream: a graph
 * waits for its own last run, which on another stream would be an order that nobody asked for. A graph's launches get
 * new parameters where they differ from the last ones. Where the driver makes no graph, launches are queued singly. */
#include "cuda/driver/chain.h"

#include <stdlib.h>
#include <string.h>

enum { KEPT_GRAPHS = 32 };

typedef struct chain_link {
    CUfunction function;
    unsigned grid[3], threads, shared_bytes, cluster, bytes;
    _Alignas(16) unsigned char argument[RUNG_CHAIN_ARGUMENT_BYTES];
} chain_link;

/* A series of launches, and the graph made of it. */
typedef struct kept_graph {
    CUgraph graph; /* NULL: none */
    CUgraphExec exec;
    CUgraphNode nodes[RUNG_LINKS];
    unsigned long long stream_id;
    unsigned long used; /* number of the chain that used it last */
    rung_waits waits;
    chain_link links[RUNG_LINKS];
} kept_graph;

struct rung_chain {
    int open, refused; /* the driver made no graph: it is not asked again */
    rung_waits waits;
    unsigned long chains;
    chain_link links[RUNG_LINKS];
    kept_graph kept[KEPT_GRAPHS];
};

void rung_chain_begin(rung_cuda *cuda)
{
    if (!cuda->chain)
        cuda->chain = calloc(1, sizeof *cuda->chain);
    if (!cuda->chain || cuda->chain->refused)
        return;
    cuda->chain->open = 1;
    cuda->chain->waits = (rung_waits){0};
}

unsigned rung_waits_add(rung_waits *waits, rung_chain_order order)
{
    const int i = waits->count++;
    const unsigned of = i == 0 || order == RUNG_AFTER_ALL ? waits->ends
                        : order == RUNG_BESIDE_LAST       ? waits->of[i - 1]
                                                          : 1u << (i - 1);
    waits->of[i] = of;
    waits->ends = (waits->ends & ~of) | 1u << i;
    return of;
}

void rung_launch_in_clusters(CUlaunchConfig *config, CUlaunchAttribute *attributes, unsigned cluster)
{
    if (cluster <= 1)
        return;
    CUlaunchAttribute *attribute = &attributes[config->numAttrs++];
    memset(attribute, 0, sizeof *attribute);
    attribute->id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attribute->value.clusterDim.x = cluster;
    attribute->value.clusterDim.y = attribute->value.clusterDim.z = 1;
}

static unsigned cluster_of(const CUlaunchConfig *config)
{
    for (unsigned i = 0; i < config->numAttrs; i++)
        if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
            return config->attrs[i].value.clusterDim.x;
    return 1;
}

int rung_chain_add(rung_cuda *cuda, const CUlaunchConfig *config, CUfunction function, const void *argument,
                   unsigned bytes, rung_chain_order order)
{
    rung_chain *chain = cuda->chain;
    if (!chain || !chain->open || bytes == 0 || bytes > RUNG_CHAIN_ARGUMENT_BYTES || chain->waits.count == RUNG_LINKS)
        return 0;
    chain_link *to = &chain->links[chain->waits.count];
    to->function = function;
    to->grid[0] = config->gridDimX;
    to->grid[1] = config->gridDimY;
    to->grid[2] = config->gridDimZ;
    to->threads = config->blockDimX;
    to->shared_bytes = config->sharedMemBytes;
    to->cluster = cluster_of(config);
    to->bytes = bytes;
    rung_waits_add(&chain->waits, order);
    memcpy(to->argument, argument, bytes);
    return 1;
}

static CUDA_KERNEL_NODE_PARAMS node_of(const chain_link *l, void **parameters)
{
    parameters[0] = (void *)(uintptr_t)l->argument;
    return (CUDA_KERNEL_NODE_PARAMS){.func = l->function,
                                     .gridDimX = l->grid[0],
                                     .gridDimY = l->grid[1],
                                     .gridDimZ = l->grid[2],
                                     .blockDimX = l->threads,
                                     .blockDimY = 1,
                                     .blockDimZ = 1,
                                     .sharedMemBytes = l->shared_bytes,
                                     .kernelParams = parameters};
}

static void forget(const rung_driver *d, kept_graph *g)
{
    rung_thread_mode mode = rung_driver_relax(d);
    if (g->exec)
        d->graph_exec_destroy(g->exec); /* a graph that is running goes on to its end */
    if (g->graph)
        d->graph_destroy(g->graph);
    rung_driver_put_back(d, mode);
    memset(g, 0, sizeof *g);
}

static CUresult add_node(const rung_driver *d, kept_graph *g, int i, int priority)
{
    void *parameters[1];
    const chain_link *l = &g->links[i];
    CUDA_KERNEL_NODE_PARAMS node = node_of(l, parameters);
    CUkernelNodeAttrValue value;
    CUgraphNode after[RUNG_LINKS];
    size_t count = 0;
    for (int before = 0; before < i; before++)
        if (g->waits.of[i] >> before & 1)
            after[count++] = g->nodes[before];
    CUresult result = d->graph_add_kernel(&g->nodes[i], g->graph, count ? after : NULL, count, &node);
    memset(&value, 0, sizeof value);
    value.priority = priority;
    if (result == CUDA_SUCCESS && priority != 0)
        result = d->graph_kernel_set(g->nodes[i], CU_LAUNCH_ATTRIBUTE_PRIORITY, &value);
    memset(&value, 0, sizeof value);
    value.clusterDim.x = l->cluster;
    value.clusterDim.y = value.clusterDim.z = 1;
    if (result == CUDA_SUCCESS && l->cluster > 1)
        result = d->graph_kernel_set(g->nodes[i], CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &value);
    return result;
}

/* Makes the graph. A graph's launches do not take their priority from the stream that they are queued on. */
static CUresult make(const rung_driver *d, CUstream stream, kept_graph *g)
{
    int priority = 0;
    rung_thread_mode mode = rung_driver_relax(d);
    CUresult result = d->stream_priority(stream, &priority);
    if (result == CUDA_SUCCESS)
        result = d->graph_create(&g->graph, 0);
    for (int i = 0; i < g->waits.count && result == CUDA_SUCCESS; i++)
        result = add_node(d, g, i, priority);
    if (result == CUDA_SUCCESS)
        result = d->graph_instantiate(&g->exec, g->graph, 0);
    rung_driver_put_back(d, mode);
    return result;
}

/* Launches the graph once, which brings it to the GPU. */
static CUresult first_launch(const rung_driver *d, const kept_graph *g, CUstream stream)
{
    rung_thread_mode mode = rung_driver_relax(d);
    CUresult result = d->graph_launch(g->exec, stream);
    rung_driver_put_back(d, mode);
    return result;
}

static int same_series(const kept_graph *g, const rung_chain *chain, unsigned long long stream_id)
{
    if (!g->graph || g->stream_id != stream_id || g->waits.count != chain->waits.count)
        return 0;
    for (int i = 0; i < g->waits.count; i++)
        if (g->links[i].function != chain->links[i].function || g->links[i].cluster != chain->links[i].cluster ||
            g->waits.of[i] != chain->waits.of[i])
            return 0;
    return 1;
}

static int same_launch(const chain_link *a, const chain_link *b)
{
    return memcmp(a->grid, b->grid, sizeof a->grid) == 0 && a->threads == b->threads &&
           a->shared_bytes == b->shared_bytes && a->bytes == b->bytes &&
           memcmp(a->argument, b->argument, a->bytes) == 0;
}

/* Gives the graph's launches their new grids and arguments. */
static CUresult renew(const rung_driver *d, kept_graph *g, const rung_chain *chain)
{
    for (int i = 0; i < g->waits.count; i++) {
        const chain_link *l = &chain->links[i];
        if (same_launch(&g->links[i], l))
            continue;
        void *parameters[1];
        CUDA_KERNEL_NODE_PARAMS node = node_of(l, parameters);
        CUresult result = d->graph_kernel_renew(g->exec, g->nodes[i], &node);
        if (result != CUDA_SUCCESS)
            return result;
        g->links[i] = *l;
    }
    return CUDA_SUCCESS;
}

/* Returns a place for another graph: the one that was not used for the longest time makes room. */
static kept_graph *make_room(const rung_driver *d, rung_chain *chain, unsigned long long stream_id)
{
    kept_graph *g = chain->kept;
    for (int i = 1; i < KEPT_GRAPHS; i++)
        if (chain->kept[i].used < g->used)
            g = &chain->kept[i];
    forget(d, g);
    g->stream_id = stream_id;
    g->waits = chain->waits;
    memcpy(g->links, chain->links, sizeof g->links);
    return g;
}

/* Returns the graph for this series of launches; NULL where the driver makes none. */
static kept_graph *graph_for(rung_cuda *cuda, rung_chain *chain, unsigned long long stream_id)
{
    const rung_driver *d = cuda->driver;
    for (int i = 0; i < KEPT_GRAPHS; i++) {
        kept_graph *g = &chain->kept[i];
        if (!same_series(g, chain, stream_id))
            continue;
        if (renew(d, g, chain) == CUDA_SUCCESS)
            return g;
        forget(d, g);
        return NULL;
    }
    kept_graph *g = make_room(d, chain, stream_id);
    if (make(d, cuda->config.stream, g) == CUDA_SUCCESS)
        return g;
    forget(d, g);
    return NULL;
}

static rung_status queue_singly(rung_cuda *cuda, const rung_chain *chain)
{
    for (int i = 0; i < chain->waits.count; i++) {
        const chain_link *l = &chain->links[i];
        CUlaunchAttribute attribute;
        CUlaunchConfig config = rung_launch_config(cuda->config.stream, l->grid, l->threads, l->shared_bytes);
        config.attrs = &attribute;
        void *parameters[] = {(void *)(uintptr_t)l->argument};
        rung_launch_in_clusters(&config, &attribute, l->cluster);
        CU_TRY(cuda->driver, launch(&config, l->function, parameters, NULL));
        cuda->writes++;
    }
    return RUNG_SUCCESS;
}

rung_status rung_chain_end(rung_cuda *cuda, int queue)
{
    rung_chain *chain = cuda->chain;
    unsigned long long stream_id;
    if (!chain || !chain->open)
        return RUNG_SUCCESS;
    chain->open = 0;
    if (!queue || chain->waits.count == 0)
        return RUNG_SUCCESS;
    CU_TRY(cuda->driver, stream_id(cuda->config.stream, &stream_id));
    kept_graph *g = graph_for(cuda, chain, stream_id);
    if (!g) {
        chain->refused = 1;
        return queue_singly(cuda, chain);
    }
    CUresult result = g->used ? cuda->driver->graph_launch(g->exec, cuda->config.stream)
                              : first_launch(cuda->driver, g, cuda->config.stream);
    g->used = ++chain->chains;
    if (result != CUDA_SUCCESS)
        return rung_driver_fail(cuda->driver, result, "cuGraphLaunch");
    cuda->writes++;
    return RUNG_SUCCESS;
}

void rung_chain_close(rung_cuda *cuda)
{
    for (int i = 0; cuda->chain && i < KEPT_GRAPHS; i++)
        forget(cuda->driver, &cuda->chain->kept[i]);
    free(cuda->chain);
    cuda->chain = NULL;
}
