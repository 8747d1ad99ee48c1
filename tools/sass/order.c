/* Reorders the FFMAs and shared loads of a compiled function, in place, so that few FFMAs meet a busy register port
 * (see ports.h). Only what lies between two other instructions or labels changes places. Dependences, scoreboards and
 * latencies are kept, and each new order is run on symbols: it must compute what the compiled order does.
 */
#include "order.h"

#include "ports.h"
#include "schedule.h"
#include "scoreboards.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    RUN_MIN = 6,
    INTEGER_LATENCY = 8, /* issue slots between an instruction before a run and who reads its result */
    BARRIER_LATENCY = 8, /* the same between a barrier and a load: the warp goes on for some cycles */
    STORE_READS = 64,    /* instructions behind a store by which it has read its data */
    NEIGHBOURS = 6,      /* instructions behind a run that may take a result of it without waiting */
    STALL_LONG = 11      /* the longest stall that an order gets where it makes up for time it saves */
};

/* What was issued before the run at hand, in cycles since the function's beginning. */
struct history {
    struct pending pending;
    int cycle;
    int settled[REGISTERS];    /* when a result of an instruction outside of runs may be used */
    int done[REGISTERS];       /* when an FFMA's result may be used */
    int loaded[REGISTERS];     /* when a load's data is likely there */
    int met;                   /* when loads may follow the last barrier */
    int busy_until[REGISTERS]; /* the instruction up to which a store may still read a register */
};

struct totals {
    int runs, fmas, before, after;
};

/* ---- an order as code ---- */

/* Returns whether operand `slot` of FFMA p is what the same slot reads next from the same bank. A load between them
 * does no harm, unless it brings that register a new value. */
static bool is_kept(const struct node *x, int n, int p, int slot)
{
    int r = slot ? x[p].b : x[p].a;
    if (x[p].d == r)
        return false;
    for (int q = p + 1; q < n; ++q) {
        if (!x[q].load) {
            int other = slot ? x[q].b : x[q].a;
            if ((other & 1) == (r & 1))
                return other == r;
        }
        if (node_writes(&x[q], r))
            return false;
    }
    return false;
}

/* Returns the scoreboards that x has to wait for. */
static unsigned waits_of(const struct node *x, const struct pending *pending)
{
    const int source[3] = {x->a, x->b, x->c};
    return pending_waits(pending, source, x->d, x->width) | (x->load ? waits(x->code) : 0);
}

static struct word encode(const struct node *x, int slots, unsigned waits, unsigned reuse)
{
    struct word w = x->code;
    struct control control = {.stall = slots,
                              .stay = slots <= STALL_STAYS,
                              .write = write_scoreboard(w),
                              .read = read_scoreboard(w),
                              .wait = waits,
                              .reuse = reuse};
    if (!x->load)
        w.low = (w.low & ~(0xffffull << 24)) | (uint64_t)x->a << 24 | (uint64_t)x->b << 32;
    w.high = (w.high & ((1ull << CONTROL_BIT) - 1)) | control_bits(&control);
    return w;
}

/* Makes the new order take no less time than the compiled one: what follows may count on that. */
static void make_up(struct word *code, int n, int cycles)
{
    for (int p = n - 1; p >= 0 && cycles > 0; --p) {
        int room = STALL_LONG - cycles_of(code[p]), more = cycles < room ? cycles : room;
        if (more <= 0)
            continue;
        lengthen_stall(&code[p], more);
        cycles -= more;
    }
}

/* Keeps the waits that the code behind the run counts on: the compiled run had waited for these by its end. Returns
 * false where that cannot be done. */
