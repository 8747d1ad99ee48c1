/* `sass ports` and `sass list`: finds the main loop of a compiled kernel and asks the model of the register ports for
 * its cycles, or prints its first instructions. */
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
    printf("%s ffmas %d instructions %d cycles %d\n", f->name, loop.ffmas, n,
           ports_cycles(f->code + loop.first, n, NO_TURNS));
}

/* Prints an FFMA with the registers that it reads from each bank, and keeps what its reuse flags keep. */
static void list_fma(struct ports *p, struct word w)
{
    struct operands x = {field_a(w), field_b(w), field_c(w), field_d(w)};
    const int operand[SLOTS] = {x.a, x.b};
    int reads[BANKS] = {0, 0};
    reads[x.c & 1]++;
    for (int slot = 0; slot < SLOTS; slot++)
        reads[operand[slot] & 1] += p->cached[slot][operand[slot] & 1] != operand[slot];
    ports_fma(p, x);
    for (int slot = 0; slot < SLOTS; slot++)
        if (!reuses(w, slot))
            p->cached[slot][operand[slot] & 1] = -1;
    char text[64];
    snprintf(text, sizeof text, "R%d, R%d%s, R%d%s, R%d", x.d, x.a, reuses(w, 0) ? ".reuse" : "", x.b,
             reuses(w, 1) ? ".reuse" : "", x.c);
    printf("FFMA     %-32s stall %d  reads even %d, odd %d", text, cycles_of(w), reads[0], reads[1]);
}

/* Prints a shared load, or that it is another instruction. */
static void list_other(struct word w)
{
    char text[64] = "";
    if (is_plain_load(w))
        snprintf(text, sizeof text, "R%d, [R%d+0x%x]", field_d(w), field_a(w), offset(w));
    printf("%-8s %-32s stall %d", is_plain_load(w) ? "LDS.128" : "(other)", text, cycles_of(w));
    if (write_scoreboard(w) != NO_SCOREBOARD)
        printf("  sets scoreboard %d", write_scoreboard(w));
}

void ports_list(const struct function *f, int lines)
{
    struct run loop = main_loop(f);
    struct ports p;
    ports_reset(&p, NO_TURNS);
    for (int i = loop.first; loop.ffmas && i < loop.end && i < loop.first + lines; i++) {
        struct word w = f->code[i];
        if (is_plain_fma(w)) {
            list_fma(&p, w);
        } else {
            ports_load(&p, field_d(w), is_plain_load(w) ? VECTOR : 1);
            list_other(w);
        }
        for (int number = 0; number < SCOREBOARDS; number++)
            if (waits(w) >> number & 1)
                printf("  waits for scoreboard %d", number);
        putchar('\n');
    }
}
