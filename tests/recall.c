/* What accurate mode recalls of the guard changes when it looks at its operands, never what it computes: the same call
 * gives the same bits whatever ran before, in the same place of memory. On a GPU, or under the lens, where the looks
 * are counted. usage: recall KERNEL, a kernel of the accurate family */
#define _GNU_SOURCE
#include "rung_lens.h"
#include "rung_tools.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONG = 300, K = 136, ODD = 3, ELEMENTS = (LONG + ODD) * (LONG + ODD) };

/* One operand has more blocks of lines than the other, A or B. */
static const struct shape {
    int m, n, blocks, partly; /* the operand with so many lines is spread in part */
} shapes[] = {{140, 60, 2, 140}, {60, LONG, 3, LONG}};

/* Of SPREAD data the guard refuses every block, of PARTLY those of the longer operand's first 128 lines, of LONE all
 * for one element that is not finite, in a line that only a witness names. */
typedef enum kind { ORDINARY, SPREAD, PARTLY, NOT_FINITE, LONE, KINDS } kind;
static const char *const names[] = {"ordinary", "spread", "spread in part", "not finite", "ordinary but for one"};

typedef struct operands {
    rung_gemm gemm;
    float *a, *b, *c;             /* on the GPU */
    float first[KINDS][ELEMENTS]; /* C */
} operands;

static rung_tools *tools;
static const char *kernel;
static const struct shape *shape;
static int (*launch_count)(void);
static const rung_lens_launch *(*launch_at)(int index);
static uint64_t state = 20261123;

static void need(rung_status status, const char *what)
{
    if (status == RUNG_SUCCESS)
        return;
    printf("%s: %s\n", what, rung_last_error());
    exit(status == RUNG_NO_DEVICE ? 77 : 1);
}

static void fail(const char *what, int value)
{
    printf("FAILED: %s %d\n", what, value);
    exit(1);
}

static double uniform(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(state >> 11) / 9007199254740992.0;
}

/* Fills the operand of which `line_step` leads to the next line and `k_step` along k. The bits depend on the kind
 * alone. */
static void fill(float *to, kind of, int lines, int64_t line_step, int64_t k_step)
{
    static float values[ELEMENTS];
    state = (uint64_t)lines * 7 + of;
    memset(values, 0xff, sizeof values);
    for (int i = 0; i < lines; i++)
        for (int k = 0; k < K; k++) {
            const int wide = of == SPREAD || of == NOT_FINITE || (of == PARTLY && lines == shape->partly && i < 128);
            values[i * line_step + k * k_step] = (float)ldexp(uniform() - 0.5, wide ? (int)(uniform() * 100) - 50 : 0);
        }
    if (of == NOT_FINITE)
        values[0] = INFINITY;
    if (of == LONE) { /* another line of its block stands out, though not so far that the guard minds */
        values[5 * line_step + 7 * k_step] = INFINITY;
        values[9 * line_step + 11 * k_step] = 4.0f;
    }
    need(rung_tools_upload(tools, to, values, sizeof values), "upload");
}

static void put(const operands *o, kind of)
{
    fill(o->a, of, (int)o->gemm.m, o->gemm.trans_a ? 1 : o->gemm.lda, o->gemm.trans_a ? o->gemm.lda : 1);
    fill(o->b, of, (int)o->gemm.n, o->gemm.trans_b ? o->gemm.ldb : 1, o->gemm.trans_b ? 1 : o->gemm.ldb);
    need(rung_tools_fill(tools, o->c, 0x7fc0dead, ELEMENTS), "fill");
}

/* Counts the launches in which blocks have looked: the last of them says in shared memory that it is. */
static int looks(void)
{
    int count = 0;
    for (int i = 0; launch_count && i < launch_count(); i++) {
        const rung_lens_launch *launch = launch_at(i);
        int looked = 0;
        for (int s = 0; s < launch->site_count; s++)
            looked |= strcmp(launch->kernel, "f16x3_look") == 0 && strcmp(launch->sites[s].name, "is_last") == 0;
        count += looked;
    }
    return count;
}

