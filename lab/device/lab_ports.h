/* Loops of FFMAs with chosen registers show what a Hopper partition's register ports allow. One list is read by the
 * kernels (lab_ports.cu), by the tool that writes the chosen registers into their machine code (tools/sass/pattern.c)
 * and by the program that times them (lab/ports.c).
 *
 * An FFMA computes sum = a * b + sum. Registers are even or odd: that is their bank, and a bank gives one register a
 * cycle. The flag "reuse" of a source keeps its value in the operand cache for the warp's next instruction. */
#ifndef LAB_PORTS_H
#define LAB_PORTS_H

#include <stdint.h>

enum { PORTS_SUMS = 64, PORTS_SOURCES = 16, PORTS_FFMAS = 256, PORTS_THREADS = 256 };

/* Says which bank a register is in: always the same one, each in turn with every new register, that of the column's
 * register, or the other one. */
typedef enum ports_bank { PORTS_EVEN, PORTS_ODD, PORTS_IN_TURN, PORTS_AS_COLUMN, PORTS_NOT_AS_COLUMN } ports_bank;

typedef struct ports_pattern {
    const char *symbol, *text;
    ports_bank row, column, sum;
    int row_stays, column_stays; /* for so many FFMAs */
    int flags;                   /* the operand cache is asked to keep what stays */
    int may_switch;              /* the scheduler may turn to another warp after each FFMA */
} ports_pattern;

/* PORTS_PATTERN(symbol, text, bank of a row, of a column, of a sum, FFMAs a row stays, a column stays, flags, switch)
 */
#define PORTS_PATTERNS                                                                                                 \
    PORTS_PATTERN(lab_ports_cached, "row and column kept", EVEN, ODD, IN_TURN, 256, 256, 1, 0)                         \
    PORTS_PATTERN(lab_ports_row_kept, "row kept, sum not in the column's bank", EVEN, IN_TURN, NOT_AS_COLUMN, 16, 1,   \
                  1, 0)                                                                                                \
    PORTS_PATTERN(lab_ports_row_kept_same, "row kept, sum in the column's bank, banks in turn", EVEN, IN_TURN,         \
                  AS_COLUMN, 16, 1, 1, 0)                                                                              \
    PORTS_PATTERN(lab_ports_row_kept_one, "row kept, all columns and sums in one bank", EVEN, ODD, ODD, 16, 1, 1, 0)   \
    PORTS_PATTERN(lab_ports_row_unflagged, "as the second, without the flag", EVEN, IN_TURN, NOT_AS_COLUMN, 16, 1, 0,  \
                  0)                                                                                                   \
    PORTS_PATTERN(lab_ports_row_switched, "as the second, other warps let in after each FFMA", EVEN, IN_TURN,          \
                  NOT_AS_COLUMN, 16, 1, 1, 1)                                                                          \
    PORTS_PATTERN(lab_ports_two, "row and column each kept for two", EVEN, ODD, IN_TURN, 2, 2, 1, 0)                   \
    PORTS_PATTERN(lab_ports_spread, "nothing kept, row even, column odd", EVEN, ODD, IN_TURN, 1, 1, 1, 0)              \
    PORTS_PATTERN(lab_ports_two_in_bank, "nothing kept, row and column even, sum odd", EVEN, EVEN, ODD, 1, 1, 1, 0)    \
    PORTS_PATTERN(lab_ports_one_bank, "nothing kept, all even", EVEN, EVEN, EVEN, 1, 1, 1, 0)

typedef struct ports_args {
    const float *from; /* what rows and columns hold */
    float *to;         /* keeps the sums alive */
    int64_t *cycles;   /* of each block's first warp */
    int32_t turns;     /* of PORTS_FFMAS each */
} ports_args;

#ifndef __CUDACC__

enum { PORTS_ROW, PORTS_COLUMN, PORTS_SUM };

/* Finds the register of one operand of FFMA i: which of its bank's, and the bank. */
typedef struct ports_register {
    int nth, bank;
} ports_register;

static inline ports_register ports_source(ports_bank bank, int stays, int column, int i)
{
    int new_ones = (i + (column ? stays / 2 : 0)) / stays; /* where both stay for two, they change in turn */
    int in_bank = bank == PORTS_IN_TURN ? new_ones % 2 : bank == PORTS_ODD;
    int nth = bank == PORTS_IN_TURN ? new_ones / 2 : new_ones;
    return (ports_register){nth % (PORTS_SOURCES / 4) + (column ? PORTS_SOURCES / 4 : 0), in_bank};
}

static inline ports_register ports_operand(const ports_pattern *p, int which, int i)
{
    if (which == PORTS_ROW)
        return ports_source(p->row, p->row_stays, 0, i);
    ports_register column = ports_source(p->column, p->column_stays, 1, i);
    if (which == PORTS_COLUMN)
        return column;
    int bank = p->sum == PORTS_IN_TURN         ? i % 2
               : p->sum == PORTS_AS_COLUMN     ? column.bank
               : p->sum == PORTS_NOT_AS_COLUMN ? 1 - column.bank
                                               : p->sum == PORTS_ODD;
    return (ports_register){i / (p->sum == PORTS_EVEN || p->sum == PORTS_ODD ? 1 : 2) % (PORTS_SUMS / 2), bank};
}

/* Tells whether FFMA i + 1 has the same row (or column) as FFMA i. */
static inline int ports_stays(const ports_pattern *p, int which, int i)
{
    ports_register now = ports_operand(p, which, i), next = ports_operand(p, which, i + 1);
    return now.nth == next.nth && now.bank == next.bank;
}

#endif
#endif
