/* Reorders the FFMAs and shared loads of a compiled sm_90 kernel so that few FFMAs meet a busy register port, in place.
 * A Hopper partition reads one register a cycle from each of two banks (register number even or odd); an FFMA reads
 * three. One FFMA a cycle needs operand reuse: one register a bank and operand slot stays cached while the warp keeps
 * issuing. The compiler's order wastes that. Only what lies between two other instructions or labels changes places;
 * dependences, scoreboard waits and latencies are kept, and the new order is proved to compute the same values.
 */
#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    OP_FFMA = 0x223,
    OP_LDS = 0x984,
    OP_LDGSTS = 0xfae,
    OP_BAR = 0xb1d,
    OP_BRA = 0x947,
    OP_BRX = 0x949,
    OP_BSSY = 0x945,
    OP_CALL = 0x944,
    OP_UBRA = 0x547,
    REGISTERS = 256,
    NONE = 255,
    BARRIERS = 6,
    RUN_MAX = 4096,
    RUN_MIN = 6,
    FMA_LATENCY = 5,    /* issue slots between an FFMA and one that reads its result */
    ANCHOR_LATENCY = 8, /* the same for integer instructions before a run */
    BAR_LATENCY = 8,    /* the same between a barrier and a load: the warp goes on for some cycles */
    BAR_SEEN = 6,       /* what the compiler keeps between them at least */
    LOAD_TAIL = 24,     /* loads stay this far from the end of a run: what follows may change their address */
    WINDOW = 2          /* cycles an FFMA's operand reads may lag its issue */
};

struct word {
    uint64_t lo, hi;
};

struct node {
    struct word code;
    int load;     /* 1: a shared load, 0: an FFMA */
    int d, width; /* registers written */
    int a, b, c;  /* registers read; a load reads its address, a */
    int home;     /* position as compiled */
};

struct edge {
    int to, gap, next;
};

struct run {
    struct node node[RUN_MAX];
    int n, first_edge[RUN_MAX], waits_for[RUN_MAX], ready[RUN_MAX];
    int loaded[RUN_MAX]; /* slot at which loads from before the run are likely there */
    struct edge *edge;
    int edges, edge_room;
};

struct plan {
    int order[RUN_MAX], swapped[RUN_MAX], stall[RUN_MAX], n;
    double cost;
};

static unsigned seed_state = 1;
static unsigned dice(void)
{
    return seed_state = seed_state * 1664525u + 1013904223u, seed_state >> 8;
}