/* Runs the product and compares; returns how many looks it made. */
static int run(rung_plan *plan, rung_context *context, operands *o, kind of, int is_first, int call)
{
    static float got[ELEMENTS];
    rung_guard_counts before, after;
    const int from = looks();
    put(o, of);
    need(rung_context_guard_counts(context, &before), "counts");
    need(rung_plan_run(plan, &o->gemm), "run");
    need(rung_context_guard_counts(context, &after), "counts");
    need(rung_tools_download(tools, got, o->c, sizeof got), "download");
    if (is_first)
        memcpy(o->first[of], got, sizeof got);
    if (memcmp(got, o->first[of], sizeof got) != 0) {
        printf("%s: other bits than the first time, ", names[of]);
        fail("call", call);
    }
    const int64_t all = after.blocks - before.blocks, strict = after.strict_blocks - before.strict_blocks;
    if (all != shape->blocks || strict != (of == ORDINARY ? 0 : of == PARTLY ? 1 : shape->blocks)) {
        printf("%s: %d of %d blocks strict, ", names[of], (int)strict, (int)all);
        fail("call", call);
    }
    return looks() - from;
}

static rung_context *context_new(void)
{
    rung_context *context;
    rung_config config;
    rung_config_init(&config);
    config.math = RUNG_ACCURATE;
    config.stream = rung_tools_stream(tools);
    need(rung_context_create(&context, &config), "context");
    return context;
}

/* Returns whether as many looks were made as is expected; where it must be so and is not, the test ends. Another
 * product has so many columns less. */
static int goes_as(operands *o, const char *calls, int less, int must)
{
    rung_context *context = context_new();
    rung_plan *plan, *others;
    rung_gemm other = o->gemm;
    int good = 1;
    other.n -= less;
    need(rung_plan_create_kernel(&plan, context, &o->gemm, kernel), kernel);
    need(rung_plan_create_kernel(&others, context, &other, kernel), kernel);
    for (int i = 0; calls[i] && good; i++) {
        if (calls[i] == '.') {
            put(o, ORDINARY);
            need(rung_plan_run(others, &other), "run");
            continue;
        }
        const char *letters = "OSPNLospnl", *at = strchr(letters, calls[i]);
        const int count = run(plan, context, o, (kind)((at - letters) % KINDS), 0, i);
        good = !launch_count || count == (at - letters >= KINDS);
        if (!good && must) {
            printf("%s: %d looks at ", calls, count);
            fail("call", i);
        }
    }
    rung_plan_destroy(others);
    rung_plan_destroy(plan);
    rung_context_destroy(context);
    return good;
}

/* What is expected of the looks, a letter a call: O, S, P, N, L are the kinds, in small letters where a look is made. A
 * dot is another product, of ordinary data, on the same workspace. By their addresses two products may have one place
 * of 256 in the table, and forget each other: then others are tried. */
static void expect(operands *o, const char *calls)
{
    enum { OTHERS = 3 };
    int less = 1;
    while (!goes_as(o, calls, less, less == OTHERS || !strchr(calls, '.')))
        less++;
}

/* What was said of one product is recalled for no other: not for one that differs in an address, a size, a leading
 * dimension or a transpose alone. */
static void others_are_not_recalled(operands *o)
{
    enum { FIELDS = 9 };
    o->gemm.lda = o->gemm.ldb = o->gemm.ldc = LONG;
    for (int field = 0; field < FIELDS; field++) {
        rung_gemm other = o->gemm;
        int64_t *const numbers[] = {&other.m, &other.n, &other.k, &other.lda, &other.ldb};
        rung_context *context = context_new();
        rung_plan *plan, *others;
        if (field < 5)
            *numbers[field] += field < 3 ? -4 : -8;
        else if (field < 7)
            *(field == 5 ? &other.a : &other.b) += 4;
        else
            *(field == 7 ? &other.trans_a : &other.trans_b) ^= 1;
        need(rung_plan_create_kernel(&plan, context, &o->gemm, kernel), kernel);
        need(rung_plan_create_kernel(&others, context, &other, kernel), kernel);
        put(o, SPREAD);
        need(rung_plan_run(plan, &o->gemm), "run");
        const int from = looks();
        need(rung_plan_run(others, &other), "run");
        if (looks() > from)
            fail("a product is looked at for what was said of one that differs in field", field);
        rung_plan_destroy(others);
        rung_plan_destroy(plan);
        rung_context_destroy(context);
    }
}

