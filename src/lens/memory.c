/* The lens's device memory: host memory with fenced ends, and what is known of its contents. */
#include "lens.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* From SPARSE_BYTES on, memory is only reserved: what is touched takes room, and what was never written is 0, not NaN.
 */
#define SPARSE_BYTES ((size_t)1 << 30)
enum { FENCE_BYTES = 4096, MOST_PIECES = 256, MOST_OPERANDS = 16 };

typedef struct piece {
    uintptr_t base;
    size_t bytes;
    void *memory;
    bool host; /* pinned memory of the host, which kernels reach as well */
} piece;

typedef struct operand {
    char name[32];
    uintptr_t base;
    int64_t rows, columns, ld;
} operand;

static piece pieces[MOST_PIECES];
static int piece_count, last_piece;
static operand operands[MOST_OPERANDS];
static int operand_count;

static void *reserve(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    madvise(memory, bytes, MADV_NOHUGEPAGE); /* so a touched page takes 4 KiB, not 2 MiB */
    return memory;
}

void *lens_memory_get(size_t bytes)
{
    if (piece_count == MOST_PIECES)
        return NULL;
    size_t room = (bytes + 255) & ~(size_t)255;
    unsigned char *memory = NULL;
    if (bytes >= SPARSE_BYTES)
        memory = reserve(room + 2 * FENCE_BYTES);
    else if (posix_memalign((void **)&memory, 4096, room + 2 * FENCE_BYTES) != 0)
        memory = NULL;
    if (!memory)
        return NULL;
    memset(memory, 0xff, FENCE_BYTES); /* it is NaN, as the contents are: what was never written shows */
    if (bytes < SPARSE_BYTES)
        memset(memory + FENCE_BYTES, 0xff, room);
    memset(memory + FENCE_BYTES + room, 0xff, FENCE_BYTES);
    pieces[piece_count++] = (piece){(uintptr_t)memory + FENCE_BYTES, bytes, memory, false};
    return memory + FENCE_BYTES;
}

void *lens_memory_get_host(size_t bytes)
{
    void *memory = piece_count < MOST_PIECES ? malloc(bytes ? bytes : 1) : NULL;
    if (memory)
        pieces[piece_count++] = (piece){(uintptr_t)memory, bytes, memory, true};
    return memory;
}

/* What the host writes beside a piece no lane is seen to write: it shows in the fences when the piece is given back. */
static int overrun;

static void look_at_fences(const piece *p)
{
    const unsigned char *at = (const unsigned char *)p->base;
    const size_t rest = ((p->bytes + 255) & ~(size_t)255) - p->bytes + FENCE_BYTES;
    if (p->host || p->bytes >= SPARSE_BYTES)
        return;
    for (size_t i = 1; i <= FENCE_BYTES; i++)
        overrun |= at[-(ptrdiff_t)i] != 0xff;
    for (size_t i = 0; i < rest; i++)
        overrun |= at[p->bytes + i] != 0xff;
}

int lens_memory_put(void *at)
{
    for (int i = 0; i < piece_count; i++) {
        if (pieces[i].base != (uintptr_t)at)
            continue;
        look_at_fences(&pieces[i]);
        if (pieces[i].bytes >= SPARSE_BYTES && !pieces[i].host)
            munmap(pieces[i].memory, ((pieces[i].bytes + 255) & ~(size_t)255) + 2 * FENCE_BYTES);
        else
            free(pieces[i].memory);
        for (int j = 0; j < operand_count; j++)
            if (operands[j].base - pieces[i].base < pieces[i].bytes)
                operands[j--] = operands[--operand_count];
        pieces[i] = pieces[--piece_count];
        last_piece = 0;
        return 0;
    }
    return -1;
}

/* With RUNG_LENS_KEPT=fail a process ends with 1 where device memory was not given back by its end, or was written to
 * by the host beyond its ends. */
