/* A table of products by a hash of what they read. Two that fall into one place only mislead each other about a look.
 */
#include "cuda/families/accurate/recall.h"

#include <stdlib.h>

enum {
    PLACES = 256,    /* a power of two */
    FIRST_PAUSE = 8, /* so many products without a look after one that was in vain, twice as many after each more */
    LONGEST_PAUSE = 1024,
    TRUSTED = 64, /* after so many good looks the next pause is the first one again */
};

typedef struct kept_place {
    uint64_t key;
    uint32_t in_vain; /* as far as it is known here */
    uint64_t number;  /* another one after a look in vain: its witnesses are no good */
    int pause, left;  /* the last pause, and what is left of it */
    int good;         /* looks since one was in vain */
} kept_place;

/* What the GPU writes in host memory. */
typedef struct of_gpu {
    volatile uint32_t last, in_vain;
} of_gpu;

/* What a place has on the GPU. */
typedef struct on_gpu {
    f16x3_witness witness[F16X3_WITNESSES];
    uint32_t last, pad;
} on_gpu;

struct rung_recall_table {
    on_gpu *there; /* device memory */
    of_gpu *said;
    uint64_t numbers;
    kept_place kept[PLACES];
};

static CUresult get_memory(const rung_driver *d, rung_recall_table *t)
{
    CUdeviceptr at = 0;
    CUstream stream;
    CUresult result = d->stream_create(&stream, CU_STREAM_NON_BLOCKING, 0);
    if (result != CUDA_SUCCESS)
        return result;
    result = d->host_alloc((void **)&t->said, PLACES * sizeof *t->said, 0);
    if (result == CUDA_SUCCESS)
        result = d->memory_alloc(&at, PLACES * sizeof *t->there);
    if (result == CUDA_SUCCESS)
        result = d->set_32(at, 0, PLACES * sizeof *t->there / sizeof(uint32_t), stream);
    if (result == CUDA_SUCCESS)
        result = d->stream_synchronize(stream);
    d->stream_destroy(stream);
    t->there = (on_gpu *)(uintptr_t)at;
    for (int i = 0; result == CUDA_SUCCESS && i < PLACES; i++)
        t->said[i].last = t->said[i].in_vain = 0;
    return result;
}

static void give_back(const rung_driver *d, rung_recall_table *t)
{
    if (t->there)
        d->memory_free(rung_device_address(t->there));
    if (t->said)
        d->host_free((void *)t->said);
    free(t);
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

static int decide(rung_recall_table *t, kept_place *at, const of_gpu *said)
{
    const uint32_t in_vain = said->in_vain;
    if (in_vain != at->in_vain) {
        at->in_vain = in_vain;
        at->number = ++t->numbers;
        at->pause = at->good >= TRUSTED || at->pause == 0 ? FIRST_PAUSE
                    : at->pause < LONGEST_PAUSE           ? 2 * at->pause
                                                          : LONGEST_PAUSE;
        at->left = at->pause;
        at->good = 0;
    }
    if (at->left > 0) {
        at->left--;
        return 0;
    }
    if (!said->last)
        return 0;
    at->good++;
    return 1;
}

int rung_recall(rung_cuda *cuda, const rung_problem *p, rung_recall_place *place)
{
    rung_recall_table *t = table_of(cuda);
    *place = (rung_recall_place){.last = NULL};
    if (!t)
        return 0;
    const uint64_t key = key_of(p);
    const int i = (int)(key >> 32 & (PLACES - 1));
    kept_place *at = &t->kept[i];
    int look = 0;
    if (at->key == key)
        look = decide(t, at, &t->said[i]);
    else /* what stands there was said of another product */
        *at = (kept_place){.key = key, .in_vain = t->said[i].in_vain, .number = ++t->numbers};
    *place = (rung_recall_place){.last = &t->there[i].last,
                                 .told = &t->said[i].last,
                                 .in_vain = &t->said[i].in_vain,
                                 .witness = t->there[i].witness,
                                 .number = at->number};
    return look;
}

void rung_recall_close(rung_cuda *cuda)
{
    if (cuda->recall)
        give_back(cuda->driver, cuda->recall);
    cuda->recall = NULL;
}
