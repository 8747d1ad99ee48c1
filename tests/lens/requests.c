/* How the lens counts drawn accesses of a warp, against the rule taken byte by byte: sectors, lines and distinct bytes
 * of global memory; passes of shared memory, which serves 8-byte accesses by half warps and 16-byte ones by quarters,
 * two of them at once where neighbours, or next but one, want the same address. The n-th accesses that the lanes make
 * from one place are one request, whoever takes part. What several places of one line do is added up.
 */
#include "lens.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TRIALS = 6000, MOST = 3, PLACES = 3, LANES = 32, SHARED_BYTES = 8192, GLOBAL_BYTES = 1 << 16 };

static uint64_t state = 1;

static uint32_t draw(uint32_t below)
{
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)((state >> 33) % below);
}

/* ---- the rule ---- */

typedef struct cost {
    int requests, lanes, sectors, lines, used, passes, parts, ways;
} cost;

static int count_touched(const unsigned char *touched, int bytes, int unit)
{
    int count = 0;
    for (int at = 0; at < bytes; at += unit) {
        int any = 0;
        for (int i = 0; i < unit; i++)
            any |= touched[at + i];
        count += any;
    }
    return count;
}

static void add_global(cost *c, const int *at, int bytes)
{
    static unsigned char touched[GLOBAL_BYTES];
    memset(touched, 0, sizeof touched);
    for (int lane = 0; lane < LANES; lane++)
        if (at[lane] >= 0)
            memset(touched + at[lane], 1, (size_t)bytes);
    c->used += count_touched(touched, GLOBAL_BYTES, 1);
    c->sectors += count_touched(touched, GLOBAL_BYTES, 32);
    c->lines += count_touched(touched, GLOBAL_BYTES, 128);
}

/* Lanes first ... end - 1 are served at once: each bank gives one word a pass. */
static void add_part(cost *c, const int *at, int bytes, int first, int end)
{
    static unsigned char wanted[SHARED_BYTES / 4];
    int most = 0;
    memset(wanted, 0, sizeof wanted);
    for (int lane = first; lane < end; lane++)
        for (int word = 0; at[lane] >= 0 && word < bytes / 4; word++)
            wanted[at[lane] / 4 + word] = 1;
    for (int bank = 0; bank < 32; bank++) {
        int words = 0;
        for (int word = bank; word < SHARED_BYTES / 4; word += 32)
            words += wanted[word];
        most = words > most ? words : most;
    }
    c->passes += most;
    c->parts += most > 0;
    c->ways = most > c->ways ? most : c->ways;
}

static int neighbours_agree(const int *at, int first, int end, int distance)
{
    for (int lane = first; lane < end; lane++)
        if (at[lane] >= 0 && at[lane ^ distance] >= 0 && at[lane] != at[lane ^ distance])
            return 0;
    return 1;
}

/* The lanes are cut in two unless they agree; `first` to `end` are a warp of 8-byte accesses, half of one of 16. */
static void add_halves(cost *c, const int *at, int bytes, int first, int end)
{
    if (neighbours_agree(at, first, end, 1) || neighbours_agree(at, first, end, 2)) {
        add_part(c, at, bytes, first, end);
        return;
    }
    add_part(c, at, bytes, first, (first + end) / 2);
    add_part(c, at, bytes, (first + end) / 2, end);
}

static void add_shared(cost *c, const int *at, int bytes)
{
    static unsigned char touched[SHARED_BYTES];
    memset(touched, 0, sizeof touched);
    for (int lane = 0; lane < LANES; lane++)
        if (at[lane] >= 0)
            memset(touched + at[lane], 1, (size_t)bytes);
    c->used += count_touched(touched, SHARED_BYTES, 1);
    if (bytes == 4)
        add_part(c, at, bytes, 0, LANES);
    else if (bytes == 8)
        add_halves(c, at, bytes, 0, LANES);
    else
        for (int half = 0; half < LANES; half += LANES / 2)
            add_halves(c, at, bytes, half, half + LANES / 2);
}

/* ---- what accesses.c needs of the rest of the lens ---- */

bool lens_findings_fail;

void lens_find(rung_lens_fault fault, uintptr_t pc, const char *format, ...)
{
    (void)fault, (void)pc, (void)format;
}

void lens_abandon(void)
{
    abort();
}

void lens_give_way(uintptr_t pc)
{
    (void)pc;
}

const lens_array *lens_array_at(const lens_module *module, uint32_t offset)
{
    (void)module, (void)offset;
    return NULL;
}

bool lens_is_operand_c(uint64_t address, int64_t *row, int64_t *column)
{
    (void)address, (void)row, (void)column;
    return false;
}

const unsigned char *lens_memory_name(uint64_t address, char *name, size_t bytes, int64_t *row, int64_t *column)
{
    (void)address, (void)name, (void)bytes, (void)row, (void)column;
    return NULL;
}

void lens_lines(const lens_module *module, const uintptr_t *pcs, int count, char (*files)[256], int *lines)
{
    (void)module, (void)pcs;
    for (int i = 0; i < count; i++) {
        snprintf(files[i], sizeof files[i], "kernel.cu");
        lines[i] = 7;
    }
}

/* ---- drawn warps ---- */

