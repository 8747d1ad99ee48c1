/* Each element of an operand reaches its place in C as it is: a matrix that holds numbers of every exponent, ties of
 * rounding and the largest and least there are, times one that only moves its rows or columns. No sum hides anything
 * then: FP32 kernels, and accurate mode, give the numbers themselves, fast mode the nearest of TF32. Every kernel that
 * promises one of these, on the CPU or under the lens. usage: extremes cpu|gpu [KERNEL...] */
#include "rung_catalog.h"
#include "rung_tools.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FEW = 75, MANY = 139, PAD = 5, FLOATS = MANY * (MANY + PAD) + 4 };

static rung_tools *tools; /* NULL: the CPU */
static float *device[3];
static uint64_t state = 1;
static int passed, refused, failed;

static uint32_t draw(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 32);
}

static void need(rung_status status, const char *what)
{
    if (status == RUNG_SUCCESS)
        return;
    printf("%s: %s\n", what, rung_last_error());
    exit(1);
}

static float of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* A normal number, of any exponent; a tie between two of TF32, or beside one; or one of the last before infinity. */
static float draw_number(void)
{
    const uint32_t sign = draw() & 0x80000000u, exponent = (1 + draw() % 254) << 23, fraction = draw() & 0x7fe000u;
    switch (draw() % 6) {
    case 0: return of_bits(sign | exponent | fraction | 0x1000u);
    case 1: return of_bits(sign | exponent | fraction | (0x0fffu + draw() % 3));
    case 2: return of_bits(sign | (0x7f7fffffu - draw() % 0x3000u));
    case 3: return of_bits(sign | 0x00800000u | draw() % 0x3000u);
    case 4: return of_bits(sign | (100 + draw() % 50) << 23 | (draw() & 0x7fffffu));
    default: return of_bits(sign | exponent | (draw() & 0x7fffffu));
    }
}

/* The nearest number of TF32, ties away from zero; what would be infinite is the largest one. */
static float tf32_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint32_t sign = bits & 0x80000000u, magnitude = ((bits & 0x7fffffffu) + 0x1000u) & ~0x1fffu;
    return of_bits(sign | (magnitude >= 0x7f800000u ? 0x7f7fe000u : magnitude));
}

/* ---- a product: C[i][j] = V[i][from[j]], or V[from[i]][j] ---- */

typedef struct matrix {
    int rows, columns, turned, ld, shift; /* shift: its first element lies so many floats behind an aligned place */
    float values[MANY * MANY], memory[FLOATS];
} matrix;

static void lay_out(matrix *x)
{
    for (int i = 0; i < FLOATS; i++)
        x->memory[i] = NAN; /* nobody may look there */
    for (int i = 0; i < x->rows; i++)
        for (int j = 0; j < x->columns; j++)
            x->memory[x->shift + (x->turned ? j * x->ld + i : i * x->ld + j)] = x->values[i * x->columns + j];
}

static void matrix_new(matrix *x, int rows, int columns, int turned, int odd)
{
    x->rows = rows, x->columns = columns, x->turned = turned;
    x->ld = (turned ? rows : columns) + (odd ? PAD : 0);
    x->ld += odd ? 0 : (4 - x->ld % 4) % 4;
    x->shift = odd ? 1 : 0;
    memset(x->values, 0, sizeof x->values);
}

static const float *place(const matrix *x, int which)
{
    if (!tools)
        return x->memory + x->shift;
    need(rung_tools_upload(tools, device[which], x->memory, sizeof x->memory), "upload");
    return device[which] + x->shift;
}

/* Returns the first element that is not what it has to be; -1: all are. */
static int first_wrong(const matrix *c, const float *expected, int is_fast)
{
    for (int at = 0; at < c->rows * c->columns; at++) {
        const float got = c->memory[c->shift + at / c->columns * c->ld + at % c->columns];
        if (!(got == (is_fast ? tf32_of(expected[at]) : expected[at])))
            return at;
    }
    return -1;
}

