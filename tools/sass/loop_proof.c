/* Runs the new loop as one lane of a warp would, on symbols: a value is a hash of how it was computed, and a float in
 * shared memory is a hash of its address and of the step whose data lies there. The machine keeps scoreboards and
 * latencies, and lets each barrier's phase be late one time in three. At the end every sum must be what it is expected
 * to be: each k in turn, once.
 */
#include "loop.h"

#include <stdio.h>
#include <string.h>

enum {
    ALU_LATENCY = 6,
    FMA_LATENCY = 5,
    PREDICATE_LATENCY = 13,
    SEEN_AFTER = 2, /* cycles until a scoreboard that was raised is seen */
    LATE_ONE_IN = 3,
    HANDED_BACK = -1, /* in place of a step: the stage holds no data that may be read */
    NOT_EQUAL = 5,    /* a comparison; all others are taken for "greater" */
    RING = 0x400,     /* where the ring, and the full barriers, lie in shared memory */
    FULL = 0x30400,
    LANE_A = 0x30, /* a lane's first element of A, and of B, in their parts of a stage */
    LANE_B = 0x20,
    REGISTER_SEED = 3,
    BARRIER_BYTES = 8,
};

struct machine {
    const struct tile *tile;
    uint64_t value[REGISTERS];
    bool predicate[PT + 1];
    unsigned filling[REGISTERS], reading[REGISTERS]; /* scoreboards that loads and reads are under way on, as bits */
    unsigned asked;                                  /* the scoreboard of a phase that was asked for, as a bit */
    long ready[REGISTERS], predicate_ready[PT + 1];  /* cycles */
    long raised[NO_SCOREBOARD + 1], now;             /* raised: when each scoreboard was last counted up */
    int holds[STAGES_MAX];                           /* the step whose data a stage holds */
    int next, arrived, asks;                         /* steps waited for and handed back; phases asked for */
    const char *wrong;
};

static uint32_t lane_a(void)
{
    return RING + LANE_A;
}

static uint32_t lane_b(const struct tile *tile)
{
    return RING + (uint32_t)a_bytes(tile) + LANE_B;
}

static uint64_t element(const struct machine *s, uint32_t address)
{
    int stage = (int)((address - RING) / (uint32_t)stage_bytes(s->tile));
    return mix(address, (uint64_t)(stage < s->tile->stages ? s->holds[stage] : HANDED_BACK));
}

/* ---- rules of the machine ---- */

static void wait_for(struct machine *s, struct word w)
{
    for (int r = 0; r < REGISTERS; r++) {
        s->filling[r] &= ~waits(w);
        s->reading[r] &= ~waits(w);
    }
    s->asked &= ~waits(w);
    for (int b = 0; b < SCOREBOARDS; b++)
        if ((waits(w) >> b & 1) && s->raised[b] + SEEN_AFTER > s->now)
            s->wrong = "a wait comes too soon to be seen";
    s->raised[write_scoreboard(w)] = s->raised[read_scoreboard(w)] = s->now;
}

static void check_registers(struct machine *s, struct word w, const int reads[3], int d, int width)
{
    for (int i = 0; i < 3; i++)
        if (reads[i] != RZ && (s->filling[reads[i]] || s->ready[reads[i]] > s->now))
            s->wrong = "a register is read too early";
    for (int r = d; r < d + width && d != RZ; r++)
        if (s->filling[r] || s->reading[r])
            s->wrong = "a register is written too early";
    int predicate = guard(w) & ~NOT;
    if (predicate != PT && s->predicate_ready[predicate] > s->now)
        s->wrong = "a predicate is read too early";
    if (s->asked && (opcode(w) == OP_BRA || opcode(w) == OP_PHASECHK))
        s->wrong = "a phase is not waited for";
}

/* ---- instructions ---- */

static void run_load(struct machine *s, struct word w)
{
    int d = field_d(w), a = field_a(w), read = read_scoreboard(w);
    uint32_t address = (uint32_t)s->value[a] + offset(w);
    for (int e = 0; e < VECTOR; e++) {
        s->value[d + e] = element(s, address + (uint32_t)(FLOAT_BYTES * e));
        s->filling[d + e] |= 1u << write_scoreboard(w);
    }
    s->reading[a] |= 1u << (read == NO_SCOREBOARD ? write_scoreboard(w) : read);
}

static uint32_t full_barrier(const struct machine *s, int step)
{
    return FULL + BARRIER_BYTES * (uint32_t)(step % s->tile->stages);
}

