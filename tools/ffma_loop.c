/* Writes the main loop of a compiled large FP32 kernel (sm90_tma*, families/large/kernel.inc) anew, in place:
 * registers, order, loads and waits as a Hopper partition wants them. ffma_order.c tells how registers are read; what
 * else counts is in docs/performance-log.md: a loop of four k that the first instruction cache holds, loads spread
 * evenly, one row of A kept in the operand cache while B's columns pass, sums in the register bank opposite to the
 * column's. The new loop is run on symbols, scoreboards and latencies included, before it is written. Where the
 * compiled loop is not what is expected the kernel stays as compiled, which is as right and slower. Limits: stages of
 * 16 k, a power of two of them.
 */
#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TM = 8,
    TN = 16,
    BK = 16,
    STAGES_MAX = 8,
    MARK_OFFSET = 0x100, /* of the store that marks the loop (ptx_loop_inputs) */
    TURN = 4,            /* k a turn of the loop */
    BLOCK = TM * TN,     /* FFMAs of one k */
    RZ = 255,
    PT = 7,
    NOT = 8,
    NONE = 7, /* no scoreboard */
    CODE_MAX = 4096,
    ALU_LATENCY = 6,
    FMA_LATENCY = 5,
    PREDICATE_LATENCY = 13
};

enum { /* opcodes, with the form of their operands */
       OP_FFMA = 0x223,
       OP_LDS = 0x984,
       OP_LDG = 0x981,
       OP_LDGSTS = 0xfae,
       OP_STS_UNIFORM = 0x988,
       OP_STS = 0x388,
       OP_BRA = 0x947,
       OP_VOTE = 0x806,
       OP_MOV = 0x202,
       OP_LEA_UNIFORM = 0xc11,
       OP_LEA = 0x211,
       OP_CS2R = 0x805,
       OP_IADD3 = 0x810,
       OP_IADD3_REGISTER = 0x210,
       OP_VIADD = 0x836,
       OP_IMAD = 0x824,
       OP_LOP3 = 0x812,
       OP_LOP3_REGISTER = 0x212,
       OP_SHF = 0x819,
       OP_ISETP = 0x80c,
       OP_ISETP_REGISTER = 0x20c,
       OP_PHASECHK = 0x5a7,
       OP_ARRIVE = 0x9a7,
       OP_NOP = 0x918
};

enum { GT = 4, NE = 5 };
enum { SB_B = 0, SB_A = 2, SB_PHASE = 4, SB_READ = 5 }; /* scoreboards: two for B, two for A */

/* What the kernel's name says. */
static int rows, columns, stages, along_k, shifted;
#define STAGES stages
#define A_ROW_BYTES (along_k ? 8 * BK * 4 : rows * 4) /* of one k, or, with k innermost, of eight rows of A */
#define A_BYTES (rows * BK * 4)
#define B_ROW_BYTES (columns * 4)
#define B_BYTES (BK * B_ROW_BYTES)
#define STAGE_BYTES (A_BYTES + B_BYTES)
#define EMPTY_OFFSET (8 * STAGES)

struct word {
    uint64_t lo, hi;
};

struct instruction {
    uint64_t lo, hi;
    int stall, write_barrier, read_barrier, wait, reuse, target;
};

struct kernel {
    struct word *code;
    int n, k_major;
    int mark, entry, bottom; /* instructions from `entry` to `bottom` give way */
    int inputs;              /* four registers: A, B, steps done, steps to do */
    int full, uniform;       /* the first full barrier: a register, or a uniform one; -1 */
    int result[TM][TN];      /* the registers that the code after the loop expects the sums in */
    char owned[256], predicate[8];
};

struct registers {
    int a[2][TM], quad_a[TM], b[2][TN], sum[TM][TN];
    int at_a, at_b, stage_a, unit, bar, left_bar, phase, place, index, left, limit;
    int ready, more; /* predicates; `ready` also says whether the stage goes on */
};

struct program {
    struct instruction at[CODE_MAX];
    int n;
    struct registers r;
    struct kernel *kernel;
};

static const char *refusal;

static unsigned opcode(struct word w)
{
    return (unsigned)(w.lo & 0xfff);
}
static int field_d(struct word w)
{
    return (int)(w.lo >> 16 & 255);
}
static int field_a(struct word w)
{
    return (int)(w.lo >> 24 & 255);
}
static int field_b(struct word w)
{
    return (int)(w.lo >> 32 & 255);
}
static int field_c(struct word w)
{
    return (int)(w.hi & 255);
}

/* ---- what was compiled ---- */

static int branch_to(struct word w, int at)
{
    uint64_t bits = (w.lo >> 16 & 255) | w.lo >> 34 << 8 | (w.hi & 0x3ffff) << 38;
    return at + 1 + (int)(((int64_t)(bits << 8) >> 8) * 4 / 16);
}

static int is_mark(struct word w)
{
    return (opcode(w) == OP_STS || opcode(w) == OP_STS_UNIFORM) && w.lo >> 40 == MARK_OFFSET && (w.hi >> 9 & 7) == 6;
}

/* The mark is the last store of its kind before the loop; stores of results behind it may look the same. */
static int find_loop(struct kernel *k)
{
    k->mark = k->full = k->uniform = -1;
    for (int i = 0, fmas = 0; i < k->n && fmas < BLOCK; i++) {
        fmas += opcode(k->code[i]) == OP_FFMA;
        if (is_mark(k->code[i]))
            k->mark = i;
    }
    if (k->mark < 0)
        return refusal = "no mark", 0;
    if (opcode(k->code[k->mark]) == OP_STS)
        k->full = field_a(k->code[k->mark]);
    else
        k->uniform = (int)(k->code[k->mark].hi & 63);
    k->inputs = field_b(k->code[k->mark]);
    for (int i = k->mark; i < k->n; i++) {
        int to = opcode(k->code[i]) == OP_BRA ? branch_to(k->code[i], i) : i, fmas = 0;
        for (int j = to; j < i; j++)
            fmas += opcode(k->code[j]) == OP_FFMA;
        if (to <= k->mark || fmas < BK * BLOCK)
            continue;
        k->bottom = i;
        for (k->entry = k->mark; opcode(k->code[k->entry]) != OP_LDS; k->entry++) {
        }
        return k->entry < to ? 1 : (refusal = "no loads before the loop", 0);
    }
    return refusal = "no loop", 0;
}

