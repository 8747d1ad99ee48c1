/* Turns accesses of lanes into requests of warps, and counts requests. Each lane logs its accesses until a barrier. The
 * n-th access that each lane made from one call site is then taken as one request of the warp. Shared memory serves
 * 4-byte accesses of a warp at once, 8-byte ones by half warps and 16-byte ones by quarters; two parts go together when
 * neighbouring lanes (or next but one) want the same address. docs/lens.md says how copies by cp.async are counted. */
#include "lens.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TABLE = 1 << 14, LANES = 32 };

typedef struct group {   /* neighbouring 4-byte shared accesses that nvcc would merge */
    int count, position; /* the place of the first in its 16-byte unit, in words */
    uint32_t mask;
    uint64_t first[LANES];
} group;

typedef struct site {
    uintptr_t pc;
    rung_lens_site seen;
    bool full_sample, from_picture;
    group pending;
} site;

static site *table[TABLE];
static site **order;
static int site_count, site_room;
static rung_lens_owner *owners;
static int owner_count, owner_room;
double lens_shuffles;
bool lens_counting;

void lens_sites_begin(void)
{
    memset(table, 0, sizeof table);
    site_count = 0;
    owner_count = 0;
    lens_shuffles = 0;
}

static site *site_of(uintptr_t pc, rung_lens_kind kind, rung_lens_space space, int bytes)
{
    uintptr_t hash = (pc * 0x9e3779b97f4a7c15ull) ^ ((uintptr_t)kind << 7) ^ ((uintptr_t)space << 3) ^ (uintptr_t)bytes;
    for (size_t at = hash >> 20;; at++) {
        site *s = table[at % TABLE];
        if (!s) {
            s = calloc(1, sizeof *s);
            if (site_count == site_room) {
                site_room = site_room ? site_room * 2 : 64;
                order = realloc(order, (size_t)site_room * sizeof *order);
            }
            if (!s || !order || site_count == TABLE / 2)
                abort(); /* no kernel has thousands of call sites */
            s->pc = pc;
            s->seen.kind = kind;
            s->seen.space = space;
            s->seen.bytes = bytes;
            s->seen.ways = 1;
            table[at % TABLE] = order[site_count++] = s;
            return s;
        }
        if (s->pc == pc && s->seen.kind == kind && s->seen.space == space && s->seen.bytes == bytes)
            return s;
    }
}

/* ---- shared memory ---- */

/* Returns how many passes the lanes of `mask` take together: the most distinct words that any bank has to give. */
static int passes(uint32_t mask, const uint64_t *where, int words)
{
    uint32_t bank_word[32][8];
    unsigned char bank_count[32] = {0};
    int most = 0;
    for (uint32_t left = mask; left; left &= left - 1) {
        uint64_t first = lens_address(where[__builtin_ctz(left)]) / 4;
        for (int w = 0; w < words; w++) {
            uint32_t word = (uint32_t)(first + (unsigned)w), bank = word % 32;
            int n = bank_count[bank], known = 0;
            for (int i = 0; i < n && i < 8 && !known; i++)
                known = bank_word[bank][i] == word;
            if (known)
                continue;
            if (n < 8)
                bank_word[bank][n] = word;
            bank_count[bank] = (unsigned char)(n + 1);
            most = n + 1 > most ? n + 1 : most;
        }
    }
    return most;
}

/* Returns true where every active lane and its partner (lane xor distance) want the same address, or the partner is
 * idle. */
static bool pairs_agree(uint32_t mask, const uint64_t *where, int distance)
{
    for (uint32_t left = mask; left; left &= left - 1) {
        int lane = __builtin_ctz(left), partner = lane ^ distance;
        if ((mask >> partner & 1) && lens_address(where[lane]) != lens_address(where[partner]))
            return false;
    }
    return true;
}

typedef struct shared_cost {
    int wavefronts, ideal, ways;
} shared_cost;

static void add_part(shared_cost *cost, uint32_t mask, const uint64_t *where, int words)
{
    if (!mask)
        return;
    int n = passes(mask, where, words);
    cost->wavefronts += n;
    cost->ideal++;
    cost->ways = n > cost->ways ? n : cost->ways;
}