static void run_phase_check(struct machine *s, struct word w)
{
    uint32_t parity = (uint32_t)(s->next / s->tile->stages & 1) << 31;
    if ((uint32_t)s->value[field_a(w)] != full_barrier(s, s->next) || (uint32_t)s->value[field_b(w)] != parity)
        s->wrong = "the wrong phase is asked for";
    bool over = ++s->asks % LATE_ONE_IN != 0;
    s->predicate[predicate_set(w)] = over;
    s->asked = 1u << write_scoreboard(w);
    if (over) {
        s->holds[s->next % s->tile->stages] = s->next;
        ++s->next;
    }
}

static void run_arrive(struct machine *s, struct word w)
{
    s->reading[field_a(w)] |= 1u << read_scoreboard(w);
    if ((uint32_t)s->value[field_a(w)] != full_barrier(s, s->arrived) || offset(w) != (uint32_t)empty_offset(s->tile))
        s->wrong = "the wrong stage is handed back";
    for (int r = 0; r < REGISTERS; r++)
        if (s->filling[r])
            s->wrong = "a stage is handed back while it is read";
    s->holds[s->arrived++ % s->tile->stages] = HANDED_BACK;
}

static void run_compare(struct machine *s, struct word w)
{
    int32_t a = (int32_t)s->value[field_a(w)];
    int32_t b = opcode(w) == OP_ISETP_I ? (int32_t)constant(w) : (int32_t)s->value[field_b(w)];
    s->predicate[predicate_set(w)] = comparison(w) == NOT_EQUAL ? a != b : a > b;
    s->predicate_ready[predicate_set(w)] = s->now + PREDICATE_LATENCY;
}

static void run_integer(struct machine *s, struct word w)
{
    uint32_t a = (uint32_t)s->value[field_a(w)], b = (uint32_t)s->value[field_b(w)], c = (uint32_t)s->value[field_c(w)];
    uint64_t x = 0;
    switch (opcode(w)) {
    case OP_MOV: x = s->value[field_b(w)]; break; /* a sum, perhaps: not cut to 32 bits */
    case OP_LEA_U: x = a * BARRIER_BYTES + FULL; break;
    case OP_LEA: x = a * BARRIER_BYTES + b; break;
    case OP_IADD3_I: x = a + constant(w); break;
    case OP_IMAD_I: x = a * constant(w) + c; break;
    case OP_LOP3_I: x = a & constant(w); break;
    case OP_LOP3: x = a ^ b; break;
    case OP_SHF_I: x = a << (constant(w) & 31); break;
    default: s->wrong = "an instruction that is not known";
    }
    s->value[field_d(w)] = x;
    s->ready[field_d(w)] = s->now + ALU_LATENCY;
}

static void run_fma(struct machine *s, struct word w)
{
    uint64_t factors = mix_product(s->value[field_a(w)], s->value[field_b(w)]);
    s->value[field_d(w)] = mix(s->value[field_c(w)], factors);
    s->ready[field_d(w)] = s->now + FMA_LATENCY;
}

/* Finds the registers that an instruction reads, and its first result; RZ: none. */
static int find_operands(struct word w, int reads[3])
{
    unsigned op = opcode(w);
    bool none = op == OP_BRA || op == OP_VOTE || op == OP_NOP;
    bool sets_predicate = op == OP_ISETP || op == OP_ISETP_I || op == OP_PHASECHK;
    bool has_b = op == OP_FFMA || op == OP_LEA || op == OP_MOV || op == OP_LOP3 || op == OP_ISETP || op == OP_PHASECHK;
    reads[0] = none || op == OP_MOV ? RZ : field_a(w);
    reads[1] = has_b ? field_b(w) : RZ;
    reads[2] = op == OP_FFMA || op == OP_IMAD_I ? field_c(w) : RZ;
    return none || sets_predicate ? RZ : field_d(w);
}

/* Runs one instruction and returns the place of the next. */
static int step(struct machine *s, const struct word *code, int at)
{
    struct word w = code[at];
    unsigned op = opcode(w);
    int predicate = guard(w) & ~NOT, next = at + 1, reads[3];
    bool on = predicate == PT || s->predicate[predicate] == !(guard(w) & NOT);
    int d = find_operands(w, reads);
    wait_for(s, w);
    check_registers(s, w, reads, d, op == OP_LDS ? VECTOR : 1);
    if (!on && op != OP_BRA)
        s->wrong = "an instruction besides a branch has a guard that fails";
    switch (op) {
    case OP_NOP: break;
    case OP_BRA: next = on ? (int)branch_target(w, at) : next; break;
    case OP_FFMA: run_fma(s, w); break;
    case OP_LDS: run_load(s, w); break;
    case OP_PHASECHK: run_phase_check(s, w); break;
    case OP_ARRIVE: run_arrive(s, w); break;
    case OP_VOTE: s->predicate_ready[predicate_set(w)] = s->now + PREDICATE_LATENCY; break; /* of one lane */
    case OP_ISETP:
    case OP_ISETP_I: run_compare(s, w); break;
    default: run_integer(s, w);
    }
    s->value[RZ] = 0;
    s->now += stall(w);
    return next;
}