/* What the fragments in registers are, by the addresses they were loaded from; and so, which sum is where at the end.
 */
static int find_results(struct kernel *k)
{
    char base[256] = {0}, kind[256] = {0}; /* 1: of A, 2: of B */
    int index[256] = {0};
    base[k->inputs] = 1;
    base[k->inputs + 1] = 2;
    memset(k->result, -1, sizeof k->result);
    for (int i = k->mark + 1; i <= k->bottom; i++) {
        struct word w = k->code[i];
        int d = field_d(w), offset = (int)(w.lo >> 40);
        if (opcode(w) == OP_IMAD || opcode(w) == OP_LOP3 || opcode(w) == OP_IADD3 || opcode(w) == OP_IADD3_REGISTER ||
            opcode(w) == OP_VIADD) {
            int other = opcode(w) == OP_IADD3_REGISTER ? field_b(w) : opcode(w) == OP_VIADD ? RZ : field_c(w);
            int from = base[field_a(w)] ? field_a(w) : other;
            if (from != RZ && d != RZ)
                base[d] = base[from];
        } else if (opcode(w) == OP_LEA) {
            base[d] = base[field_b(w)];
        } else if (opcode(w) == OP_LDS) {
            if (!base[field_a(w)])
                return refusal = "a load from elsewhere", 0;
            for (int e = 0; e < 4; e++) {
                kind[d + e] = base[field_a(w)];
                index[d + e] = kind[d + e] == 2 ? offset % B_ROW_BYTES / 64 * 4 + e
                               : k->k_major     ? offset / A_ROW_BYTES
                                                : offset % A_ROW_BYTES / 128 * 4 + e;
            }
        } else if (opcode(w) == OP_FFMA) {
            int a = kind[field_a(w)] == 1 ? field_a(w) : field_b(w), b = a == field_a(w) ? field_b(w) : field_a(w);
            if (kind[a] != 1 || kind[b] != 2)
                return refusal = "an FFMA of something else", 0;
            k->result[index[a]][index[b]] = d;
            kind[d] = 0;
        }
    }
    for (int i = 0; i < TM * TN; i++)
        if (k->result[i / TN][i % TN] < 0)
            return refusal = "a sum is missing", 0;
    return 1;
}

static int names(struct word w, int quad)
{
    return field_d(w) / 4 == quad || field_a(w) / 4 == quad || field_b(w) / 4 == quad || field_c(w) / 4 == quad;
}

/* Quads that nothing names before the loop's end, and that a load fills first behind it, hold nothing while it runs. (A
 * constant may look like a name: then the quad is left alone.) */
static void find_idle(struct kernel *k)
{
    for (int quad = 0; quad < RZ / 4; quad++) {
        int first = 0;
        while (first < k->n && !names(k->code[first], quad))
            first++;
        if (first > k->bottom && first < k->n && opcode(k->code[first]) == OP_LDG &&
            (k->code[first].hi >> 9 & 7) == 6 && field_d(k->code[first]) == 4 * quad)
            memset(k->owned + 4 * quad, 1, 4);
    }
}

/* Registers and predicates that the old loop writes are free for the new one. */
static int find_owned(struct kernel *k)
{
    for (int i = k->entry; i <= k->bottom; i++) {
        struct word w = k->code[i];
        switch (opcode(w)) {
        case OP_LDS:
            for (int e = 0; e < 4; e++)
                k->owned[field_d(w) + e] = 1;
            break;
        case OP_FFMA: k->owned[field_d(w)] = k->owned[field_c(w)] = 1; break;
        case OP_ISETP:
        case OP_ISETP_REGISTER:
        case 0xc0c: /* ISETP with a uniform register */
        case OP_PHASECHK: k->predicate[w.hi >> 17 & 7] = 1; break;
        case OP_IADD3:
        case OP_IADD3_REGISTER:
        case OP_VIADD:
        case OP_IMAD:
        case OP_LOP3:
        case OP_LOP3_REGISTER:
        case OP_SHF:
        case OP_MOV:
        case OP_CS2R:
        case 0x207: /* SEL */
        case 0x807:
        case OP_LEA_UNIFORM:
        case OP_LEA:
        case 0xc02: /* MOV from a uniform register */
            if (field_d(w) != RZ)
                k->owned[field_d(w)] = 1;
            break;
        case OP_BRA:
        case OP_ARRIVE:
        case OP_NOP:
        case 0x945: /* BSSY BSYNC YIELD WARPSYNC and a cheap zero */
        case 0x941:
        case 0x946:
        case 0x948:
        case 0x435:
        case 0x835: break;
        default:
            fprintf(stderr, "ffma_loop: opcode %x\n", opcode(w));
            return refusal = "an instruction that is not known", 0;
        }
    }
    for (int i = k->mark + 1; i < k->entry; i++)
        for (int e = 0; e < 4; e++)
            if ((field_d(k->code[i]) == k->inputs + e || field_d(k->code[i]) == k->full) &&
                opcode(k->code[i]) != OP_BRA && opcode(k->code[i]) != 0x945)
                return refusal = "an input changes before the loop", 0;
    for (int e = 0; e < 4; e++)
        k->owned[k->inputs + e] = 0;
    if (k->full >= 0 && k->owned[k->full])
        return refusal = "the barrier's register changes in the loop", 0;
    return 1;
}

/* ---- registers of the new loop ---- */

static int take_quad(char owned[256])
{
    for (int r = 0; r + 3 < RZ; r += 4)
        if (owned[r] && owned[r + 1] && owned[r + 2] && owned[r + 3]) {
            memset(owned + r, 0, 4);
            return r;
        }
    refusal = "too few registers";
    return 0;
}

static int take(char owned[256], int wanted, int parity)
{
    if (wanted >= 0 && owned[wanted] && (wanted & 1) == parity) {
        owned[wanted] = 0;
        return wanted;
    }
    for (int r = 0; r < RZ; r++)
        if (owned[r] && (parity < 0 || (r & 1) == parity)) {
            owned[r] = 0;
            return r;
        }
    refusal = "too few registers";
    return 0;
}