/* A captured product knows at a replay what the guard said at the one before: the bits are those of a call all the
 * same. The lens has no graphs. */
static void try_replays(operands *o)
{
    static const char order[] = "SSSPSSSSSSSSSSOOSSNNSPPS";
    rung_context *context = context_new();
    rung_plan *plan;
    void *graph = NULL;
    need(rung_plan_create_kernel(&plan, context, &o->gemm, kernel), kernel);
    need(rung_tools_capture_begin(tools), "capture");
    need(rung_plan_run(plan, &o->gemm), "run");
    need(rung_tools_capture_end(tools, &graph), "capture");
    for (int i = 0; order[i]; i++) {
        static float got[ELEMENTS];
        const kind of = (kind)(strchr("OSPN", order[i]) - "OSPN");
        put(o, of);
        need(rung_tools_graph_launch(tools, graph), "replay");
        need(rung_tools_download(tools, got, o->c, sizeof got), "download");
        if (memcmp(got, o->first[of], sizeof got) != 0) {
            printf("%s: other bits than a call's, ", names[of]);
            fail("replay", i);
        }
    }
    rung_tools_graph_destroy(tools, graph);
    rung_plan_destroy(plan);
    rung_context_destroy(context);
}

#define SIXTEEN "ssssssssssssssss"

static void try_form(int trans_a, int trans_b, int pad)
{
    operands *o = calloc(1, sizeof *o);
    void *memory[3];
    for (int i = 0; i < 3; i++)
        need(rung_tools_alloc(tools, ELEMENTS * 4, &memory[i]), "no memory");
    o->a = memory[0], o->b = memory[1], o->c = memory[2];
    rung_gemm_init(&o->gemm);
    o->gemm.layout = RUNG_ROW_MAJOR;
    o->gemm.trans_a = trans_a ? RUNG_TRANS : RUNG_NO_TRANS;
    o->gemm.trans_b = trans_b ? RUNG_TRANS : RUNG_NO_TRANS;
    o->gemm.m = shape->m, o->gemm.n = shape->n, o->gemm.k = K;
    o->gemm.a = o->a, o->gemm.b = o->b, o->gemm.c = o->c;
    o->gemm.lda = (trans_a ? shape->m : K) + pad, o->gemm.ldb = (trans_b ? K : shape->n) + pad;
    o->gemm.ldc = shape->n + pad;
    for (int of = 0; of < KINDS; of++) { /* each by a context that knows of nothing */
        rung_context *context = context_new();
        rung_plan *plan;
        need(rung_plan_create_kernel(&plan, context, &o->gemm, kernel), kernel);
        if (run(plan, context, o, (kind)of, 1, -1) > 0)
            fail("the first product was looked at, kind", of);
        rung_plan_destroy(plan);
        rung_context_destroy(context);
    }
    expect(o, "S.snp");
    expect(o, "L.lll");
    if (trans_a && trans_b) {
        expect(o, "OO");
        expect(o, "PP");
    }
    /* After a look in vain eight products go without one, after the next sixteen; after 64 good looks eight again. */
    if (!trans_a && !trans_b) {
        expect(o, "SspSSSSSSSSssoSSSSSSSSSSSSSSSSs");
        expect(o, "SpSSSSSSSS" SIXTEEN SIXTEEN SIXTEEN "sssssssssssssss"
                  "pSSSSSSSSSSSSSSSSs");
        expect(o, "SpSSSSSSSS" SIXTEEN SIXTEEN SIXTEEN SIXTEEN "pSSSSSSSSs");
    }
    if (!launch_count)
        try_replays(o);
    if (!trans_a && trans_b)
        others_are_not_recalled(o);
    for (int i = 0; i < 3; i++)
        rung_tools_free(tools, memory[i]);
    free(o);
}

/* A tail is long from this many elements on that lie behind the first of a line's largest and are not less than 2^-21
 * of it. Where one element of a line stands out, only that makes its block safe. */
static const struct tail {
    int place, behind;
    double size; /* of those before and behind the place */
    int strict;
} tails[] = {{0, 1024, 0x1p-12, 0},   {0, 1023, 0x1p-12, 1},   {70, 1024, 0x1p-12, 0},
             {70, 1023, 0x1p-12, 1},  {117, 1024, 0x1p-21, 0}, {117, 1023, 0x1p-21, 1},
             {3, 1040, 0x1.fp-22, 1}, {1, 1023, 1.0 / 3, 0}}; /* too small; nothing stands out */

