/* Times several libraries in one process and in turn: copies of librung, and others that have cblas_sgemm. What the
 * processor, its neighbours and its clock do then happens to all of them. Reads lines "NT m n k [pad=P]", column-major,
 * as lab/shapes/ has them, prints a line of microseconds for each, and at the end how each Rung stands beside the best
 * of the others, and beside the first Rung. A library whose result is another one is told; the exit code is 1 then.
 *
 * Build and run: cc -O2 -Iinclude lab/in_turn.c -ldl -lm -o in_turn
 *                ./in_turn 1 0 before=old/librung.so now=./librung.so openblas=libopenblas.so.0 <lab/shapes/cpu.txt
 * Arguments: threads, beta, and two libraries or more, each with a name. */
#define _GNU_SOURCE
#include "rung.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Operands lie in several places that take turns, so that none is found where the call before has just left it. */
enum { LIBRARIES = 12, SETS = 4, ROUNDS = 9, ROUND_US = 500, BY_COLUMNS = 102, AS_IT_LIES = 111, TRANSPOSED = 112 };

typedef struct product {
    int trans_a, trans_b, m, n, k, lda, ldb, ldc;
    float beta;
    float *a[SETS], *b[SETS], *c[SETS];
} product;

typedef void cblas_function(int, int, int, int, int, int, float, const float *, int, const float *, int, float, float *,
                            int);

typedef struct library {
    const char *name;
    rung_context *context; /* NULL: it is no Rung */
    __typeof__(rung_sgemm) *rung;
    cblas_function *cblas;
    double log_ratio, log_time, worst; /* summed over the shapes: to the best of the others, to the first Rung */
    int slower;
} library;

static library libraries[LIBRARIES];
static int count;

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

/* Opens a library of its own: what it calls by name is found in itself first. */
static const char *open_library(library *l, char *argument, int threads)
{
    char *path = strchr(argument, '=');
    if (!path)
        return "a library is NAME=PATH";
    *path++ = 0;
    void *opened = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    if (!opened)
        return dlerror();
    *l = (library){.name = argument, .worst = INFINITY};
    __typeof__(rung_context_create) *create = (__typeof__(create))dlsym(opened, "rung_context_create");
    __typeof__(rung_config_init) *init = (__typeof__(init))dlsym(opened, "rung_config_init");
    l->rung = (__typeof__(l->rung))dlsym(opened, "rung_sgemm");
    l->cblas = (cblas_function *)dlsym(opened, "cblas_sgemm");
    if (!l->cblas)
        l->cblas = (cblas_function *)dlsym(opened, "scipy_cblas_sgemm");
    if (!create || !init || !l->rung)
        return l->cblas ? NULL : "has neither rung_sgemm nor cblas_sgemm";
    rung_config config;
    init(&config);
    config.device = RUNG_DEVICE_CPU;
    config.threads = threads;
    return create(&l->context, &config) == RUNG_SUCCESS ? NULL : "its context cannot be made";
}

static void multiply(const library *l, const product *p, int set)
{
    if (l->context)
        l->rung(l->context, RUNG_COL_MAJOR, p->trans_a, p->trans_b, p->m, p->n, p->k, 1.0f, p->a[set], p->lda,
                p->b[set], p->ldb, p->beta, p->c[set], p->ldc);
    else
        l->cblas(BY_COLUMNS, p->trans_a ? TRANSPOSED : AS_IT_LIES, p->trans_b ? TRANSPOSED : AS_IT_LIES, p->m, p->n,
                 p->k, 1.0f, p->a[set], p->lda, p->b[set], p->ldb, p->beta, p->c[set], p->ldc);
}

/* Reads a line's product and gives it numbers between -1 and 1. Returns its memory, or NULL. */
static float *read_product(const char *line, product *p)
{
    char forms[3];
    int pad = 0;
    const char *padded = strstr(line, "pad=");
    if (sscanf(line, "%2s %d %d %d", forms, &p->m, &p->n, &p->k) != 4 || p->m < 1 || p->n < 1 || p->k < 1 ||
        (padded && sscanf(padded, "pad=%d", &pad) != 1))
        return NULL;
    p->trans_a = forms[0] == 'T';
    p->trans_b = forms[1] == 'T';
    p->lda = (p->trans_a ? p->k : p->m) + pad;
    p->ldb = (p->trans_b ? p->n : p->k) + pad;
    p->ldc = p->m + pad;
    size_t sizes[3] = {(size_t)p->lda * (size_t)(p->trans_a ? p->m : p->k),
                       (size_t)p->ldb * (size_t)(p->trans_b ? p->k : p->n), (size_t)p->ldc * (size_t)p->n};
    for (int i = 0; i < 3; i++)
        sizes[i] = (sizes[i] + 31) / 16 * 16; /* whole cache lines, one of which is between two operands */
    size_t floats = sizes[0] + sizes[1] + sizes[2];
    float *memory = aligned_alloc(64, SETS * floats * sizeof *memory);
    for (size_t i = 0; memory && i < SETS * floats; i++)
        memory[i] = (float)(2.0 * drand48() - 1.0);
    for (int set = 0; memory && set < SETS; set++) {
        p->a[set] = memory + (size_t)set * floats;
        p->b[set] = p->a[set] + sizes[0];
        p->c[set] = p->b[set] + sizes[1];
    }
    return memory;
}

