/* The copy engine: it moves boxes of tensors between global and shared memory, fills edges with zeros and swizzles
 * units as asked. */
#include "lens.h"

#include <string.h>

#define PC ((uintptr_t)__builtin_return_address(0))

RUNG_LENS_API void rung_lens_tensor_load(void *shared, const void *map, const int at[5], const void *mbarrier);
RUNG_LENS_API void rung_lens_tensor_store(const void *map, const void *shared, const int at[5]);
RUNG_LENS_API void rung_lens_tensor_stores_read(void);
RUNG_LENS_API void rung_lens_bulk_load(void *shared, const void *global, int bytes, const void *mbarrier,
                                       uint32_t mask);
RUNG_LENS_API uint32_t rung_lens_shared_offset(const void *at);

/* Returns where a byte lies in shared memory: 16-byte units trade places within 128-byte lines. A unit's number becomes
 * that number xor the line's, as far as the mode reaches. */
static uint32_t swizzled(uint32_t offset, int mode)
{
    uint32_t reach = mode == 3 ? 7 : mode == 2 ? 3 : mode == 1 ? 1 : 0;
    return offset ^ ((offset >> 7 & reach) << 4);
}

/* Where nothing is, which has been found, a unit goes nowhere. */
static unsigned char *place_of(const lens_map *map, uint32_t offset)
{
    static unsigned char nowhere[16];
    const uint32_t at = swizzled(offset, map->swizzle);
    return lens_in_image(at, sizeof nowhere - at % sizeof nowhere) ? lens_module_now->shared + at : nowhere;
}

typedef struct box {
    const lens_map *map;
    int at[5];
    uint32_t rows; /* of the innermost dimension */
} box;

static box box_of(const void *map, const int at[5])
{
    box b = {.map = map, .rows = 1};
    memcpy(b.at, at, sizeof b.at);
    for (int i = 1; i < b.map->rank; i++)
        b.rows *= b.map->box[i];
    return b;
}

/* Finds where row `row` of the box begins in global memory, at element at[0], which may lie outside. Returns false
 * where the row lies outside. */
static bool row_start(const box *b, uint32_t row, const unsigned char **start)
{
    const unsigned char *p = b->map->address;
    for (int i = 1; i < b->map->rank; i++) {
        int64_t position = b->at[i] + (int64_t)(row % b->map->box[i]);
        row /= b->map->box[i];
        if (position < 0 || (uint64_t)position >= b->map->dims[i])
            return false;
        p += (uint64_t)position * b->map->strides[i];
    }
    *start = p;
    return true;
}

/* Finds the part of a row that lies inside the tensor, in bytes from the box's edge. */
static void inside(const box *b, uint32_t *from, uint32_t *to)
{
    int64_t first = b->at[0] < 0 ? -(int64_t)b->at[0] : 0, end = (int64_t)b->map->dims[0] - b->at[0];
    if (end > b->map->box[0])
        end = b->map->box[0];
    if (end < first)
        end = first;
    *from = (uint32_t)first * b->map->element_bytes;
    *to = (uint32_t)end * b->map->element_bytes;
}

/* Checks the first or last element that is read of a row. Production's maps begin at a unit of 16 bytes, which need be
 * no element. */
static void check_end(uintptr_t pc, uintptr_t address)
{
    if (lens_findings_fail)
        lens_check_global(pc, address & ~(uintptr_t)15, 16, false);
    else
        lens_check_global(pc, address, 4, false);
}

static double sectors_of(const unsigned char *start, uint32_t from, uint32_t to)
{
    uintptr_t first = (uintptr_t)start + from, last = (uintptr_t)start + to - 1;
    return to > from ? (double)(last / 32 - first / 32 + 1) : 0;
}

/* Loads one row of a box, `row_bytes` to the shared offset `at`: its bytes `from` to `to` come out of `line`, the
 * others are zeros. `from` and `to` stand between elements. Swizzling moves whole units of 16 bytes. */
static void load_row(const lens_map *map, uint32_t at, uint32_t row_bytes, const unsigned char *line, uint32_t from,
                     uint32_t to)
{
    for (uint32_t i = 0, bytes; i < row_bytes; i += bytes) {
        bytes = 16 - (at + i) % 16 < row_bytes - i ? 16 - (at + i) % 16 : row_bytes - i;
        unsigned char *unit = place_of(map, at + i);
        if (i >= from && i + bytes <= to && bytes == 16) {
            memcpy(unit, line + i, 16);
            continue;
        }
        uint32_t low = from > i ? from - i : 0, high = to > i ? to - i : 0;
        high = high < bytes ? high : bytes;
        memset(unit, 0, bytes);
        if (low < high)
            memcpy(unit + low, line + i + low, high - low);
    }
}

static void store_row(const lens_map *map, uint32_t at, unsigned char *line, uint32_t from, uint32_t to)
{
    for (uint32_t i = from, bytes; i < to; i += bytes) {
        bytes = 16 - (at + i) % 16 < to - i ? 16 - (at + i) % 16 : to - i;
        if (bytes == 16)
            memcpy(line + i, place_of(map, at + i), 16);
        else
            memcpy(line + i, place_of(map, at + i), bytes);
    }
}

static int agent_of(const void *mbarrier)
{
    return (int)(rung_lens_shared_offset(mbarrier) / 8);
}