/* Draws an address for each lane, -1 for those that take no part: a line, steps, pairs of the same, any. */
static void draw_addresses(int *at, int bytes, int room, uint32_t mask)
{
    const int units = room / bytes, first = (int)draw((uint32_t)units / 2), step = (int)draw(9), how = (int)draw(6);
    for (int lane = 0; lane < LANES; lane++) {
        const int of = how == 1 ? lane / 2 : how == 2 ? lane & ~2 : how == 3 ? lane / 8 : lane;
        int unit = how == 4 ? (int)draw((uint32_t)units) : first + of * step;
        if (how == 5 && lane >= 16) /* one half of the warp in order, the other one not */
            unit = (int)draw((uint32_t)units);
        at[lane] = mask >> lane & 1 ? unit % units * bytes : -1;
    }
}

static int is_right(const rung_lens_site *s, const cost *c, int bytes, int shared, double weight)
{
    if (s->requests != weight * c->requests || s->lanes != weight * c->lanes || s->bytes != bytes ||
        s->bytes_used != weight * c->used)
        return 0;
    if (!shared)
        return s->space == RUNG_LENS_GLOBAL && s->sectors == weight * c->sectors && s->lines == weight * c->lines &&
               s->bytes_moved == weight * c->sectors * 32;
    return s->space == RUNG_LENS_SHARED && s->wavefronts == weight * c->passes &&
           s->ideal_wavefronts == weight * c->parts && s->ways == (c->ways > 1 ? c->ways : 1) &&
           s->bytes_moved == weight * c->passes * 128 &&
           (bytes == 4 || (s->merged_requests == weight * c->requests && s->merged_wavefronts == s->wavefronts &&
                           s->merged_ideal == s->ideal_wavefronts));
}

int main(void)
{
    static lens_module module;
    unsigned char *const shared = aligned_alloc(128, SHARED_BYTES), *const memory = aligned_alloc(128, GLOBAL_BYTES);
    int wrong = 0;
    module.shared = shared;
    module.shared_bytes = SHARED_BYTES;
    lens_module_now = &module;
    lens_counting = true;
    for (int i = 0; i < 2 * LANES; i++)
        lens_now.thread[i].log = calloc(PLACES * MOST, sizeof *lens_now.thread[i].log);
    for (int trial = 0; trial < TRIALS; trial++) {
        const int log2_bytes = 2 + (int)draw(3), bytes = 1 << log2_bytes, is_shared = (int)draw(2), warp = (int)draw(2);
        const rung_lens_kind kind = draw(2) ? RUNG_LENS_LOAD : RUNG_LENS_STORE;
        const double weight = 1 + draw(3);
        const int all_alike = draw(2) > 0, times = 1 + (int)draw(MOST), places = 1 + (int)draw(PLACES);
        const uint32_t drawn = draw(2) ? UINT32_MAX : draw(UINT32_MAX) ^ draw(65536);
        uint32_t mask = 0;
        cost want = {0};
        lens_now.threads = (unsigned)(warp + 1) * LANES;
        lens_now.weight = weight;
        lens_sites_begin();
        for (int access = 0; access < places * times; access++) {
            int at[LANES];
            if (access % times == 0)
                mask = drawn ? drawn : 1;
            else if (!all_alike) /* some lanes have made all their accesses */
                mask &= draw(UINT32_MAX) | 1u << 7;
            if (!mask)
                continue;
            draw_addresses(at, bytes, is_shared ? SHARED_BYTES : GLOBAL_BYTES, mask);
            for (int lane = 0; lane < LANES; lane++)
                if (at[lane] >= 0) {
                    lens_thread *t = &lens_now.thread[warp * LANES + lane];
                    const uint64_t address = (uintptr_t)(is_shared ? shared : memory) + (unsigned)at[lane];
                    t->log[t->entries++] = (lens_entry){0x1000 + (uintptr_t)(access / times),
                                                        address | (uint64_t)log2_bytes << 48 | (uint64_t)kind << 52};
                }
            want.requests++;
            want.lanes += __builtin_popcount(mask);
            if (is_shared)
                add_shared(&want, at, bytes);
            else
                add_global(&want, at, bytes);
        }
        rung_lens_launch launch = {0};
        uintptr_t *pcs;
        lens_flush_warp(warp);
        lens_sites_end(&launch, &pcs);
        if (launch.site_count != places)
            printf("FAILED: trial %d, %d places count as %d\n", trial, places, launch.site_count), wrong++;
        lens_sites_resolve(&launch, &module, pcs);
        if (launch.site_count != 1 || !is_right(&launch.sites[0], &want, bytes, is_shared, weight)) {
            const rung_lens_site *s = &launch.sites[0];
            if (wrong++ < 10)
                printf("FAILED: trial %d, %d times %d accesses of %d bytes of %s memory by the lanes %08x: %g "
                       "requests, %g "
                       "sectors, %g "
                       "lines, %g bytes, %g passes, %g at least, %d ways; not %d, %d, %d, %d, %d, %d, %d (times %g)\n",
                       trial, places, times, bytes, is_shared ? "shared" : "global", (unsigned)mask, s->requests,
                       s->sectors, s->lines, s->bytes_used, s->wavefronts, s->ideal_wavefronts, s->ways, want.requests,
                       want.sectors, want.lines, want.used, want.passes, want.parts, want.ways, weight);
        }
        free((void *)(uintptr_t)launch.sites);
        free((void *)(uintptr_t)launch.owners);
        free(pcs);
    }
    printf("%d warps, %d counted wrongly\n", TRIALS, wrong);
    return wrong > 0;
}