static shared_cost cost_of(uint32_t mask, const uint64_t *where, int bytes)
{
    shared_cost cost = {0, 0, 1};
    if (bytes <= 4) {
        add_part(&cost, mask, where, 1);
    } else if (bytes == 8) {
        bool joined = pairs_agree(mask, where, 1) || pairs_agree(mask, where, 2);
        add_part(&cost, joined ? mask : mask & 0xffff, where, 2);
        add_part(&cost, joined ? 0 : mask & 0xffff0000u, where, 2);
    } else {
        for (int half = 0; half < 2; half++) {
            uint32_t mine = mask & (half ? 0xffff0000u : 0xffffu);
            bool joined = pairs_agree(mine, where, 1) || pairs_agree(mine, where, 2);
            uint32_t low = half ? 0x00ff0000u : 0xffu;
            add_part(&cost, joined ? mine : mine & low, where, 4);
            add_part(&cost, joined ? 0 : mine & ~low, where, 4);
        }
    }
    return cost;
}

static void count_merged(site *s, uint32_t mask, const uint64_t *where, int bytes)
{
    shared_cost cost = cost_of(mask, where, bytes);
    s->seen.merged_requests += lens_now.weight;
    s->seen.merged_wavefronts += lens_now.weight * cost.wavefronts;
    s->seen.merged_ideal += lens_now.weight * cost.ideal;
}

/* This is nvcc's rule as its machine code shows it: what lies in one aligned unit of 16 bytes is one access when at
 * least three of its four words are wanted (the fourth is read along), an aligned pair is one of 8 bytes, the rest are
 * single. */
static void close_group(site *s)
{
    group *g = &s->pending;
    int position = g->position, count = g->count;
    uint64_t where[LANES];
    g->count = 0;
    if (count >= 3 || (count == 2 && position % 2 == 0)) {
        int back = count >= 3 ? position * 4 : 0;
        for (int lane = 0; lane < LANES; lane++)
            where[lane] = lens_address(g->first[lane]) - (uint64_t)back;
        count_merged(s, g->mask, where, count >= 3 ? 16 : 8);
        return;
    }
    for (int i = 0; i < count; i++) {
        for (int lane = 0; lane < LANES; lane++)
            where[lane] = lens_address(g->first[lane]) + (uint64_t)i * 4;
        count_merged(s, g->mask, where, 4);
    }
}

/* Returns where in its 16-byte unit the access of every lane lies, in words; -1 where it is not the same for all. */
static int unit_position(uint32_t mask, const uint64_t *where)
{
    uint64_t base = (uintptr_t)lens_module_now->shared;
    int position = (int)((lens_address(where[__builtin_ctz(mask)]) - base) % 16);
    for (uint32_t left = mask; left; left &= left - 1)
        if ((int)((lens_address(where[__builtin_ctz(left)]) - base) % 16) != position)
            return -1;
    return position / 4;
}

static void group_shared(site *s, uint32_t mask, const uint64_t *where)
{
    group *g = &s->pending;
    bool follows = g->count > 0 && g->position + g->count < 4 && g->mask == mask;
    for (uint32_t left = mask; left && follows; left &= left - 1) {
        int lane = __builtin_ctz(left);
        follows = lens_address(where[lane]) == lens_address(g->first[lane]) + (uint64_t)g->count * 4;
    }
    if (!follows) {
        int position = unit_position(mask, where);
        close_group(s);
        if (position < 0) {
            count_merged(s, mask, where, 4);
            return;
        }
        memcpy(g->first, where, sizeof g->first);
        g->mask = mask;
        g->position = position;
    }
    if (g->position + ++g->count == 4)
        close_group(s);
}

static void count_shared(site *s, uint32_t mask, const uint64_t *where)
{
    int bytes = s->seen.bytes;
    double weight = lens_now.weight;
    shared_cost cost = cost_of(mask, where, bytes);
    s->seen.wavefronts += weight * cost.wavefronts;
    s->seen.ideal_wavefronts += weight * cost.ideal;
    s->seen.bytes_moved += weight * cost.wavefronts * 128;
    s->seen.ways = cost.ways > s->seen.ways ? cost.ways : s->seen.ways;
    if (bytes == 4 && (s->seen.kind == RUNG_LENS_LOAD || s->seen.kind == RUNG_LENS_STORE))
        group_shared(s, mask, where);
    else
        count_merged(s, mask, where, bytes);
}

