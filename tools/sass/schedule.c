/* The scheduler: see schedule.h. */
#include "schedule.h"

#include "ports.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TRIES = 200,
    LOAD_TAIL = 24,       /* loads stay this far from the end of a run: what follows may change their address */
    WAIT_MAX = 10,        /* the longest stall that a schedule may need */
    PORT_WEIGHT = 4,      /* of a penalty at the ports, against one fresh read */
    USES_MAX = 8,         /* a register that is needed more often is not worth more */
    NEVER = -1000,        /* a slot long before the run */
    LOADS_FIRST = 1000000 /* a load that may go goes before any FFMA */
};

/* How much one try weighs what. */
struct knobs {
    int spacing;     /* slots between two loads */
    double evict;    /* for each later use of a register that leaves the operand cache */
    double age;      /* for each place that an instruction goes before its home */
    double jitter;   /* chance */
    double patience; /* for each slot that an instruction would wait for its loads */
};

/* Scoreboards during a schedule: a wait ends when all loads counted on the board so far are there, the latest too. */
struct boards {
    int issued[SCOREBOARDS], cleared[SCOREBOARDS]; /* loads counted, and up to which of them were waited for */
    int ready[SCOREBOARDS];                        /* the slot at which the latest is there */
    int needs[RUN_MAX][SCOREBOARDS];               /* of each node: the last such load, 0: none */
};

struct state {
    const struct run *run;
    struct knobs knobs;
    struct ports ports;
    struct boards boards;
    struct dice *dice;
    int left[RUN_MAX],
        ready[RUN_MAX];       /* of each node: predecessors that have not gone, the slot from which it may go */
    int open[RUN_MAX], opens; /* nodes whose predecessors have all gone */
    int uses[REGISTERS];      /* FFMAs left that read a register in slot a or b */
    int slot, last_load, done, waited;
};

/* An open node, and how it would go. */
struct candidate {
    int place; /* in `open`, -1: none */
    bool swap;
    double score;
};

static unsigned roll(struct dice *dice)
{
    return dice->state = dice->state * 1664525u + 1013904223u, dice->state >> 8;
}

struct node node_of(struct word w, int home)
{
    struct node x = {w, is_plain_load(w), field_d(w), 1, field_a(w), field_b(w), field_c(w), home};
    if (x.load) {
        x.width = VECTOR;
        x.b = x.c = -1;
    }
    return x;
}

bool node_writes(const struct node *x, int r)
{
    return r >= x->d && r < x->d + x->width;
}

/* ---- which order must be kept ---- */

static bool overlap(const struct node *x, const struct node *y)
{
    return x->d < y->d + y->width && y->d < x->d + x->width;
}

/* Returns whether x reads what y writes. */
static bool reads_from(const struct node *x, const struct node *y)
{
    return node_writes(y, x->a) || (x->b >= 0 && node_writes(y, x->b)) || (x->c >= 0 && node_writes(y, x->c));
}

/* Returns the slots by which `later` must follow `first`; 0: they may change places. */
static int gap(const struct node *first, const struct node *later)
{
    if (first->load && later->load)
        return 1; /* loads keep their order */
    if (reads_from(later, first) || overlap(first, later))
        return first->load ? 1 : FMA_LATENCY; /* a scoreboard holds back who waits for a load */
    return reads_from(first, later);
}

static void add_edge(struct run *r, int from, int to, int slots)
{
    if (r->edges == r->edge_room) {
        r->edge_room = r->edge_room ? 2 * r->edge_room : 1 << 16;
        r->edge = realloc(r->edge, (size_t)r->edge_room * sizeof *r->edge);
        if (!r->edge) {
            fprintf(stderr, "sass: out of memory\n");
            exit(1);
        }
    }
    r->edge[r->edges] = (struct edge){to, slots, r->first_edge[from]};
    r->first_edge[from] = r->edges++;
    ++r->predecessors[to];
}

void run_link(struct run *r)
{
    r->edges = 0;
    for (int i = 0; i < r->n; ++i) {
        r->first_edge[i] = -1;
        r->predecessors[i] = 0;
    }
    for (int j = 0; j < r->n; ++j)
        for (int i = 0; i < j; ++i) {
            int slots = gap(&r->node[i], &r->node[j]);
            if (slots)
                add_edge(r, i, j, slots);
        }
}

void run_free(struct run *r)
{
    free(r->edge);
    r->edge = NULL;
    r->edge_room = 0;
}

/* ---- one schedule ---- */

static void start(struct state *s, const struct run *r, const struct knobs *knobs, struct dice *dice)
{
    memset(s, 0, sizeof *s);
    s->run = r;
    s->knobs = *knobs;
    s->dice = dice;
    s->last_load = NEVER;
    ports_reset(&s->ports, r->place);
    memcpy(s->left, r->predecessors, sizeof s->left);
    memcpy(s->ready, r->ready, sizeof s->ready);
    for (int i = 0; i < r->n; ++i) {
        if (!s->left[i])
            s->open[s->opens++] = i;
        if (!r->node[i].load) {
            ++s->uses[r->node[i].a];
            ++s->uses[r->node[i].b];
        }
    }
}

/* Returns the slots that FFMA i would wait for its loads now. */
static int slots_to_wait(const struct state *s, int i)
{
    int now = s->slot + s->waited, wait = s->run->loaded[i] - now;
    for (int b = 0; b < SCOREBOARDS; ++b)
        if (s->boards.needs[i][b] > s->boards.cleared[b] && s->boards.ready[b] - now > wait)
            wait = s->boards.ready[b] - now;
    return wait > 0 ? wait : 0;
}

static struct operands operands_of(const struct node *x, bool swap)
{
    return swap ? (struct operands){x->b, x->a, x->c, x->d} : (struct operands){x->a, x->b, x->c, x->d};
}