static bool keep_waits(struct word *code, const struct run *r, const struct pending *before)
{
    static struct pending was, is;
    unsigned waited = 0, owed = 0;
    was = is = *before;
    for (int p = 0; p < r->n; ++p) {
        pending_step(&was, r->node[p].code);
        owed |= waits(r->node[p].code);
        waited |= waits(code[p]);
    }
    /* Loads from before the run are waited for at its beginning, before others are counted on the same scoreboard. */
    code[0].high |= (uint64_t)(owed & ~waited) << WAIT_BIT;
    for (int p = 0; p < r->n; ++p)
        pending_step(&is, code[p]);
    /* The run's own are waited for at its end; but a load there could not wait for others on what it counts on. */
    unsigned late = pending_new(&is, &was);
    if (late && is_plain_load(code[r->n - 1]))
        return false;
    code[r->n - 1].high |= (uint64_t)late << WAIT_BIT;
    return true;
}

/* Writes the order. Returns false where it cannot be had. */
static bool write_order(struct word *code, const struct run *r, const struct plan *plan, const struct pending *before)
{
    static struct node out[RUN_MAX];
    static struct pending now;
    int was = 0, is = 0;
    for (int p = 0; p < r->n; ++p) {
        out[p] = r->node[plan->order[p]];
        if (plan->swapped[p]) {
            int a = out[p].a;
            out[p].a = out[p].b;
            out[p].b = a;
        }
        was += cycles_of(r->node[p].code);
        is += plan->stall[p];
    }
    now = *before;
    for (int p = 0; p < r->n; ++p) {
        unsigned reuse = out[p].load ? 0 : is_kept(out, r->n, p, 0) | is_kept(out, r->n, p, 1) << 1;
        code[p] = encode(&out[p], plan->stall[p], waits_of(&out[p], &now), reuse);
        pending_step(&now, code[p]);
    }
    if (!keep_waits(code, r, before))
        return false;
    make_up(code, r->n, was - is);
    return true;
}

/* ---- the proof ---- */

/* Runs the instructions on symbols: a value is a hash of how it was computed. */
static void evaluate(const struct word *code, int n, uint64_t value[REGISTERS])
{
    enum { REGISTER_SEED = 7, ELEMENT_SEED = 11 };
    for (int i = 0; i < REGISTERS; ++i)
        value[i] = mix(REGISTER_SEED, (uint64_t)i);
    for (int i = 0; i < n; ++i) {
        struct word w = code[i];
        uint64_t a = value[field_a(w)];
        if (!is_plain_load(w))
            value[field_d(w)] = mix(mix_product(a, value[field_b(w)]), value[field_c(w)]);
        else
            for (int e = 0; e < VECTOR; ++e)
                value[field_d(w) + e] = mix(mix(a, offset(w)), (uint64_t)e + ELEMENT_SEED);
    }
}

static void prove(const struct word *was, const struct word *is, int n)
{
    uint64_t before[REGISTERS], after[REGISTERS];
    evaluate(was, n, before);
    evaluate(is, n, after);
    if (!memcmp(before, after, sizeof before))
        return;
    fprintf(stderr, "sass order: a new order computes something else; nothing is written\n");
    exit(1);
}

/* ---- runs ---- */

/* Finds the registers that an instruction outside of runs reads, as far as its form is known: a first one, then its
 * width. */
static int sources_of(struct word w, int first[3], int count[3])
{
    unsigned op = opcode(w) & OPERATION_BITS;
    bool three =
        op == ANY_IADD3 || op == ANY_LOP3 || op == ANY_IMAD || op == ANY_IMAD_WIDE || op == ANY_FFMA || op == ANY_SHF;
    bool store = op == ANY_STG || op == ANY_STS;
    bool b_is_register = opcode(w) >> 9 == FORM_REGISTERS || opcode(w) == OP_STG_U;
    int n = 0, more = store ? VECTOR : 1;
    first[n] = field_a(w), count[n++] = more;
    if (three)
        first[n] = field_c(w), count[n++] = more;
    if (b_is_register)
        first[n] = field_b(w), count[n++] = more;
    return n;
}

