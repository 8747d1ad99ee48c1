/* What compiled code has to keep, looked at once more when it is finished: see check.h. The rule for registers is a
 * simpler and stricter one than that of scoreboards.c, and shares no code with it: the two would have to be wrong in
 * the same way.
 */
#include "check.h"

#include "scoreboards.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BARRIER_SEEN = 6 /* cycles that the compiler keeps between a barrier and a load at least */ };

/* A set of uses says who has a register in hand. A use is named by the scoreboards that tell when it is over: any of
 * them does. There are 64 such names, one bit each; 0 says that nobody has the register. Loads from shared memory and
 * shuffles end in the order in which they went, and copies and loads read their addresses in order. So the scoreboard
 * of any later one tells too. That holds for a load under a predicate as well, whether the predicate is true or not:
 * the compiler itself waits for it alone.
 */
typedef uint64_t uses;

enum { UNTOLD = 1 /* the use of which no scoreboard tells yet */ };

struct hands {
    uses written[REGISTERS], read[REGISTERS];
};

/* Returns the cycles from a barrier before instruction i to its issue, as many as matter. A barrier does not hold its
 * warp back at once. */
static int cycles_behind_barrier(const struct word *code, int i)
{
    int cycles = 0;
    while (i-- > 0 && cycles < BARRIER_SEEN) {
        cycles += cycles_of(code[i]);
        if (opcode(code[i]) == OP_BAR)
            return cycles;
        if (branch_target(code[i], i) >= 0)
            break;
    }
    return BARRIER_SEEN;
}

/* ---- registers in hand ---- */

/* Returns all uses of which scoreboard b tells: the bits whose numbers have bit b. */
static uses told_by(int b)
{
    static const uses told[SCOREBOARDS] = {0xaaaaaaaaaaaaaaaa, 0xcccccccccccccccc, 0xf0f0f0f0f0f0f0f0,
                                           0xff00ff00ff00ff00, 0xffff0000ffff0000, 0xffffffff00000000};
    return told[b];
}

static void take(uses hand[REGISTERS], int first, int count)
{
    for (int r = first; r < first + count && r < RZ; ++r)
        hand[r] = UNTOLD;
}

/* Notes that scoreboard b tells of all that is in hand now, too. */
static void tell(uses hand[REGISTERS], int b)
{
    for (int r = 0; r < REGISTERS && b < SCOREBOARDS; ++r)
        hand[r] = (hand[r] & told_by(b)) | (hand[r] & ~told_by(b)) << (1 << b);
}

static void release(struct hands *h, unsigned boards)
{
    for (int b = 0; b < SCOREBOARDS; ++b)
        for (int r = 0; r < REGISTERS && (boards >> b & 1); ++r) {
            h->written[r] &= ~told_by(b);
            h->read[r] &= ~told_by(b);
        }
}

/* Goes on to the state behind instruction w. */
static void step(struct hands *h, struct word w)
{
    release(h, waits(w));
    if (opcode(w) == OP_LDS) {
        if (guard(w) == PT) {
            take(h->written, field_d(w), width(w) == WIDTH_128 ? VECTOR : 1);
            take(h->read, field_a(w), 1);
        }
        tell(h->written, write_scoreboard(w));
        tell(h->read, write_scoreboard(w));
        tell(h->read, read_scoreboard(w));
    } else if (opcode(w) == OP_LDGSTS) {
        take(h->read, field_a(w), 2); /* where it copies from: a pair of registers */
        take(h->read, field_d(w), 1); /* where it copies to: it stands where others have their result */
        tell(h->read, read_scoreboard(w));
    } else if ((opcode(w) & OPERATION_BITS) == ANY_SHFL) {
        tell(h->written, write_scoreboard(w));
    }
}

/* Adds what is in hand on another way to the same place. Returns whether that is more than before. */
static bool join(struct hands *h, const struct hands *other)
{
    const struct hands before = *h;
    for (int r = 0; r < REGISTERS; ++r) {
        h->written[r] |= other->written[r];
        h->read[r] |= other->read[r];
    }
    return memcmp(&before, h, sizeof before) != 0;
}

/* Returns the first register of FFMA or load w that is in hand; -1: none. */
static int register_in_hand(const struct hands *before, struct word w)
{
    struct hands h = *before;
    release(&h, waits(w));
    const bool load = is_plain_load(w);
    const int source[3] = {field_a(w), load ? RZ : field_b(w), load ? RZ : field_c(w)};
    for (int s = 0; s < 3; ++s)
        if (h.written[source[s]])
            return source[s];
    /* A load may write what another load writes or reads, as they keep their order. */
    return !load && (h.written[field_d(w)] || h.read[field_d(w)]) ? field_d(w) : -1;
}

/* Follows the code until no label learns anything new: at[i] is what may be in hand before instruction i. */
static struct hands *find_hands(const struct word *code, int n)
{
    struct hands *at = calloc((size_t)n + 1, sizeof *at), now;
    if (!at) {
        fprintf(stderr, "sass: out of memory\n");
        exit(1);
    }
    for (bool more = true; more;) {
        more = false;
        for (int i = 0; i < n; ++i) {
            now = at[i];
            step(&now, code[i]);
            int64_t to = branch_target(code[i], i);
            if (to >= 0 && to <= n && opcode(code[i]) != OP_BSSY) /* which only says where its BSYNC stands */
                more |= join(&at[to], &now);
            bool ends = (opcode(code[i]) == OP_BRA || opcode(code[i]) == OP_EXIT) && guard(code[i]) == PT;
            if (!ends)
                more |= join(&at[i + 1], &now);
        }
    }
    return at;
}

static int check_registers(const struct word *code, int n, const char *name)
{
    struct hands *at = find_hands(code, n);
    int found = 0;
    for (int i = 0; i < n; ++i) {
        int r = is_plain_fma(code[i]) || is_plain_load(code[i]) ? register_in_hand(&at[i], code[i]) : -1;
        if (r < 0)
            continue;
        printf(
            "%s: the instruction at 0x%x does not wait for R%d, which a load or a copy before it still has in hand\n",
            name, INSTRUCTION_BYTES * i, r);
        ++found;
    }
    free(at);
    return found;
}

int check_function(const struct word *code, int n, const char *name)
{
    int found = check_registers(code, n, name);
    for (int i = 0; i < n; ++i)
        if (opcode(code[i]) == OP_LDS && cycles_behind_barrier(code, i) < BARRIER_SEEN) {
            printf("%s: the load at 0x%x comes %d cycles behind a barrier\n", name, INSTRUCTION_BYTES * i,
                   cycles_behind_barrier(code, i));
            ++found;
        }
    for (int i = 0; i + 1 < n; ++i)
        if (is_unseen(code[i], code[i + 1])) {
            printf("%s: the instruction at 0x%x waits for a scoreboard that the one before it has not yet raised\n",
                   name, INSTRUCTION_BYTES * (i + 1));
            ++found;
        }
    return found;
}