/* Returns whether all have one result, within what sums of so many terms may differ by, and tells who has not. */
static int agree(const product *p, const char *line)
{
    size_t floats = (size_t)p->ldc * (size_t)p->n;
    float *old = malloc(3 * floats * sizeof *old), *first = old + floats, *result = first + floats;
    int all = old != NULL;
    if (old)
        memcpy(old, p->c[0], floats * sizeof *old);
    for (int i = 0; old && i < count; i++) {
        memcpy(p->c[0], old, floats * sizeof *old);
        multiply(&libraries[i], p, 0);
        memcpy(i ? result : first, p->c[0], floats * sizeof *old);
        double apart = 0.0;
        for (size_t at = 0; i && at < floats && !isnan(apart); at++) /* nothing is further apart */
            if (!(fabs((double)result[at] - (double)first[at]) <= apart))
                apart = fabs((double)result[at] - (double)first[at]);
        if (apart <= 1e-5 * (p->k + 10.0))
            continue;
        printf("# %s differs from %s by %g: %s", libraries[i].name, libraries[0].name, apart, line);
        all = 0;
    }
    free(old);
    return all;
}

static double time_calls(const library *l, const product *p, int calls, int set)
{
    double start = now_us();
    for (int call = 0; call < calls; call++)
        multiply(l, p, (set + call) % SETS);
    return (now_us() - start) / calls;
}

/* Takes the second quickest round of each library. Whoever is first in one round is second in the next. */
static void time_all(const product *p, double us[LIBRARIES])
{
    double least[LIBRARIES];
    int calls[LIBRARIES];
    for (int i = 0; i < count; i++) {
        double once = time_calls(&libraries[i], p, 1, 0);
        once = once < ROUND_US / 10.0 ? time_calls(&libraries[i], p, 10, 0) : once;
        calls[i] = once >= ROUND_US ? 1 : (int)(ROUND_US / (once + 0.02) / SETS + 1) * SETS;
        least[i] = us[i] = INFINITY;
    }
    for (int round = 0; round < ROUNDS; round++)
        for (int turn = 0; turn < count; turn++) {
            int i = (turn + round) % count;
            double took = time_calls(&libraries[i], p, calls[i], round);
            if (took < least[i]) {
                us[i] = least[i];
                least[i] = took;
            } else if (took < us[i]) {
                us[i] = took;
            }
        }
}

static void add_up(const double us[LIBRARIES])
{
    double others = INFINITY, first = 0.0;
    for (int i = 0; i < count; i++)
        if (!libraries[i].context && us[i] < others)
            others = us[i];
    for (int i = 0; i < count; i++) {
        library *l = &libraries[i];
        if (!l->context)
            continue;
        first = first > 0.0 ? first : us[i];
        l->log_time += log(us[i] / first);
        if (isinf(others))
            continue;
        l->log_ratio += log(others / us[i]);
        l->slower += others / us[i] < 0.95;
        l->worst = fmin(l->worst, others / us[i]);
    }
}

static void tell(int shapes)
{
    for (int i = 0; i < count && shapes; i++) {
        const library *l = &libraries[i];
        if (!l->context)
            continue;
        if (isfinite(l->worst))
            printf("# %s: %.3f times the best of the others, %d of %d below 0.95, the worst %.2f\n", l->name,
                   exp(l->log_ratio / shapes), l->slower, shapes, l->worst);
        printf("# %s: %.3f of the time of the first Rung\n", l->name, exp(l->log_time / shapes));
    }
}

int main(int argc, char **argv)
{
    static const char *const variables[] = {"OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS",
                                            "BLIS_NUM_THREADS"};
    if (argc < 5 || argc - 3 > LIBRARIES || atoi(argv[1]) < 1) {
        fprintf(stderr, "usage: in_turn THREADS BETA NAME=LIBRARY NAME=LIBRARY... <SHAPES (at most %d libraries)\n",
                LIBRARIES);
        return 2;
    }
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
        setenv(variables[i], argv[1], 1);
    if (atoi(argv[1]) == 1) /* then MKL brings no OpenMP, which ends a process that has another one */
        setenv("MKL_THREADING_LAYER", "SEQUENTIAL", 1);
    printf("#");
    for (int i = 3; i < argc; i++) {
        const char *why = open_library(&libraries[count], argv[i], atoi(argv[1]));
        if (why) {
            fprintf(stderr, "%s: %s\n", argv[i], why);
            return 2;
        }
        printf(" %s", libraries[count++].name);
    }
    printf(", microseconds on %s threads, beta %s\n", argv[1], argv[2]);
    char *line = NULL;
    size_t room = 0;
    int shapes = 0, all_agree = 1;
    while (getline(&line, &room, stdin) >= 0) {
        product p = {.beta = strtof(argv[2], NULL)};
        double us[LIBRARIES];
        if (line[0] == '#' || line[0] == '\n')
            continue;
        float *memory = read_product(line, &p);
        if (!memory) {
            fprintf(stderr, "no shape, or no memory for it: %s", line);
            return 2;
        }
        all_agree &= agree(&p, line);
        time_all(&p, us);
        add_up(us);
        shapes++;
        printf("%.*s", (int)strcspn(line, "\n"), line);
        for (int i = 0; i < count; i++)
            printf(" %.4f", us[i]);
        printf("\n");
        fflush(stdout);
        free(memory);
    }
    free(line);
    tell(shapes);
    return !all_agree;
}
