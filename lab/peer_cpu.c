/* OpenBLAS and BLIS through cblas_sgemm, side by side in one process: each is opened with its symbols kept to itself.
 */
#define _GNU_SOURCE
#include "lab/peer.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void cblas_sgemm_function(int layout, int trans_a, int trans_b, int m, int n, int k, float alpha,
                                  const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc);

typedef struct cpu_library {
    const char *name, *variable, *package;
    const char *paths[5];
} cpu_library;

static const cpu_library libraries[] = {
    {"openblas",
     "RUNG_OPENBLAS",
     "libopenblas0-pthread",
     {"libopenblas.so.0", "openblas-pthread/libopenblas.so.0",
      "/usr/lib/x86_64-linux-gnu/openblas-pthread/libopenblas.so.0",
      "/usr/lib/aarch64-linux-gnu/openblas-pthread/libopenblas.so.0", "libopenblas.so"}},
    {"blis",
     "RUNG_BLIS",
     "libblis4-pthread",
     {"libblis.so.4", "/usr/lib/x86_64-linux-gnu/blis-pthread/libblis.so.4",
      "/usr/lib/aarch64-linux-gnu/blis-pthread/libblis.so.4", "libblis-mt.so", "libblis.so"}},
};

static rung_status run(lab_peer *peer, const rung_gemm *g)
{
    cblas_sgemm_function *sgemm = (cblas_sgemm_function *)peer->state;
    if (g->m > INT_MAX || g->n > INT_MAX || g->k > INT_MAX || g->lda > INT_MAX || g->ldb > INT_MAX || g->ldc > INT_MAX)
        return lab_fail(RUNG_UNSUPPORTED, "%s counts in 32 bits", peer->name);
    for (int64_t i = 0; i < g->batch; i++)
        sgemm(g->layout == RUNG_ROW_MAJOR ? 101 : 102, g->trans_a ? 112 : 111, g->trans_b ? 112 : 111, (int)g->m,
              (int)g->n, (int)g->k, g->alpha, g->a_array ? g->a_array[i] : g->a + i * g->stride_a, (int)g->lda,
              g->b_array ? g->b_array[i] : g->b + i * g->stride_b, (int)g->ldb, g->beta,
              g->c_array ? g->c_array[i] : g->c + i * g->stride_c, (int)g->ldc);
    return RUNG_SUCCESS;
}

static void set_threads(void *library, int threads)
{
    void (*openblas)(int);
    void (*blis)(int64_t);
    *(void **)&openblas = dlsym(library, "openblas_set_num_threads");
    *(void **)&blis = dlsym(library, "bli_thread_set_num_threads");
    if (openblas)
        openblas(threads);
    else if (blis)
        blis(threads);
}

static void find_version(void *library, lab_peer *peer)
{
    const char *(*openblas)(void);
    const char *(*blis)(void);
    *(void **)&openblas = dlsym(library, "openblas_get_config");
    *(void **)&blis = dlsym(library, "bli_info_get_version_str");
    const char *text = openblas ? openblas() : blis ? blis() : "unknown";
    snprintf(peer->version, sizeof peer->version, "%.60s", strncmp(text, "OpenBLAS ", 9) ? text : text + 9);
    peer->version[strcspn(peer->version, " ")] = 0;
    /* Which of its kernels it has chosen, or was told to choose (OPENBLAS_CORETYPE, BLIS_ARCH_TYPE). */
    const char *(*core)(void);
    int (*id)(void);
    const char *(*name_of)(int);
    *(void **)&core = dlsym(library, "openblas_get_corename");
    *(void **)&id = dlsym(library, "bli_arch_query_id");
    *(void **)&name_of = dlsym(library, "bli_arch_string");
    const char *chosen = core ? core() : id && name_of ? name_of(id()) : NULL;
    size_t length = strlen(peer->version);
    if (chosen)
        snprintf(peer->version + length, sizeof peer->version - length, " %.20s", chosen);
}

static void *open_library(const cpu_library *from)
{
    const char *named = getenv(from->variable);
    if (named)
        return dlopen(named, RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; i < sizeof from->paths / sizeof from->paths[0]; i++) {
        void *library = from->paths[i] ? dlopen(from->paths[i], RTLD_NOW | RTLD_LOCAL) : NULL;
        if (library)
            return library;
    }
    return NULL;
}

rung_status lab_peer_open_cpu(lab_place *place, const char *name, lab_peer *peer)
{
    const cpu_library *from = strcmp(name, "blis") == 0 ? &libraries[1] : &libraries[0];
    void *library = open_library(from);
    if (!library)
        return lab_fail(RUNG_MISSING_LIBRARY, "%s was not found (Debian: apt install %s; or name its file in %s)", name,
                        from->package, from->variable);
    peer->state = dlsym(library, "cblas_sgemm");
    if (!peer->state)
        return lab_fail(RUNG_MISSING_LIBRARY, "%s has no cblas_sgemm", name);
    Dl_info where;
    if (dladdr(peer->state, &where) && where.dli_fname)
        snprintf(peer->path, sizeof peer->path, "%s", where.dli_fname);
    set_threads(library, place->threads);
    find_version(library, peer);
    peer->run = run; /* the library stays open: its threads may be running */
    return RUNG_SUCCESS;
}
