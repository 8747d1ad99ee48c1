/* Writes the new main loop: registers, order, loads and waits as a Hopper partition wants them. A turn takes four k,
 * which the first instruction cache holds. Loads are spread evenly. A row of A stays in the operand cache while B's
 * columns pass, and a sum lies in the register bank opposite to its column's. Each k is multiplied while the next one
 * is loaded.
 */
#include "loop.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { /* cycles, or issue slots, from an instruction to who reads its result */
       ALU_LATENCY = 6,
       ALU_BEHIND_OTHERS = 5, /* where one instruction lies between */
       PREDICATE_LATENCY = 13,
       BRANCH_STALL = 5,
       BARRIER_STALL = 2 /* a scoreboard is seen from the second cycle on */
};

enum { SB_B = 0, SB_A = 2, SB_PHASE = 4, SB_READ = 5 }; /* scoreboards: two for B, two for A */
enum { ALL_LOADS = 1 << SB_B | 2 << SB_B | 1 << SB_A | 2 << SB_A, ALL_SCOREBOARDS = 63 };
enum { BARRIER_BYTES_LOG2 = 3 };

/* A block has 128 FFMAs. Its loads stand before FFMA `first`, and `every` so many FFMAs again. The last one comes at
 * least 32 FFMAs before the block's end, because a shared load takes so long. With k outermost, B's four loads and A's
 * two go one behind each row of FFMAs. With k innermost, one block of a turn loads A too, one behind each row; B's
 * loads stand between those, and in the other blocks farther apart. */
struct places {
    int first, every;
};
static const struct places PLACES_K_OUTERMOST = {TN, TN};
static const struct places PLACES_B_BESIDE_A = {TN / 2, TN};
static const struct places PLACES_B_ALONE = {TN, TN + TN / 2};

/* The last block of a turn makes the addresses of the next turn. It does so behind its last load, and so early that
 * the loop's branch, behind FFMA 127, finds its predicate. */
enum {
    ADVANCE_UNIT = 40, /* nobody reads it before ADVANCE_A */
    ADVANCE_B = 104,
    ADVANCE_A = 106,
    COMPARE = 111,  /* ADVANCE_B's result is there, and PREDICATE_LATENCY FFMAs are left */
    UNIT_BYTES = 16 /* four k of a row of A, where k lies innermost */
};

enum { GREATER = 4, NOT_EQUAL = 5 }; /* comparisons */

/* Modifiers in the upper word. */
enum {
    M_URZ = 0x3f, /* no uniform register in an address */
    M_MOV_ALL_BYTES = 0xf00,
    M_LUT_AND = 0xc000, /* LOP3's table: a and b */
    M_LUT_XOR = 0x3c00, /* a exclusive-or b */
    M_SIGNED = 0x200,
    M_SHIFT_U32 = 0x600,
    M_LDS_128 = WIDTH_128 << 9,
    M_LEA_8 = BARRIER_BYTES_LOG2 << 11,
    M_NO_PREDICATE_OUT = PT << 17,
    M_NO_PREDICATE_OUT_2 = PT << 20,
    M_NO_PREDICATE_IN = PT << 23,
    M_NO_CARRY_IN = (NOT | PT) << 23,
    M_NO_CARRY_IN_2 = (NOT | PT) << 13,
    M_ISETP_AND_TRUE = 0x70,
    M_UNIFORM_B = 1 << 27,
    M_PHASECHK = 0x8000140, /* .TRANS64.TRYWAIT, as compiled */
    M_ARRIVE = 0x8100000,   /* .TRANS64.A1T0, as compiled */
};

struct instruction {
    struct word word; /* without control and target */
    struct control control;
    int target; /* where a branch leads; -1 for all others */
};

struct registers {
    int a[2][TM], quad_a[TM], b[2][TN], sum[TM][TN];
    int at_a, at_b, stage_a, unit; /* addresses of what is loaded next; a stage's A, and where in its rows */
    int barrier, left_barrier, phase, place, index, left, limit;
    int ready, more; /* predicates; `ready` also says whether the stage goes on */
};