static int take_predicate(char free_one[8])
{
    for (int p = 0; p < PT; p++)
        if (free_one[p]) {
            free_one[p] = 0;
            return p;
        }
    refusal = "too few predicates";
    return 0;
}

static void assign(const struct kernel *k, struct registers *r)
{
    char owned[256], free_one[8];
    memcpy(owned, k->owned, sizeof owned);
    memcpy(free_one, k->predicate, sizeof free_one);
    for (int i = 0; i < (k->k_major ? TM : 0); i++)
        r->quad_a[i] = take_quad(owned);
    for (int set = 0; set < 2; set++) {
        for (int i = 0; i < (k->k_major ? 0 : TM); i++)
            r->a[set][i] = i % 4 ? r->a[set][i - 1] + 1 : take_quad(owned);
        for (int j = 0; j < TN; j++)
            r->b[set][j] = j % 4 ? r->b[set][j - 1] + 1 : take_quad(owned);
    }
    /* An FFMA reads its column from one bank and its sum from the other. First those that may stay where they are. */
    for (int stay = 1; stay >= 0; stay--)
        for (int i = 0; i < TM; i++)
            for (int j = 0; j < TN; j++) {
                int was = k->result[i][j], fits = owned[was] && (was & 1) == 1 - (j & 1);
                if (stay)
                    r->sum[i][j] = fits ? take(owned, was, was & 1) : -1;
                else if (r->sum[i][j] < 0)
                    r->sum[i][j] = take(owned, -1, 1 - (j & 1));
            }
    int *control[] = {&r->at_a,  &r->at_b, &r->bar,   &r->left_bar, &r->phase,
                      &r->place, &r->left, &r->limit, &r->index,    &r->stage_a};
    for (int c = 0; c < (k->k_major ? 10 : 9); c++)
        *control[c] = take(owned, -1, -1);
    r->unit = r->index; /* the one is needed when the other is not */
    r->ready = take_predicate(free_one);
    r->more = take_predicate(free_one);
}

/* ---- instructions ---- */

#define D(x) ((uint64_t)(x) << 16)
#define A(x) ((uint64_t)(x) << 24)
#define B(x) ((uint64_t)(x) << 32)
#define IMMEDIATE(x) ((uint64_t)(uint32_t)(x) << 32)

static struct instruction *put(struct program *p, uint64_t lo, uint64_t hi)
{
    if (p->n == CODE_MAX) {
        fprintf(stderr, "ffma_loop: too long\n");
        exit(1);
    }
    p->at[p->n] = (struct instruction){lo | 0x7000, hi, 1, NONE, NONE, 0, 0, -1};
    return &p->at[p->n++];
}

static void if_predicate(struct instruction *x, int predicate)
{
    x->lo = (x->lo & ~0xf000ull) | (uint64_t)predicate << 12;
}

static struct instruction *nop(struct program *p, int wait, int stall)
{
    struct instruction *x = put(p, OP_NOP, 0);
    x->wait = wait;
    x->stall = stall;
    return x;
}
static struct instruction *move(struct program *p, int d, int b)
{
    return put(p, OP_MOV | D(d) | B(b), 0xf00);
}
static struct instruction *add(struct program *p, int d, int a, int constant)
{
    return put(p, OP_IADD3 | D(d) | A(a) | IMMEDIATE(constant), 0x7ffe0ff);
}
static struct instruction *multiply_add(struct program *p, int d, int a, int constant, int c)
{
    return put(p, OP_IMAD | D(d) | A(a) | IMMEDIATE(constant), 0x78e0200 | (uint64_t)c);
}
/* A full barrier's address. */
static struct instruction *barrier_of(struct program *p, int d, int stage)
{
    if (p->kernel->full >= 0)
        return put(p, OP_LEA | D(d) | A(stage) | B(p->kernel->full), 0x78e18ff);
    return put(p, OP_LEA_UNIFORM | D(d) | A(stage) | B(p->kernel->uniform), 0xf8e18ff);
}
static struct instruction *and_with(struct program *p, int d, int a, uint32_t constant)
{
    return put(p, OP_LOP3 | D(d) | A(a) | IMMEDIATE(constant), 0x78ec0ff);
}
static struct instruction *exclusive_or(struct program *p, int d, int a, int b)
{
    return put(p, OP_LOP3_REGISTER | D(d) | A(a) | B(b), 0x78e3cff);
}
static struct instruction *shift_left(struct program *p, int d, int a, int bits)
{
    return put(p, OP_SHF | D(d) | A(a) | IMMEDIATE(bits), 0x6ff);
}
static struct instruction *compare(struct program *p, int predicate, int how, int a, int constant)
{
    return put(p, OP_ISETP | A(a) | IMMEDIATE(constant), 0x3f00270 | (uint64_t)predicate << 17 | (uint64_t)how << 12);
}
static struct instruction *compare_registers(struct program *p, int predicate, int how, int a, int b)
{
    return put(p, OP_ISETP_REGISTER | A(a) | B(b), 0x3f00270 | (uint64_t)predicate << 17 | (uint64_t)how << 12);
}
static struct instruction *load(struct program *p, int d, int a, int offset, int barrier)
{
    struct instruction *x = put(p, OP_LDS | D(d) | A(a) | (uint64_t)offset << 40, 0xc00);
    x->write_barrier = barrier;
    return x;
}
static struct instruction *test_phase(struct program *p)
{
    struct instruction *x = put(p, OP_PHASECHK | A(p->r.bar) | B(p->r.phase), 0x800017f | (uint64_t)p->r.ready << 17);
    x->write_barrier = SB_PHASE;
    x->stall = 2;
    return x;
}
/* Every lane hands back what it has read: that orders its loads before what is stored there next, by whatever means. */
static struct instruction *arrive(struct program *p, int bar)
{
    struct instruction *x = put(p, OP_ARRIVE | D(RZ) | A(bar) | B(RZ) | (uint64_t)(EMPTY_OFFSET) << 40, 0x810003f);
    x->read_barrier = SB_READ;
    x->stall = 2;
    return x;
}
/* Whether all lanes found the stage filled. They may differ, when it fills as they look, and must not part: nothing
 * would join them again. */
