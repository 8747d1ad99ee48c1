/* `sass ports`: finds the main loop of a compiled kernel and asks the model of the register ports for its cycles. */
#include "ports_report.h"

#include "ports.h"

#include <stdio.h>

struct run {
    int first, end, ffmas;
};

static int ffmas_of(const struct word *code, int first, int end)
{
    int count = 0;
    for (int i = first; i < end; i++)
        count += is_plain_fma(code[i]);
    return count;
}

/* Finds the shortest run that holds at least half of the function's FFMAs. */
static struct run main_loop(const struct function *f)
{
    struct run best = {0, f->n, 0};
    int all = ffmas_of(f->code, 0, f->n);
    for (int i = 0; i < f->n; i++) {
        int64_t to = opcode(f->code[i]) == OP_BRA ? branch_target(f->code[i], i) : -1;
        if (to < 0 || to > i)
            continue;
        struct run found = {(int)to, i + 1, ffmas_of(f->code, (int)to, i + 1)};
        if (found.ffmas && 2 * found.ffmas >= all && found.end - found.first < best.end - best.first)
            best = found;
    }
    return best;
}

void ports_report(const struct function *f)
{
    struct run loop = main_loop(f);
    if (!loop.ffmas)
        return;
    int n = loop.end - loop.first;
    printf("%s ffmas %d instructions %d cycles %d\n", f->name, loop.ffmas, n, ports_cycles(f->code + loop.first, n));
}
