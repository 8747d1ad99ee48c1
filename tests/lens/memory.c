/* The lens's own memory, from launch to launch, under the address sanitizer: what blocks tell each other, and the
 * shared memory of a cluster's blocks. The rest of the lens is left out, and stands here as a few lines. */
#include "lens.h"

#include <stdio.h>
#include <stdlib.h>

static int findings, fenced;

void lens_find(rung_lens_fault fault, uintptr_t pc, const char *format, ...)
{
    (void)fault, (void)pc, (void)format;
    findings++;
}

const unsigned char *lens_memory_name(uintptr_t address, char *name, size_t name_bytes, int64_t *row, int64_t *column)
{
    *row = *column = 0;
    snprintf(name, name_bytes, "C");
    return (const unsigned char *)address;
}

uint32_t lens_order_now(void)
{
    return 5;
}

bool lens_order_has_fenced(void)
{
    return fenced;
}

void lens_order_publish(uint32_t *published)
{
    published[0] = 7;
}

static void expect(int count, const char *what)
{
    if (findings == count)
        return;
    printf("FAILED: %s: %d findings, not %d\n", what, findings, count);
    exit(1);
}

/* Two launches, each of blocks that write, tell and read; a launch knows nothing of the one before it. */
static void launches_forget(void)
{
    static float data[4096];
    lens_now.threads = 32;
    for (int launch = 0; launch < 3; launch++) {
        const uintptr_t at = (uintptr_t)&data[launch * 1024], flag = at + 2048;
        findings = fenced = 0;
        lens_publish_begin();
        lens_publish_block();
        lens_publish_read(0, (uintptr_t)data, sizeof data);
        expect(0, "nobody has written in this launch");
        lens_publish_write(0, at, 16);
        lens_publish_block();
        lens_publish_read(0, at + 12, 4);
        expect(1, "data that nobody fenced");
        lens_publish_atomic(0, at, 4);
        expect(2, "an atomic on data that nobody fenced");
        lens_publish_block();
        lens_publish_atomic(0, at, 4);
        expect(3, "an atomic on what an atomic left of data that nobody fenced");
        lens_publish_read(0, at, 4);
        expect(3, "what the block itself has left");
        fenced = 1;
        lens_publish_flag(flag, 4);
        lens_publish_block();
        lens_publish_read(0, at, 4);
        lens_publish_read(0, flag, 4);
        expect(3, "what was fenced, and the flag");
        lens_publish_write(0, at + 64 + 1, 1);
        lens_publish_block();
        lens_publish_read(0, at + 64, 1);
        lens_publish_read(0, at + 64 + 2, 2);
        expect(3, "bytes beside another block's");
        lens_publish_read(0, at + 64, 2);
        expect(4, "another block's byte");
    }
    lens_publish_begin();
}

/* What a block reads or writes, and a later one writes or updates, where nothing says which of them comes first. */
static void blocks_meet(void)
{
    static _Alignas(4096) float data[1024];
    const uintptr_t at = (uintptr_t)data, bytes = at + 64, read = at + 128, added = at + 192, cleared = at + 256,
                    left = at + 320, told = at + 384;
    findings = fenced = 0;
    lens_publish_begin();
    lens_publish_block();
    lens_publish_write(0, at, 16);
    lens_publish_write(0, bytes, 1);
    lens_publish_read(0, read, 8);
    lens_publish_atomic(0, added, 4);
    lens_publish_atomic(0, left, 4);
    lens_publish_write(0, cleared, 4);
    lens_publish_atomic(0, cleared, 4);
    lens_publish_block();
    lens_publish_write(0, at + 16, 16);
    lens_publish_write(0, bytes + 1, 1);
    lens_publish_write(0, at + 16, 16);
    lens_publish_atomic(0, added, 4);
    expect(0, "each block has its own, and atomics go in turn");
    lens_publish_write(0, at + 8, 16);
    expect(2, "two words of another block's, written once more");
    lens_publish_write(0, at + 8, 16);
    expect(2, "those words are the second block's now");
    lens_publish_read(0, read, 4);
    lens_publish_write(0, read, 4);
    expect(3, "a word that another block has read first");
    lens_publish_atomic(0, read + 4, 4);
    expect(4, "an atomic on a word that another block has read");
    lens_publish_atomic(0, cleared, 4);
    expect(5, "an atomic on a word that another block has cleared before its own atomic");
    lens_publish_write(0, left, 4);
    expect(6, "a store over what another block's atomic has left");
    lens_publish_write(0, told, 4);
    lens_publish_read(0, told + 4, 4);
    fenced = 1;
    lens_publish_flag(told + 8, 4);
    fenced = 0;
    lens_publish_block();
    lens_publish_write(0, told, 4);
    lens_publish_write(0, told + 4, 4);
    lens_publish_write(0, bytes, 1);
    lens_publish_block();
    lens_publish_flag(bytes, 4);
    lens_publish_atomic(0, bytes, 4);
    expect(6, "what was told of, and what all blocks store alike");
    lens_publish_begin();
}

/* Kernels of more shared memory, and clusters of more blocks, after smaller ones. */
static void clusters_grow(void)
{
    static const struct {
        unsigned blocks;
        size_t bytes;
    } kernels[] = {{2, 512}, {2, 4096}, {4, 1024}, {4, 8192}, {1, 16384}, {8, 256}, {8, 16384}};
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        lens_module module = {.shared = malloc(kernels[i].bytes), .shared_bytes = kernels[i].bytes};
        lens_module_now = &module;
        lens_now.cluster = kernels[i].blocks;
        lens_now.rank = 0;
        if (!module.shared || lens_cluster_begin(kernels[i].blocks) != 0)
            exit(1);
        lens_cluster_poison(false);
        for (unsigned rank = 0; rank < kernels[i].blocks; rank++) {
            lens_cluster_enter(rank);
            module.shared[kernels[i].bytes - 1] = (unsigned char)rank;
        }
        lens_cluster_enter(0);
        for (unsigned rank = 0; rank < kernels[i].blocks; rank++)
            if (lens_image(rank)[kernels[i].bytes - 1] != rank) {
                puts("FAILED: a block's shared memory is another one's");
                exit(1);
            }
        free(module.shared);
    }
}

int main(void)
{
    launches_forget();
    blocks_meet();
    clusters_grow();
    puts("ok");
    return 0;
}
