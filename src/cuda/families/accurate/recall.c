/* A table of products by a hash of what they read. Two that fall into one place only forget each other. */
#include "cuda/families/accurate/recall.h"
#include "core/divide.h"

#include <stdlib.h>

enum { PLACES = 256 /* a power of two */ };

/* What a place has on the GPU. */
typedef struct on_gpu {
    f16x3_recalled record;
    f16x3_witness witness[F16X3_WITNESSES];
} on_gpu;

typedef struct kept_place {
    uint64_t key, number;
} kept_place;

struct rung_recall_table {
    on_gpu *there;           /* device memory */
    volatile uint32_t *told; /* host memory that the GPU writes, a word a place */
    uint64_t numbers;
    kept_place kept[PLACES];
};

static void give_back(const rung_driver *d, rung_recall_table *t)
{
    if (t->there)
        d->memory_free(rung_device_address(t->there));
    if (t->told)
        d->host_free((void *)t->told);
    free(t);
}

static CUresult get_memory(const rung_driver *d, rung_recall_table *t)
{
    CUdeviceptr at = 0;
    const char *call;
    CUresult result = d->host_alloc((void **)&t->told, PLACES * sizeof *t->told, 0);
    if (result == CUDA_SUCCESS)
        result = rung_driver_alloc_zeros(d, &at, PLACES * sizeof *t->there, &call);
    if (result == CUDA_SUCCESS)
        t->there = (on_gpu *)(uintptr_t)at;
    for (int i = 0; result == CUDA_SUCCESS && i < PLACES; i++)
        t->told[i] = 0;
    return result;
}

/* Makes the table with the first product. Without memory there is none, and no look. */
static rung_recall_table *table_of(rung_cuda *cuda)
{
    if (cuda->recall || cuda->recall_failed)
        return cuda->recall;
    rung_recall_table *t = calloc(1, sizeof *t);
    rung_thread_mode mode = rung_driver_relax(cuda->driver);
    if (t && get_memory(cuda->driver, t) != CUDA_SUCCESS) {
        give_back(cuda->driver, t);
        t = NULL;
    }
    rung_driver_put_back(cuda->driver, mode);
    cuda->recall = t;
    cuda->recall_failed = !t;
    return t;
}

static uint64_t key_of(const rung_problem *p)
{
    const uint64_t words[] = {(uintptr_t)p->a,  (uintptr_t)p->b,      (uint64_t)p->m,
                              (uint64_t)p->n,   (uint64_t)p->k,       (uint64_t)p->lda,
                              (uint64_t)p->ldb, (uint64_t)p->trans_a, (uint64_t)p->trans_b};
    uint64_t key = 0;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        key = (key ^ words[i]) * 0x9e3779b97f4a7c15u;
        key ^= key >> 29;
    }
    return key;
}

/* Returns a place that belongs to this product of a recording alone. */
static rung_recall_place place_in_graph(rung_cuda *cuda, const rung_problem *p, const void *zeros)
{
    const int64_t witnesses = 2 * (divide_up(p->m, F16X3_BM) + divide_up(p->n, F16X3_BM));
    f16x3_recalled *record =
        rung_graph_record_get(cuda, zeros, (int64_t)sizeof *record + witnesses * (int64_t)sizeof(f16x3_witness));
    return (rung_recall_place){.record = record,
                               .witness = record ? (f16x3_witness *)(record + 1) : NULL,
                               .number = 1,
                               .may_look = record != NULL};
}

rung_recall_place rung_recall(rung_cuda *cuda, const rung_problem *p, const void *zeros)
{
    if (rung_graph_memory_lent(cuda, zeros))
        return place_in_graph(cuda, p, zeros);
    rung_recall_table *t = table_of(cuda);
    if (!t)
        return (rung_recall_place){.record = NULL};
    const uint64_t key = key_of(p);
    const int i = (int)(key >> 32 & (PLACES - 1));
    kept_place *at = &t->kept[i];
    const int known = at->key == key && at->number;
    if (!known) /* what stands there was said of another product */
        *at = (kept_place){.key = key, .number = ++t->numbers};
    return (rung_recall_place){.record = &t->there[i].record,
                               .told = &t->told[i],
                               .witness = t->there[i].witness,
                               .number = at->number,
                               .may_look = known && t->told[i]};
}

void rung_recall_close(rung_cuda *cuda)
{
    if (cuda->recall)
        give_back(cuda->driver, cuda->recall);
    cuda->recall = NULL;
}