/* ---- global memory ---- */

/* Gathers the addresses of the lanes in ascending order. Returns how many there are. */
static int gather(uint32_t mask, const uint64_t *where, uint64_t *addresses)
{
    int n = 0;
    for (uint32_t left = mask; left; left &= left - 1) {
        uint64_t a = lens_address(where[__builtin_ctz(left)]);
        int at = n++;
        for (; at > 0 && addresses[at - 1] > a; at--)
            addresses[at] = addresses[at - 1];
        addresses[at] = a;
    }
    return n;
}

static uint64_t distinct_bytes(const uint64_t *addresses, int n, int bytes, int *sectors, int *lines)
{
    uint64_t used = 0, end = 0, last_sector = UINT64_MAX;
    *sectors = *lines = 0;
    for (int i = 0; i < n; i++) {
        uint64_t from = addresses[i] > end ? addresses[i] : end, to = addresses[i] + (unsigned)bytes;
        if (to > from)
            used += to - from;
        end = to > end ? to : end;
        for (uint64_t sector = addresses[i] / 32; sector <= (to - 1) / 32; sector++)
            if (last_sector == UINT64_MAX || sector > last_sector) {
                (*sectors)++;
                *lines += last_sector == UINT64_MAX || sector / 4 != last_sector / 4;
                last_sector = sector;
            }
    }
    return used;
}

static void note_owners(uint32_t mask, const uint64_t *where, int bytes, int warp)
{
    for (uint32_t left = mask; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        for (int i = 0; i < bytes / 4; i++) {
            int64_t row, column;
            if (!lens_is_operand_c(lens_address(where[lane]) + (unsigned)i * 4, &row, &column))
                continue;
            if (owner_count == owner_room) {
                owner_room = owner_room ? owner_room * 2 : 4096;
                owners = realloc(owners, (size_t)owner_room * sizeof *owners);
                if (!owners)
                    abort();
            }
            owners[owner_count++] = (rung_lens_owner){row, column, warp * 32 + lane};
        }
    }
}

static void take_sample(site *s, uint32_t mask, const uint64_t *where)
{
    bool full = mask == UINT32_MAX;
    bool better = (full && !s->full_sample) || (lens_now.sampled && !s->from_picture && full == s->full_sample);
    if (s->seen.sample_mask && !better)
        return;
    s->full_sample = full;
    s->from_picture = lens_now.sampled;
    s->seen.sample_mask = mask;
    for (uint32_t left = mask; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        uint64_t a = lens_address(where[lane]);
        s->seen.sample_row[lane] = s->seen.sample_column[lane] = -1;
        if (s->seen.space == RUNG_LENS_SHARED) {
            const lens_array *array =
                lens_array_at(lens_module_now, (uint32_t)(a - (uintptr_t)lens_module_now->shared));
            s->seen.sample_offset[lane] =
                (int64_t)(a - (uintptr_t)lens_module_now->shared) - (array ? array->offset : 0);
            if (array)
                memcpy(s->seen.name, array->name, sizeof s->seen.name);
        } else {
            const unsigned char *start = lens_memory_name(a, s->seen.name, sizeof s->seen.name,
                                                          &s->seen.sample_row[lane], &s->seen.sample_column[lane]);
            s->seen.sample_offset[lane] = start ? (int64_t)(a - (uintptr_t)start) : (int64_t)a;
        }
    }
}

/* ---- cp.async: each lane logs where a copy comes from (0: zeros, nothing is read) and then where it goes to ---- */

typedef struct copying {
    uint32_t mask; /* the lanes that read */
    uint64_t from[LANES];
} copying;

static copying copies_now;

typedef struct copy_cost {
    int sectors, passes, ideal;
} copy_cost;

/* Copies of 4 and 8 bytes go through the L1, whose lines lie in the banks of shared memory. What meets in a bank on
 * either side takes another pass. */