/* Fills an operand of equal lines along k. */
static void fill_lines(float *to, const float *line, int lines, int k, int along)
{
    float *values = calloc((size_t)lines * k, sizeof *values);
    for (int i = 0; i < lines; i++)
        for (int j = 0; j < k; j++)
            values[along ? i * k + j : j * lines + i] = line[j];
    need(rung_tools_upload(tools, to, values, (size_t)lines * k * sizeof *values), "upload");
    free(values);
}

static void try_tail(const struct tail *t, int of_b, int along)
{
    enum { LINES = 64, DEPTH = 1152 };
    static float line[DEPTH], ones[DEPTH];
    void *memory[3];
    rung_gemm g;
    rung_plan *plan;
    rung_guard_counts before, after;
    rung_context *context = context_new();
    for (int i = 0; i < DEPTH; i++) {
        line[i] = i == t->place ? 1.0f : i <= t->place + t->behind ? (float)t->size : 0.0f;
        ones[i] = 1.0f;
    }
    for (int i = 0; i < 3; i++)
        need(rung_tools_alloc(tools, (size_t)LINES * DEPTH * 4, &memory[i]), "no memory");
    fill_lines(memory[of_b], line, LINES, DEPTH, along);
    fill_lines(memory[!of_b], ones, LINES, DEPTH, 1);
    rung_gemm_init(&g);
    g.layout = RUNG_ROW_MAJOR;
    g.m = g.n = g.ldc = LINES, g.k = DEPTH;
    const int a_along = of_b || along, b_along = !of_b || along;
    g.trans_a = a_along ? RUNG_NO_TRANS : RUNG_TRANS, g.trans_b = b_along ? RUNG_TRANS : RUNG_NO_TRANS;
    g.lda = a_along ? DEPTH : LINES, g.ldb = b_along ? DEPTH : LINES;
    g.a = memory[0], g.b = memory[1], g.c = memory[2];
    need(rung_plan_create_kernel(&plan, context, &g, kernel), kernel);
    need(rung_context_guard_counts(context, &before), "counts");
    need(rung_plan_run(plan, &g), "run");
    need(rung_context_guard_counts(context, &after), "counts");
    if (after.strict_blocks - before.strict_blocks != (t->strict ? after.blocks - before.blocks : 0)) {
        printf("%s of %c, %d elements of %g behind place %d: %d of %d blocks strict, ",
               along ? "lines along k" : "columns", of_b ? 'B' : 'A', t->behind, t->size, t->place,
               (int)(after.strict_blocks - before.strict_blocks), (int)(after.blocks - before.blocks));
        fail("case", (int)(t - tails));
    }
    rung_plan_destroy(plan);
    rung_context_destroy(context);
    for (int i = 0; i < 3; i++)
        rung_tools_free(tools, memory[i]);
}

/* One line of an operand is larger or smaller than all others by `by`, so that alpha and the scales of its results make
 * a number below the normal range, though the results do not lie there. Each result is as good as its own size allows,
 * and no block is refused, since each line has a scale of its own. */
