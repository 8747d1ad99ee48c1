/* How k is cut into panels. Every element is added up panel after panel, so the cuts are part of what its bits depend
 * on: they follow from k and the context alone, never from ranks, grids or blocks. Narrow panels first, because
 * products wait for the first one; then wide ones, because every panel adds itself to C once; narrower ones last,
 * because at the end multiprocessors wait for the last tiles. */
#include "multi/multi.h"

#include <stdlib.h>

enum { STEP = 256 }; /* panels begin at multiples of it */

/* Returns a panel's width. It doubles from the first to the widest; towards the end it is half of what is left, down to
 * the last's width. */
static int64_t width_at(const multi_panels *rule, int64_t k0, int64_t k)
{
    int64_t left = k - k0, half = round_up(left / 2, STEP);
    int64_t grown = max64(rule->first, min64(k0, rule->widest)), shrunk = max64(rule->last, half);
    return min64(left, min64(grown, shrunk));
}

rung_status multi_panels_cut(const multi_panels *rule, int64_t k, multi_cuts *cuts)
{
    *cuts = (multi_cuts){0};
    for (int64_t k0 = 0; k0 < k; k0 += width_at(rule, k0, k))
        cuts->count++;
    cuts->edges = malloc((size_t)(cuts->count + 1) * sizeof *cuts->edges);
    if (!cuts->edges)
        return rung_fail(RUNG_OUT_OF_MEMORY, "no memory for %lld panels", (long long)cuts->count);
    cuts->edges[0] = 0;
    for (int64_t i = 0; i < cuts->count; i++) {
        int64_t width = width_at(rule, cuts->edges[i], k);
        cuts->edges[i + 1] = cuts->edges[i] + width;
        cuts->widest = max64(cuts->widest, width);
    }
    return RUNG_SUCCESS;
}

void multi_panels_free(multi_cuts *cuts)
{
    free(cuts->edges);
    *cuts = (multi_cuts){0};
}
