/* Machine code of Hopper (sm_90) as these tools read and write it: one instruction is 128 bits. The lower word holds
 * the opcode, a guard and up to three operands; the upper word holds a third source, modifiers and how the instruction
 * is scheduled. NVIDIA does not document the encoding. What stands here was read off the compiler's output with
 * nvdisasm, and covers what these tools need.
 */
#ifndef RUNG_TOOLS_SASS_H
#define RUNG_TOOLS_SASS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    REGISTERS = 256,
    RZ = 255,               /* the register that always reads as zero */
    PT = 7,                 /* the predicate that is always true */
    NOT = 8,                /* added to a guard's predicate: the guard holds where the predicate does not */
    SCOREBOARDS = 6,        /* a warp's counters of results that are under way */
    NO_SCOREBOARD = 7,      /* in place of a scoreboard's number */
    INSTRUCTION_BYTES = 16, /* branches count in bytes */
    VECTOR = 4,             /* registers that a 128-bit access moves */
    WIDTH_128 = 6,          /* in an access's width field */
    STALL_MAX = 15,         /* cycles that one instruction can hold its warp back */
    STALL_STAYS = 4,        /* up to here the compiler sets the bit "stay" */
};

/* Opcodes, with the form of the operands: one name a form. _I: b is a constant, _U: b is a uniform register, else b is
 * a register. Opcodes that begin with U work on uniform registers. */
enum opcode {
    OP_MOV = 0x202,
    OP_SEL = 0x207,
    OP_ISETP = 0x20c,
    OP_IADD3 = 0x210,
    OP_LEA = 0x211,
    OP_LOP3 = 0x212,
    OP_FFMA = 0x223,
    OP_USEL = 0x287,
    OP_UISETP = 0x28c,
    OP_UIADD3 = 0x290,
    OP_ULEA = 0x291,
    OP_ULOP3 = 0x292,
    OP_USHF = 0x299,
    OP_UIMAD = 0x2a4,
    OP_UIMAD_WIDE = 0x2a5,
    OP_STG = 0x386,
    OP_STL = 0x387,
    OP_STS = 0x388,
    OP_HFMA2 = 0x435, /* the compiler's other way to clear a register */
    OP_BRA_UNIFORM = 0x547,
    OP_PHASECHK = 0x5a7, /* SYNCS.PHASECHK: is a barrier's phase over? */
    OP_UTMALDG = 0x5b4,
    OP_CS2R = 0x805,
    OP_VOTE = 0x806,
    OP_SEL_I = 0x807,
    OP_ISETP_I = 0x80c,
    OP_IADD3_I = 0x810,
    OP_LOP3_I = 0x812,
    OP_SHF_I = 0x819,
    OP_PLOP3 = 0x81c,
    OP_IMAD_I = 0x824,
    OP_ELECT = 0x82f,
    OP_HFMA2_I = 0x835,
    OP_VIADD_I = 0x836,
    OP_UMOV_I = 0x882,
    OP_USEL_I = 0x887,
    OP_UISETP_I = 0x88c,
    OP_UIADD3_I = 0x890,
    OP_ULEA_I = 0x891,
    OP_ULOP3_I = 0x892,
    OP_USHF_I = 0x899,
    OP_UIMAD_I = 0x8a4,
    OP_NOP = 0x918,
    OP_BSYNC = 0x941,
    OP_CALL = 0x944,
    OP_BSSY = 0x945,
    OP_YIELD = 0x946,
    OP_BRA = 0x947,
    OP_WARPSYNC = 0x948,
    OP_BRX = 0x949,
    OP_EXIT = 0x94d,
    OP_LDG = 0x981,
    OP_LDS = 0x984,
    OP_STG_U = 0x986,
    OP_STL_U = 0x987,
    OP_STS_U = 0x988,
    OP_ARRIVE = 0x9a7, /* SYNCS.ARRIVE: at a barrier in shared memory */
    OP_S2UR = 0x9c3,
    OP_ULDC = 0xab9,
    OP_BAR = 0xb1d,
    OP_MOV_U = 0xc02,
    OP_ISETP_U = 0xc0c,
    OP_LEA_U = 0xc11,
    OP_UMOV = 0xc82,
    OP_LDGSTS = 0xfae, /* a copy from memory to shared memory */
};

