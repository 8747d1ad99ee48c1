/* Timing loops with chosen registers: see pattern.h. Only registers that the loop's own FFMAs use are given out anew,
 * so addresses and counters stay; what is computed changes, and nobody uses it. */
#include "pattern.h"
#include "../../lab/device/lab_ports.h"

#include <stdio.h>
#include <string.h>

enum { BANKS = 2, A_BANK = PORTS_SUMS / BANKS + PORTS_SOURCES / BANKS, ALL_WAITS = (1 << SCOREBOARDS) - 1 };

static const ports_pattern patterns[] = {
#define PORTS_PATTERN(symbol, text, row, column, sum, row_stays, column_stays, flags, may_switch)                      \
    {#symbol, text, PORTS_##row, PORTS_##column, PORTS_##sum, row_stays, column_stays, flags, may_switch},
    PORTS_PATTERNS
#undef PORTS_PATTERN
};

static const ports_pattern *pattern_of(const char *name)
{
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
        if (!strcmp(patterns[i].symbol, name))
            return &patterns[i];
    return NULL;
}

/* Finds the loop: from the target of the branch back that has PORTS_FFMAS plain FFMAs before it. */
static bool find_loop(const struct function *f, int *begin, int *end)
{
    for (int i = 0; i < f->n; i++) {
        int64_t to = branch_target(f->code[i], i);
        int ffmas = 0;
        for (int64_t j = to; j >= 0 && j < i; j++)
            ffmas += is_plain_fma(f->code[j]);
        if (to >= 0 && to < i && ffmas == PORTS_FFMAS) {
            *begin = (int)to;
            *end = i;
            return true;
        }
    }
    return false;
}

/* Collects the registers that the loop's FFMAs use, by bank. Returns false where a bank has fewer than the patterns
 * need. */
static bool collect(const struct function *f, int begin, int end, int registers[BANKS][A_BANK])
{
    bool used[REGISTERS] = {false};
    int found[BANKS] = {0, 0};
    for (int i = begin; i < end; i++)
        if (is_plain_fma(f->code[i]))
            used[field_a(f->code[i])] = used[field_b(f->code[i])] = used[field_c(f->code[i])] = true;
    for (int r = 0; r < REGISTERS; r++)
        if (used[r] && found[r % BANKS] < A_BANK)
            registers[r % BANKS][found[r % BANKS]++] = r;
    return found[0] == A_BANK && found[1] == A_BANK;
}

static uint64_t number_of(int registers[BANKS][A_BANK], const ports_pattern *p, int which, int i)
{
    ports_register at = ports_operand(p, which, i);
    int first = which == PORTS_SUM ? PORTS_SOURCES / BANKS : 0;
    return (uint64_t)registers[at.bank][first + at.nth];
}

bool pattern_function(const struct function *f)
{
    const ports_pattern *p = pattern_of(f->name);
    int registers[BANKS][A_BANK], begin, end, nth = 0;
    if (!p || !find_loop(f, &begin, &end) || !collect(f, begin, end, registers)) {
        fprintf(stderr, "sass pattern: %s %s\n", f->name,
                p ? "has no loop of as many FFMAs and registers as its pattern needs" : "is not the name of a pattern");
        return false;
    }
    for (int i = begin; i < end; i++) {
        struct word *w = &f->code[i];
        if (!is_plain_fma(*w))
            continue;
        uint64_t row = number_of(registers, p, PORTS_ROW, nth), column = number_of(registers, p, PORTS_COLUMN, nth);
        uint64_t sum = number_of(registers, p, PORTS_SUM, nth);
        bool followed = is_plain_fma(f->code[i + 1]) && p->flags;
        struct control c = {.stall = 1,
                            .stay = !p->may_switch,
                            .write = NO_SCOREBOARD,
                            .read = NO_SCOREBOARD,
                            .wait = nth == 0 ? ALL_WAITS : 0,
                            .reuse = (followed && ports_stays(p, PORTS_ROW, nth) ? 1u : 0u) |
                                     (followed && ports_stays(p, PORTS_COLUMN, nth) ? 2u : 0u)};
        w->low = (w->low & 0xffff) | sum << 16 | row << 24 | column << 32;
        w->high = sum | control_bits(&c);
        nth++;
    }
    return true;
}
