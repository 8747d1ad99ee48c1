/* Products through librung_blas.so: its Fortran and C names, with 32-bit and 64-bit integers, in turn. */
#define _GNU_SOURCE
#include "lab/entry.h"
#include "lab/library.h"
#include "lab/names.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FORTRAN(integer)                                                                                               \
    void (*)(const char *, const char *, const integer *, const integer *, const integer *, const float *,             \
             const float *, const integer *, const float *, const integer *, const float *, float *, const integer *)
#define CBLAS(integer)                                                                                                 \
    void (*)(int, int, int, integer, integer, integer, float, const float *, integer, const float *, integer, float,   \
             float *, integer)

enum { ROW_MAJOR = 101, COLUMN_MAJOR = 102, NO_TRANS = 111, TRANS = 112, CONJ_TRANS = 113, NAMES = 4 };

static const char *const names[NAMES] = {"sgemm_", "sgemm_64_", "cblas_sgemm", "cblas_sgemm64_"};

typedef struct doors {
    void *library, *at[NAMES];
} doors;

rung_status lab_entry_library(const char *file, void **library)
{
    char folder[PATH_MAX], path[PATH_MAX];
    if (!lab_library_folder(folder, sizeof folder))
        return lab_fail(RUNG_MISSING_LIBRARY, "the folder of librung.so cannot be found");
    if (snprintf(path, sizeof path, "%s/%s", folder, file) >= (int)sizeof path)
        return lab_fail(RUNG_MISSING_LIBRARY, "the folder of librung.so has too long a name");
    *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    return *library ? RUNG_SUCCESS : lab_fail(RUNG_MISSING_LIBRARY, "no drop-in: %s", dlerror());
}

/* These give the letters and numbers of a transpose, each spelling in turn. */
static const char *letter(rung_transpose trans, uint64_t turn)
{
    static const char *const plain[] = {"N", "n"}, *const turned[] = {"T", "t", "C", "c"};
    return trans ? turned[turn % 4] : plain[turn % 2];
}

static int number(rung_transpose trans, uint64_t turn)
{
    return !trans ? NO_TRANS : turn % 2 ? CONJ_TRANS : TRANS;
}

#define CALL_FORTRAN(integer)                                                                                          \
    do {                                                                                                               \
        integer m = (integer)g->m, n = (integer)g->n, k = (integer)g->k;                                               \
        integer lda = (integer)g->lda, ldb = (integer)g->ldb, ldc = (integer)g->ldc;                                   \
        ((FORTRAN(integer))d->at[which])(letter(g->trans_a, turn), letter(g->trans_b, turn / 4), &m, &n, &k,           \
                                         &g->alpha, g->a, &lda, g->b, &ldb, &g->beta, g->c, &ldc);                     \
    } while (0)
#define CALL_CBLAS(integer)                                                                                            \
    ((CBLAS(integer))d->at[which])(g->layout == RUNG_ROW_MAJOR ? ROW_MAJOR : COLUMN_MAJOR, number(g->trans_a, turn),   \
                                   number(g->trans_b, turn / 2), (integer)g->m, (integer)g->n, (integer)g->k,          \
                                   g->alpha, g->a, (integer)g->lda, g->b, (integer)g->ldb, g->beta, g->c,              \
                                   (integer)g->ldc)

static rung_status run(lab_entry *entry, const rung_gemm *g)
{
    doors *d = entry->state;
    uint64_t turn = lab_mix(entry->calls++);
    unsigned which = (unsigned)(turn >> 32) % NAMES;
    if (g->layout == RUNG_ROW_MAJOR)
        which |= 2; /* Fortran has no rows */
    switch (which) {
    case 0: CALL_FORTRAN(int); break;
    case 1: CALL_FORTRAN(int64_t); break;
    case 2: CALL_CBLAS(int); break;
    default: CALL_CBLAS(int64_t); break;
    }
    return RUNG_SUCCESS; /* BLAS has no status: what was refused shows in C */
}

static void close_doors(lab_entry *entry)
{
    free(entry->state); /* the library stays: it keeps a context for each thread */
}

rung_status lab_entry_open_blas(lab_entry *entry, lab_place *place, rung_math math)
{
    doors d;
    if (place->tools)
        return lab_fail(RUNG_UNSUPPORTED, "BLAS takes operands in host memory: --device cpu");
    setenv("RUNG_MATH", lab_math_names[math], 1);
    LAB_TRY(lab_entry_library("librung_blas.so", &d.library));
    for (int i = 0; i < NAMES; i++)
        if (!(d.at[i] = dlsym(d.library, names[i])))
            return lab_fail(RUNG_MISSING_LIBRARY, "librung_blas.so has no %s", names[i]);
    *entry = (lab_entry){.run = run, .close = close_doors, .place = place, .state = malloc(sizeof d)};
    if (!entry->state)
        return lab_fail(RUNG_OUT_OF_MEMORY, "no memory for the lab's state");
    memcpy(entry->state, &d, sizeof d);
    return RUNG_SUCCESS;
}

void lab_entry_close(lab_entry *entry)
{
    if (entry->close)
        entry->close(entry);
    memset(entry, 0, sizeof *entry);
}
