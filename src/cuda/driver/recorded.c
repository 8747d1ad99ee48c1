/* Recorded launches that wait for what their order says. While a stream records, the driver keeps a list of the nodes
 * that its next launch will wait for; it can be read, and set. */
#include "cuda/driver/recorded.h"
#include "cuda/driver/chain.h"

#include <stdlib.h>

struct rung_recorded {
    int open, moved;                                   /* a launch waits for other ones than the one before it */
    rung_waits waits, next;                            /* of the launches, and with the one that is on its way */
    CUgraphNode before[RUNG_LINKS], nodes[RUNG_LINKS]; /* what the first launch waits for; the launches */
    size_t befores;
};

/* Finds what the next launch will wait for. Returns 0 where the driver does not say, or it is too much. */
static int find_next(const rung_cuda *cuda, CUgraphNode *to, size_t most, size_t *count)
{
    CUstreamCaptureStatus status;
    cuuint64_t id;
    CUgraph graph;
    const CUgraphNode *found;
    if (cuda->driver->capture_info(cuda->config.stream, &status, &id, &graph, &found, count) != CUDA_SUCCESS ||
        status != CU_STREAM_CAPTURE_STATUS_ACTIVE || *count > most)
        return 0;
    for (size_t i = 0; i < *count; i++)
        to[i] = found[i];
    return 1;
}

void rung_recorded_begin(rung_cuda *cuda)
{
    if (!cuda->recorded)
        cuda->recorded = calloc(1, sizeof *cuda->recorded);
    rung_recorded *r = cuda->recorded;
    if (!r)
        return;
    r->waits = (rung_waits){0};
    r->moved = 0;
    r->open = find_next(cuda, r->before, RUNG_LINKS, &r->befores);
}

/* Has the next launch wait for these launches, or, for none, for what the first one waited for. */
static rung_status wait_for(rung_cuda *cuda, rung_recorded *r, unsigned launches)
{
    CUgraphNode nodes[RUNG_LINKS];
    size_t count = 0;
    for (int i = 0; i < r->waits.count; i++)
        if (launches >> i & 1)
            nodes[count++] = r->nodes[i];
    CU_TRY(cuda->driver, capture_order(cuda->config.stream, launches ? nodes : r->before, launches ? count : r->befores,
                                       CU_STREAM_SET_CAPTURE_DEPENDENCIES));
    return RUNG_SUCCESS;
}

rung_status rung_recorded_before(rung_cuda *cuda, rung_chain_order order, int *moved)
{
    rung_recorded *r = cuda->recorded;
    *moved = 0;
    if (!r || !r->open)
        return RUNG_SUCCESS;
    if (r->waits.count == RUNG_LINKS)
        return rung_recorded_end(cuda);
    const int last = r->waits.count - 1;
    r->next = r->waits;
    const unsigned of = rung_waits_add(&r->next, order);
    *moved = last >= 0 && of != 1u << last;
    r->moved |= *moved;
    return *moved ? wait_for(cuda, r, of) : RUNG_SUCCESS;
}

rung_status rung_recorded_after(rung_cuda *cuda)
{
    rung_recorded *r = cuda->recorded;
    size_t count;
    if (!r || !r->open)
        return RUNG_SUCCESS;
    if (!find_next(cuda, &r->nodes[r->waits.count], 1, &count) || count != 1)
        return rung_driver_fail(cuda->driver, CUDA_ERROR_UNKNOWN, "capture_info");
    r->waits = r->next;
    return RUNG_SUCCESS;
}

rung_status rung_recorded_end(rung_cuda *cuda)
{
    rung_recorded *r = cuda->recorded;
    if (!r || !r->open)
        return RUNG_SUCCESS;
    r->open = 0;
    return r->moved ? wait_for(cuda, r, r->waits.ends) : RUNG_SUCCESS;
}

void rung_recorded_close(rung_cuda *cuda)
{
    free(cuda->recorded);
    cuda->recorded = NULL;
}