static void try_line_apart(int of_b, int apart, double by, int ldc)
{
    enum { LINES = 64, DEPTH = 96 };
    static float of[2][DEPTH * LINES], got[LINES * (LINES + ODD)]; /* both with k outermost */
    void *memory[3];
    rung_gemm g;
    rung_plan *plan;
    rung_guard_counts before, after;
    rung_context *context = context_new();
    state = 11;
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < DEPTH * LINES; j++)
            of[i][j] = (float)((uniform() - 0.5) * 0x1p-15 * (i == of_b && j % LINES == apart ? by : 1.0));
    for (int i = 0; i < 3; i++)
        need(rung_tools_alloc(tools, sizeof of[0] > sizeof got ? sizeof of[0] : sizeof got, &memory[i]), "no memory");
    for (int i = 0; i < 2; i++)
        need(rung_tools_upload(tools, memory[i], of[i], sizeof of[i]), "upload");
    rung_gemm_init(&g);
    g.layout = RUNG_ROW_MAJOR;
    g.trans_a = RUNG_TRANS;
    g.m = g.n = g.lda = g.ldb = LINES, g.k = DEPTH, g.ldc = ldc;
    g.alpha = 0.3f;
    g.a = memory[0], g.b = memory[1], g.c = memory[2];
    need(rung_plan_create_kernel(&plan, context, &g, kernel), kernel);
    need(rung_context_guard_counts(context, &before), "counts");
    need(rung_plan_run(plan, &g), "run");
    need(rung_context_guard_counts(context, &after), "counts");
    if (after.strict_blocks != before.strict_blocks)
        fail("blocks refused for a line of another size:", apart);
    need(rung_tools_download(tools, got, memory[2], sizeof got), "download");
    for (int i = 0; i < LINES; i++)
        for (int j = 0; j < LINES; j++) {
            double sum = 0.0, size = 0.0;
            for (int k = 0; k < DEPTH; k++) {
                const double product = (double)g.alpha * of[0][k * LINES + i] * of[1][k * LINES + j];
                sum += product;
                size += fabs(product);
            }
            if (!(fabs(got[i * ldc + j] - sum) <= 1e-6 * size)) {
                printf("line %d of %c by %g, rows %d apart: C[%d][%d] is %g, not %g, ", apart, of_b ? 'B' : 'A', by,
                       ldc, i, j, (double)got[i * ldc + j], sum);
                fail("line", apart);
            }
        }
    rung_plan_destroy(plan);
    rung_context_destroy(context);
    for (int i = 0; i < 3; i++)
        rung_tools_free(tools, memory[i]);
}

/* Where hardly any block is safe all are refused, at the first call as after a look; where more are safe they are
 * multiplied on tensor cores. The lines of A's first `spread` blocks have one huge element each; or one line of each
 * block of A and of B is so tall that sums might overflow. How few is few depends on how many multiprocessors there
 * are: under the lens three, of which the first product wants four safe blocks of its 18. Large tiles compute the last
 * two products of three multiprocessors, and of 132. */
static const struct few {
    int sms, m, n, k, spread, strict, look, tall;
} fews[] = {{3, 700, 384, 512, 5, 18, 1, 0},       {3, 700, 384, 512, 4, 12, 0, 0},
            {3, 256, 384, 512, 2, 6, 1, 0},        {3, 256, 384, 512, 0, 6, 1, 1},
            {132, 2048, 2048, 2048, 8, 128, 0, 0}, {132, 2048, 2048, 2048, 13, 256, 1, 0},
            {132, 2048, 2048, 2048, 0, 256, 1, 1}};

static void fill_few(const struct few *f, float *to, int of_b)
{
    const int lines = of_b ? f->n : f->m;
    float *values = malloc((size_t)lines * f->k * sizeof *values);
    state = 7;
    for (int i = 0; i < lines; i++)
        for (int k = 0; k < f->k; k++)
            values[of_b ? k * lines + i : i * f->k + k] =
                !of_b && i < 128 * f->spread && k == i * 31 % f->k
                    ? 0x1p60f
                    : (float)ldexp(uniform() - 0.5, f->tall && i % 128 == 77 ? 70 : 0);
    need(rung_tools_upload(tools, to, values, (size_t)lines * f->k * sizeof *values), "upload");
    free(values);
}

/* Every result is there, and those of some rows are as good as a sum in order. */
static void check_few(const struct few *f, const void *a, const void *b, const float *c)
{
    const size_t sizes[2] = {(size_t)f->m * f->k, (size_t)f->k * f->n};
    float *of[2] = {malloc(sizes[0] * sizeof(float)), malloc(sizes[1] * sizeof(float))};
    const uint32_t poison = 0x7fc0dead;
    need(rung_tools_download(tools, of[0], a, sizes[0] * sizeof(float)), "download");
    need(rung_tools_download(tools, of[1], b, sizes[1] * sizeof(float)), "download");
    for (int64_t i = 0; i < (int64_t)f->m * f->n; i++)
        if (memcmp(&c[i], &poison, sizeof poison) == 0)
            fail("nobody wrote place", (int)i);
    for (int i = 0; i < f->m; i += f->m / 16)
        for (int j = 0; j < f->n; j++) {
            double sum = 0.0, size = 0.0;
            for (int k = 0; k < f->k; k++) {
                const double product = (double)of[0][(int64_t)i * f->k + k] * of[1][(int64_t)k * f->n + j];
                sum += product;
                size += fabs(product);
            }
            if (!(fabs(c[(int64_t)i * f->n + j] - sum) <= (f->k + 4) * 0x1p-24 * size)) {
                printf("C[%d][%d] is %g, not %g, ", i, j, (double)c[(int64_t)i * f->n + j], sum);
                fail("spread blocks of lines:", f->spread);
            }
        }
    free(of[0]);
    free(of[1]);
}