static copy_cost cost_through_cache(uint32_t mask, const uint64_t *from, const uint64_t *to, int bytes)
{
    copy_cost cost = {0, 0, 0};
    for (int part = 0; part < bytes / 4; part++) {
        uint32_t lanes = bytes == 4 ? mask : mask & (part ? 0xffff0000u : 0xffffu);
        int read = passes(lanes & copies_now.mask, from, bytes / 4), written = passes(lanes, to, bytes / 4);
        cost.passes += read > written ? read : written;
        cost.ideal += lanes != 0;
    }
    return cost;
}

/* Counts the distinct values of `of` among the first n pairs whose `by` is that of pair i. */
static int fan_out(const uint64_t *by, const uint64_t *of, int n, int i)
{
    int distinct = 0;
    for (int j = 0; j < n; j++) {
        int known = by[j] != by[i];
        for (int k = 0; k < j && !known; k++)
            known = by[k] == by[i] && of[k] == of[j];
        distinct += !known;
    }
    return distinct;
}

/* Counts the passes of one piece of a quarter warp's copies, from one line to one line of shared memory. A sector that
 * goes into two, or is put together from two, costs a second pass. */
static int piece_passes(const uint64_t *from, const uint64_t *to, int n, uint64_t from_line, uint64_t to_line)
{
    uint64_t source[8], target[8];
    int count = 0, most = 0;
    for (int i = 0; i < n; i++)
        if (from[i] / 128 == from_line && to[i] / 128 == to_line) {
            source[count] = from[i] / 32;
            target[count++] = to[i] / 32;
        }
    for (int i = 0; i < count; i++) {
        int out = fan_out(source, target, count, i), in = fan_out(target, source, count, i);
        most = out > most ? out : most;
        most = in > most ? in : most;
    }
    return most;
}

/* Copies of 16 bytes go past the L1, a quarter of the warp at a time. A sector of shared memory counts for every line
 * that feeds it. */
static void add_quarter(copy_cost *cost, uint32_t lanes, const uint64_t *where_from, const uint64_t *where_to)
{
    uint64_t from[8], to[8];
    int n = 0, read = 0, fed = 0;
    for (uint32_t left = lanes; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        from[n] = lens_address(where_from[lane]);
        to[n++] = lens_address(where_to[lane]) - (uintptr_t)lens_module_now->shared;
    }
    for (int i = 0; i < n; i++) {
        int new_sector = 1, new_fed = 1, new_piece = 1;
        for (int j = 0; j < i; j++) {
            bool same_line = from[j] / 128 == from[i] / 128;
            new_sector &= from[j] / 32 != from[i] / 32;
            new_fed &= !same_line || to[j] / 32 != to[i] / 32;
            new_piece &= !same_line || to[j] / 128 != to[i] / 128;
        }
        read += new_sector;
        fed += new_fed;
        if (new_piece)
            cost->passes += piece_passes(from, to, n, from[i] / 128, to[i] / 128);
    }
    cost->sectors += read > fed ? read : fed;
    cost->ideal += n > 0;
}

static void count_copies(uintptr_t pc, site *s, uint32_t mask, const uint64_t *where)
{
    int bytes = s->seen.bytes;
    double weight = lens_now.weight;
    copy_cost cost = {0, 0, 0};
    if (bytes == 16) {
        for (int quarter = 0; quarter < 4; quarter++)
            add_quarter(&cost, mask & copies_now.mask & 0xffu << 8 * quarter, copies_now.from, where);
        site *source = site_of(pc, RUNG_LENS_ASYNC, RUNG_LENS_GLOBAL, bytes);
        source->seen.sectors += weight * cost.sectors;
        source->seen.bytes_moved += weight * cost.sectors * 32;
    } else {
        cost = cost_through_cache(mask, copies_now.from, where, bytes);
    }
    s->seen.wavefronts += weight * cost.passes;
    s->seen.ideal_wavefronts += weight * cost.ideal;
    s->seen.bytes_moved += weight * cost.passes * 128;
    s->seen.merged_requests += weight;
    s->seen.merged_wavefronts += weight * cost.passes;
    s->seen.merged_ideal += weight * cost.ideal;
}