/* Returns whether an instruction just behind the run takes a result of it: then the run is left alone. */
static bool is_entangled(const struct word *code, int n, int begin, int end)
{
    for (int after = end; after < n && after < end + NEIGHBOURS; ++after) {
        struct word w = code[after];
        int first[3], count[3];
        if (is_plain_fma(w) || is_plain_load(w) || has_no_registers(w))
            continue;
        int sources = sources_of(w, first, count);
        for (int i = begin; i < end; ++i)
            for (int s = 0; s < sources && !is_plain_load(code[i]); ++s)
                if (first[s] != RZ && field_d(code[i]) >= first[s] && field_d(code[i]) < first[s] + count[s])
                    return true;
    }
    return false;
}

/* Counts each load. Loads return in order, so the compiler counts only the last of several; here they may part. */
static void count_loads(struct word *code, int n)
{
    for (int i = n - 2; i >= 0; --i) {
        if (opcode(code[i]) != OP_LDS || write_scoreboard(code[i]) < SCOREBOARDS)
            continue;
        int k = i + 1;
        while (k < n && !is_plain_load(code[k]))
            ++k;
        if (k < n)
            code[i].high = (code[i].high & ~(7ull << WRITE_BIT)) | (uint64_t)write_scoreboard(code[k]) << WRITE_BIT;
    }
}

/* Returns the number of instructions from i on that may change places. */
static int run_length(const struct word *code, const struct labels *labels, int i)
{
    int end = i;
    while (end < labels->n && end - i < RUN_MAX && (is_plain_fma(code[end]) || is_plain_load(code[end])) &&
           (end == i || !labels->at[end]))
        ++end;
    /* The next instruction may wait for a load at the end: loads there stay where they are. */
    while (end > i && is_plain_load(code[end - 1]))
        --end;
    return end - i;
}

static void read_run(struct run *r, const struct word *code, int n, const struct history *h)
{
    r->n = n;
    for (int k = 0; k < n; ++k) {
        struct node *x = &r->node[k];
        *x = node_of(code[k], k);
        const int named[4] = {x->a, x->b, x->c, x->d};
        r->ready[k] = x->load && h->met > h->cycle ? h->met - h->cycle : 0;
        r->loaded[k] = 0;
        for (int q = 0; q < 4; ++q) {
            if (named[q] < 0)
                continue;
            if (h->settled[named[q]] - h->cycle > r->ready[k])
                r->ready[k] = h->settled[named[q]] - h->cycle;
            if (h->loaded[named[q]] - h->cycle > r->loaded[k])
                r->loaded[k] = h->loaded[named[q]] - h->cycle;
        }
    }
}

/* Returns whether a store or a copy that no scoreboard counts may still read what instructions i to i + n write. */
static bool is_busy(const struct word *code, int i, int n, const struct history *h)
{
    for (int k = i; k < i + n; ++k) {
        if (h->busy_until[field_d(code[k])] > i)
            return true;
        for (int r = field_d(code[k]); r < field_d(code[k]) + (is_plain_load(code[k]) ? VECTOR : 1); ++r)
            if (h->pending.uncounted[r])
                return true;
    }
    return false;
}

/* Puts a better order in place, if one is found. */
static bool improve(struct word *code, struct run *r, const struct pending *pending, struct dice *dice)
{
    static struct plan best;
    static struct word ordered[RUN_MAX];
    run_link(r);
    if (!schedule_best(r, dice, &best) || !write_order(ordered, r, &best, pending))
        return false;
    prove(code, ordered, r->n);
    if (ports_cycles(ordered, r->n, r->place) > ports_cycles(code, r->n, r->place))
        return false;
    memcpy(code, ordered, (size_t)r->n * sizeof *code);
    return true;
}

/* ---- what comes between runs ---- */

