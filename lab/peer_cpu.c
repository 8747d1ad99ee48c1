/* The BLAS libraries of a CPU, through cblas_sgemm, side by side in one process: each keeps its symbols to itself.
 * libraries[] names where each is found and how it is told which of its kernels to take. */
#define _GNU_SOURCE
#include "lab/library.h"
#include "lab/peer.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

typedef void cblas_sgemm_32(int layout, int trans_a, int trans_b, int m, int n, int k, float alpha, const float *a,
                            int lda, const float *b, int ldb, float beta, float *c, int ldc);
typedef void cblas_sgemm_64(int layout, int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, float alpha,
                            const float *a, int64_t lda, const float *b, int64_t ldb, float beta, float *c,
                            int64_t ldc);

typedef struct cpu_library {
    const char *name;
    const char *variable; /* names its file */
    const char *setting;  /* the variable that chooses its kernels, read when it is loaded */
    int once;             /* the setting holds for the whole process */
    const char *hint;     /* how to get it */
    const char *files[5]; /* for the loader */
    const char *below[4]; /* patterns below a prefix, such as a Python environment's folder */
    const char *needs;    /* a library beside it, below the same prefix, that it does not find by itself */
} cpu_library;

static const cpu_library libraries[] = {
    {.name = "openblas",
     .variable = "RUNG_OPENBLAS",
     .setting = "OPENBLAS_CORETYPE",
     .hint = "Debian: apt install libopenblas0-pthread",
     .files = {"libopenblas.so.0", "openblas-pthread/libopenblas.so.0",
               "/usr/lib/x86_64-linux-gnu/openblas-pthread/libopenblas.so.0",
               "/usr/lib/aarch64-linux-gnu/openblas-pthread/libopenblas.so.0", "libopenblas.so"}},
    {.name = "openblas_pypi",
     .variable = "RUNG_OPENBLAS_PYPI",
     .setting = "OPENBLAS_CORETYPE",
     .hint = "pip install scipy-openblas32, or numpy, in a virtual environment",
     .below = {"lib/python3*/*-packages/scipy_openblas32/lib/libscipy_openblas.so",
               "lib/python3*/*-packages/scipy_openblas64/lib/libscipy_openblas64_.so",
               "lib/python3*/*-packages/numpy.libs/libscipy_openblas*.so",
               "lib/python3*/*-packages/scipy.libs/libscipy_openblas*.so"}},
    {.name = "mkl",
     .variable = "RUNG_MKL",
     .setting = "MKL_ENABLE_INSTRUCTIONS",
     .once = 1,
     .hint = "pip install mkl, in a virtual environment",
     .files = {"libmkl_rt.so.3", "libmkl_rt.so.2", "libmkl_rt.so"},
     .below = {"lib/libmkl_rt.so.[0-9]", "mkl/latest/lib/libmkl_rt.so.[0-9]"}},
    {.name = "aocl",
     .variable = "RUNG_AOCL",
     .setting = "BLIS_ARCH_TYPE",
     .hint = "pip install aoclda, in a virtual environment, or AMD's own package",
     .below = {"lib/python3*/*-packages/aoclda.libs/libblis-mt*.so*", "AMD/aocl/*/*/lib_LP64/libblis-mt.so",
               "AMD/aocl/*/*/lib/libblis-mt.so"},
     .needs = "lib/python3*/*-packages/aoclda.libs/libomp*.so"},
    {.name = "blis",
     .variable = "RUNG_BLIS",
     .setting = "BLIS_ARCH_TYPE",
     .hint = "Debian: apt install libblis4-pthread",
     .files = {"libblis.so.4", "/usr/lib/x86_64-linux-gnu/blis-pthread/libblis.so.4",
               "/usr/lib/aarch64-linux-gnu/blis-pthread/libblis.so.4", "libblis-mt.so", "libblis.so"}},
};

enum { LIBRARIES = sizeof libraries / sizeof libraries[0], NAME_BYTES = 32 };

/* Each library's calls of its own functions reach its own. MKL offers its functions to the whole process, and BLIS's
 * cblas_sgemm, which calls sgemm_, was timed as MKL. The sanitizers' runtime refuses to bind so. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { OPEN_ALONE = RTLD_NOW | RTLD_LOCAL };
#else
enum { OPEN_ALONE = RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND };
#endif

typedef struct cpu_peer {
    cblas_sgemm_32 *sgemm_32; /* one of the two */
    cblas_sgemm_64 *sgemm_64;
    char name[NAME_BYTES]; /* "openblas" or, with a setting, "openblas@Haswell" */
} cpu_peer;