static void try_few_safe(const struct few *f)
{
    const size_t sizes[3] = {(size_t)f->m * f->k, (size_t)f->k * f->n, (size_t)f->m * f->n};
    float *got[2] = {malloc(sizes[2] * sizeof **got), malloc(sizes[2] * sizeof **got)};
    const int all = (f->m + 127) / 128 * ((f->n + 127) / 128);
    void *memory[3];
    rung_gemm g;
    rung_plan *plan;
    rung_context *context = context_new();
    for (int i = 0; i < 3; i++)
        need(rung_tools_alloc(tools, sizes[i] * sizeof(float), &memory[i]), "no memory");
    fill_few(f, memory[0], 0);
    fill_few(f, memory[1], 1);
    rung_gemm_init(&g);
    g.layout = RUNG_ROW_MAJOR;
    g.m = f->m, g.n = g.ldb = g.ldc = f->n, g.k = g.lda = f->k;
    g.a = memory[0], g.b = memory[1], g.c = memory[2];
    need(rung_plan_create_kernel(&plan, context, &g, kernel), kernel);
    for (int call = 0; call < 2; call++) {
        rung_guard_counts before, after;
        const int from = looks();
        need(rung_tools_fill(tools, memory[2], 0x7fc0dead, sizes[2]), "fill");
        need(rung_context_guard_counts(context, &before), "counts");
        need(rung_plan_run(plan, &g), "run");
        need(rung_context_guard_counts(context, &after), "counts");
        need(rung_tools_download(tools, got[call], memory[2], sizes[2] * sizeof **got), "download");
        if (after.blocks - before.blocks != all || after.strict_blocks - before.strict_blocks != f->strict)
            fail("strict blocks, where few are safe:", (int)(after.strict_blocks - before.strict_blocks));
        if (launch_count && looks() - from != (call && f->look))
            fail("looks, where few blocks are safe:", looks() - from);
    }
    check_few(f, memory[0], memory[1], got[0]);
    if (memcmp(got[0], got[1], sizes[2] * sizeof **got) != 0)
        fail("other bits at the second call, where so many blocks of lines have huge elements:", f->spread);
    rung_plan_destroy(plan);
    rung_context_destroy(context);
    for (int i = 0; i < 2; i++)
        free(got[i]);
    for (int i = 0; i < 3; i++)
        rung_tools_free(tools, memory[i]);
}

/* A long k over few tiles of 132 multiprocessors, where tensor cores are predicted to lose even if all blocks are safe:
 * a look at even data, where wild data were refused before, leaves them to tensor cores, as a first call does. */
static void try_even_after_wild(void)
{
    const struct few wild = {132, 1664, 256, 6144, 13, 26, 1, 0}, even = {132, 1664, 256, 6144, 0, 0, 0, 0};
    const size_t sizes[3] = {(size_t)wild.m * wild.k, (size_t)wild.k * wild.n, (size_t)wild.m * wild.n};
    const struct few *const calls[] = {&even, &wild, &wild, &even};
    float *got[4];
    void *memory[3];
    rung_gemm g;
    rung_plan *plan;
    rung_context *context = context_new();
    for (int i = 0; i < 3; i++)
        need(rung_tools_alloc(tools, sizes[i] * sizeof(float), &memory[i]), "no memory");
    rung_gemm_init(&g);
    g.layout = RUNG_ROW_MAJOR;
    g.m = wild.m, g.n = g.ldb = g.ldc = wild.n, g.k = g.lda = wild.k;
    g.a = memory[0], g.b = memory[1], g.c = memory[2];
    need(rung_plan_create_kernel(&plan, context, &g, kernel), kernel);
    for (int call = 0; call < 4; call++) {
        rung_guard_counts before, after;
        got[call] = malloc(sizes[2] * sizeof *got[call]);
        fill_few(calls[call], memory[0], 0);
        fill_few(calls[call], memory[1], 1);
        need(rung_context_guard_counts(context, &before), "counts");
        need(rung_plan_run(plan, &g), "run");
        need(rung_context_guard_counts(context, &after), "counts");
        need(rung_tools_download(tools, got[call], memory[2], sizes[2] * sizeof *got[call]), "download");
        if (after.strict_blocks - before.strict_blocks != calls[call]->strict)
            fail("strict blocks of even data, before and after wild ones, call", call);
    }
    if (memcmp(got[0], got[3], sizes[2] * sizeof *got[0]) != 0)
        fail("other bits after wild data, call", 3);
    rung_plan_destroy(plan);
    rung_context_destroy(context);
    for (int i = 0; i < 4; i++)
        free(got[i]);
    for (int i = 0; i < 3; i++)
        rung_tools_free(tools, memory[i]);
}