static unsigned opcode(struct word w)
{
    return (unsigned)(w.lo & 0xfff);
}
static int stall_of(struct word w)
{
    int s = (int)(w.hi >> 41) & 15;
    return s ? s : 1;
}
static unsigned wait_of(struct word w)
{
    return (unsigned)(w.hi >> 52) & 63;
}
static unsigned write_barrier(struct word w)
{
    return (unsigned)(w.hi >> 46) & 7;
}
static unsigned read_barrier(struct word w)
{
    return (unsigned)(w.hi >> 49) & 7;
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

static int is_fma(struct word w)
{
    uint64_t modifiers = w.hi & ((1ull << 41) - 1) & ~0xffull;
    return opcode(w) == OP_FFMA && (w.lo >> 12 & 15) == 7 && w.lo >> 40 == 0 && modifiers == 0 &&
           write_barrier(w) == 7 && read_barrier(w) == 7 && field_a(w) != NONE && field_b(w) != NONE &&
           field_c(w) != NONE && field_d(w) != NONE;
}

/* LDS.128 from [register + constant], no predicate, counted on a scoreboard. */
static int is_load(struct word w)
{
    return opcode(w) == OP_LDS && (w.lo >> 12 & 15) == 7 && field_a(w) != NONE && field_b(w) == 0 &&
           (w.hi >> 9 & 7) == 6 && write_barrier(w) < BARRIERS;
}

static struct node decode(struct word w, int home)
{
    struct node x = {w, is_load(w), field_d(w), 1, field_a(w), field_b(w), field_c(w), home};
    if (x.load) {
        x.width = 4;
        x.b = x.c = -1;
    }
    return x;
}

static int writes(const struct node *x, int r)
{
    return r >= x->d && r < x->d + x->width;
}
static int overlap(const struct node *x, const struct node *y)
{
    return x->d < y->d + y->width && y->d < x->d + x->width;
}
static int reads_any(const struct node *x, const struct node *y) /* x reads what y writes */
{
    return writes(y, x->a) || (x->b >= 0 && writes(y, x->b)) || (x->c >= 0 && writes(y, x->c));
}

static int gap(const struct node *i, const struct node *j)
{
    if (i->load && j->load)
        return 1; /* loads keep their order */
    if (reads_any(j, i))
        return i->load ? 1 : FMA_LATENCY;
    if (overlap(i, j))
        return i->load ? 1 : FMA_LATENCY;
    if (reads_any(i, j))
        return 1;
    return 0;
}

static void link_nodes(struct run *r)
{
    r->edges = 0;
    for (int i = 0; i < r->n; ++i) {
        r->first_edge[i] = -1;
        r->waits_for[i] = 0;
    }
    for (int j = 0; j < r->n; ++j)
        for (int i = 0; i < j; ++i) {
            int g = gap(&r->node[i], &r->node[j]);
            if (!g)
                continue;
            if (r->edges == r->edge_room) {
                r->edge_room = r->edge_room ? 2 * r->edge_room : 1 << 16;
                r->edge = realloc(r->edge, (size_t)r->edge_room * sizeof *r->edge);
                if (!r->edge)
                    exit(1);
            }
            r->edge[r->edges] = (struct edge){j, g, r->first_edge[i]};
            r->first_edge[i] = r->edges++;
            ++r->waits_for[j];
        }
}

struct ports {
    int cached[2][2], free_at[2], cycle;
};

/* Cycles lost if an FFMA with these operands goes out next; updates the ports when `commit`. */
static int port_step(struct ports *p, int a, int b, int c, int d, int commit, int *new_reads)
{
    struct ports q = *p;
    int operand[2] = {a, b}, need[2] = {0, 0}, late = 0;
    ++q.cycle;
    for (int slot = 0; slot < 2; ++slot) {
        int bank = operand[slot] & 1;
        if (q.cached[slot][bank] != operand[slot])
            ++need[bank];
        q.cached[slot][bank] = operand[slot];
    }
    ++need[c & 1];
    *new_reads = need[0] + need[1];
    for (int slot = 0; slot < 2; ++slot)
        if (q.cached[slot][d & 1] == d)
            q.cached[slot][d & 1] = -1;
    for (int bank = 0; bank < 2; ++bank) {
        if (q.free_at[bank] < q.cycle)
            q.free_at[bank] = q.cycle;
        q.free_at[bank] += need[bank];
        if (q.free_at[bank] - q.cycle - WINDOW > late)
            late = q.free_at[bank] - q.cycle - WINDOW;
    }
    q.cycle += late;
    int backlog = q.free_at[0] + q.free_at[1] - 2 * q.cycle;
    if (commit)
        *p = q;
    return late * 8 + (backlog > 2 ? backlog - 2 : 0);
}

/* A load brings registers new values: what is cached of the old ones is of no use. */
static void ports_load(struct ports *p, int d, int width)
{
    ++p->cycle;
    for (int slot = 0; slot < 2; ++slot)
        for (int bank = 0; bank < 2; ++bank)
            if (p->cached[slot][bank] >= d && p->cached[slot][bank] < d + width)
                p->cached[slot][bank] = -1;
}

static void ports_reset(struct ports *p)
{
    memset(p, 0, sizeof *p);
    memset(p->cached, -1, sizeof p->cached);
}

struct knobs {
    int spacing, load_slots;
    double evict, age, jitter, patience;
};

/* Scoreboards during a schedule: a wait ends when all loads counted on the board so far are there, the latest too. */
struct boards {
    int issued[BARRIERS], cleared[BARRIERS], ready[BARRIERS]; /* loads counted, and up to which they were waited for */
    int needs[RUN_MAX][BARRIERS];                             /* of each node: the last such load, 0: none */
};

static int board_wait(const struct boards *b, int node, int now)
{
    int wait = 0;
    for (int k = 0; k < BARRIERS; ++k)
        if (b->needs[node][k] > b->cleared[k] && b->ready[k] - now > wait)
            wait = b->ready[k] - now;
    return wait;
}

/* One greedy schedule. Returns 0 where it got stuck. */
static int schedule(const struct run *r, const struct knobs *k, struct plan *out)
{
    static int left[RUN_MAX], ready[RUN_MAX], loaded[RUN_MAX], open[RUN_MAX];
    int uses[REGISTERS] = {0}, opens = 0, slot = 0, last_load = -1000, done = 0, waited = 0;
    static struct boards boards;
    struct ports p;
    ports_reset(&p);
    memset(&boards, 0, sizeof boards);
    memcpy(left, r->waits_for, sizeof left);
    memcpy(ready, r->ready, sizeof ready);
    memcpy(loaded, r->loaded, sizeof loaded);
    for (int i = 0; i < r->n; ++i) {
        if (!left[i])
            open[opens++] = i;
        if (!r->node[i].load) {
            ++uses[r->node[i].a];
            ++uses[r->node[i].b];
        }
    }
    out->n = r->n;
    while (done < r->n) {
        int best = -1, best_swap = 0;
        double best_score = 1e30;
        for (int o = 0; o < opens; ++o) {
            int i = open[o];
            const struct node *x = &r->node[i];
            if (ready[i] > slot)
                continue;
            double base = k->age * (x->home - done) + k->jitter * (dice() & 255) / 255.0;
            if (x->load) {
                int due = x->home < r->n - LOAD_TAIL && slot > r->n - LOAD_TAIL - 2 * k->spacing;
                if (slot - last_load < k->spacing && !due)
                    continue;
                if (base - 1e6 < best_score) {
                    best = o;
                    best_score = base - 1e6;
                }
                continue;
            }
            int late = loaded[i] - slot - waited, held_up = board_wait(&boards, i, slot + waited);
            if (late > held_up)
                held_up = late;
            if (held_up > 0)
                base += k->patience * held_up;
            for (int swap = 0; swap < 2; ++swap) {
                int a = swap ? x->b : x->a, b = swap ? x->a : x->b, fresh;
                double score = base + port_step(&p, a, b, x->c, x->d, 0, &fresh) * 4.0 + fresh;
                int operand[2] = {a, b};
                for (int s = 0; s < 2; ++s) {
                    int held = p.cached[s][operand[s] & 1];
                    if (held >= 0 && held != operand[s])
                        score += k->evict * (uses[held] > 8 ? 8 : uses[held]);
                }
                if (score < best_score) {
                    best = o;
                    best_swap = swap;
                    best_score = score;
                }
            }
        }
        /* Nothing is ready: a load goes before its spacing, else the warp waits a cycle. */
        for (int o = 0; o < opens && best < 0; ++o)
            if (r->node[open[o]].load && ready[open[o]] <= slot)
                best = o;
        if (best < 0) {
            if (!done || out->stall[done - 1] >= 10)
                return 0;
            ++out->stall[done - 1];
            ++slot;
            ++p.cycle;
            continue;
        }
        int i = open[best], fresh;
        const struct node *x = &r->node[i];
        open[best] = open[--opens];
        if (x->load) {
            if (x->home < r->n - LOAD_TAIL && done >= r->n - LOAD_TAIL)
                return 0;
            last_load = slot;
            best_swap = 0;
            ports_load(&p, x->d, x->width);
            int board = (int)write_barrier(x->code);
            ++boards.issued[board];
            boards.ready[board] = slot + waited + k->load_slots;
        } else {
            int late = loaded[i] - slot - waited, held_up = board_wait(&boards, i, slot + waited);
            if (late > held_up)
                held_up = late;
            for (int b = 0; b < BARRIERS; ++b)
                if (boards.needs[i][b] > boards.cleared[b])
                    boards.cleared[b] = boards.issued[b];
            if (held_up > 0)
                waited += held_up;
            port_step(&p, best_swap ? x->b : x->a, best_swap ? x->a : x->b, x->c, x->d, 1, &fresh);
            --uses[x->a];
            --uses[x->b];
        }
        out->order[done] = i;
        out->swapped[done] = best_swap;
        out->stall[done++] = 1;
        for (int e = r->first_edge[i]; e >= 0; e = r->edge[e].next) {
            int to = r->edge[e].to;
            if (slot + r->edge[e].gap > ready[to])
                ready[to] = slot + r->edge[e].gap;
            if (x->load && !r->node[to].load)
                boards.needs[to][write_barrier(x->code)] = boards.issued[write_barrier(x->code)];
            if (!--left[to])
                open[opens++] = to;
        }
        ++slot;
    }
    out->cost = p.cycle + 0.5 * waited;
    return 1;
}

/* Whether operand `slot` of FFMA p is what the same slot and bank reads next. A load between does no harm, unless it
 * brings that register a new value. */
static int reused(const struct node *x, int n, int p, int slot)
{
    int r = slot ? x[p].b : x[p].a;
    if (x[p].d == r)
        return 0;
    for (int q = p + 1; q < n; ++q) {
        if (x[q].load && writes(&x[q], r))
            return 0;
        if (x[q].load)
            continue;
        int other = slot ? x[q].b : x[q].a;
        if ((other & 1) == (r & 1))
            return other == r;
        if (writes(&x[q], r))
            return 0;
    }
    return 0;
}

typedef uint8_t pending_set[2 * BARRIERS]
                           [REGISTERS]; /* registers being written, then registers being read, a scoreboard */

static unsigned needed_waits(const struct node *x, pending_set pending)
{
    unsigned mask = 0;
    for (int b = 0; b < BARRIERS; ++b) {
        int hit = pending[b][x->a] || (x->b >= 0 && pending[b][x->b]) || (x->c >= 0 && pending[b][x->c]);
        for (int k = 0; k < x->width; ++k)
            hit |= pending[b][x->d + k] | pending[b + BARRIERS][x->d + k];
        mask |= (unsigned)hit << b;
    }
    return mask;
}

/* Instructions whose fields are no vector registers: branches, barriers, uniform registers. */
static int no_registers(struct word w)
{
    static const unsigned short list[] = {0x947, 0x945, 0x941, 0x946, 0x948, 0x918, 0x94d, 0x547, 0x9c3, 0x882,
                                          0xc82, 0x890, 0x290, 0x891, 0x291, 0x892, 0x292, 0x899, 0x299, 0x28c,
                                          0x88c, 0x287, 0x887, 0x2a4, 0x2a5, 0x8a4, 0xab9, 0x81c, 0x82f, 0x5b4};
    for (size_t i = 0; i < sizeof list / sizeof *list; ++i)
        if (opcode(w) == list[i])
            return 1;
    return 0;
}

static void account(struct word w, pending_set pending)
{
    for (int b = 0; b < BARRIERS; ++b)
        if (wait_of(w) >> b & 1) {
            memset(pending[b], 0, REGISTERS);
            memset(pending[b + BARRIERS], 0, REGISTERS);
        }
    if (no_registers(w))
        return;
    unsigned barrier = write_barrier(w), held = read_barrier(w);
    for (int k = 0; barrier < BARRIERS && k < 4 && field_d(w) + k < NONE; ++k)
        pending[barrier][field_d(w) + k] = 1;
    /* A load may read its address late. Where no barrier says when it has, its data's arrival does. */
    if (held >= BARRIERS)
        held = barrier;
    /* A copy to shared memory has its address there where others have their result. */
    int source[4] = {field_a(w), field_b(w), field_c(w), opcode(w) == OP_LDGSTS ? field_d(w) : NONE};
    for (int k = 0; held < BARRIERS && k < (is_load(w) ? 1 : 16); ++k)
        if (source[k / 4] + k % 4 < NONE)
            pending[held + BARRIERS][source[k / 4] + k % 4] = 1;
}

/* A scoreboard counts from the second cycle on: a waiter right behind its load would not see it, and nobody after it
 * would wait again. */
static int is_unseen(struct word w, struct word waiter)
{
    unsigned sets = 0;
    if (write_barrier(w) < BARRIERS)
        sets |= 1u << write_barrier(w);
    if (read_barrier(w) < BARRIERS)
        sets |= 1u << read_barrier(w);
    return (sets & wait_of(waiter)) && (w.hi >> 41 & 15) == 1; /* 0: held back in another way */
}

static void see_scoreboards(struct word *code, int n)
{
    for (int i = 0; i + 1 < n; ++i)
        if (is_unseen(code[i], code[i + 1]))
            code[i].hi += 1ull << 41;
}

static int64_t branch_to(struct word w, int at)
{
    int64_t offset;
    unsigned op = opcode(w);
    if (op == OP_BRA || op == OP_UBRA || op == OP_CALL) {
        uint64_t bits = (w.lo >> 16 & 255) | w.lo >> 34 << 8 | (w.hi & 0x3ffff) << 38;
        offset = ((int64_t)(bits << 8) >> 8) * 4;
    } else if (op == OP_BSSY) {
        offset = (int32_t)(w.lo >> 32);
    } else {
        return -1;
    }
    return at + 1 + offset / 16;
}

/* Cycles from a barrier before instruction i to its issue, as many as matter. */
static int cycles_behind_barrier(const struct word *code, int i)
{
    int cycles = 0;
    while (i-- > 0 && cycles < BAR_SEEN) {
        cycles += stall_of(code[i]);
        if (opcode(code[i]) == OP_BAR)
            return cycles;
        if (branch_to(code[i], i) >= 0)
            break;
    }
    return BAR_SEEN;
}

/* Prints where a waiter would not see the load before it, or a load not wait for a barrier; how many there are. */
static int check_section(const struct word *code, int n, const char *name)
{
    int unseen = 0;
    for (int i = 0; i < n; ++i)
        if (opcode(code[i]) == OP_LDS && cycles_behind_barrier(code, i) < BAR_SEEN) {
            printf("%s: the load at 0x%x comes %d cycles behind a barrier\n", name, 16 * i,
                   cycles_behind_barrier(code, i));
            ++unseen;
        }
    for (int i = 0; i + 1 < n; ++i)
        if (is_unseen(code[i], code[i + 1])) {
            printf("%s: the instruction at 0x%x waits for a scoreboard that the one before it has not yet raised\n",
                   name, 16 * (i + 1));
            ++unseen;
        }
    return unseen;
}

/* 0: this order cannot be had. */
static int emit(struct word *code, const struct run *r, const struct plan *s, pending_set pending)
{
    static struct node out[RUN_MAX];
    static pending_set as_was, as_is;
    unsigned waited = 0, all = 0;
    int slots_was = 0, slots_is = 0;
    memcpy(as_was, pending, sizeof as_was);
    memcpy(as_is, pending, sizeof as_is);
    for (int p = 0; p < r->n; ++p) {
        account(r->node[p].code, as_was);
        all |= wait_of(r->node[p].code);
        slots_was += stall_of(r->node[p].code);
        struct node x = r->node[s->order[p]];
        if (s->swapped[p]) {
            int t = x.a;
            x.a = x.b;
            x.b = t;
        }
        out[p] = x;
    }
    for (int p = 0; p < r->n; ++p) {
        struct node *x = &out[p];
        uint64_t flags = x->load ? 0 : (uint64_t)(reused(out, r->n, p, 0) | reused(out, r->n, p, 1) << 1);
        unsigned waits = needed_waits(x, as_is) | (x->load ? wait_of(x->code) : 0);
        uint64_t barriers = x->code.hi >> 46 & 63;
        uint64_t control = (uint64_t)s->stall[p] | (uint64_t)(s->stall[p] <= 4) << 4 | barriers << 5 |
                           (uint64_t)waits << 11 | flags << 17;
        if (!x->load)
            x->code.lo = (x->code.lo & ~(0xffffull << 24)) | (uint64_t)x->a << 24 | (uint64_t)x->b << 32;
        x->code.hi = (x->code.hi & ((1ull << 41) - 1)) | control << 41;
        waited |= waits;
        slots_is += s->stall[p];
        account(x->code, as_is);
        code[p] = x->code;
    }
    /* What the compiled run had waited for by its end, the code after it takes for granted: loads from before the run
     * at its beginning, before others are counted on the same board, the run's own at its end. */
    unsigned late = 0;
    code[0].hi |= (uint64_t)(all & ~waited) << 52;
    memcpy(as_is, pending, sizeof as_is);
    for (int p = 0; p < r->n; ++p)
        account(code[p], as_is);
    for (int b = 0; b < 2 * BARRIERS; ++b)
        for (int k = 0; k < REGISTERS; ++k)
            if (as_is[b][k] && !as_was[b][k])
                late |= 1u << b % BARRIERS;
    int last = r->n - 1;
    if (late && out[last].load)
        return 0; /* it could not wait for others on what it counts on itself */
    code[last].hi |= (uint64_t)late << 52;
    for (int p = last; p >= 0 && slots_is < slots_was; --p) {
        int s0 = stall_of(code[p]), more = slots_was - slots_is < 11 - s0 ? slots_was - slots_is : 11 - s0;
        if (more <= 0)
            continue;
        code[p].hi += (uint64_t)more << 41;
        if (s0 + more > 4)
            code[p].hi &= ~(1ull << 45); /* long stalls go with the yield bit clear */
        slots_is += more;
    }
    return 1;
}

static uint64_t mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * 0x9E3779B97F4A7C15ull;
    return h ^ h >> 29;
}