static rung_status run(lab_peer *peer, const rung_gemm *g)
{
    const cpu_peer *p = peer->state;
    int layout = g->layout == RUNG_ROW_MAJOR ? 101 : 102, trans_a = g->trans_a ? 112 : 111;
    int trans_b = g->trans_b ? 112 : 111;
    if (!p->sgemm_64 && (g->m > INT_MAX || g->n > INT_MAX || g->k > INT_MAX || g->lda > INT_MAX || g->ldb > INT_MAX ||
                         g->ldc > INT_MAX))
        return lab_fail(RUNG_UNSUPPORTED, "%s counts in 32 bits", peer->name);
    for (int64_t i = 0; i < g->batch; i++) {
        const float *a = g->a + i * g->stride_a, *b = g->b + i * g->stride_b;
        float *c = g->c + i * g->stride_c;
        if (p->sgemm_64)
            p->sgemm_64(layout, trans_a, trans_b, g->m, g->n, g->k, g->alpha, a, g->lda, b, g->ldb, g->beta, c, g->ldc);
        else
            p->sgemm_32(layout, trans_a, trans_b, (int)g->m, (int)g->n, (int)g->k, g->alpha, a, (int)g->lda, b,
                        (int)g->ldb, g->beta, c, (int)g->ldc);
    }
    return RUNG_SUCCESS;
}

/* Finds a symbol. PyPI's builds of OpenBLAS put a word before each name, and one behind where they count in 64 bits. */
static void *find_symbol(void *library, const char *name)
{
    static const char *const forms[] = {"%s", "scipy_%s", "scipy_%s64_", "%s64_"};
    void *symbol = NULL;
    for (size_t i = 0; i < sizeof forms / sizeof forms[0] && !symbol; i++) {
        char text[96];
        snprintf(text, sizeof text, forms[i], name);
        symbol = dlsym(library, text);
    }
    return symbol;
}

static void find_sgemm(void *library, cpu_peer *p)
{
    void *symbol = dlsym(library, "cblas_sgemm");
    if (!symbol)
        symbol = dlsym(library, "scipy_cblas_sgemm");
    *(void **)&p->sgemm_32 = symbol;
    if (!symbol)
        *(void **)&p->sgemm_64 = find_symbol(library, "cblas_sgemm");
}

static void set_threads(void *library, int threads)
{
    void (*openblas)(int);
    void (*blis)(int64_t);
    void (*mkl)(int);
    *(void **)&openblas = find_symbol(library, "openblas_set_num_threads");
    *(void **)&blis = dlsym(library, "bli_thread_set_num_threads");
    *(void **)&mkl = dlsym(library, "MKL_Set_Num_Threads");
    if (openblas)
        openblas(threads);
    else if (blis)
        blis(threads);
    else if (mkl)
        mkl(threads);
}

static void find_version(void *library, lab_peer *peer)
{
    const char *(*openblas)(void), *(*blis)(void);
    void (*mkl)(char *, int);
    char long_text[256] = "unknown";
    *(void **)&openblas = find_symbol(library, "openblas_get_config");
    *(void **)&blis = dlsym(library, "bli_info_get_version_str");
    *(void **)&mkl = dlsym(library, "MKL_Get_Version_String");
    if (openblas)
        snprintf(long_text, sizeof long_text, "%s", openblas());
    else if (blis)
        snprintf(long_text, sizeof long_text, "%s", blis());
    else if (mkl)
        mkl(long_text, sizeof long_text);
    const char *text = strstr(long_text, "Version ") ? strstr(long_text, "Version ") + 8 : long_text;
    text += strncmp(text, "OpenBLAS ", 9) == 0 ? 9 : strncmp(text, "AOCL-BLAS ", 10) == 0 ? 10 : 0;
    snprintf(peer->version, sizeof peer->version, "%.40s", text);
    peer->version[strcspn(peer->version, " -,")] = 0;
    /* These tell which of its kernels the library has chosen, or was told to choose. */
    const char *(*core)(void), *(*name_of)(int);
    int (*id)(void);
    *(void **)&core = find_symbol(library, "openblas_get_corename");
    *(void **)&id = dlsym(library, "bli_arch_query_id");
    *(void **)&name_of = dlsym(library, "bli_arch_string");
    const char *chosen = core ? core() : id && name_of ? name_of(id()) : NULL;
    size_t length = strlen(peer->version);
    if (chosen)
        snprintf(peer->version + length, sizeof peer->version - length, " %.20s", chosen);
}

/* Returns whether libraries are seldom tried on such a processor: they may choose kernels that need more than it has.
 * Some look for AVX2 and take FMA for granted, which a hypervisor may hide. */
