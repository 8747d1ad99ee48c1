/* The shared memory of a cluster's blocks, which take turns in the one place where kernels see it. */
#include "lens.h"

#include <stdlib.h>
#include <string.h>
#include <wchar.h>

static unsigned char *images[LENS_MOST_BLOCKS];
static size_t image_bytes;
/* The last read of each block's memory by another block since the cluster met last. */
static struct {
    uintptr_t pc; /* 0: none */
    int thread;
} reads[LENS_MOST_BLOCKS];
float lens_poison;

unsigned char *lens_image(unsigned rank)
{
    return rank == lens_now.rank ? lens_module_now->shared : images[rank];
}

void lens_cluster_enter(unsigned rank)
{
    if (rank == lens_now.rank)
        return;
    memcpy(images[lens_now.rank], lens_module_now->shared, lens_module_now->shared_bytes);
    memcpy(lens_module_now->shared, images[rank], lens_module_now->shared_bytes);
    lens_now.rank = rank;
}

void lens_cluster_poison(bool finite)
{
    const uint32_t nan_bits = UINT32_MAX; /* as two halves it is NaN, too */
    lens_poison = 1e4f;
    if (!finite)
        memcpy(&lens_poison, &nan_bits, sizeof lens_poison);
    wchar_t word;
    _Static_assert(sizeof word == sizeof lens_poison, "wmemset writes words of four bytes");
    memcpy(&word, &lens_poison, sizeof word);
    for (unsigned rank = 0; rank < lens_now.cluster; rank++)
        wmemset((wchar_t *)(void *)lens_image(rank), word, lens_module_now->shared_bytes / sizeof word);
}

void lens_cluster_note_read(uintptr_t pc, unsigned rank)
{
    if (rank == lens_now.rank)
        return;
    reads[rank].pc = pc;
    reads[rank].thread = lens_now.current;
}

void lens_cluster_meets(void)
{
    memset(reads, 0, sizeof reads);
}

void lens_cluster_ends(void)
{
    for (unsigned rank = 0; rank < lens_now.cluster; rank++) {
        if (!reads[rank].pc)
            continue;
        lens_now.current = reads[rank].thread;
        lens_find(RUNG_LENS_RACE, reads[rank].pc,
                  "reads the shared memory of block %u of its cluster, which may have ended: they do not meet again",
                  rank);
        lens_now.current = -1;
    }
    lens_cluster_meets();
}

int lens_cluster_begin(unsigned cluster)
{
    if (cluster <= 1 || (image_bytes >= lens_module_now->shared_bytes && images[cluster - 1]))
        return 0;
    for (int i = 0; i < LENS_MOST_BLOCKS; i++) {
        free(images[i]);
        images[i] = (unsigned)i < cluster ? malloc(lens_module_now->shared_bytes) : NULL;
        if ((unsigned)i < cluster && !images[i])
            return -1;
    }
    image_bytes = lens_module_now->shared_bytes;
    return 0;
}