static void run_case(rung_context *context, const rung_kernel *kernel, int trans, int v_is_b, int odd, int beta)
{
    static matrix a, b, c;
    static float expected[MANY * MANY];
    const int m = v_is_b ? MANY : FEW, n = v_is_b ? FEW : MANY, k = MANY;
    int from[MANY];
    matrix *v = v_is_b ? &b : &a, *p = v_is_b ? &a : &b;
    matrix_new(&a, m, k, trans >> 1, odd);
    matrix_new(&b, k, n, trans & 1, odd);
    matrix_new(&c, m, n, 0, odd);
    for (int i = 0; i < v->rows * v->columns; i++)
        v->values[i] = draw_number();
    for (int i = 0; i < MANY; i++)
        from[i] = i;
    for (int i = MANY - 1; i > 0; i--) {
        const int j = (int)(draw() % (uint32_t)(i + 1)), was = from[i];
        from[i] = from[j], from[j] = was;
    }
    for (int i = 0; i < MANY; i++)
        p->values[v_is_b ? i * MANY + from[i] : from[i] * MANY + i] = 1.0f;
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++)
            expected[i * n + j] = v_is_b ? v->values[from[i] * n + j] : v->values[i * k + from[j]];
    lay_out(&a), lay_out(&b), lay_out(&c);
    for (int i = 0; beta && i < FLOATS; i++)
        c.memory[i] = 0.0f;

    rung_gemm g;
    rung_plan *plan = NULL;
    rung_gemm_init(&g);
    g.layout = RUNG_ROW_MAJOR;
    g.m = m, g.n = n, g.k = k;
    g.trans_a = a.turned ? RUNG_TRANS : RUNG_NO_TRANS, g.trans_b = b.turned ? RUNG_TRANS : RUNG_NO_TRANS;
    g.lda = a.ld, g.ldb = b.ld, g.ldc = c.ld;
    g.beta = beta ? 1.0f : 0.0f;
    g.a = place(&a, 0), g.b = place(&b, 1), g.c = (float *)(uintptr_t)place(&c, 2);
    rung_status status = rung_plan_create_kernel(&plan, context, &g, kernel->name);
    if (status == RUNG_UNSUPPORTED) {
        refused++;
        return;
    }
    if (status == RUNG_SUCCESS)
        status = rung_plan_run(plan, &g);
    if (status == RUNG_SUCCESS)
        status = rung_context_synchronize(context);
    rung_plan_destroy(plan);
    if (status == RUNG_SUCCESS && tools)
        need(rung_tools_download(tools, c.memory, device[2], sizeof c.memory), "download");
    const int at = status == RUNG_SUCCESS ? first_wrong(&c, expected, kernel->arith == RUNG_TF32) : 0;
    passed += at < 0;
    if (at < 0)
        return;
    failed++;
    if (status != RUNG_SUCCESS)
        printf("FAILED: %s: %s\n", kernel->name, rung_last_error());
    else
        printf("FAILED: %s %c%c, %s%s: C[%d][%d] is %a, of %a\n", kernel->name, trans & 2 ? 'T' : 'N',
               trans & 1 ? 'T' : 'N', v_is_b ? "rows of B" : "columns of A", odd ? " at odd addresses" : "", at / n,
               at % n, (double)c.memory[c.shift + at / n * c.ld + at % n], (double)expected[at]);
}

/* Whether a kernel promises so much. Of the ladder's rungs those of FP32 do. */
static int is_wanted(const rung_kernel *k, int gpu, int count, char **names)
{
    int named = count == 0;
    for (int i = 0; i < count; i++)
        named |= strcmp(names[i], k->name) == 0;
    return named && (k->backend == RUNG_BACKEND_CUDA) == gpu && k->role != RUNG_REDUCE &&
           (k->arith == RUNG_F32 || (k->role == RUNG_PRODUCTION && (k->arith == RUNG_F16X3 || k->arith == RUNG_TF32)));
}

int main(int argc, char **argv)
{
    rung_config config;
    rung_context *context;
    const int gpu = argc > 1 && strcmp(argv[1], "gpu") == 0;
    int turn = 0;
    rung_config_init(&config);
    config.device = gpu ? 0 : RUNG_DEVICE_CPU;
    config.threads = 2;
    config.pointers = RUNG_POINTERS_DEVICE;
    if (gpu) {
        need(rung_tools_open(&tools, 0), "no GPU");
        config.stream = rung_tools_stream(tools);
        for (int i = 0; i < 3; i++) {
            void *memory;
            need(rung_tools_alloc(tools, FLOATS * sizeof(float), &memory), "no memory");
            device[i] = memory;
        }
    }
    need(rung_context_create(&context, &config), "no context");
    for (int i = 0; i < rung_kernel_count(); i++) {
        const rung_kernel *k = rung_kernel_at(i);
        if (!is_wanted(k, gpu, argc > 2 ? argc - 2 : 0, argv + 2) || rung_kernel_unusable(context, k))
            continue;
        rung_context_set_math(context, k->arith == RUNG_F32     ? RUNG_STRICT
                                       : k->arith == RUNG_F16X3 ? RUNG_ACCURATE
                                                                : RUNG_FAST);
        /* All forms of a production kernel; a rung takes operands as they lie. */
        for (int c = 0; c < 8; c++)
            if (k->role == RUNG_PRODUCTION || c % 4 == 0)
                run_case(context, k, c % 4, c / 4, (c ^ c >> 1 ^ turn) & 1, (c + turn) % 3 == 0);
        turn++;
    }
    rung_context_destroy(context);
    for (int i = 0; i < 3 && gpu; i++)
        rung_tools_free(tools, device[i]);
    rung_tools_close(tools);
    printf("%d passed, %d failed, %d refused\n", passed, failed, refused);
    return failed || !passed;
}