struct program {
    struct instruction at[CODE_MAX];
    int n;
    bool too_long;
    struct registers r;
    const struct old_loop *old;
};

/* ---- registers ---- */

/* The registers that are left to give out; `missing` says that there were too few. */
struct pool {
    bool owned[REGISTERS], predicate[PT + 1], missing;
};

static int take_quad(struct pool *pool)
{
    for (int r = 0; r + VECTOR - 1 < RZ; r += VECTOR)
        if (pool->owned[r] && pool->owned[r + 1] && pool->owned[r + 2] && pool->owned[r + 3]) {
            memset(pool->owned + r, 0, VECTOR);
            return r;
        }
    pool->missing = true;
    return 0;
}

/* Takes any register of a bank or, with -1, of both. */
static int take(struct pool *pool, int bank)
{
    for (int r = 0; r < RZ; r++)
        if (pool->owned[r] && (bank < 0 || (r & 1) == bank)) {
            pool->owned[r] = false;
            return r;
        }
    pool->missing = true;
    return 0;
}

static int take_predicate(struct pool *pool)
{
    for (int p = 0; p < PT; p++)
        if (pool->predicate[p]) {
            pool->predicate[p] = false;
            return p;
        }
    pool->missing = true;
    return 0;
}

static void take_quads(struct pool *pool, int *registers, int count)
{
    for (int i = 0; i < count; i++)
        registers[i] = i % VECTOR ? registers[i - 1] + 1 : take_quad(pool);
}

/* An FFMA reads its column from one bank and its sum from the other. A sum that may stay where the compiled code wants
 * it needs no move at the end: those are given out first. */
static void take_sums(struct pool *pool, const struct old_loop *old, struct registers *r)
{
    for (int i = 0; i < TM * TN; i++) {
        int was = old->result[i / TN][i % TN], *sum = &r->sum[i / TN][i % TN];
        bool stays = pool->owned[was] && (was & 1) != (i & 1);
        *sum = stays ? was : -1;
        if (stays)
            pool->owned[was] = false;
    }
    for (int i = 0; i < TM * TN; i++)
        if (r->sum[i / TN][i % TN] < 0)
            r->sum[i / TN][i % TN] = take(pool, ~i & 1);
}

/* Assigns registers. Returns false where there are too few. */
static bool assign(const struct old_loop *old, const bool owned[REGISTERS], struct registers *r)
{
    struct pool pool = {.missing = false};
    bool k_innermost = old->tile.k_innermost;
    memcpy(pool.owned, owned, sizeof pool.owned);
    memcpy(pool.predicate, old->predicate, sizeof pool.predicate);
    for (int i = 0; i < TM && k_innermost; i++)
        r->quad_a[i] = take_quad(&pool);
    for (int set = 0; set < 2; set++) {
        take_quads(&pool, r->a[set], k_innermost ? 0 : TM);
        take_quads(&pool, r->b[set], TN);
    }
    take_sums(&pool, old, r);
    int *const control[] = {&r->at_a,  &r->at_b, &r->barrier, &r->left_barrier, &r->phase,
                            &r->place, &r->left, &r->limit,   &r->index};
    for (size_t c = 0; c < sizeof control / sizeof *control; c++)
        *control[c] = take(&pool, -1);
    if (k_innermost)
        r->stage_a = take(&pool, -1);
    r->unit = r->index; /* never are both needed at once */
    r->ready = take_predicate(&pool);
    r->more = take_predicate(&pool);
    return !pool.missing;
}

static bool names_quad(struct word w, int quad)
{
    return field_d(w) / VECTOR == quad || field_a(w) / VECTOR == quad || field_b(w) / VECTOR == quad ||
           field_c(w) / VECTOR == quad;
}