/* An opcode without its form. */
enum operation {
    OPERATION_BITS = 0x1ff,
    ANY_IADD3 = 0x010,
    ANY_LOP3 = 0x012,
    ANY_SHF = 0x019,
    ANY_FFMA = 0x023,
    ANY_IMAD = 0x024,
    ANY_IMAD_WIDE = 0x025,
    ANY_STG = 0x186,
    ANY_STS = 0x188,
    ANY_SHFL = 0x189,   /* a lane's value to others */
    FORM_REGISTERS = 1, /* opcode >> 9: all operands are registers */
};

struct word {
    uint64_t low, high;
};

/* How an instruction is scheduled: the upper word from CONTROL_BIT on. */
struct control {
    int stall;       /* cycles until the warp's next instruction may go */
    bool stay;       /* the scheduler may stay with this warp */
    int write, read; /* scoreboards that tell when the result is there, and when the operands were read */
    unsigned wait;   /* a bit for each scoreboard that must be clear before this instruction goes */
    unsigned reuse;  /* a bit for each operand slot whose register stays in the operand cache */
};

enum {
    CONTROL_BIT = 41,
    STAY_BIT = 45,
    WRITE_BIT = 46,
    READ_BIT = 49,
    WAIT_BIT = 52,
    REUSE_BIT = 58,
};

static inline unsigned opcode(struct word w)
{
    return (unsigned)(w.low & 0xfff);
}
/* Returns the predicate under which an instruction runs, and NOT. */
static inline int guard(struct word w)
{
    return (int)(w.low >> 12 & 15);
}
static inline int field_d(struct word w)
{
    return (int)(w.low >> 16 & 255);
}
static inline int field_a(struct word w)
{
    return (int)(w.low >> 24 & 255);
}
static inline int field_b(struct word w)
{
    return (int)(w.low >> 32 & 255);
}
static inline int field_c(struct word w)
{
    return (int)(w.high & 255);
}
/* Returns b as a constant. */
static inline uint32_t constant(struct word w)
{
    return (uint32_t)(w.low >> 32);
}
/* Returns what an access adds to its address register. */
static inline uint32_t offset(struct word w)
{
    return (uint32_t)(w.low >> 40);
}
/* Returns the uniform register of an access's address. */
static inline int uniform_address(struct word w)
{
    return (int)(w.high & 63);
}
static inline int width(struct word w)
{
    return (int)(w.high >> 9 & 7);
}
/* Returns the comparison of an ISETP, and the predicate that it and others set. */
static inline int comparison(struct word w)
{
    return (int)(w.high >> 12 & 7);
}
static inline int predicate_set(struct word w)
{
    return (int)(w.high >> 17 & 7);
}
static inline int stall(struct word w)
{
    return (int)(w.high >> CONTROL_BIT & STALL_MAX);
}
static inline int write_scoreboard(struct word w)
{
    return (int)(w.high >> WRITE_BIT & 7);
}
static inline int read_scoreboard(struct word w)
{
    return (int)(w.high >> READ_BIT & 7);
}
static inline unsigned waits(struct word w)
{
    return (unsigned)(w.high >> WAIT_BIT & 63);
}
static inline bool reuses(struct word w, int slot)
{
    return w.high >> (REUSE_BIT + slot) & 1;
}

uint64_t control_bits(const struct control *c);

/* Returns the cycles that an instruction takes of its warp's time: a stall of 0 counts as 1. */
int cycles_of(struct word w);

/* Holds the warp back for some cycles more. The stall must not pass STALL_MAX. */
void lengthen_stall(struct word *w, int cycles);

/* Returns the instruction that a branch, a call or a BSSY at instruction `at` leads to; -1 where `w` is none of them.
 */
int64_t branch_target(struct word w, int at);

/* Makes a branch at instruction `at` lead to instruction `target`. */
void set_branch(struct word *w, int at, int target);

/* Returns whether it is an FFMA on four registers, without a guard or a modifier: such ones may change places. */
bool is_plain_fma(struct word w);

/* Returns whether it is an LDS.128 from [register + constant] without a guard, counted on a scoreboard. */
bool is_plain_load(struct word w);

/* Returns whether its fields name no vector register: branches, barriers and instructions on uniform registers. */
bool has_no_registers(struct word w);

/* Returns a step of the hash that stands for a value where instructions are run on symbols. */
uint64_t mix(uint64_t hash, uint64_t value);

/* Returns the hash of a product: the order of its factors does not matter. */
uint64_t mix_product(uint64_t x, uint64_t y);

#endif