static int is_old_processor(void)
{
#if defined(__x86_64__)
    return !__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma");
#else
    return 0;
#endif
}

/* Returns the setting with which a peer does better than by itself; NULL: none is known. An OpenBLAS that does not know
 * a processor takes the kernels of the first 64-bit one, whatever vectors there are. */
static const char *better_core(const lab_peer *peer)
{
#if defined(__x86_64__)
    if (strstr(peer->version, " Prescott") && !is_old_processor())
        return __builtin_cpu_supports("avx512f") ? "SkylakeX" : "Haswell";
#else
    (void)peer;
#endif
    return NULL;
}

static void *open_first(const char *prefix, const char *below)
{
    char pattern[512];
    glob_t found = {0};
    void *library = NULL;
    snprintf(pattern, sizeof pattern, "%.300s/%.200s", prefix, below);
    if (glob(pattern, 0, NULL, &found) == 0)
        for (size_t i = 0; i < found.gl_pathc && !library; i++)
            library = dlopen(found.gl_pathv[i], OPEN_ALONE);
    globfree(&found);
    return library;
}

static void *open_library(const cpu_library *from)
{
    const char *named = lab_named(from->variable), *home = getenv("HOME");
    char local[300];
    snprintf(local, sizeof local, "%.280s/.local", home ? home : "");
    const char *const prefixes[] = {
        getenv("VIRTUAL_ENV"), getenv("CONDA_PREFIX"), local, "/usr/local", "/usr", "/opt/intel/oneapi", "/opt"};
    if (named)
        return dlopen(named, OPEN_ALONE);
    void *library = NULL;
    for (size_t i = 0; i < sizeof from->files / sizeof from->files[0] && !library; i++)
        if (from->files[i])
            library = dlopen(from->files[i], OPEN_ALONE);
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0] && !library; i++) {
        if (prefixes[i] && from->needs)
            (void)open_first(prefixes[i], from->needs);
        for (size_t j = 0; j < sizeof from->below / sizeof from->below[0] && !library; j++)
            if (prefixes[i] && from->below[j])
                library = open_first(prefixes[i], from->below[j]);
    }
    return library;
}

static void find_path(const cpu_peer *p, char *path, size_t bytes)
{
    Dl_info where;
    void *symbol;
    memcpy(&symbol, p->sgemm_64 ? (const void *)&p->sgemm_64 : (const void *)&p->sgemm_32, sizeof symbol);
    path[0] = 0;
    if (symbol && dladdr(symbol, &where) && where.dli_fname)
        snprintf(path, bytes, "%s", where.dli_fname);
}

/* Opens a copy of a library. A library reads its setting when it is loaded; the loader takes a copy of the file for
 * another library, which reads it again. */
static void *open_copy(const char *path)
{
    struct stat about;
    char name[64];
    void *library = NULL;
    int from = open(path, O_RDONLY | O_CLOEXEC), to = memfd_create("peer", MFD_CLOEXEC);
    if (from >= 0 && to >= 0 && fstat(from, &about) == 0) {
        off_t left = about.st_size;
        ssize_t moved = 1;
        for (; left > 0 && moved > 0; left -= moved)
            moved = sendfile(to, from, NULL, (size_t)left);
        snprintf(name, sizeof name, "/proc/self/fd/%d", to);
        if (left == 0)
            library = dlopen(name, OPEN_ALONE);
    }
    if (from >= 0)
        close(from);
    if (to >= 0 && !library)
        close(to); /* else it stays open: its path is the library's name */
    return library;
}

static const char *has_openmp; /* the library that has brought its OpenMP runtime into the process */

/* Returns whether the library brings an OpenMP runtime that ends the process when it meets another: those of MKL and
 * AOCL do. On one thread MKL needs none. */
static int brings_openmp(const cpu_library *from, int threads)
{
    return threads != 1 && (strcmp(from->name, "mkl") == 0 || strcmp(from->name, "aocl") == 0);
}

static void choose_threading(void *library, int threads)
{
    enum { MKL_SEQUENTIAL = 1 };
    int (*set_layer)(int);
    *(void **)&set_layer = dlsym(library, "MKL_Set_Threading_Layer");
    if (set_layer && threads == 1)
        set_layer(MKL_SEQUENTIAL);
}