/* Quads that nothing names before the loop's end, and that a load fills first behind it, hold nothing while it runs. (A
 * constant may look like a name: then the quad is left alone.) */
static void add_idle(const struct old_loop *old, bool owned[REGISTERS])
{
    for (int quad = 0; quad < RZ / VECTOR; quad++) {
        int first = 0;
        while (first < old->n && !names_quad(old->code[first], quad))
            first++;
        if (first <= old->bottom || first >= old->n)
            continue;
        struct word w = old->code[first];
        if (opcode(w) == OP_LDG && width(w) == WIDTH_128 && field_d(w) == VECTOR * quad)
            memset(owned + VECTOR * quad, 1, VECTOR);
    }
}

/* ---- instructions ---- */

static struct word operands(enum opcode op, int d, int a, uint32_t b, uint64_t high)
{
    return (struct word){(uint64_t)op | PT << 12 | (uint64_t)d << 16 | (uint64_t)a << 24 | (uint64_t)b << 32, high};
}

static struct instruction *put(struct program *p, struct word w)
{
    p->too_long |= p->n == CODE_MAX;
    p->n -= p->too_long;
    p->at[p->n] = (struct instruction){w, {.stall = 1, .write = NO_SCOREBOARD, .read = NO_SCOREBOARD}, -1};
    return &p->at[p->n++];
}

static struct instruction *wait_for(struct program *p, unsigned scoreboards, int stall)
{
    struct instruction *x = put(p, operands(OP_NOP, 0, 0, 0, 0));
    x->control.wait = scoreboards;
    x->control.stall = stall;
    return x;
}
static struct instruction *move(struct program *p, int d, int b)
{
    return put(p, operands(OP_MOV, d, 0, (uint32_t)b, M_MOV_ALL_BYTES));
}
static struct instruction *add(struct program *p, int d, int a, int constant)
{
    return put(p, operands(OP_IADD3_I, d, a, (uint32_t)constant,
                           M_NO_CARRY_IN | M_NO_CARRY_IN_2 | M_NO_PREDICATE_OUT | M_NO_PREDICATE_OUT_2 | RZ));
}
static struct instruction *multiply_add(struct program *p, int d, int a, int constant, int c)
{
    return put(
        p, operands(OP_IMAD_I, d, a, (uint32_t)constant, M_NO_CARRY_IN | M_NO_PREDICATE_OUT | M_SIGNED | (uint64_t)c));
}
/* Writes an instruction on a stage's full barrier. */
static struct instruction *barrier_of(struct program *p, int d, int stage)
{
    const struct old_loop *old = p->old;
    const uint64_t modifiers = M_NO_CARRY_IN | M_NO_PREDICATE_OUT | M_LEA_8 | RZ;
    if (old->full >= 0)
        return put(p, operands(OP_LEA, d, stage, (uint32_t)old->full, modifiers));
    return put(p, operands(OP_LEA_U, d, stage, (uint32_t)old->uniform, M_UNIFORM_B | modifiers));
}
static struct instruction *and_with(struct program *p, int d, int a, uint32_t constant)
{
    return put(p, operands(OP_LOP3_I, d, a, constant, M_NO_CARRY_IN | M_NO_PREDICATE_OUT | M_LUT_AND | RZ));
}
static struct instruction *exclusive_or(struct program *p, int d, int a, int b)
{
    return put(p, operands(OP_LOP3, d, a, (uint32_t)b, M_NO_CARRY_IN | M_NO_PREDICATE_OUT | M_LUT_XOR | RZ));
}
static struct instruction *shift_left(struct program *p, int d, int a, int bits)
{
    return put(p, operands(OP_SHF_I, d, a, (uint32_t)bits, M_SHIFT_U32 | RZ));
}
static uint64_t comparison_bits(int predicate, int how)
{
    return M_NO_PREDICATE_OUT_2 | M_NO_PREDICATE_IN | M_SIGNED | M_ISETP_AND_TRUE | (uint64_t)predicate << 17 |
           (uint64_t)how << 12;
}
static void compare(struct program *p, int predicate, int how, int a, int constant)
{
    put(p, operands(OP_ISETP_I, 0, a, (uint32_t)constant, comparison_bits(predicate, how)));
}
static void compare_registers(struct program *p, int predicate, int how, int a, int b)
{
    put(p, operands(OP_ISETP, 0, a, (uint32_t)b, comparison_bits(predicate, how)));
}
static void load(struct program *p, int d, int a, int offset, int scoreboard)
{
    put(p, operands(OP_LDS, d, a, (uint32_t)offset << 8, M_LDS_128))->control.write = scoreboard;
}
/* Asks whether the phase of the stage's full barrier is over. */
static void test_phase(struct program *p)
{
    struct instruction *x = put(p, operands(OP_PHASECHK, 0, p->r.barrier, (uint32_t)p->r.phase,
                                            M_PHASECHK | M_URZ | (uint64_t)p->r.ready << 17));
    x->control.write = SB_PHASE;
    x->control.stall = BARRIER_STALL;
}
/* Writes the arrival by which every lane hands back what it has read. That orders its loads before what is stored there
 * next, by whatever means. */