/* Runs the instructions on symbols. */
static void evaluate(const struct word *code, int n, uint64_t value[REGISTERS])
{
    for (int i = 0; i < REGISTERS; ++i)
        value[i] = mix(7, (uint64_t)i);
    for (int i = 0; i < n; ++i) {
        struct word w = code[i];
        if (is_load(w)) {
            for (int k = 0; k < 4; ++k)
                value[field_d(w) + k] = mix(mix(value[field_a(w)], w.lo >> 40), (uint64_t)k + 11);
        } else {
            uint64_t x = value[field_a(w)], y = value[field_b(w)];
            value[field_d(w)] = mix(mix(x < y ? x : y, x < y ? y : x), value[field_c(w)]);
        }
    }
}

/* An instruction just after the run that takes a result of it, or changes a load's address: leave the run alone. */
static int entangled(const struct word *code, int n, int first, int count)
{
    for (int after = first + count; after < n && after < first + count + 6; ++after) {
        struct word w = code[after];
        if (is_fma(w) || is_load(w) || no_registers(w))
            continue;
        int real_b = opcode(w) >> 9 == 1 || opcode(w) == 0x986 || opcode(w) == 0x388;
        for (int i = first; i < first + count; ++i) {
            struct node x = decode(code[i], 0);
            if (x.load)
                continue;
            unsigned op = opcode(w) & 0x1ff;
            int three = op == 0x010 || op == 0x012 || op == 0x024 || op == 0x025 || op == 0x023 ||
                        op == 0x019; /* IADD3 LOP3 IMAD FFMA SHF */
            int store = op == 0x186 || op == 0x188;
            int field[4] = {NONE, field_a(w), three ? field_c(w) : NONE, real_b ? field_b(w) : NONE};
            for (int k = 0; k < 4; ++k)
                if (field[k] != NONE && x.d >= field[k] && x.d < field[k] + (store ? 4 : k ? 1 : 2))
                    return 1;
        }
    }
    return 0;
}