static __attribute__((destructor)) void look_for_kept(void)
{
    const char *wish = getenv("RUNG_LENS_KEPT");
    size_t bytes = 0;
    for (int i = 0; i < piece_count; i++)
        bytes += pieces[i].bytes;
    if (!wish || strcmp(wish, "fail") != 0 || (piece_count == 0 && !overrun))
        return;
    fflush(NULL);
    if (piece_count)
        fprintf(stderr, "lens: %d piece%s of memory, %zu bytes, %s not given back\n", piece_count,
                piece_count == 1 ? "" : "s", bytes, piece_count == 1 ? "was" : "were");
    if (overrun)
        fprintf(stderr, "lens: the host wrote beyond the ends of a piece of memory\n");
    _exit(1);
}

static const piece *piece_of(uintptr_t address)
{
    if (last_piece < piece_count && address - pieces[last_piece].base < pieces[last_piece].bytes)
        return &pieces[last_piece];
    for (int i = 0; i < piece_count; i++)
        if (address - pieces[i].base < pieces[i].bytes) {
            last_piece = i;
            return &pieces[i];
        }
    return NULL;
}

bool lens_memory_owns(const void *at)
{
    const piece *p = piece_of((uintptr_t)at);
    return p && !p->host;
}

void rung_lens_operand(const char *name, const void *at, int64_t rows, int64_t columns, int64_t ld)
{
    if (operand_count == MOST_OPERANDS)
        return;
    operand *o = &operands[operand_count++];
    snprintf(o->name, sizeof o->name, "%s", name);
    *o = (operand){.base = (uintptr_t)at, .rows = rows, .columns = columns, .ld = ld};
    snprintf(o->name, sizeof o->name, "%s", name);
}

void lens_memory_reset(void)
{
    operand_count = 0;
}

/* Returns the operand that an address lies in or, when it lies past all of a piece's operands, the one before it. */
static const operand *operand_of(uintptr_t address)
{
    const operand *best = NULL;
    const piece *p = piece_of(address);
    for (int i = 0; i < operand_count; i++) {
        const operand *o = &operands[i];
        bool same =
            p ? o->base - p->base < p->bytes : address - o->base < (uint64_t)(o->rows * o->ld) * 4 + FENCE_BYTES;
        if (same && o->base <= address && (!best || o->base > best->base))
            best = o;
    }
    return best;
}

const unsigned char *lens_memory_name(uintptr_t address, char *name, size_t name_bytes, int64_t *row, int64_t *column)
{
    const operand *o = operand_of(address);
    *row = *column = -1;
    if (o) {
        int64_t element = (int64_t)(address - o->base) / 4;
        *row = o->ld ? element / o->ld : 0;
        *column = o->ld ? element % o->ld : 0;
        snprintf(name, name_bytes, "%s", o->name);
        return (const unsigned char *)o->base;
    }
    const piece *p = piece_of(address);
    snprintf(name, name_bytes, "%s", p ? "workspace" : "unknown");
    return p ? (const unsigned char *)p->base : NULL;
}

bool lens_is_operand_c(uintptr_t address, int64_t *row, int64_t *column)
{
    const operand *o = operand_of(address);
    if (!o || strcmp(o->name, "C") != 0)
        return false;
    int64_t element = (int64_t)(address - o->base) / 4;
    *row = element / o->ld;
    *column = element % o->ld;
    return true;
}

/* Returns whether the unit of 16 bytes at this address has a byte of an element. Production kernels may read such a
 * unit as a whole, as all of it is always there. */
static bool shares_unit(uintptr_t address)
{
    uintptr_t unit = address & ~(uintptr_t)15;
    for (int i = 0; i < operand_count; i++) {
        const operand *o = &operands[i];
        if (unit + 16 > o->base && unit < o->base + (uint64_t)((o->rows - 1) * o->ld + o->columns) * 4)
            return true;
    }
    return false;
}

/* Returns an operand in this piece, for an address that none begins before. Returns NULL where there is none. */
static const operand *operand_behind(const piece *p)
{
    for (int i = 0; i < operand_count; i++)
        if (operands[i].base - p->base < p->bytes)
            return &operands[i];
    return NULL;
}