static struct instruction *arrive(struct program *p, int barrier)
{
    uint32_t b = RZ | (uint32_t)empty_offset(&p->old->tile) << 8;
    struct instruction *x = put(p, operands(OP_ARRIVE, RZ, barrier, b, M_ARRIVE | M_URZ));
    x->control.read = SB_READ;
    x->control.stall = BARRIER_STALL;
    return x;
}
/* Makes all lanes agree whether they found the stage filled. They may differ, when it fills as they look, and must not
 * part: nothing would join them again. */
static void agree(struct program *p)
{
    struct instruction *x =
        put(p, operands(OP_VOTE, RZ, 0, 0, (uint64_t)p->r.ready << 17 | (uint64_t)p->r.ready << 23));
    x->control.wait = 1 << SB_PHASE;
    x->control.stall = PREDICATE_LATENCY;
}
static void branch(struct program *p, int predicate, int target)
{
    struct instruction *x = put(p, operands(OP_BRA, 0, 0, 0, M_NO_PREDICATE_IN));
    x->word.low = (x->word.low & ~0xf000ull) | (uint64_t)predicate << 12;
    x->target = target;
    x->control.stall = BRANCH_STALL;
}

/* ---- the new loop ---- */

static void load_b(struct program *p, int set, int k, int part)
{
    load(p, p->r.b[set][part * VECTOR], p->r.at_b, k * b_row_bytes(&p->old->tile) + part * B_LOAD_BYTES,
         SB_B + part / 2);
}

/* Loads half of one k of A or, with k innermost, four k of one row. */
static void load_a(struct program *p, int set, int k, int part)
{
    int row_bytes = a_row_bytes(&p->old->tile);
    if (p->old->tile.k_innermost)
        load(p, p->r.quad_a[part], p->r.at_a, part * row_bytes, SB_A + part / VECTOR);
    else
        load(p, p->r.a[set][part * VECTOR], p->r.at_a, k * row_bytes + part * A_LOAD_BYTES, SB_A);
}

/* Returns the number of the load that stands before FFMA m; -1: none, or one after `count`. */
static int load_number(struct places places, int m, int count)
{
    int number = (m - places.first) / places.every;
    return m >= places.first && (m - places.first) % places.every == 0 && number < count ? number : -1;
}

static void loads_k_outermost(struct program *p, int k, int m)
{
    int i = load_number(PLACES_K_OUTERMOST, m, B_LOADS + A_LOADS);
    if (i >= B_LOADS)
        load_a(p, k & 1, k, i - B_LOADS);
    else if (i >= 0)
        load_b(p, k & 1, k, i);
}