static pending_set **find_labels(const struct word *code, int n)
{
    pending_set **at = calloc((size_t)n + 1, sizeof *at);
    for (int i = 0; i < n; ++i) {
        int64_t to = branch_to(code[i], i);
        if (opcode(code[i]) == OP_BRX)
            return NULL;
        if (to >= 0 && to <= n && !at[to])
            at[to] = calloc(1, sizeof **at);
    }
    return at;
}

/* What may be outstanding at each label, by passes over the compiled code until nothing is added. */
static void label_states(const struct word *code, int n, pending_set **at)
{
    for (int pass = 0; pass < 4; ++pass) {
        static pending_set now;
        memset(now, 0, sizeof now);
        for (int i = 0; i < n; ++i) {
            if (at[i])
                for (int k = 0; k < 2 * BARRIERS * REGISTERS; ++k) {
                    ((uint8_t *)*at[i])[k] |= ((uint8_t *)now)[k];
                    ((uint8_t *)now)[k] |= ((uint8_t *)*at[i])[k];
                }
            account(code[i], now);
            int64_t to = branch_to(code[i], i);
            if (to >= 0 && to <= n)
                for (int k = 0; k < 2 * BARRIERS * REGISTERS; ++k)
                    ((uint8_t *)*at[to])[k] |= ((uint8_t *)now)[k];
        }
    }
}