/* Remembers which lanes of a copy read, until its other half comes. */
static uint32_t remember_copies(uint32_t mask, const uint64_t *where)
{
    copies_now.mask = 0;
    for (uint32_t left = mask; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        copies_now.from[lane] = where[lane];
        copies_now.mask |= (uint32_t)(lens_address(where[lane]) != 0) << lane;
    }
    return copies_now.mask;
}

static void request(uintptr_t pc, uint32_t mask, const uint64_t *where, int warp)
{
    uint64_t first = where[__builtin_ctz(mask)];
    bool shared = lens_address(first) - (uintptr_t)lens_module_now->shared < lens_module_now->shared_bytes;
    if (lens_kind(first) == RUNG_LENS_ASYNC && !shared) {
        mask = remember_copies(mask, where);
        if (!mask)
            return;
    }
    site *s = site_of(pc, lens_kind(first), shared ? RUNG_LENS_SHARED : RUNG_LENS_GLOBAL, (int)lens_bytes(first));
    uint64_t addresses[LANES];
    int sectors, lines, n = gather(mask, where, addresses);
    double weight = lens_now.weight;
    uint64_t used = distinct_bytes(addresses, n, s->seen.bytes, &sectors, &lines);
    s->seen.requests += weight;
    s->seen.lanes += weight * n;
    s->seen.bytes_used += weight * (double)used;
    if (shared && s->seen.kind == RUNG_LENS_ASYNC) {
        count_copies(pc, s, mask, where);
    } else if (shared) {
        count_shared(s, mask, where);
    } else {
        /* its place in shared memory decides whether it is */
        bool later = s->seen.kind == RUNG_LENS_ASYNC && s->seen.bytes == 16;
        s->seen.sectors += later ? 0 : weight * sectors;
        s->seen.lines += weight * lines;
        s->seen.bytes_moved += later ? 0 : weight * sectors * 32;
        if (lens_now.sampled && s->seen.kind == RUNG_LENS_STORE)
            note_owners(mask, where, s->seen.bytes, warp);
    }
    if (!s->full_sample || !s->from_picture)
        take_sample(s, mask, where);
}

/* One thread moves a whole box. That counts as one request with the sectors it touches. */
void lens_bulk(uintptr_t pc, rung_lens_space space, rung_lens_kind kind, const void *at, double bytes, double sectors)
{
    if (!lens_counting)
        return;
    site *s = site_of(pc, kind, space, 16);
    double weight = lens_now.weight;
    s->seen.requests += weight;
    s->seen.lanes += weight;
    s->seen.sectors += weight * sectors;
    s->seen.bytes_used += weight * bytes;
    s->seen.bytes_moved += weight * (space == RUNG_LENS_GLOBAL ? sectors * 32 : bytes);
    if (!s->seen.sample_mask) {
        uint64_t where[LANES] = {(uintptr_t)at};
        take_sample(s, 1, where);
    }
}

/* ---- logs ---- */

static void make_room(lens_thread *me, uintptr_t pc)
{
    size_t room = me->capacity ? me->capacity * 2 : 1024;
    lens_entry *more = room <= LENS_MOST_ENTRIES ? realloc(me->log, room * sizeof *more) : NULL;
    if (!more) {
        lens_find(RUNG_LENS_ENDLESS, pc, "made %zu accesses without reaching a barrier or its end: an endless loop",
                  me->entries);
        lens_abandon();
    }
    me->log = more;
    me->capacity = room;
}

void lens_log(uintptr_t pc, uint64_t where)
{
    lens_thread *me = &lens_now.thread[lens_now.current];
    me->last = (lens_entry){pc, where};
    if (lens_counting) {
        if (me->entries == me->capacity)
            make_room(me, pc);
        me->log[me->entries] = me->last;
    }
    me->entries++;
    if (me->entries % LENS_LOG_TURN == 0) {
        if (!lens_now.looked && ++me->full_logs > LENS_MANY_LOGS)
            lens_now.looked = true;
        lens_give_way(pc); /* the other lanes catch up, then the warp's logs become requests */
    }
}