void rung_lens_tensor_load(void *shared, const void *map, const int at[5], const void *mbarrier)
{
    box b = box_of(map, at);
    uint32_t row_bytes = b.map->box[0] * b.map->element_bytes, from, to, base = rung_lens_shared_offset(shared);
    double bytes = 0, sectors = 0;
    if (base % (b.map->swizzle ? 128 : 16) != 0)
        lens_find(RUNG_LENS_MISALIGNED, PC, "fills a tile at shared byte %u, which is not aligned for the copy engine",
                  base);
    if ((int64_t)b.at[0] * b.map->element_bytes % 16 != 0)
        lens_find(RUNG_LENS_MISALIGNED, PC,
                  "fills a tile from x = %d of its tensor, which is not a multiple of 16 bytes", b.at[0]);
    inside(&b, &from, &to);
    for (uint32_t row = 0; row < b.rows; row++) {
        const unsigned char *start = NULL;
        bool there = row_start(&b, row, &start) && to > from;
        ptrdiff_t shift = (ptrdiff_t)b.at[0] * b.map->element_bytes;
        load_row(b.map, base + row * row_bytes, row_bytes, there ? start + shift : NULL, there ? from : 0,
                 there ? to : 0);
        if (there) {
            check_end(PC, (uintptr_t)(start + shift + from));
            check_end(PC, (uintptr_t)(start + shift + to - 4));
            bytes += to - from;
            sectors += sectors_of(start + shift, from, to);
        }
    }
    lens_shadow_bulk(PC, lens_now.rank, base, b.rows * row_bytes, agent_of(mbarrier));
    lens_bulk(PC, RUNG_LENS_GLOBAL, RUNG_LENS_BULK, (const unsigned char *)b.map->address, bytes, sectors);
    lens_bulk(PC, RUNG_LENS_SHARED, RUNG_LENS_BULK, shared, b.rows * row_bytes, 0);
    lens_mbarrier_complete(PC, lens_mbarrier_key(mbarrier, lens_now.rank), b.rows * row_bytes, agent_of(mbarrier));
}

void rung_lens_tensor_store(const void *map, const void *shared, const int at[5])
{
    box b = box_of(map, at);
    uint32_t row_bytes = b.map->box[0] * b.map->element_bytes, from, to, base = rung_lens_shared_offset(shared);
    double bytes = 0, sectors = 0;
    inside(&b, &from, &to);
    to = (to + 15) & ~15u; /* whole units of 16 bytes are written, as an H200 does; a box's rows are of such units */
    lens_shadow_engine_read(PC, base, b.rows * row_bytes, LENS_BULK_STORE);
    lens_now.thread[lens_now.current].store_pc = PC;
    lens_now.thread[lens_now.current].store_stamp = lens_engine_stamp(LENS_BULK_STORE);
    for (uint32_t row = 0; row < b.rows; row++) {
        const unsigned char *start = NULL;
        if (!row_start(&b, row, &start) || to <= from)
            continue;
        unsigned char *line = (unsigned char *)(uintptr_t)start + (ptrdiff_t)b.at[0] * b.map->element_bytes;
        lens_check_global(PC, (uintptr_t)(line + from), 4, true);
        lens_check_global(PC, (uintptr_t)(line + to - 4), 4, true);
        lens_publish_write(PC, (uintptr_t)(line + from), to - from);
        store_row(b.map, base + row * row_bytes, line, from, to);
        bytes += to - from;
        sectors += sectors_of(line, from, to);
    }
    lens_bulk(PC, RUNG_LENS_GLOBAL, RUNG_LENS_BULK, b.map->address, bytes, sectors);
}

void rung_lens_tensor_stores_read(void)
{
    lens_thread *me = &lens_now.thread[lens_now.current];
    if (me->store_pc)
        lens_engine_done(LENS_BULK_STORE, me->store_stamp);
    me->store_pc = 0;
}

/* Copies to the same place in every block of the mask. The barrier at the same place in each of them learns of it. */
void rung_lens_bulk_load(void *shared, const void *global, int bytes, const void *mbarrier, uint32_t mask)
{
    uint32_t base = rung_lens_shared_offset(shared);
    if (base % 16 || (uintptr_t)global % 16 || bytes % 16) {
        lens_find(RUNG_LENS_MISALIGNED, PC, "starts a bulk copy of %d bytes that is not aligned to 16", bytes);
        lens_abandon();
    }
    if (bytes <= 0 || mask >> lens_now.cluster) {
        lens_find(RUNG_LENS_TRAP, PC, "starts a bulk copy of %d bytes to blocks of mask 0x%x, in a cluster of %u",
                  bytes, mask, lens_now.cluster);
        lens_abandon();
    }
    lens_check_global(PC, (uintptr_t)global, 4, false);
    lens_check_global(PC, (uintptr_t)global + (unsigned)bytes - 4, 4, false);
    lens_publish_read(PC, (uintptr_t)global, (unsigned)bytes);
    for (unsigned rank = 0; rank < lens_now.cluster; rank++) {
        if (mask ? !(mask >> rank & 1) : rank != lens_now.rank)
            continue;
        if (lens_in_image(base, (unsigned)bytes)) /* else it is found below */
            memcpy(lens_image(rank) + base, global, (size_t)bytes);
        lens_shadow_bulk(PC, rank, base, (unsigned)bytes, agent_of(mbarrier) + (int)rank * 7);
        lens_bulk(PC, RUNG_LENS_SHARED, RUNG_LENS_BULK, shared, bytes, 0);
        lens_mbarrier_complete(PC, lens_mbarrier_key(mbarrier, rank), bytes, agent_of(mbarrier) + (int)rank * 7);
    }
    lens_bulk(PC, RUNG_LENS_GLOBAL, RUNG_LENS_BULK, global, bytes, sectors_of(global, 0, (uint32_t)bytes));
}