/* ---- what must come out ---- */

static uint32_t address_a(const struct tile *tile, uint32_t stage_at, int i, int k)
{
    uint32_t row_bytes = (uint32_t)a_row_bytes(tile), first = lane_a() + stage_at, row = (uint32_t)i;
    uint32_t unit = (uint32_t)(k / VECTOR), in_unit = (uint32_t)(k % VECTOR);
    if (tile->k_innermost)
        return (first ^ unit * VECTOR * FLOAT_BYTES) + row * row_bytes + in_unit * FLOAT_BYTES;
    return first + (uint32_t)k * row_bytes + row / VECTOR * A_LOAD_BYTES + row % VECTOR * FLOAT_BYTES;
}

static uint32_t address_b(const struct tile *tile, uint32_t stage_at, int j, int k)
{
    uint32_t column = (uint32_t)j;
    return lane_b(tile) + stage_at + (uint32_t)(k * b_row_bytes(tile)) + column / VECTOR * B_LOAD_BYTES +
           column % VECTOR * FLOAT_BYTES;
}

/* Returns what a sum must be: every k in turn, of `steps` steps behind `done`. */
static uint64_t expected(const struct tile *tile, int i, int j, int done, int steps)
{
    uint64_t sum = 0;
    for (int step = done; step < done + steps; step++)
        for (int k = 0; k < BK; k++) {
            uint32_t stage_at = (uint32_t)(step % tile->stages * stage_bytes(tile));
            uint64_t a = mix(address_a(tile, stage_at, i, k), (uint64_t)step);
            uint64_t b = mix(address_b(tile, stage_at, j, k), (uint64_t)step);
            sum = mix(sum, mix_product(a, b));
        }
    return sum;
}

static void start(struct machine *s, const struct old_loop *old, int done, int steps)
{
    memset(s, 0, sizeof *s);
    s->tile = &old->tile;
    memset(s->holds, -1, sizeof s->holds);
    for (int r = 0; r < RZ; r++)
        s->value[r] = mix(REGISTER_SEED, (uint64_t)r);
    s->value[old->inputs] = lane_a();
    s->value[old->inputs + 1] = lane_b(&old->tile);
    s->value[old->inputs + 2] = (uint64_t)done;
    s->value[old->inputs + 3] = (uint64_t)steps;
    if (old->full >= 0)
        s->value[old->full] = FULL;
    s->holds[done % old->tile.stages] = done;
    s->next = done + 1;
    s->arrived = done;
    for (int b = 0; b <= NO_SCOREBOARD; b++)
        s->raised[b] = -SEEN_AFTER;
}

/* Runs the loop after `done` steps, for `steps` more. Returns whether it is right. */
static bool prove_steps(const struct old_loop *old, const struct word *code, int n, int done, int steps)
{
    static struct machine s;
    const char *wrong = NULL;
    start(&s, old, done, steps);
    int at = 0;
    for (long left = (long)CODE_MAX * (steps + 2); at != room_of(old) && !s.wrong; left--) {
        if (at < 0 || at >= n || !left)
            s.wrong = "it runs astray";
        else
            at = step(&s, code, at);
    }
    if (s.arrived != done + steps || s.next != done + steps)
        wrong = "stages are left over";
    for (int i = 0; i < TM * TN && !wrong; i++)
        if (s.value[old->result[i / TN][i % TN]] != expected(&old->tile, i / TN, i % TN, done, steps))
            wrong = "a sum is another";
    if (s.wrong)
        wrong = s.wrong;
    if (wrong)
        fprintf(stderr, "sass loop: the new loop is wrong (%d steps done, %d to do): %s\n", done, steps, wrong);
    return !wrong;
}

bool loop_prove(const struct old_loop *old, const struct word *code, int n)
{
    /* The runs have one step, few steps, more steps than stages; from the ring's beginning, its middle, its end, in odd
     * rounds too.
     */
    static const struct {
        int done, steps;
    } runs[] = {{0, 1}, {5, 3}, {7, 20}, {14, 2}, {1000, 9}};
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++)
        if (!prove_steps(old, code, n, runs[i].done, runs[i].steps))
            return false;
    return true;
}