static void loads_k_innermost(struct program *p, int k, int m)
{
    int i = load_number(k ? PLACES_B_ALONE : PLACES_B_BESIDE_A, m, B_LOADS);
    if (i >= 0)
        load_b(p, k & 1, k, i);
    /* A row's registers are free once its last k is multiplied; the last row's in the next block. */
    if (k == 0 && m && m % TN == 0)
        load_a(p, 0, 0, m / TN - 1);
    if (k == 1 && m == 1)
        load_a(p, 0, 0, TM - 1);
}

/* Writes the loads that stand before FFMA m of block k, which multiplies what the block before it loaded. */
static void loads_at(struct program *p, int k, int m)
{
    int first = p->n;
    if (p->old->tile.k_innermost)
        loads_k_innermost(p, k, m);
    else
        loads_k_outermost(p, k, m);
    /* Behind these loads their addresses change. */
    if (k == TURN - 1 || (k == 1 && m == 1))
        for (; first < p->n; first++)
            p->at[first].control.read = SB_READ;
}

/* Computes the addresses of the next turn, once the last loads have read them, and whether this stage has another turn.
 */
static void advance_at(struct program *p, int m)
{
    const struct tile *tile = &p->old->tile;
    struct registers *r = &p->r;
    if (m == ADVANCE_UNIT && tile->k_innermost)
        add(p, r->unit, r->unit, UNIT_BYTES);
    if (m == ADVANCE_B)
        add(p, r->at_b, r->at_b, TURN * b_row_bytes(tile))->control.wait = 1 << SB_READ;
    if (m == ADVANCE_A && tile->k_innermost)
        exclusive_or(p, r->at_a, r->stage_a, r->unit);
    if (m == ADVANCE_A && !tile->k_innermost)
        add(p, r->at_a, r->at_a, TURN * a_row_bytes(tile));
    if (m == COMPARE)
        compare_registers(p, r->ready, NOT_EQUAL, r->at_b, r->limit);
}

enum { LOADS = 1, FIRST = 2 };

/* Writes the FFMAs of one k: block k of a turn takes the k before. The first ones start from zero. Columns pass there
 * and back, so that the last column of a row is the first of the next. */
static void multiply(struct program *p, int k, int how)
{
    const struct registers *r = &p->r;
    int set = ~k & 1;
    for (int m = 0; m < BLOCK_FMAS; m++) {
        if (how & LOADS)
            loads_at(p, k, m);
        if ((how & LOADS) && k == TURN - 1)
            advance_at(p, m);
        int i = m / TN, j = i & 1 ? TN - 1 - m % TN : m % TN;
        int a = p->old->tile.k_innermost ? r->quad_a[i] + (k + TURN - 1) % TURN : r->a[set][i];
        int c = how & FIRST ? RZ : r->sum[i][j];
        put(p, operands(OP_FFMA, r->sum[i][j], a, (uint32_t)r->b[set][j], (uint64_t)c));
    }
}

/* Computes the addresses of the stage in which step `place` lies. */
static void place_in_ring(struct program *p)
{
    const struct old_loop *old = p->old;
    const struct registers *r = &p->r;
    int log2_stages = 0, bytes = stage_bytes(&old->tile);
    while (1 << log2_stages < old->tile.stages)
        log2_stages++;
    and_with(p, r->index, r->place, (uint32_t)old->tile.stages - 1);
    /* The parity of the round goes to the topmost bit. */
    shift_left(p, r->phase, r->place, 31 - log2_stages)->control.stall = ALU_BEHIND_OTHERS;
    barrier_of(p, r->barrier, r->index);
    and_with(p, r->phase, r->phase, 1u << 31);
    multiply_add(p, r->at_a, r->index, bytes, old->inputs)->control.wait = 1 << SB_READ;
    multiply_add(p, r->at_b, r->index, bytes, old->inputs + 1);
    if (old->tile.k_innermost) {
        multiply_add(p, r->stage_a, r->index, bytes, old->inputs);
        move(p, r->unit, RZ);
    }
    wait_for(p, 0, 2);
}