static void agree(struct program *p)
{
    struct instruction *x = put(p, OP_VOTE | D(RZ), (uint64_t)p->r.ready << 17 | (uint64_t)p->r.ready << 23);
    x->wait = 1 << SB_PHASE;
    x->stall = PREDICATE_LATENCY;
}
static struct instruction *branch(struct program *p, int predicate, int target)
{
    struct instruction *x = put(p, OP_BRA, 0x3800000);
    if_predicate(x, predicate);
    x->target = target;
    x->stall = 5;
    return x;
}

/* ---- the new loop ---- */

static void load_b(struct program *p, int set, int k, int quarter)
{
    load(p, p->r.b[set][quarter * 4], p->r.at_b, k * B_ROW_BYTES + quarter * 64, SB_B + quarter / 2);
}

/* Half of one k of A, or, with k innermost, four k of one row. */
static void load_a(struct program *p, int set, int k, int part)
{
    if (p->kernel->k_major)
        load(p, p->r.quad_a[part], p->r.at_a, part * A_ROW_BYTES, SB_A + part / 4);
    else
        load(p, p->r.a[set][part * 4], p->r.at_a, k * A_ROW_BYTES + part * 128, SB_A);
}

/* Loads in place before FFMA m of block `k`, which multiplies what the block before it loaded. */
static void loads_at(struct program *p, int k, int m)
{
    static const int even[6] = {16, 32, 48, 64, 80, 96}; /* B four times, A twice */
    static const int b_first[4] = {8, 24, 40, 56}, b_then[4] = {16, 40, 64, 88};
    int set = k & 1, first = p->n;
    for (int i = 0; i < 6 && !p->kernel->k_major; i++)
        if (m == even[i]) {
            if (i < 4)
                load_b(p, set, k, i);
            else
                load_a(p, set, k, i - 4);
        }
    for (int i = 0; i < 4 && p->kernel->k_major; i++)
        if (m == (k ? b_then : b_first)[i])
            load_b(p, set, k, i);
    /* A row's registers are free once its last k is multiplied. */
    if (p->kernel->k_major && k == 0 && m && m % TN == 0)
        load_a(p, 0, 0, m / TN - 1);
    if (p->kernel->k_major && k == 1 && m == 1)
        load_a(p, 0, 0, TM - 1);
    if (k == TURN - 1 || (k == 1 && m == 1))
        for (; first < p->n; first++)
            p->at[first].read_barrier = SB_READ;
}

/* Addresses for the next turn, once the last loads have read them, and whether there is one in this stage. */
static void advance_at(struct program *p, int m)
{
    if (m == 104) {
        struct instruction *x = add(p, p->r.at_b, p->r.at_b, TURN * B_ROW_BYTES);
        x->wait = 1 << SB_READ;
    }
    if (m == 106 && !p->kernel->k_major)
        add(p, p->r.at_a, p->r.at_a, TURN * A_ROW_BYTES);
    if (m == 40 && p->kernel->k_major)
        add(p, p->r.unit, p->r.unit, 16);
    if (m == 106 && p->kernel->k_major)
        exclusive_or(p, p->r.at_a, p->r.stage_a, p->r.unit);
    if (m == 111)
        compare_registers(p, p->r.ready, NE, p->r.at_b, p->r.limit);
}

enum { LOADS = 1, FIRST = 2 };

/* FFMAs of one k: block `k` of a turn takes the k before. The first ones start from zero. */
static void multiply(struct program *p, int k, int how)
{
    int loads = how & LOADS;
    int set = ~k & 1;
    for (int m = 0; m < BLOCK; m++) {
        if (loads)
            loads_at(p, k, m);
        if (loads && k == TURN - 1)
            advance_at(p, m);
        int i = m / TN, j = i & 1 ? TN - 1 - m % TN : m % TN;
        int a = p->kernel->k_major ? p->r.quad_a[i] + (k + TURN - 1) % TURN : p->r.a[set][i];
        put(p, OP_FFMA | D(p->r.sum[i][j]) | A(a) | B(p->r.b[set][j]), (uint64_t)(how & FIRST ? RZ : p->r.sum[i][j]));
    }
}

static void place_in_ring(struct program *p)
{
    int log2_stages = 0;
    while (1 << log2_stages < STAGES)
        log2_stages++;
    and_with(p, p->r.index, p->r.place, STAGES - 1);
    /* The parity of the round, in the topmost bit. */
    shift_left(p, p->r.phase, p->r.place, 31 - log2_stages)->stall = 5;
    barrier_of(p, p->r.bar, p->r.index);
    and_with(p, p->r.phase, p->r.phase, 1u << 31);
    multiply_add(p, p->r.at_a, p->r.index, STAGE_BYTES, p->kernel->inputs)->wait = 1 << SB_READ;
    multiply_add(p, p->r.at_b, p->r.index, STAGE_BYTES, p->kernel->inputs + 1);
    if (p->kernel->k_major) {
        multiply_add(p, p->r.stage_a, p->r.index, STAGE_BYTES, p->kernel->inputs);
        move(p, p->r.unit, RZ);
    }
    nop(p, 0, 2);
}

static void enter(struct program *p)
{
    struct registers *r = &p->r;
    nop(p, 63, 15);
    move(p, r->place, p->kernel->inputs + 2);
    add(p, r->left, p->kernel->inputs + 3, -1)->stall = ALU_LATENCY;
    place_in_ring(p);
    compare(p, r->more, GT, r->left, 0);
    move(p, r->left_bar, r->bar)->stall = 2;
    add(p, r->limit, r->at_b, B_BYTES);
    for (int i = 0; i < (p->kernel->k_major ? TM : 2); i++)
        load_a(p, 0, 0, i);
    for (int i = 0; i < 4; i++)
        load_b(p, 0, 0, i);
    nop(p, 1 << SB_A | 2 << SB_A, PREDICATE_LATENCY); /* one row is read again */
}

