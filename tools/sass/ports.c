/* The register ports: see ports.h. */
#include "ports.h"

#include <string.h>

enum {
    LAG = 2,        /* cycles by which an FFMA's reads may come after its issue without holding up the next one */
    LOST_CYCLE = 8, /* what a lost cycle weighs against a read that piles up */
    PILE = 2        /* reads that both banks may owe together before they count */
};

void ports_reset(struct ports *p, int next)
{
    memset(p, 0, sizeof *p);
    memset(p->cached, -1, sizeof p->cached);
    p->next = next;
}

/* Goes on to the next instruction: at the beginning of a turn nothing is kept. */
static void go_on(struct ports *p)
{
    ++p->cycle;
    if (p->next != NO_TURNS && p->next++ % TURN == 0)
        memset(p->cached, -1, sizeof p->cached);
}

struct port_cost ports_fma(struct ports *p, struct operands x)
{
    const int operand[SLOTS] = {x.a, x.b};
    int reads[BANKS] = {0, 0}, late = 0;
    go_on(p);
    for (int slot = 0; slot < SLOTS; ++slot) {
        int bank = operand[slot] & 1;
        if (p->cached[slot][bank] != operand[slot])
            ++reads[bank];
        p->cached[slot][bank] = operand[slot];
    }
    ++reads[x.c & 1];
    for (int slot = 0; slot < SLOTS; ++slot)
        if (p->cached[slot][x.d & 1] == x.d)
            p->cached[slot][x.d & 1] = -1;
    for (int bank = 0; bank < BANKS; ++bank) {
        if (p->free_at[bank] < p->cycle)
            p->free_at[bank] = p->cycle;
        p->free_at[bank] += reads[bank];
        if (p->free_at[bank] - p->cycle - LAG > late)
            late = p->free_at[bank] - p->cycle - LAG;
    }
    p->cycle += late;
    int owed = p->free_at[0] + p->free_at[1] - 2 * p->cycle;
    return (struct port_cost){late * LOST_CYCLE + (owed > PILE ? owed - PILE : 0), reads[0] + reads[1]};
}

void ports_load(struct ports *p, int d, int width)
{
    go_on(p);
    for (int slot = 0; slot < SLOTS; ++slot)
        for (int bank = 0; bank < BANKS; ++bank)
            if (p->cached[slot][bank] >= d && p->cached[slot][bank] < d + width)
                p->cached[slot][bank] = -1;
}

int ports_cycles(const struct word *code, int n, int next)
{
    struct ports p;
    ports_reset(&p, next);
    for (int i = 0; i < n; ++i) {
        struct operands x = {field_a(code[i]), field_b(code[i]), field_c(code[i]), field_d(code[i])};
        if (!is_plain_fma(code[i])) {
            ports_load(&p, x.d, is_plain_load(code[i]) ? VECTOR : 1);
            continue;
        }
        ports_fma(&p, x);
        const int operand[SLOTS] = {x.a, x.b};
        for (int slot = 0; slot < SLOTS; ++slot)
            if (!reuses(code[i], slot))
                p.cached[slot][operand[slot] & 1] = -1;
    }
    return p.cycle;
}