static double score_fma(const struct state *s, const struct node *x, bool swap, double base)
{
    struct ports ports = s->ports;
    struct operands o = operands_of(x, swap);
    struct port_cost cost = ports_fma(&ports, o);
    double score = base + cost.penalty * (double)PORT_WEIGHT + cost.fresh_reads;
    const int operand[SLOTS] = {o.a, o.b};
    for (int slot = 0; slot < SLOTS; ++slot) {
        int held = s->ports.cached[slot][operand[slot] & 1];
        if (held >= 0 && held != operand[slot])
            score += s->knobs.evict * (s->uses[held] > USES_MAX ? USES_MAX : s->uses[held]);
    }
    return score;
}

/* Returns whether a load may go: it keeps its distance from the last one, or the run's end is near. */
static bool load_may_go(const struct state *s, const struct node *x)
{
    int tail = s->run->n - LOAD_TAIL;
    bool due = x->home < tail && s->slot > tail - 2 * s->knobs.spacing;
    return due || s->slot - s->last_load >= s->knobs.spacing;
}

static struct candidate choose(struct state *s)
{
    struct candidate best = {-1, false, 1e30};
    for (int o = 0; o < s->opens; ++o) {
        int i = s->open[o];
        const struct node *x = &s->run->node[i];
        if (s->ready[i] > s->slot)
            continue;
        double base = s->knobs.age * (x->home - s->done) + s->knobs.jitter * (roll(s->dice) & 255) / 255.0;
        if (x->load) {
            if (load_may_go(s, x) && base - LOADS_FIRST < best.score)
                best = (struct candidate){o, false, base - LOADS_FIRST};
            continue;
        }
        int wait = slots_to_wait(s, i);
        if (wait > 0)
            base += s->knobs.patience * wait;
        for (int swap = 0; swap < 2 && base < best.score; ++swap) { /* no score is below its base */
            double score = score_fma(s, x, swap, base);
            if (score < best.score)
                best = (struct candidate){o, swap, score};
        }
    }
    /* Where nothing else is ready a load goes before its time. */
    for (int o = 0; o < s->opens && best.place < 0; ++o)
        if (s->run->node[s->open[o]].load && s->ready[s->open[o]] <= s->slot)
            best = (struct candidate){o, false, 0};
    return best;
}

static void issue_load(struct state *s, const struct node *x)
{
    int board = write_scoreboard(x->code);
    s->last_load = s->slot;
    ports_load(&s->ports, x->d, x->width);
    ++s->boards.issued[board];
    s->boards.ready[board] = s->slot + s->waited + LOAD_LATENCY;
}

static void issue_fma(struct state *s, int i, bool swap)
{
    const struct node *x = &s->run->node[i];
    int wait = slots_to_wait(s, i);
    for (int b = 0; b < SCOREBOARDS; ++b)
        if (s->boards.needs[i][b] > s->boards.cleared[b])
            s->boards.cleared[b] = s->boards.issued[b];
    s->waited += wait;
    ports_fma(&s->ports, operands_of(x, swap));
    --s->uses[x->a];
    --s->uses[x->b];
}

/* Notes that node i has gone: those behind it come nearer. */
static void release(struct state *s, int i)
{
    const struct run *r = s->run;
    const struct node *x = &r->node[i];
    for (int e = r->first_edge[i]; e >= 0; e = r->edge[e].next) {
        int to = r->edge[e].to;
        if (s->slot + r->edge[e].gap > s->ready[to])
            s->ready[to] = s->slot + r->edge[e].gap;
        if (x->load && !r->node[to].load)
            s->boards.needs[to][write_scoreboard(x->code)] = s->boards.issued[write_scoreboard(x->code)];
        if (!--s->left[to])
            s->open[s->opens++] = to;
    }
}

/* Returns false where the schedule gets stuck. */
static bool schedule(struct state *s, struct plan *out)
{
    const struct run *r = s->run;
    out->n = r->n;
    while (s->done < r->n) {
        struct candidate best = choose(s);
        if (best.place < 0) {
            if (!s->done || out->stall[s->done - 1] >= WAIT_MAX)
                return false;
            ++out->stall[s->done - 1];
            ++s->slot;
            ++s->ports.cycle;
            continue;
        }
        int i = s->open[best.place];
        const struct node *x = &r->node[i];
        s->open[best.place] = s->open[--s->opens];
        if (x->load && x->home < r->n - LOAD_TAIL && s->done >= r->n - LOAD_TAIL)
            return false;
        if (x->load)
            issue_load(s, x);
        else
            issue_fma(s, i, best.swap);
        out->order[s->done] = i;
        out->swapped[s->done] = best.swap;
        out->stall[s->done++] = 1;
        release(s, i);
        ++s->slot;
    }
    out->cost = s->ports.cycle + 0.5 * s->waited;
    return true;
}

static struct knobs random_knobs(struct dice *dice)
{
    struct knobs k;
    k.spacing = 6 + (int)(roll(dice) % 18);
    k.evict = 0.05 * (1 + roll(dice) % 8);
    k.age = 0.002 * (1 + roll(dice) % 20);
    k.jitter = 0.2 * (roll(dice) % 4);
    k.patience = 0.5 * (1 + roll(dice) % 8);
    return k;
}

bool schedule_best(const struct run *r, struct dice *dice, struct plan *best)
{
    static struct plan trial;
    static struct state state;
    bool found = false;
    for (int t = 0; t < TRIES; ++t) {
        struct knobs knobs = random_knobs(dice);
        start(&state, r, &knobs, dice);
        if (schedule(&state, &trial) && (!found || trial.cost < best->cost)) {
            *best = trial;
            found = true;
        }
    }
    return found;
}
