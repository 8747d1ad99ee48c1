/* Sends each operation to the CPU or the GPU. Kernels of the lab would run under the lens too, but a hundred times
 * slower than the same checks on the CPU, which reads that memory as its own. */
#include "lab/check.h"
#include "lab/host.h"

#include <string.h>

enum { THREADS = 256, MOST_BLOCKS = 132 * 16, REFERENCE_TILE = 64 };

static rung_status launch(lab_place *place, int which, int64_t blocks, const void *args)
{
    void *parameters[] = {(void *)(uintptr_t)args};
    unsigned grid[3] = {(unsigned)blocks, 1, 1};
    return rung_tools_launch(place->tools, place->functions[which], grid, THREADS, 0, parameters);
}

static int64_t blocks_for(int64_t elements)
{
    int64_t blocks = (elements + THREADS - 1) / THREADS;
    return blocks < 1 ? 1 : blocks > MOST_BLOCKS ? MOST_BLOCKS : blocks;
}

rung_status lab_fill(lab_place *place, const lab_fill_args *args)
{
    if (args->lines <= 0 || args->length <= 0)
        return RUNG_SUCCESS;
    if (!place->host_checks)
        return launch(place, LAB_FILL, blocks_for(args->lines * args->length), args);
    LAB_TRY(lab_wait(place));
    lab_host_fill(args, place->threads);
    return RUNG_SUCCESS;
}

rung_status lab_reference(lab_place *place, const lab_reference_args *args)
{
    if (args->m <= 0 || args->n <= 0)
        return RUNG_SUCCESS;
    if (place->host_checks) {
        LAB_TRY(lab_wait(place));
        return lab_host_reference(args, place->threads);
    }
    int64_t tiles =
        ((args->m + REFERENCE_TILE - 1) / REFERENCE_TILE) * ((args->n + REFERENCE_TILE - 1) / REFERENCE_TILE);
    return launch(place, LAB_REFERENCE, tiles, args);
}

rung_status lab_tally_begin(lab_place *place)
{
    lab_tally empty = {.wrong_at = UINT64_MAX, .touched_at = UINT64_MAX};
    return lab_upload(place, place->tally, &empty, sizeof empty);
}

rung_status lab_tally_end(lab_place *place, lab_tally *tally)
{
    return lab_download(place, tally, place->tally, sizeof *tally);
}

rung_status lab_compare(lab_place *place, const lab_compare_args *args)
{
    lab_compare_args mine = *args;
    mine.tally = place->tally;
    if (mine.m <= 0 || mine.n <= 0)
        return RUNG_SUCCESS;
    if (!place->host_checks)
        return launch(place, LAB_COMPARE, blocks_for(mine.m * mine.n), &mine);
    LAB_TRY(lab_wait(place));
    lab_host_compare(&mine);
    return RUNG_SUCCESS;
}

rung_status lab_untouched(lab_place *place, const lab_region_args *args)
{
    lab_region_args mine = *args;
    mine.tally = place->tally;
    if (!place->host_checks)
        return launch(place, LAB_UNTOUCHED, blocks_for(mine.words), &mine);
    LAB_TRY(lab_wait(place));
    lab_host_untouched(&mine);
    return RUNG_SUCCESS;
}

rung_status lab_hash(lab_place *place, const void *at, int64_t words)
{
    lab_region_args mine = {.words_at = at, .words = words, .tally = place->tally};
    if (!place->host_checks)
        return launch(place, LAB_HASH, blocks_for(words), &mine);
    LAB_TRY(lab_wait(place));
    lab_host_hash(&mine);
    return RUNG_SUCCESS;
}

rung_status lab_sum(lab_place *place, const float *at, int64_t words)
{
    lab_region_args mine = {.words_at = (const uint32_t *)(const void *)at, .words = words, .tally = place->tally};
    if (!place->host_checks)
        return launch(place, LAB_SUM, blocks_for(words), &mine);
    LAB_TRY(lab_wait(place));
    lab_host_sum(at, words, place->tally);
    return RUNG_SUCCESS;
}

double lab_packed(uint64_t worst)
{
    uint32_t bits = (uint32_t)(worst >> 32);
    float number;
    memcpy(&number, &bits, sizeof number);
    return number;
}