/* Each limit of the guard from both sides. A line of A has so many elements of 2^exponent and then none, or one of 1
 * and a tail behind it, where the line is one of so many with a tail; a line of B has elements. */
static const struct limit {
    int k, a_elements, a_exponent, b_elements, b_exponent, tailed, strict;
} limits[] = {
    {255, 255, 59, 255, 58, 0, 0}, /* sums of up to 2^127: the exponents, 2 and the bits of k */
    {255, 255, 59, 255, 59, 0, 1},   {256, 256, 58, 256, 58, 0, 0},  {256, 256, 59, 256, 58, 0, 1},
    {256, 256, 100, 256, 16, 0, 0},  {256, 256, 16, 256, 101, 0, 1}, {256, 256, 127, 256, -11, 0, 0},
    {256, 256, 127, 256, -10, 0, 1}, {512, 32, 0, 32, 0, 0, 0}, /* terms that matter */
    {512, 32, 0, 31, 0, 0, 1},       {512, 31, 0, 32, 0, 0, 1},      {2048, 1, 0, 64, 0, 64, 0},
    {2048, 1, 0, 63, 0, 64, 1},                                   /* how dense B is beside tails */
    {2048, 1, 0, 2048, 0, 8, 0},     {2048, 1, 0, 2048, 0, 7, 1}, /* an eighth of the lines has a tail */
};
enum { LIMIT_LINES = 64, LIMIT_K = 2048 };

static void fill_limit(float *to, int k, int elements, int exponent, int tailed)
{
    static float values[LIMIT_LINES * LIMIT_K];
    for (int i = 0; i < LIMIT_LINES; i++)
        for (int j = 0; j < k; j++)
            values[i * k + j] = j < elements ? (float)ldexp(1.0, exponent) : i < tailed && j <= 1024 ? 0x1p-12f : 0.0f;
    need(rung_tools_upload(tools, to, values, (size_t)LIMIT_LINES * (size_t)k * sizeof *values), "upload");
}

/* A product of as many lines as columns, both operands with k innermost, and what the guard counts of it. */
typedef struct square {
    rung_context *context;
    rung_plan *plan;
    rung_gemm gemm;
    void *memory[3];
} square;

static void set_up(square *s, int k)
{
    s->context = context_new();
    for (int i = 0; i < 3; i++)
        need(rung_tools_alloc(tools, LIMIT_LINES * LIMIT_K * 4, &s->memory[i]), "no memory");
    rung_gemm *g = &s->gemm;
    rung_gemm_init(g);
    g->layout = RUNG_ROW_MAJOR;
    g->trans_b = RUNG_TRANS;
    g->m = g->n = g->ldc = LIMIT_LINES, g->k = g->lda = g->ldb = k;
    g->a = s->memory[0], g->b = s->memory[1], g->c = s->memory[2];
    need(rung_plan_create_kernel(&s->plan, s->context, g, kernel), kernel);
}

/* Runs it and returns what the guard counted meanwhile. */
static rung_guard_counts run_counted(const square *s)
{
    rung_guard_counts before, after;
    need(rung_context_guard_counts(s->context, &before), "counts");
    need(rung_plan_run(s->plan, &s->gemm), "run");
    need(rung_context_guard_counts(s->context, &after), "counts");
    after.blocks -= before.blocks;
    after.strict_blocks -= before.strict_blocks;
    return after;
}