static rung_status open_with_setting(const cpu_library *from, const char *setting, lab_peer *peer, void **library)
{
    static int is_set[LIBRARIES];
    cpu_peer *p = peer->state;
    char before[64] = "";
    const char *was = getenv(from->setting);
    int index = (int)(from - libraries);
    if (from->once && is_set[index])
        return lab_fail(RUNG_INVALID_ARGUMENT,
                        "'%s': %s reads %s once a process: name it once, with or without a setting", p->name,
                        from->name, from->setting);
    is_set[index] = 1;
    int brings = brings_openmp(from, peer->place->threads);
    setenv("OPENBLAS_THREAD_TIMEOUT", "16", 0); /* else its workers spin for 26 ms on cores that others are timed on */
    if (brings && has_openmp && strcmp(has_openmp, from->name) != 0)
        return lab_fail(RUNG_MISSING_LIBRARY, "%s and %s cannot share a process on several threads: name one of them",
                        from->name, has_openmp);
    if (was)
        snprintf(before, sizeof before, "%s", was);
    if (setting && from->once)
        setenv(from->setting, setting, 1);
    *library = open_library(from);
    if (*library && brings)
        has_openmp = from->name;
    if (*library)
        find_sgemm(*library, p);
    find_path(p, peer->path, sizeof peer->path);
    if (*library && setting && !from->once) { /* only the copy is told: the file itself may be named without, too */
        setenv(from->setting, setting, 1);
        *library = open_copy(peer->path);
        if (*library)
            find_sgemm(*library, p);
    }
    if (*library)
        choose_threading(*library, peer->place->threads);
    if (*library)
        find_version(*library, peer); /* which makes the library choose, if it has not yet */
    if (setting && was)
        setenv(from->setting, before, 1);
    else if (setting && !from->once)
        unsetenv(from->setting);
    return RUNG_SUCCESS;
}

/* Returns the signal by which a small product ends a process of its own, 0 for none. */
static int ending_signal(lab_peer *peer)
{
    enum { SIDE = 40, LONGEST_SECONDS = 30 };
    static float a[SIDE * SIDE], b[SIDE * SIDE], c[SIDE * SIDE];
    rung_gemm g;
    rung_gemm_init(&g);
    g.m = g.n = g.k = g.lda = g.ldb = g.ldc = SIDE;
    g.a = a;
    g.b = b;
    g.c = c;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        alarm(LONGEST_SECONDS);
        _exit(run(peer, &g) != RUNG_SUCCESS);
    }
    int state = 0;
    while (child > 0 && waitpid(child, &state, 0) < 0 && errno == EINTR)
        ;
    return child > 0 && WIFSIGNALED(state) ? WTERMSIG(state) : 0;
}

static void close_peer(lab_peer *peer)
{
    free(peer->state); /* the library stays open: its threads may be running */
}

rung_status lab_peer_open_cpu(lab_place *place, const char *name, lab_peer *peer)
{
    const cpu_library *from = libraries;
    const char *at = strchr(name, '@');
    size_t length = at ? (size_t)(at - name) : strlen(name);
    while (strlen(from->name) != length || strncmp(from->name, name, length) != 0)
        from++; /* lab_peer_open has checked the name */
    cpu_peer *p = calloc(1, sizeof *p);
    if (!p)
        return lab_fail(RUNG_OUT_OF_MEMORY, "no memory for a peer");
    peer->state = p;
    peer->close = close_peer;
    snprintf(p->name, sizeof p->name, "%s", name);
    peer->name = p->name;
    void *library = NULL;
    rung_status status = open_with_setting(from, at ? at + 1 : NULL, peer, &library);
    if (status == RUNG_SUCCESS && library && !at && !getenv(from->setting) && (peer->told = better_core(peer)))
        status = open_with_setting(from, peer->told, peer, &library);
    const char *named = lab_named(from->variable);
    peer->absent = status == RUNG_SUCCESS && !library && !named;
    if (status == RUNG_SUCCESS && !library)
        status = named ? lab_fail(RUNG_MISSING_LIBRARY, "%s is '%s', which cannot be loaded", from->variable, named)
                       : lab_fail(RUNG_MISSING_LIBRARY, "%s was not found (%s; or name its file in %s)", name,
                                  from->hint, from->variable);
    if (status == RUNG_SUCCESS && !p->sgemm_32 && !p->sgemm_64)
        status = lab_fail(RUNG_MISSING_LIBRARY, "%s: %s has no cblas_sgemm", name, named ? named : "the library found");
    if (status != RUNG_SUCCESS)
        return status; /* lab_peer_open closes it */
    set_threads(library, place->threads);
    int ended_by = is_old_processor() ? ending_signal(peer) : 0;
    if (ended_by)
        return lab_fail(RUNG_MISSING_LIBRARY, "%s ends by signal %d on this processor", name, ended_by);
    peer->run = run;
    return RUNG_SUCCESS;
}
