/* The decoder: see sass.h. */
#include "sass.h"

#include <stddef.h>

enum { TARGET_BITS = 56 }; /* of a branch's distance, which counts units of four bytes */

uint64_t control_bits(const struct control *c)
{
    return (uint64_t)c->stall << CONTROL_BIT | (uint64_t)c->stay << STAY_BIT | (uint64_t)c->write << WRITE_BIT |
           (uint64_t)c->read << READ_BIT | (uint64_t)c->wait << WAIT_BIT | (uint64_t)c->reuse << REUSE_BIT;
}

int cycles_of(struct word w)
{
    return stall(w) ? stall(w) : 1;
}

void lengthen_stall(struct word *w, int cycles)
{
    w->high += (uint64_t)cycles << CONTROL_BIT;
    if (cycles_of(*w) > STALL_STAYS)
        w->high &= ~(1ull << STAY_BIT);
}

/* A branch's distance lies in three parts: where d is, above b's register, and at the bottom of the upper word. */
static int64_t branch_distance(struct word w)
{
    uint64_t bits = (w.low >> 16 & 255) | w.low >> 34 << 8 | (w.high & 0x3ffff) << 38;
    return ((int64_t)(bits << (64 - TARGET_BITS)) >> (64 - TARGET_BITS)) * 4;
}

int64_t branch_target(struct word w, int at)
{
    unsigned op = opcode(w);
    if (op == OP_BRA || op == OP_BRA_UNIFORM || op == OP_CALL)
        return at + 1 + branch_distance(w) / INSTRUCTION_BYTES;
    return op == OP_BSSY ? at + 1 + (int32_t)constant(w) / INSTRUCTION_BYTES : -1;
}

void set_branch(struct word *w, int at, int target)
{
    uint64_t bits = (uint64_t)((int64_t)(target - at - 1) * INSTRUCTION_BYTES / 4) & ((1ull << TARGET_BITS) - 1);
    w->low |= (bits & 255) << 16 | bits >> 8 << 34;
    w->high |= bits >> 38;
}

bool is_plain_fma(struct word w)
{
    uint64_t modifiers = w.high & ((1ull << CONTROL_BIT) - 1) & ~0xffull;
    return opcode(w) == OP_FFMA && guard(w) == PT && offset(w) == 0 && modifiers == 0 &&
           write_scoreboard(w) == NO_SCOREBOARD && read_scoreboard(w) == NO_SCOREBOARD && field_a(w) != RZ &&
           field_b(w) != RZ && field_c(w) != RZ && field_d(w) != RZ;
}

bool is_plain_load(struct word w)
{
    return opcode(w) == OP_LDS && guard(w) == PT && field_a(w) != RZ && field_b(w) == 0 && width(w) == WIDTH_128 &&
           write_scoreboard(w) < SCOREBOARDS;
}

bool has_no_registers(struct word w)
{
    static const unsigned short list[] = {
        OP_BRA,        OP_BSSY,    OP_BSYNC, OP_YIELD,    OP_WARPSYNC, OP_NOP,    OP_EXIT,   OP_BRA_UNIFORM,
        OP_S2UR,       OP_UMOV_I,  OP_UMOV,  OP_UIADD3_I, OP_UIADD3,   OP_ULEA_I, OP_ULEA,   OP_ULOP3_I,
        OP_ULOP3,      OP_USHF_I,  OP_USHF,  OP_UISETP,   OP_UISETP_I, OP_USEL,   OP_USEL_I, OP_UIMAD,
        OP_UIMAD_WIDE, OP_UIMAD_I, OP_ULDC,  OP_PLOP3,    OP_ELECT,    OP_UTMALDG};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (opcode(w) == list[i])
            return true;
    return false;
}

uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9E3779B97F4A7C15ull; /* 2^64 over the golden ratio */
    return hash ^ hash >> 29;
}

uint64_t mix_product(uint64_t x, uint64_t y)
{
    return mix(x < y ? x : y, x < y ? y : x);
}