static int port_cost(const struct word *code, int n)
{
    struct ports p;
    ports_reset(&p);
    for (int i = 0; i < n; ++i) {
        if (!is_fma(code[i])) {
            ports_load(&p, field_d(code[i]), is_load(code[i]) ? 4 : 1);
            continue;
        }
        int fresh;
        port_step(&p, field_a(code[i]), field_b(code[i]), field_c(code[i]), field_d(code[i]), 1, &fresh);
        for (int slot = 0; slot < 2; ++slot) {
            int r = slot ? field_b(code[i]) : field_a(code[i]);
            if (!(code[i].hi >> (58 + slot) & 1))
                p.cached[slot][r & 1] = -1;
        }
    }
    return p.cycle;
}

enum { TRIES = 200, LOAD_SLOTS = 34 };

static int improve(struct word *code, struct run *r, pending_set pending)
{
    static struct plan best, trial;
    static struct word new_code[RUN_MAX], old[RUN_MAX];
    uint64_t was[REGISTERS], is[REGISTERS];
    memcpy(old, code, (size_t)r->n * sizeof *old);
    link_nodes(r);
    best.cost = 1e30;
    for (int t = 0; t < TRIES; ++t) {
        struct knobs k = {6 + (int)(dice() % 18),    LOAD_SLOTS,         0.05 * (1 + dice() % 8),
                          0.002 * (1 + dice() % 20), 0.2 * (dice() % 4), 0.5 * (1 + dice() % 8)};
        if (schedule(r, &k, &trial) && trial.cost < best.cost)
            best = trial;
    }
    if (best.cost >= 1e30)
        return 0;
    if (!emit(new_code, r, &best, pending))
        return 0;
    evaluate(old, r->n, was);
    evaluate(new_code, r->n, is);
    if (memcmp(was, is, sizeof was)) {
        fprintf(stderr, "ffma_order: a new order computes something else\n");
        exit(1);
    }
    if (port_cost(new_code, r->n) > port_cost(old, r->n))
        return 0;
    memcpy(code, new_code, (size_t)r->n * sizeof *code);
    return 1;
}