static void put_away(square *s)
{
    rung_plan_destroy(s->plan);
    rung_context_destroy(s->context);
    for (int i = 0; i < 3; i++)
        rung_tools_free(tools, s->memory[i]);
}

/* The first product is judged after its split, as is every one after a product that was not refused. After one that
 * was, what a look finds certain must be what the guard would say. */
static void try_limit(const struct limit *l)
{
    square s;
    set_up(&s, l->k);
    for (int call = 0; call < 3; call++) {
        const int from = looks(), huge = call == 1;
        fill_limit(s.memory[0], l->k, huge ? 1 : l->a_elements, huge ? 127 : l->a_exponent, huge ? 0 : l->tailed);
        fill_limit(s.memory[1], l->k, huge ? 1 : l->b_elements, huge ? 127 : l->b_exponent, 0);
        const rung_guard_counts counted = run_counted(&s);
        if (counted.blocks != 1 || counted.strict_blocks != (huge || l->strict)) {
            printf("call %d: %d of %d blocks strict, ", call, (int)counted.strict_blocks, (int)counted.blocks);
            fail("limit", (int)(l - limits));
        }
        if (launch_count && looks() - from != (call == 2 || (call == 1 && l->strict)))
            printf("call %d: %d looks, ", call, looks() - from), fail("limit", (int)(l - limits));
    }
    put_away(&s);
}

/* What a product's lines held must be forgotten when the next one is judged, and the one after that: A's are as large
 * as B's let them be, then the other way round. The largest of both together would be refused. */
static void try_leftovers(void)
{
    enum { DEPTH = 256 };
    static const int exponents[][2] = {{100, 16}, {16, 100}, {0, 0}, {100, 16}, {0, 0}, {16, 100}};
    square s;
    set_up(&s, DEPTH);
    for (size_t call = 0; call < sizeof exponents / sizeof *exponents; call++) {
        for (int i = 0; i < 2; i++)
            fill_limit(s.memory[i], DEPTH, DEPTH, exponents[call][i], 0);
        const rung_guard_counts counted = run_counted(&s);
        if (counted.blocks != 1 || counted.strict_blocks != 0)
            fail("a product is judged by what earlier ones held, call", (int)call);
    }
    put_away(&s);
}

int main(int count, char **arguments)
{
    const char *lens = getenv("RUNG_LIBCUDA");
    void *library = lens ? dlopen(lens, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (count != 2) {
        puts("usage: recall KERNEL");
        return 2;
    }
    kernel = arguments[1];
    if (library) {
        *(void **)&launch_count = dlsym(library, "rung_lens_launch_count");
        *(void **)&launch_at = dlsym(library, "rung_lens_launch_at");
        void (*configure)(const rung_lens_options *) = NULL; /* requests are counted from here on */
        *(void **)&configure = dlsym(library, "rung_lens_configure");
        configure(&(rung_lens_options){.max_blocks = 0});
    }
    need(rung_tools_open(&tools, 0), "no GPU");
    for (size_t i = 0; i < sizeof tails / sizeof *tails; i++)
        for (int form = 0; form < (i < 2 ? 4 : 2); form++)
            try_tail(&tails[i], form >> 1, form & 1);
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        try_limit(&limits[i]);
    try_leftovers();
    static const int apart[] = {1, 2, 37};
    for (int i = 0; i < 3; i++)
        for (int form = 0; form < 8; form++)
            try_line_apart(form & 1, apart[i], form & 2 ? 0x1p40 : 0x1p-80, form & 4 ? 64 : 67);
    shape = &shapes[0];
    for (int form = 0; form < 4; form++) /* two of them with rows at odd addresses */
        try_form(form & 1, form >> 1, (form ^ form >> 1) & 1 ? ODD : 0);
    shape = &shapes[1];
    try_form(1, 0, 0);
    for (size_t i = 0; i < sizeof fews / sizeof *fews; i++)
        if (fews[i].sms == rung_tools_describe(tools)->sms)
            try_few_safe(&fews[i]);
    if (rung_tools_describe(tools)->sms == 132)
        try_even_after_wild();
    puts("ok");
    return 0;
}