/* Hands a stage back, takes the next one. */
static void change_stage(struct program *p, int top)
{
    struct registers *r = &p->r;
    arrive(p, r->left_bar)->wait = 1 << SB_B | 2 << SB_B | 1 << SB_A | 2 << SB_A;
    int leave = p->n;
    branch(p, NOT | r->more, -1);
    add(p, r->place, r->place, 1)->stall = ALU_LATENCY;
    place_in_ring(p);
    add(p, r->left, r->left, -1);
    test_phase(p);
    add(p, r->limit, r->at_b, B_BYTES);
    move(p, r->left_bar, r->bar)->stall = 2;
    compare(p, r->more, GT, r->left, 0);
    agree(p);
    branch(p, r->ready, top);
    test_phase(p);
    agree(p);
    branch(p, NOT | r->ready, p->n - 2);
    branch(p, PT, top);
    p->at[leave].target = p->n;
}

/* Sums to the registers in which the compiler's code wants them. */
static void deliver(struct program *p)
{
    int from[256], readers[256] = {0}, left = 0, spare = p->r.index;
    memset(from, -1, sizeof from);
    nop(p, 1 << SB_READ, ALU_LATENCY);
    for (int i = 0; i < TM * TN; i++) {
        int to = p->kernel->result[i / TN][i % TN], is = p->r.sum[i / TN][i % TN];
        if (to != is) {
            from[to] = is;
            ++readers[is];
            ++left;
        }
    }
    while (left) {
        int moved = 0;
        for (int r = 0; r < RZ; r++)
            if (from[r] >= 0 && !readers[r]) {
                move(p, r, from[r]);
                --readers[from[r]];
                from[r] = -1;
                --left;
                moved = 1;
            }
        for (int r = 0; r < RZ && !moved; r++)
            if (from[r] >= 0) { /* a ring of moves: open it */
                move(p, spare, r)->stall = ALU_LATENCY;
                for (int t = 0; t < RZ; t++)
                    if (from[t] == r)
                        from[t] = spare;
                readers[spare] = readers[r];
                readers[r] = 0;
                moved = 1;
            }
    }
    nop(p, 0, 15);
}

static int is_fma(const struct instruction *x)
{
    return (x->lo & 0xfff) == OP_FFMA;
}

/* The wait that each FFMA and load owes, by going through the loop as it will run; then the operands worth keeping. */
static void add_waits(struct program *p, int top, int end)
{
    int under_way[256] = {0}; /* 1 + scoreboard of the load that fills a register */
    for (int pass = 0; pass < 2; pass++)
        for (int n = top; n < end; n++) {
            struct instruction *x = &p->at[n];
            int mask = 0, field[3] = {(int)(x->lo >> 24 & 255), (int)(x->lo >> 32 & 255), (int)(x->hi & 255)};
            for (int f = 0; f < 3 && is_fma(x); f++)
                if (under_way[field[f]])
                    mask |= 1 << (under_way[field[f]] - 1);
            x->wait |= mask;
            for (int r = 0; r < 256; r++)
                if (under_way[r] && (x->wait >> (under_way[r] - 1) & 1))
                    under_way[r] = 0;
            if ((x->lo & 0xfff) == OP_LDS)
                for (int e = 0; e < 4; e++)
                    under_way[(x->lo >> 16 & 255) + e] = 1 + x->write_barrier;
        }
}

static void add_reuse(struct program *p, int top, int end)
{
    for (int n = top; n < end; n++)
        for (int slot = 0; slot < 2 && is_fma(&p->at[n]); slot++) {
            int shift = slot ? 32 : 24, r = (int)(p->at[n].lo >> shift & 255);
            for (int q = n + 1; q < end; q++) {
                const struct instruction *x = &p->at[q];
                int other = (int)(x->lo >> shift & 255), d = (int)(x->lo >> 16 & 255);
                if ((x->lo & 0xfff) == OP_LDS && r >= d && r < d + 4)
                    break;
                if (is_fma(x) && (other & 1) == (r & 1)) {
                    p->at[n].reuse |= (other == r) << slot;
                    break;
                }
            }
        }
}

static int write_loop(struct program *p)
{
    assign(p->kernel, &p->r);
    if (refusal) {
        refusal = NULL;
        find_idle(p->kernel);
        assign(p->kernel, &p->r);
    }
    if (refusal)
        return 0;
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
    branch(p, PT, p->kernel->bottom + 1 - p->kernel->entry);
    return p->n <= p->kernel->bottom + 1 - p->kernel->entry ? 1 : (refusal = "no room", 0);
}

static struct word encode(const struct instruction *x, int at)
{
    uint64_t control = (uint64_t)x->stall | (uint64_t)(x->stall <= 4 || is_fma(x)) << 4 |
                       (uint64_t)x->write_barrier << 5 | (uint64_t)x->read_barrier << 8 | (uint64_t)x->wait << 11 |
                       (uint64_t)x->reuse << 17;
    struct word w = {x->lo, x->hi | control << 41};
    if (x->target >= 0) {
        uint64_t bits = (uint64_t)((int64_t)(x->target - at - 1) * 4) & ((1ull << 56) - 1);
        w.lo |= (bits & 255) << 16 | bits >> 8 << 34;
        w.hi |= bits >> 38;
    }
    return w;
}

/* ---- the proof: one lane runs the encoded loop on symbols ---- */

struct machine {
    uint64_t value[256];
    int predicate[8], filling[256], reading[256], phase_asked; /* scoreboards under way, as bits */
    long ready[256], predicate_ready[8], set[8], now;          /* set: when each scoreboard was last counted up */
    int holds[STAGES_MAX]; /* the step whose data a stage holds, -1 when it was handed back */
    int next, arrived, refuse;
    const char *wrong;
};

enum { BASE_A = 0x430, FULL = 0x30400 };
#define BASE_B (BASE_A + A_BYTES - 0x10)

static uint64_t mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * 0x9E3779B97F4A7C15ull;
    return h ^ h >> 29;
}
static uint64_t product(uint64_t x, uint64_t y)
{
    return mix(x < y ? x : y, x < y ? y : x);
}