/* Returns the float that is to blame, from the operand's first: the last one of the access, or the first in padding
 * that it writes and passes. */
static int64_t blamed(const operand *o, uintptr_t address, unsigned bytes, bool write)
{
    int64_t first = (int64_t)(address - o->base) / 4, last = first + (bytes + 3) / 4 - 1;
    return write && first / o->ld < last / o->ld && first % o->ld < o->columns ? first - first % o->ld + o->columns
                                                                               : last;
}

static void report(uintptr_t pc, const operand *o, uintptr_t address, unsigned bytes, bool write)
{
    int64_t element = blamed(o, address, bytes, write);
    if (!write && bytes > 4 && lens_findings_fail && shares_unit(address))
        return;
    if (address < o->base) {
        lens_find(RUNG_LENS_OUT_OF_BOUNDS, pc, "%s %lld bytes before %s", write ? "writes" : "reads",
                  (long long)(o->base - address), o->name);
        return;
    }
    int64_t row = element / o->ld, column = element % o->ld;
    char same[64] = "";
    if (o->ld == o->columns && row == o->rows && row > 0) /* rows lie end to end, so the address says two things */
        snprintf(same, sizeof same, " (or %s[%lld][%lld])", o->name, (long long)(row - 1),
                 (long long)(column + o->columns));
    lens_find(RUNG_LENS_OUT_OF_BOUNDS, pc, "%s %s[%lld][%lld]%s, but %s is %lld x %lld", write ? "writes" : "reads",
              o->name, (long long)row, (long long)column, same, o->name, (long long)o->rows, (long long)o->columns);
}

void lens_check_global(uintptr_t pc, uintptr_t address, unsigned bytes, bool write)
{
    const piece *p = piece_of(address);
    const operand *o = operand_count ? operand_of(address) : NULL;
    if (address % bytes != 0) {
        lens_find(RUNG_LENS_MISALIGNED, pc, "makes a %u-byte access to address %p, which is not a multiple of %u",
                  bytes, (void *)address, bytes);
        lens_abandon();
    }
    if (lens_now.thread[lens_now.current].early) /* also where it reads what no kernel writes: the rule is simple */
        lens_find(RUNG_LENS_RACE, pc, "%s global memory before it has waited for earlier kernels, which may still run",
                  write ? "writes" : "reads");
    if (p && address + bytes <= p->base + p->bytes) {
        if (!o && operand_count && (o = operand_behind(p)) != NULL)
            report(pc, o, address, bytes, write);
        if (!o || address < o->base)
            return;
        int64_t first = (int64_t)(address - o->base) / 4, floats = (bytes + 3) / 4;
        int64_t end = (o->rows - 1) * o->ld + o->columns;
        /* Reads may see the padding between rows, never what lies behind the last one. Writes may see neither. */
        if (first + floats > end || (write && o->ld > o->columns && first % o->ld + floats > o->columns))
            report(pc, o, address, bytes, write);
        return;
    }
    if (o) {
        report(pc, o, address, bytes, write);
        return; /* it falls into the fence */
    }
    const piece *behind = piece_of(address + FENCE_BYTES - 16), *before = piece_of(address - FENCE_BYTES + 16);
    char place[128];
    if (behind && operand_behind(behind))
        report(pc, operand_behind(behind), address, bytes, write);
    else if (!behind && !before && lens_beside_shared(address, place, sizeof place))
        lens_find(RUNG_LENS_OUT_OF_BOUNDS, pc, "%s %s", write ? "writes" : "reads", place);
    else
        lens_find(RUNG_LENS_OUT_OF_BOUNDS, pc, "%s address %p, which is in no allocation%s", write ? "writes" : "reads",
                  (void *)address,
                  address < FENCE_BYTES
                      ? ": a null pointer, as a kernel gets that takes other parameters than its launcher's one struct"
                      : "");
    if (!behind && !before)
        lens_abandon();
}
