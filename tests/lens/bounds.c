/* What the lens says of an access to global memory, against the rule taken float by float: accesses of 4, 8 and 16
 * bytes around memory with two operands, with one, and with none (a workspace), drawn by a seed. Under the address
 * sanitizer, which sees where the lens itself goes past its tables. */
#include "lens.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CASES = 60, ACCESSES = 2000, MOST = 2 };

typedef struct place {
    const char *name;
    int64_t at, rows, columns, ld; /* at: in floats from the beginning of the memory */
} place;

bool lens_findings_fail;
static int findings;
static rung_lens_fault last;
static jmp_buf abandoned;
static uint64_t state = 1;

void lens_find(rung_lens_fault fault, uintptr_t pc, const char *format, ...)
{
    (void)pc, (void)format;
    findings++;
    last = fault;
}

void lens_abandon(void)
{
    longjmp(abandoned, 1);
}

const char *lens_beside_shared(uintptr_t address, char *text, size_t text_bytes)
{
    (void)address, (void)text, (void)text_bytes;
    return NULL;
}

static int64_t draw(int64_t most) /* 0 ... most - 1 */
{
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (int64_t)((state >> 33) % (uint64_t)most);
}

/* Returns the end of an operand's elements, in floats from the beginning of the memory. */
static int64_t end_of(const place *o)
{
    return o->at + (o->rows - 1) * o->ld + o->columns;
}

/* A float may be read where memory has it, and no operand's padding lies behind its last element or ahead of the first;
 * it may be written where an element is. Memory without operands may be read and written as a whole. */
static int allowed(const place *operands, int count, int64_t size, int64_t at, bool write)
{
    const place *o = NULL;
    if (at < 0 || at >= size)
        return 0;
    for (int i = 0; i < count; i++)
        if (operands[i].at <= at)
            o = &operands[i];
    if (!o)
        return count == 0;
    return at < end_of(o) && (!write || (at - o->at) % o->ld < o->columns);
}

/* Production kernels may read the whole of 16 bytes that have an element. */
static int shares_16_bytes(const place *operands, int count, int64_t at)
{
    int64_t unit = at & ~(int64_t)3;
    for (int i = 0; i < count; i++)
        if (unit + 4 > operands[i].at && unit < end_of(&operands[i]))
            return 1;
    return 0;
}

static int look(uintptr_t address, unsigned bytes, bool write)
{
    findings = 0;
    if (setjmp(abandoned) == 0)
        lens_check_global(0, address, bytes, write);
    return findings;
}

/* More operands than there is room for: the first are known by their names, and the others have the last one's. */
static int too_many_operands(void)
{
    enum { OPERANDS = 40 };
    float *memory = lens_memory_get(OPERANDS * 4);
    int known = 0, wrong = 0;
    lens_memory_reset();
    for (int i = 0; i < OPERANDS; i++) {
        char name[] = {(char)('0' + i), 0};
        rung_lens_operand(name, memory + i, 1, 1, 1);
    }
    for (int i = 0; i < OPERANDS; i++) {
        char name[8];
        int64_t row, column;
        lens_memory_name((uintptr_t)(memory + i), name, sizeof name, &row, &column);
        known += known == i && name[0] == '0' + i;
        wrong += name[0] != '0' + (i < known ? i : known - 1);
    }
    lens_memory_put(memory);
    if (wrong || known < 4)
        printf("FAILED: of %d operands %d are known, and %d have a wrong name\n", OPERANDS, known, wrong);
    return wrong || known < 4;
}

/* Returns for how many of the operands a name is known although their memory was given back. */
static int remembered(const float *memory, const place *operands, int count)
{
    int known = 0;
    for (int i = 0; i < count; i++) {
        char name[16];
        int64_t row, column;
        lens_memory_name((uintptr_t)(memory + operands[i].at), name, sizeof name, &row, &column);
        known += strcmp(name, "unknown") != 0 || row != -1 || column != -1;
    }
    return known;
}

int main(void)
{
    long wrong = too_many_operands(), found = 0;
    for (int c = 0; c < CASES; c++) {
        place operands[MOST] = {{0}};
        const int count = c % (MOST + 1);
        int64_t size = 4 * draw(3);
        for (int i = 0; i < count; i++) {
            place *o = &operands[i];
            *o = (place){i ? "B" : "A", size, 1 + draw(5), 1 + draw(9), 0};
            o->ld = o->columns + draw(4);
            size = (end_of(o) + draw(9) + 3) & ~(int64_t)3; /* operands begin at multiples of 16 bytes */
        }
        size += count ? 0 : 4 + draw(90);
        float *memory = lens_memory_get((size_t)size * 4);
        lens_memory_reset();
        for (int i = 0; i < count; i++)
            rung_lens_operand(operands[i].name, memory + operands[i].at, operands[i].rows, operands[i].columns,
                              operands[i].ld);
        for (int i = 0; i < ACCESSES; i++) {
            const unsigned bytes = 4u << draw(3), floats = bytes / 4;
            const bool write = draw(2);
            const int64_t at = (draw(size + 16) - 8) & (draw(8) ? -(int64_t)floats : -1); /* misaligned now and then */
            const int odd = at % (int64_t)floats != 0;
            lens_findings_fail = draw(2);
            int bad = odd, got = look((uintptr_t)memory + (uintptr_t)(at * 4), bytes, write);
            for (unsigned f = 0; f < floats && !odd; f++)
                bad |= !allowed(operands, count, size, at + f, write);
            if (!odd && !write && floats > 1 && lens_findings_fail && at >= 0 && shares_16_bytes(operands, count, at))
                bad = 0;
            found += bad;
            if (got == bad && (!bad || (last == RUNG_LENS_MISALIGNED) == odd))
                continue;
            if (wrong++ < 10)
                printf(
                    "FAILED: %s of %u bytes at float %lld of %lld, %d operands (A at %lld: %lld x %lld, ld %lld): %d "
                    "findings, not %d\n",
                    write ? "a write" : "a read", bytes, (long long)at, (long long)size, count,
                    (long long)operands[0].at, (long long)operands[0].rows, (long long)operands[0].columns,
                    (long long)operands[0].ld, got, bad);
        }
        lens_memory_put(memory);
        if (remembered(memory, operands, count) && wrong++ < 10)
            printf("FAILED: %d of %d operands are known although their memory was given back\n",
                   remembered(memory, operands, count), count);
    }
    printf("%d accesses, %ld of them wrong; %ld judged wrongly\n", CASES * ACCESSES, found, wrong);
    return wrong > 0 || found < CASES * ACCESSES / 10;
}