static uint64_t element(const struct machine *s, uint32_t address)
{
    int stage = (int)((address - 0x400) / STAGE_BYTES);
    return mix(address, (uint64_t)(stage < STAGES ? s->holds[stage] : -1));
}

static void check_registers(struct machine *s, struct word w, const int *reads, int count, int d, int width)
{
    unsigned wait = (unsigned)(w.hi >> 52) & 63;
    for (int r = 0; r < 256; r++) {
        s->filling[r] &= ~(int)wait;
        s->reading[r] &= ~(int)wait;
    }
    s->phase_asked &= !(wait >> SB_PHASE & 1);
    for (int b = 0; b < 6; b++) /* counted from the second cycle on */
        if ((wait >> b & 1) && s->set[b] + 2 > s->now)
            s->wrong = "a wait comes too soon to be seen";
    s->set[w.hi >> 46 & 7] = s->set[w.hi >> 49 & 7] = s->now;
    for (int i = 0; i < count; i++)
        if (reads[i] != RZ && (s->filling[reads[i]] || s->ready[reads[i]] > s->now))
            s->wrong = "a register is read too early";
    for (int e = 0; e < width && d != RZ; e++)
        if (s->filling[d + e] || s->reading[d + e])
            s->wrong = "a register is written too early";
    int predicate = (int)(w.lo >> 12 & 7);
    if (predicate != PT && s->predicate_ready[predicate] > s->now)
        s->wrong = "a predicate is read too early";
    if (s->phase_asked && (opcode(w) == OP_BRA || opcode(w) == OP_PHASECHK))
        s->wrong = "a phase is not waited for";
}

static void run_load(struct machine *s, struct word w)
{
    int d = field_d(w), a = field_a(w), barrier = (int)(w.hi >> 46) & 7, read = (int)(w.hi >> 49) & 7;
    uint32_t address = (uint32_t)(s->value[a] + (w.lo >> 40));
    for (int e = 0; e < 4; e++) {
        s->value[d + e] = element(s, address + 4 * (uint32_t)e);
        s->filling[d + e] |= 1 << barrier;
    }
    s->reading[a] |= 1 << (read == NONE ? barrier : read);
}

static void run_barrier(struct machine *s, struct word w)
{
    uint32_t bar = (uint32_t)s->value[field_a(w)];
    if (opcode(w) == OP_PHASECHK) {
        uint32_t phase = (uint32_t)s->value[field_b(w)];
        if (bar != FULL + 8u * (unsigned)(s->next % STAGES) || phase != (uint32_t)(s->next / STAGES & 1) << 31)
            s->wrong = "the wrong phase is asked for";
        int yes = ++s->refuse % 3 != 0;
        s->predicate[w.hi >> 17 & 7] = yes;
        s->phase_asked = 1;
        if (yes) {
            s->holds[s->next % STAGES] = s->next;
            ++s->next;
        }
        return;
    }
    s->reading[field_a(w)] |= 1 << (w.hi >> 49 & 7);
    if (bar != FULL + 8u * (unsigned)(s->arrived % STAGES) || w.lo >> 40 != (uint64_t)EMPTY_OFFSET)
        s->wrong = "the wrong stage is handed back";
    for (int r = 0; r < 256; r++)
        if (s->filling[r])
            s->wrong = "a stage is handed back while it is read";
    s->holds[s->arrived++ % STAGES] = -1;
}

/* Integer instructions. */
static void run_integer(struct machine *s, struct word w)
{
    uint32_t a = (uint32_t)s->value[field_a(w)], b = (uint32_t)s->value[field_b(w)], c = (uint32_t)s->value[field_c(w)];
    uint32_t constant = (uint32_t)(w.lo >> 32), x = 0;
    int d = field_d(w);
    switch (opcode(w)) {
    case OP_MOV:
        s->value[d] = s->value[field_b(w)];
        s->ready[d] = s->now + ALU_LATENCY;
        return;
    case OP_LEA_UNIFORM: x = (a << 3) + FULL; break;
    case OP_LEA: x = (a << 3) + b; break;
    case OP_IADD3: x = a + constant; break;
    case OP_IMAD: x = a * constant + c; break;
    case OP_LOP3: x = a & constant; break;
    case OP_LOP3_REGISTER: x = a ^ b; break;
    case OP_SHF: x = a << constant; break;
    case OP_ISETP:
    case OP_ISETP_REGISTER: {
        int how = (int)(w.hi >> 12) & 7, p = (int)(w.hi >> 17) & 7;
        int32_t y = opcode(w) == OP_ISETP ? (int32_t)constant : (int32_t)b;
        s->predicate[p] = how == NE ? (int32_t)a != y : (int32_t)a > y;
        s->predicate_ready[p] = s->now + PREDICATE_LATENCY;
        return;
    }
    default: s->wrong = "an instruction that is not known";
    }
    s->value[d] = x;
    s->ready[d] = s->now + ALU_LATENCY;
}

static int step(struct machine *s, const struct word *code, int at)
{
    struct word w = code[at];
    unsigned op = opcode(w);
    int guard = (int)(w.lo >> 12) & 15, on = (guard & 7) == PT || s->predicate[guard & 7] == !(guard & NOT);
    int reads[3] = {RZ, RZ, RZ}, has_b = op == OP_FFMA || op == OP_LEA || op == OP_MOV || op == OP_LOP3_REGISTER ||
                                         op == OP_ISETP_REGISTER || op == OP_PHASECHK;
    int sets =
        op != OP_BRA && op != OP_VOTE && op != OP_NOP && op != OP_ISETP && op != OP_ISETP_REGISTER && op != OP_PHASECHK;
    if (op != OP_MOV && op != OP_BRA && op != OP_VOTE && op != OP_NOP)
        reads[0] = field_a(w);
    if (has_b)
        reads[1] = field_b(w);
    if (op == OP_FFMA || op == OP_IMAD)
        reads[2] = field_c(w);
    check_registers(s, w, reads, 3, sets ? field_d(w) : RZ, op == OP_LDS ? 4 : 1);
    int next = at + 1;
    if (op == OP_BRA && on)
        next = branch_to(w, at);
    else if (op == OP_FFMA) {
        s->value[field_d(w)] = mix(s->value[field_c(w)], product(s->value[field_a(w)], s->value[field_b(w)]));
        s->ready[field_d(w)] = s->now + FMA_LATENCY;
    } else if (op == OP_LDS)
        run_load(s, w);
    else if (on && (op == OP_PHASECHK || op == OP_ARRIVE))
        run_barrier(s, w);
    else if (op == OP_VOTE) /* of one lane */
        s->predicate_ready[w.hi >> 17 & 7] = s->now + PREDICATE_LATENCY;
    else if (on && op != OP_BRA && op != OP_NOP)
        run_integer(s, w);
    s->value[RZ] = 0;
    s->now += (long)(w.hi >> 41 & 15);
    return next;
}