/* Returns true where all active lanes made the same accesses from the same places, in the same order. */
static bool in_step(const lens_thread *lane0, uint32_t mask)
{
    for (uint32_t left = mask; left; left &= left - 1) {
        const lens_thread *t = lane0 + __builtin_ctz(left);
        if (t->entries != lane0->entries)
            return false;
        for (size_t i = 0; i < t->entries; i++)
            if (t->log[i].pc != lane0->log[i].pc)
                return false;
    }
    return true;
}

static void flush_in_step(lens_thread *lane0, uint32_t mask, int warp)
{
    for (size_t i = 0; i < lane0->entries; i++) {
        uint64_t where[LANES];
        for (uint32_t left = mask; left; left &= left - 1) {
            int lane = __builtin_ctz(left);
            where[lane] = lane0[lane].log[i].where;
        }
        request(lane0->log[i].pc, mask, where, warp);
    }
}

/* Handles lanes that went different ways: sorts each lane's accesses by place (stable), then walks the lanes side by
 * side. */
static int by_place(const void *a, const void *b)
{
    const lens_entry *x = *(const lens_entry *const *)a, *y = *(const lens_entry *const *)b;
    if (x->pc != y->pc)
        return x->pc < y->pc ? -1 : 1;
    unsigned kind_x = (unsigned)(x->where >> 48), kind_y = (unsigned)(y->where >> 48);
    if (kind_x != kind_y)
        return kind_x < kind_y ? -1 : 1;
    return x < y ? -1 : x > y;
}

static int compare_place(const lens_entry *x, const lens_entry *y)
{
    if (x->pc != y->pc)
        return x->pc < y->pc ? -1 : 1;
    unsigned kind_x = (unsigned)(x->where >> 48), kind_y = (unsigned)(y->where >> 48);
    return kind_x < kind_y ? -1 : kind_x > kind_y;
}

static void flush_apart(lens_thread *lane0, uint32_t mask, int warp)
{
    const lens_entry **sorted[LANES] = {0};
    size_t at[LANES] = {0};
    for (uint32_t left = mask; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        size_t n = lane0[lane].entries;
        sorted[lane] = malloc((n + 1) * sizeof **sorted);
        if (!sorted[lane])
            abort();
        for (size_t i = 0; i < n; i++)
            sorted[lane][i] = &lane0[lane].log[i];
        qsort(sorted[lane], n, sizeof **sorted, by_place);
    }
    for (;;) {
        const lens_entry *least = NULL;
        for (uint32_t left = mask; left; left &= left - 1) {
            int lane = __builtin_ctz(left);
            if (at[lane] < lane0[lane].entries && (!least || compare_place(sorted[lane][at[lane]], least) < 0))
                least = sorted[lane][at[lane]];
        }
        if (!least)
            break;
        uint64_t where[LANES];
        uint32_t active = 0;
        for (uint32_t left = mask; left; left &= left - 1) {
            int lane = __builtin_ctz(left);
            if (at[lane] >= lane0[lane].entries || compare_place(sorted[lane][at[lane]], least) != 0)
                continue;
            active |= 1u << lane;
            where[lane] = sorted[lane][at[lane]++]->where;
        }
        request(least->pc, active, where, warp);
    }
    for (int lane = 0; lane < LANES; lane++)
        free(sorted[lane]);
}

void lens_flush_warp(int warp)
{
    lens_thread *lane0 = &lens_now.thread[warp * 32];
    uint32_t mask = 0;
    for (int lane = 0; lane < LANES && (unsigned)(warp * 32 + lane) < lens_now.threads; lane++)
        if (lane0[lane].entries)
            mask |= 1u << lane;
    if (!mask)
        return;
    if (!lens_counting)
        ;
    else if (lane0->entries && in_step(lane0, mask))
        flush_in_step(lane0, mask, warp);
    else
        flush_apart(lane0, mask, warp);
    for (uint32_t left = mask; left; left &= left - 1)
        lane0[__builtin_ctz(left)].entries = 0;
    for (int i = 0; i < site_count; i++) /* nothing merges across warps or barriers */
        if (order[i]->pending.count)
            close_group(order[i]);
}

/* ---- the end of a launch ---- */