/* Loads return in order, so the compiler counts only the last of several. Count each, that they may part. */
static void count_loads(struct word *code, int n)
{
    for (int i = n - 2; i >= 0; --i) {
        if (opcode(code[i]) != OP_LDS || write_barrier(code[i]) < BARRIERS)
            continue;
        for (int k = i + 1; k < n; ++k)
            if (is_load(code[k])) {
                code[i].hi = (code[i].hi & ~(7ull << 46)) | (uint64_t)write_barrier(code[k]) << 46;
                break;
            }
    }
}

/* A store that no barrier guards reads its data some time later: runs that would overwrite it are left alone. */
static void note_store(struct word w, int at, int busy_until[REGISTERS])
{
    static const unsigned short stores[] = {0x386, 0x986, 0x387, 0x987, 0x388, 0x988};
    for (size_t i = 0; i < sizeof stores / sizeof *stores; ++i)
        for (int k = 0; opcode(w) == stores[i] && k < 8; ++k) {
            int r = (k < 4 ? field_a(w) : field_b(w)) + k % 4;
            if (r < NONE)
                busy_until[r] = at + 64;
        }
}

/* Cycles until FFMA w may go out, `done` telling when FFMAs before it are: a run left as compiled may follow one that
 * was reordered. */
static int cycles_to_wait(struct word w, const int done[REGISTERS], int cycle)
{
    int source[3] = {field_a(w), field_b(w), field_c(w)}, wait = 0;
    for (int k = 0; is_fma(w) && k < 3; ++k)
        if (done[source[k]] - cycle > wait)
            wait = done[source[k]] - cycle;
    return wait;
}