/* What a sum must come to: every k in turn. */
static uint64_t expected(const struct kernel *kernel, int i, int j, int done, int steps)
{
    uint64_t sum = 0;
    for (int k = done * BK; k < (done + steps) * BK; k++) {
        uint32_t stage = (uint32_t)(k / BK % STAGES * STAGE_BYTES), row = (uint32_t)(k % BK);
        uint32_t a = kernel->k_major ? ((BASE_A + stage) ^ row / 4 * 16) + (uint32_t)i * A_ROW_BYTES + row % 4 * 4
                                     : BASE_A + stage + row * A_ROW_BYTES + (uint32_t)(i / 4 * 128 + i % 4 * 4);
        uint32_t b = BASE_B + stage + row * B_ROW_BYTES + (uint32_t)(j / 4 * 64 + j % 4 * 4);
        uint64_t of_step = (uint64_t)(k / BK);
        sum = mix(sum, product(mix(a, of_step), mix(b, of_step)));
    }
    return sum;
}

static int prove(const struct kernel *kernel, const struct word *code, int n, int done, int steps)
{
    static struct machine s;
    memset(&s, 0, sizeof s);
    memset(s.holds, -1, sizeof s.holds);
    for (int r = 0; r < RZ; r++)
        s.value[r] = mix(3, (uint64_t)r);
    s.value[kernel->inputs] = BASE_A;
    s.value[kernel->inputs + 1] = BASE_B;
    s.value[kernel->inputs + 2] = (uint64_t)done;
    s.value[kernel->inputs + 3] = (uint64_t)steps;
    if (kernel->full >= 0)
        s.value[kernel->full] = FULL;
    s.holds[done % STAGES] = done;
    s.next = done + 1;
    s.arrived = done;
    for (int b = 0; b < 8; b++)
        s.set[b] = -2;
    int at = 0, room = kernel->bottom + 1 - kernel->entry;
    for (long left = 4096L * (steps + 2); at != room && !s.wrong; left--)
        if (at < 0 || at >= n || !left)
            s.wrong = "it runs astray";
        else
            at = step(&s, code, at);
    if (!s.wrong && (s.arrived != done + steps || s.next != done + steps))
        s.wrong = "stages are left over";
    for (int i = 0; i < TM && !s.wrong; i++)
        for (int j = 0; j < TN; j++)
            if (s.value[kernel->result[i][j]] != expected(kernel, i, j, done, steps))
                s.wrong = "a sum is another";
    if (s.wrong)
        fprintf(stderr, "ffma_loop: the new loop is wrong (%d done, %d steps): %s\n", done, steps, s.wrong);
    return !s.wrong;
}

/* ---- what the compiler noted of the old loop ---- */

/* A barrier's instruction, as .nv.info lists them for tools that watch barriers (compute-sanitizer): its address in the
 * code and that of its barrier, the sum of a register, a uniform one and a constant. */
struct note {
    uint32_t at, base;
    int32_t offset;
    uint8_t kind, known, uniform, stride;
};

enum { NOTES = 0x39, SIZED = 4, NOTE_ARRIVE = 1, NOTE_WAIT = 10, NO_UNIFORM = 63, NOTES_MAX = 256 };

static struct note *find_notes(unsigned char *info, size_t size, int *count)
{
    for (size_t i = 0; i + 4 <= size;) {
        size_t bytes = info[i] == SIZED ? info[i + 2] | (size_t)info[i + 3] << 8 : 0;
        if (info[i] == SIZED && info[i + 1] == NOTES) {
            *count = (int)(bytes / sizeof(struct note));
            return (struct note *)(info + i + 4);
        }
        i += 4 + bytes;
    }
    *count = 0;
    return NULL;
}

static int inside(const struct kernel *k, int at)
{
    return at >= k->entry && at <= k->bottom;
}

/* Where the old loop waited when a stage was not filled: code behind it, to which nothing leads any more. */
static int was_waited_for(const struct kernel *k, const struct note *x)
{
    int at = (int)(x->at / 16);
    for (int i = at + 1; x->kind == NOTE_WAIT && !inside(k, at) && i < at + 4 && i < k->n; i++)
        if (opcode(k->code[i]) == OP_BRA && inside(k, branch_to(k->code[i], i)))
            return 1;
    return 0;
}

static int by_place(const void *x, const void *y)
{
    const struct note *a = x, *b = y;
    return (a->at > b->at) - (a->at < b->at);
}

/* The old loop's notes become the new one's: it has as many such instructions. */
static int write_notes(const struct kernel *k, const struct word *code, int n, struct note *written, int count)
{
    static struct note notes[NOTES_MAX];
    int next = 0;
    if (count < 1 || count > NOTES_MAX)
        return refusal = "the compiler noted no barriers, or too many", 0;
    memcpy(notes, written, (size_t)count * sizeof *notes);
    for (int i = 0; i < n; i++) {
        if (opcode(code[i]) != OP_ARRIVE && opcode(code[i]) != OP_PHASECHK)
            continue;
        while (next < count && !inside(k, (int)(notes[next].at / 16)) && !was_waited_for(k, &notes[next]))
            next++;
        if (next == count)
            return refusal = "the compiler noted fewer barriers", 0;
        notes[next] = (struct note){.at = (uint32_t)(k->entry + i) * 16,
                                    .base = (uint32_t)field_a(code[i]),
                                    .offset = (int32_t)(code[i].lo >> 40),
                                    .kind = opcode(code[i]) == OP_ARRIVE ? NOTE_ARRIVE : NOTE_WAIT,
                                    .known = notes[next].known,
                                    .uniform = NO_UNIFORM,
                                    .stride = notes[next].stride};
        next++;
    }
    for (; next < count; next++)
        if (inside(k, (int)(notes[next].at / 16)))
            return refusal = "the compiler noted more barriers", 0;
    qsort(notes, (size_t)count, sizeof *notes, by_place);
    memcpy(written, notes, (size_t)count * sizeof *notes);
    return 1;
}