void lens_sites_end(rung_lens_launch *launch, uintptr_t **pcs)
{
    rung_lens_site *sites = calloc((size_t)site_count + 1, sizeof *sites);
    rung_lens_owner *kept = malloc(((size_t)owner_count + 1) * sizeof *kept);
    *pcs = calloc((size_t)site_count + 1, sizeof **pcs);
    launch->sites = sites;
    launch->owners = kept;
    launch->shuffles = lens_shuffles;
    for (int i = 0; i < site_count; i++) {
        if (sites && *pcs) {
            sites[i] = order[i]->seen;
            (*pcs)[i] = order[i]->pc;
            launch->site_count = i + 1;
        }
        free(order[i]);
    }
    if (kept) {
        memcpy(kept, owners, (size_t)owner_count * sizeof *kept);
        launch->owner_count = owner_count;
    }
    memset(table, 0, sizeof table);
    site_count = 0;
}

/* What the request that would be drawn costs: sectors of global memory, passes of shared memory. */
static int cost_of_sample(const rung_lens_site *s)
{
    uint64_t where[LANES], addresses[LANES];
    int sectors, lines;
    for (int lane = 0; lane < LANES; lane++)
        where[lane] = (uint64_t)s->sample_offset[lane];
    if (s->space == RUNG_LENS_SHARED)
        return cost_of(s->sample_mask, where, s->bytes).wavefronts;
    distinct_bytes(addresses, gather(s->sample_mask, where, addresses), s->bytes, &sectors, &lines);
    return sectors;
}

/* Joins what several places in the machine code made of one line. The request that costs most is drawn: of two that
 * differ it is the one with the conflict. */
static void add_site(rung_lens_site *to, const rung_lens_site *from)
{
    int more = __builtin_popcount(from->sample_mask) - __builtin_popcount(to->sample_mask);
    to->requests += from->requests;
    to->lanes += from->lanes;
    to->sectors += from->sectors;
    to->lines += from->lines;
    to->bytes_used += from->bytes_used;
    to->bytes_moved += from->bytes_moved;
    to->wavefronts += from->wavefronts;
    to->ideal_wavefronts += from->ideal_wavefronts;
    to->merged_requests += from->merged_requests;
    to->merged_wavefronts += from->merged_wavefronts;
    to->merged_ideal += from->merged_ideal;
    to->ways = from->ways > to->ways ? from->ways : to->ways;
    if (more > 0 || (more == 0 && cost_of_sample(from) > cost_of_sample(to))) {
        to->sample_mask = from->sample_mask;
        memcpy(to->sample_offset, from->sample_offset, sizeof to->sample_offset);
        memcpy(to->sample_row, from->sample_row, sizeof to->sample_row);
        memcpy(to->sample_column, from->sample_column, sizeof to->sample_column);
    }
}

static int by_line(const void *a, const void *b)
{
    const rung_lens_site *x = a, *y = b;
    int files = strcmp(x->file, y->file);
    if (files)
        return files;
    if (x->line != y->line)
        return x->line < y->line ? -1 : 1;
    if (x->space != y->space)
        return x->space < y->space ? -1 : 1;
    return x->kind != y->kind ? (x->kind < y->kind ? -1 : 1) : x->bytes - y->bytes;
}

void lens_sites_resolve(rung_lens_launch *launch, const lens_module *module, uintptr_t *pcs)
{
    int n = launch->site_count, kept = 0;
    rung_lens_site *sites = (rung_lens_site *)(uintptr_t)launch->sites;
    char(*files)[256] = calloc((size_t)n + 1, sizeof *files);
    int *lines = calloc((size_t)n + 1, sizeof *lines);
    if (files && lines)
        lens_lines(module, pcs, n, files, lines);
    for (int i = 0; i < n; i++) {
        int same = -1;
        if (files && lines) {
            memcpy(sites[i].file, files[i], sizeof files[i]);
            sites[i].line = lines[i];
        }
        for (int j = 0; j < kept && same < 0; j++)
            if (by_line(&sites[j], &sites[i]) == 0 && strcmp(sites[j].name, sites[i].name) == 0)
                same = j;
        if (same >= 0)
            add_site(&sites[same], &sites[i]);
        else
            sites[kept++] = sites[i];
    }
    launch->site_count = kept;
    qsort(sites, (size_t)kept, sizeof *sites, by_line);
    free(files);
    free(lines);
}