static void lengthen_stall(struct word *w, int more)
{
    w->hi += (uint64_t)more << 41;
    if (stall_of(*w) > 4)
        w->hi &= ~(1ull << 45); /* long stalls go with the yield bit clear */
}

static void order_section(struct word *code, int n, const char *name)
{
    int busy_until[REGISTERS] = {0};
    static pending_set pending;
    static struct run r;
    int settled[REGISTERS] = {0}, loaded[REGISTERS] = {0}, done[REGISTERS] = {0}, cycle = 0, runs = 0, before = 0,
        after = 0, fmas = 0, met = 0;
    pending_set **label = find_labels(code, n);
    if (!label)
        return;
    count_loads(code, n);
    label_states(code, n, label);
    memset(pending, 0, sizeof pending);
    for (int i = 0; i < n;) {
        int count = 0;
        if (label[i])
            for (int k = 0; k < 2 * BARRIERS * REGISTERS; ++k)
                ((uint8_t *)pending)[k] |= ((uint8_t *)*label[i])[k];
        while (i + count < n && count < RUN_MAX && (is_fma(code[i + count]) || is_load(code[i + count])) &&
               (!count || !label[i + count]))
            ++count;
        /* A load at the end may be what the next instruction waits for: leave trailing loads where they are. */
        while (count && is_load(code[i + count - 1]))
            --count;
        if (i && count >= RUN_MIN && !entangled(code, n, i, count)) {
            r.n = count;
            for (int k = 0; k < count; ++k) {
                struct node x = r.node[k] = decode(code[i + k], k);
                int regs[4] = {x.a, x.b, x.c, x.d};
                r.ready[k] = x.load && met > cycle ? met - cycle : 0;
                r.loaded[k] = 0;
                for (int q = 0; q < 4; ++q) {
                    if (regs[q] < 0)
                        continue;
                    if (settled[regs[q]] - cycle > r.ready[k])
                        r.ready[k] = settled[regs[q]] - cycle;
                    if (loaded[regs[q]] - cycle > r.loaded[k])
                        r.loaded[k] = loaded[regs[q]] - cycle;
                }
            }
            int busy = 0;
            for (int k = 0; k < count; ++k)
                busy |= busy_until[r.node[k].d] > i;
            int was = port_cost(code + i, count);
            if (!busy)
                runs += improve(code + i, &r, pending);
            before += was;
            after += port_cost(code + i, count);
            for (int k = 0; k < count; ++k)
                fmas += is_fma(code[i + k]);
        }
        int step = count ? count : 1;
        for (int k = 0; k < step; ++k) {
            struct word w = code[i + k];
            int wait = i + k ? cycles_to_wait(w, done, cycle) : 0;
            if (wait > 0) {
                lengthen_stall(&code[i + k - 1], wait);
                cycle += wait;
            }
            account(w, pending);
            note_store(w, i + k, busy_until);
            if (opcode(w) == OP_BAR)
                met = cycle + BAR_LATENCY;
            if (is_load(w)) {
                for (int q = 0; q < 4; ++q)
                    loaded[field_d(w) + q] = cycle + LOAD_SLOTS;
            } else if (field_d(w) != NONE && !no_registers(w)) {
                for (int q = 0; q < 2 && field_d(w) + q < NONE; ++q)
                    settled[field_d(w) + q] = cycle + (is_fma(w) ? FMA_LATENCY : ANCHOR_LATENCY);
                done[field_d(w)] = is_fma(w) ? cycle + FMA_LATENCY - 1 : 0;
            }
            cycle += stall_of(w);
        }
        i += step;
    }
    see_scoreboards(code, n); /* last: every wait is in place */
    printf("%s: %d runs, %d FFMAs, %d -> %d cycles\n", name, runs, fmas, before, after);
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

static int write_image(const char *name, const unsigned char *image, size_t size)
{
    FILE *file = fopen(name, "wb");
    if (file && fwrite(image, 1, size, file) == size && !fclose(file))
        return 0;
    perror(name);
    return 1;
}

int main(int argc, char **argv)
{
    size_t size = 0;
    int check = argc == 3 && !strcmp(argv[1], "--check"), unseen = 0;
    const char *target = argv[argc - 1];
    unsigned char *image = argc == 2 + check ? read_image(target, &size) : NULL;
    if (!image || size < sizeof(Elf64_Ehdr) || memcmp(image, ELFMAG, SELFMAG)) {
        fprintf(stderr,
                "usage: ffma_order CUBIN, which is rewritten in place\n"
                "       ffma_order --check CUBIN: does every waiter see the load before it, every load the barrier?\n");
        return 2;
    }
    const Elf64_Ehdr *h = (const Elf64_Ehdr *)image;
    const Elf64_Shdr *sections = (const Elf64_Shdr *)(image + h->e_shoff);
    const char *names = (const char *)image + sections[h->e_shstrndx].sh_offset;
    for (int i = 0; i < h->e_shnum; i++) {
        const char *name = names + sections[i].sh_name;
        struct word *code = (struct word *)(image + sections[i].sh_offset);
        int n = (int)(sections[i].sh_size / 16);
        if (strncmp(name, ".text.", 6))
            continue;
        if (check)
            unseen += check_section(code, n, name + 6);
        else
            order_section(code, n, name + 6);
    }
    int code = check ? unseen > 0 : write_image(target, image, size);
    free(image);
    return code;
}