/* ---- files ---- */

/* Warps that move or copy operands take the issue from those that multiply: they get it over in runs. As compiled they
 * leave three cycles between any two loads or stores, or two copies from memory to shared memory; before the first copy
 * of a run an address may have been made, so the stall behind that one stays. */
static void gather_moves(struct word *code, int n, int copies)
{
    for (int i = 1; i < n; i++) {
        const uint64_t control = code[i].hi >> 41;
        const int alone =
            (control >> 5 & 7) == NONE && (control >> 8 & 7) == NONE; /* no scoreboard to be set in time */
        const int move = copies ? opcode(code[i]) == OP_LDGSTS && opcode(code[i - 1]) == OP_LDGSTS
                                : opcode(code[i]) == OP_LDS || opcode(code[i]) == OP_STS;
        if (move && (control & 15) == 4)
            code[i].hi = (code[i].hi & ~((uint64_t)15 << 41)) | (uint64_t)(alone ? 1 : 2) << 41;
    }
}

/* 0 when the kernel stays as compiled. */
static int rewrite(struct word *code, int n, const char *name, struct note *notes, int count)
{
    static struct kernel k;
    static struct program p;
    static struct word new_code[CODE_MAX];
    memset(&k, 0, sizeof k);
    memset(&p, 0, sizeof p);
    k.code = code;
    k.n = n;
    shifted = !strncmp(name, "sm90_tmashift_", 14);
    along_k = k.k_major = !strncmp(name, "sm90_tmak_", 10) || (!strcmp(name + strlen(name) - 3, "_nn") && !shifted);
    refusal = NULL;
    const char *tile = strstr(name, "_f32_");
    if (!tile || sscanf(tile, "_f32_%dx%dx16_s%d", &rows, &columns, &stages) != 3 || stages < 1 ||
        stages > STAGES_MAX || (stages & (stages - 1)))
        refusal = "another tile";
    p.kernel = &k;
    if (refusal || !find_loop(&k) || !find_results(&k) || !find_owned(&k) || !write_loop(&p)) {
        fprintf(stderr, "ffma_loop: %s stays as compiled: %s\n", name, refusal);
        return 0;
    }
    for (int i = 0; i < p.n; i++)
        new_code[i] = encode(&p.at[i], i);
    static const int done[] = {0, 5, 7, 14, 1000}, steps[] = {1, 3, 20, 2, 9};
    for (int i = 0; i < 5; i++)
        if (!prove(&k, new_code, p.n, done[i], steps[i]))
            exit(1);
    if (!write_notes(&k, new_code, p.n, notes, count)) {
        fprintf(stderr, "ffma_loop: %s stays as compiled: %s\n", name, refusal);
        return 0;
    }
    int room = k.bottom + 1 - k.entry;
    for (int i = 0; i < room; i++)
        code[k.entry + i] =
            i < p.n ? new_code[i] : encode(&(struct instruction){OP_NOP | 0x7000, 0, 1, NONE, NONE, 0, 0, -1}, i);
    if (strncmp(name, "sm90_tmapair_", 13))
        gather_moves(code, k.mark, !shifted);
    /* The mark has served. */
    code[k.mark] =
        encode(&(struct instruction){OP_NOP | 0x7000, 0, 15, NONE, NONE, (int)(code[k.mark].hi >> 52) & 63, 0, -1}, 0);
    printf("%s: a loop of %d instructions\n", name, p.n);
    return 1;
}

/* A compiled kernel, read whole; NULL when it cannot be. */
static unsigned char *read_image(const char *name, size_t *size)
{
    FILE *file = fopen(name, "rb");
    if (!file || fseek(file, 0, SEEK_END))
        return NULL;
    *size = (size_t)ftell(file);
    rewind(file);
    unsigned char *image = malloc(*size);
    if (image && fread(image, 1, *size, file) != *size) {
        free(image);
        image = NULL;
    }
    fclose(file);
    return image;
}

int main(int argc, char **argv)
{
    size_t size = 0;
    int strict = argc > 1 && !strcmp(argv[1], "--strict"), done = 1;
    const char *path = argc == 2 + strict ? argv[1 + strict] : NULL;
    unsigned char *image = path ? read_image(path, &size) : NULL;
    if (!image || size < sizeof(Elf64_Ehdr) || memcmp(image, ELFMAG, SELFMAG)) {
        fprintf(stderr, "usage: ffma_loop [--strict] CUBIN, which is rewritten in place; strict: or fails\n");
        return 2;
    }
    const Elf64_Ehdr *h = (const Elf64_Ehdr *)image;
    const Elf64_Shdr *sections = (const Elf64_Shdr *)(image + h->e_shoff);
    const char *names = (const char *)image + sections[h->e_shstrndx].sh_offset;
    for (int i = 0; i < h->e_shnum; i++) {
        const char *name = names + sections[i].sh_name;
        struct note *notes = NULL;
        int count = 0;
        if (strncmp(name, ".text.sm90_tma", 14))
            continue;
        for (int j = 0; j < h->e_shnum && !notes; j++)
            if (!strncmp(names + sections[j].sh_name, ".nv.info.", 9) &&
                !strcmp(names + sections[j].sh_name + 9, name + 6))
                notes = find_notes(image + sections[j].sh_offset, sections[j].sh_size, &count);
        done &= rewrite((struct word *)(image + sections[i].sh_offset), (int)(sections[i].sh_size / 16), name + 6,
                        notes, count);
    }
    if (strict && !done)
        return 1;
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(image, 1, size, file) != size || fclose(file)) {
        perror(path);
        return 1;
    }
    free(image);
    return 0;
}