static void enter(struct program *p)
{
    struct registers *r = &p->r;
    const struct tile *tile = &p->old->tile;
    wait_for(p, ALL_SCOREBOARDS, STALL_MAX);
    move(p, r->place, p->old->inputs + 2);
    add(p, r->left, p->old->inputs + 3, -1)->control.stall = ALU_LATENCY;
    place_in_ring(p);
    compare(p, r->more, GREATER, r->left, 0);
    move(p, r->left_barrier, r->barrier)->control.stall = 2;
    add(p, r->limit, r->at_b, b_bytes(tile));
    for (int i = 0; i < (tile->k_innermost ? TM : A_LOADS); i++)
        load_a(p, 0, 0, i);
    for (int i = 0; i < B_LOADS; i++)
        load_b(p, 0, 0, i);
    wait_for(p, 1 << SB_A | 2 << SB_A, PREDICATE_LATENCY); /* one row is read again */
}

/* Hands a stage back and takes the next one. */
static void change_stage(struct program *p, int top)
{
    struct registers *r = &p->r;
    arrive(p, r->left_barrier)->control.wait = ALL_LOADS;
    int leave = p->n;
    branch(p, NOT | r->more, -1);
    add(p, r->place, r->place, 1)->control.stall = ALU_LATENCY;
    place_in_ring(p);
    add(p, r->left, r->left, -1);
    test_phase(p);
    add(p, r->limit, r->at_b, b_bytes(&p->old->tile));
    move(p, r->left_barrier, r->barrier)->control.stall = 2;
    compare(p, r->more, GREATER, r->left, 0);
    agree(p);
    branch(p, r->ready, top);
    int again = p->n;
    test_phase(p);
    agree(p);
    branch(p, NOT | r->ready, again);
    branch(p, PT, top);
    p->at[leave].target = p->n;
}

/* Moves sums to the registers in which the compiler's code wants them. */
static void deliver(struct program *p)
{
    int from[REGISTERS], readers[REGISTERS] = {0}, left = 0, spare = p->r.index;
    memset(from, -1, sizeof from);
    wait_for(p, 1 << SB_READ, ALU_LATENCY);
    for (int i = 0; i < TM * TN; i++) {
        int to = p->old->result[i / TN][i % TN], is = p->r.sum[i / TN][i % TN];
        if (to != is) {
            from[to] = is;
            ++readers[is];
            ++left;
        }
    }
    while (left) {
        bool moved = false;
        for (int r = 0; r < RZ; r++)
            if (from[r] >= 0 && !readers[r]) {
                move(p, r, from[r]);
                --readers[from[r]];
                from[r] = -1;
                --left;
                moved = true;
            }
        for (int r = 0; r < RZ && !moved; r++)
            if (from[r] >= 0) { /* a ring of moves is left: it is opened */
                move(p, spare, r)->control.stall = ALU_LATENCY;
                for (int t = 0; t < RZ; t++)
                    if (from[t] == r)
                        from[t] = spare;
                readers[spare] = readers[r];
                readers[r] = 0;
                moved = true;
            }
    }
    wait_for(p, 0, STALL_MAX);
}

/* ---- waits and reuse ---- */

/* Finds the waits that FFMAs owe, by going through the loop twice as it will run. */
static void add_waits(struct program *p, int top, int end)
{
    enum { NOTHING, FIRST_BOARD };
    int under_way[REGISTERS] = {NOTHING}; /* FIRST_BOARD + scoreboard of the load that fills a register */
    for (int pass = 0; pass < 2; pass++)
        for (int n = top; n < end; n++) {
            struct instruction *x = &p->at[n];
            const int source[3] = {field_a(x->word), field_b(x->word), field_c(x->word)};
            for (int s = 0; s < 3 && opcode(x->word) == OP_FFMA; s++)
                if (under_way[source[s]])
                    x->control.wait |= 1u << (under_way[source[s]] - FIRST_BOARD);
            for (int r = 0; r < REGISTERS; r++)
                if (under_way[r] && (x->control.wait >> (under_way[r] - FIRST_BOARD) & 1))
                    under_way[r] = NOTHING;
            for (int e = 0; e < VECTOR && opcode(x->word) == OP_LDS; e++)
                under_way[field_d(x->word) + e] = FIRST_BOARD + x->control.write;
        }
}