/* Notes a store that no scoreboard guards: it reads its data some time later. */
static void note_store(struct history *h, struct word w, int at)
{
    static const unsigned short stores[] = {OP_STG, OP_STG_U, OP_STL, OP_STL_U, OP_STS, OP_STS_U};
    for (size_t i = 0; i < sizeof stores / sizeof *stores; ++i)
        for (int e = 0; opcode(w) == stores[i] && e < VECTOR; ++e) {
            if (field_a(w) + e < RZ)
                h->busy_until[field_a(w) + e] = at + STORE_READS;
            if (field_b(w) + e < RZ)
                h->busy_until[field_b(w) + e] = at + STORE_READS;
        }
}

/* Returns the cycles until FFMA w may go: one that was left as compiled may follow a run that was reordered. */
static int cycles_to_wait(const struct history *h, struct word w)
{
    const int source[3] = {field_a(w), field_b(w), field_c(w)};
    int wait = 0;
    for (int s = 0; is_plain_fma(w) && s < 3; ++s)
        if (h->done[source[s]] - h->cycle > wait)
            wait = h->done[source[s]] - h->cycle;
    return wait;
}

/* Issues instruction `at` as it is now. */
static void issue(struct history *h, struct word *code, int at)
{
    struct word w = code[at];
    int wait = at ? cycles_to_wait(h, w) : 0, d = field_d(w);
    if (wait > 0) {
        lengthen_stall(&code[at - 1], wait);
        h->cycle += wait;
    }
    pending_step(&h->pending, w);
    note_store(h, w, at);
    if (opcode(w) == OP_BAR)
        h->met = h->cycle + BARRIER_LATENCY;
    if (is_plain_load(w)) {
        for (int e = 0; e < VECTOR; ++e)
            h->loaded[d + e] = h->cycle + LOAD_LATENCY;
    } else if (d != RZ && !has_no_registers(w)) {
        for (int e = 0; e < 2 && d + e < RZ; ++e) /* a result may be a pair of registers */
            h->settled[d + e] = h->cycle + (is_plain_fma(w) ? FMA_LATENCY : INTEGER_LATENCY);
        h->done[d] = is_plain_fma(w) ? h->cycle + FMA_LATENCY - 1 : 0;
    }
    h->cycle += cycles_of(w);
}

/* Finds the runs of a function, one after another, and gives each a better order. */
static struct totals order_runs(const struct function *f, const struct labels *labels, bool turns, struct dice *dice)
{
    static struct history h;
    static struct run run;
    struct totals t = {0, 0, 0, 0};
    struct word *code = f->code;
    memset(&h, 0, sizeof h);
    for (int i = 0; i < f->n;) {
        if (labels->at[i])
            pending_join(&h.pending, labels->at[i]);
        int n = run_length(code, labels, i), end = i + (n ? n : 1);
        if (i && n >= RUN_MIN && !is_entangled(code, f->n, i, end)) {
            run.place = turns ? i : NO_TURNS;
            t.before += ports_cycles(code + i, n, run.place);
            read_run(&run, code + i, n, &h);
            if (!is_busy(code, i, n, &h))
                t.runs += improve(code + i, &run, &h.pending, dice);
            t.after += ports_cycles(code + i, n, run.place);
            for (int k = i; k < end; ++k)
                t.fmas += is_plain_fma(code[k]);
        }
        for (; i < end; ++i)
            issue(&h, code, i);
    }
    run_free(&run);
    return t;
}

/* Returns whether a branch leads to a computed address: then the labels are not known. */
static bool branches_anywhere(const struct function *f)
{
    for (int i = 0; i < f->n; ++i)
        if (opcode(f->code[i]) == OP_BRX)
            return true;
    return false;
}

void order_function(const struct function *f, bool turns, struct dice *dice)
{
    struct labels labels;
    if (branches_anywhere(f))
        return;
    count_loads(f->code, f->n);
    labels_find(&labels, f->code, f->n);
    struct totals t = order_runs(f, &labels, turns, dice);
    labels_free(&labels);
    scoreboards_settle(f->code, f->n); /* now that every wait is in its place */
    printf("%s: %d runs, %d FFMAs, %d -> %d cycles\n", f->name, t.runs, t.fmas, t.before, t.after);
}