static int slot_register(struct word w, int slot)
{
    return slot ? field_b(w) : field_a(w);
}

/* Returns whether operand `slot` of FFMA n is the next register that this slot reads from its bank. */
static bool is_kept(const struct program *p, int n, int slot, int end)
{
    int r = slot_register(p->at[n].word, slot);
    for (int q = n + 1; q < end; q++) {
        struct word w = p->at[q].word;
        if (opcode(w) == OP_LDS && r >= field_d(w) && r < field_d(w) + VECTOR)
            return false;
        if (opcode(w) == OP_FFMA && (slot_register(w, slot) & 1) == (r & 1))
            return slot_register(w, slot) == r;
    }
    return false;
}

static void add_reuse(struct program *p, int top, int end)
{
    for (int n = top; n < end; n++)
        for (int slot = 0; slot < 2 && opcode(p->at[n].word) == OP_FFMA; slot++)
            p->at[n].control.reuse |= (unsigned)is_kept(p, n, slot, end) << slot;
}

/* ---- the whole ---- */

static struct word encode(const struct instruction *x, int at)
{
    struct control control = x->control;
    control.stay = control.stall <= STALL_STAYS || opcode(x->word) == OP_FFMA;
    struct word w = {x->word.low, x->word.high | control_bits(&control)};
    if (x->target >= 0)
        set_branch(&w, at, x->target);
    return w;
}

struct word idle(unsigned wait, int stall)
{
    struct control control = {.stall = stall, .write = NO_SCOREBOARD, .read = NO_SCOREBOARD, .wait = wait};
    struct instruction x = {operands(OP_NOP, 0, 0, 0, 0), control, -1};
    return encode(&x, 0);
}

/* Before the loop, k 0 is loaded and block 1 runs once, its sums from zero; then the loop goes on with block 2. Behind
 * the loop, block 0 runs once more for the very last k and loads nothing. */
static void write_blocks(struct program *p)
{
    enter(p);
    int first = p->n;
    multiply(p, 1, LOADS | FIRST);
    int start = p->n;
    branch(p, PT, -1);
    int top = p->n;
    for (int k = 0; k < TURN; k++) {
        if (k == 2)
            p->at[start].target = p->n;
        multiply(p, k, LOADS);
    }
    int turn_end = p->n;
    branch(p, p->r.ready, top);
    change_stage(p, top);
    int last = p->n;
    multiply(p, 0, 0);
    add_waits(p, 0, start);
    add_waits(p, top, turn_end);
    add_reuse(p, first, start);
    add_reuse(p, top, turn_end);
    add_reuse(p, last, p->n);
    deliver(p);
    branch(p, PT, room_of(p->old));
}

const char *new_loop_write(const struct old_loop *old, struct word code[CODE_MAX], int *n)
{
    static struct program p;
    bool owned[REGISTERS];
    memset(&p, 0, sizeof p);
    p.old = old;
    memcpy(owned, old->owned, sizeof owned);
    if (!assign(old, owned, &p.r)) {
        add_idle(old, owned);
        if (!assign(old, owned, &p.r))
            return "too few registers";
    }
    write_blocks(&p);
    if (p.too_long || p.n > room_of(old))
        return "no room";
    for (int i = 0; i < p.n; i++)
        code[i] = encode(&p.at[i], i);
    *n = p.n;
    return NULL;
}
