/* A program linked against cuBLAS, for a machine with a GPU. It runs as it is and under the drop-in, and its output is
 * compared (compare_cublas.sh): `status N FROM` makes a table of good and bad calls of entry N, from the FROMth on, and
 * prints what each returned and whether it changed C; a call that breaks the GPU's context is the last (exit 4); `time`
 * prints the CPU time of calls; `product`, `dlopen FILE` and `plugin FILE` make one product by a linked function, by
 * one from dlopen, and through a plugin opened with RTLD_DEEPBIND. Exit 77: no GPU or no cuBLAS. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { N = 64, FLOATS = 4 * N * N, F32 = 0, F16 = 2, F64 = 1, COMPUTE = 68, TF32 = 77, MATH_TF32 = 3 };

typedef unsigned long long device_pointer;
typedef const float *cf;

#define SHAPE(INT) void *, int, int, INT, INT, INT
#define DECLARE(suffix, INT)                                                                                           \
    int cublasSgemm_v2##suffix(SHAPE(INT), cf, cf, INT, cf, INT, cf, float *, INT);                                    \
    int cublasSgemmStridedBatched##suffix(SHAPE(INT), cf, cf, INT, long long, cf, INT, long long, cf, float *, INT,    \
                                          long long, INT);                                                             \
    int cublasSgemmBatched##suffix(SHAPE(INT), cf, const cf *, INT, const cf *, INT, cf, float *const *, INT, INT);    \
    int cublasSgemmEx##suffix(SHAPE(INT), cf, const void *, int, INT, const void *, int, INT, cf, void *, int, INT);   \
    int cublasGemmEx##suffix(SHAPE(INT), const void *, const void *, int, INT, const void *, int, INT, const void *,   \
                             void *, int, INT, int, int);                                                              \
    int cublasGemmStridedBatchedEx##suffix(SHAPE(INT), const void *, const void *, int, INT, long long, const void *,  \
                                           int, INT, long long, const void *, void *, int, INT, long long, INT, int,   \
                                           int);                                                                       \
    int cublasGemmBatchedEx##suffix(SHAPE(INT), const void *, const void *const *, int, INT, const void *const *, int, \
                                    INT, const void *, void *const *, int, INT, INT, int, int);
DECLARE(, int)
DECLARE(_64, int64_t)
int cublasLtMatmul(void *, void *, const void *, const void *, void *, const void *, void *, const void *, const void *,
                   void *, void *, void *, const void *, void *, size_t, void *);

static struct {
    int (*create)(void **);
    int (*set_math)(void *, int);
    int (*set_pointer_mode)(void *, int);
    int (*lt_create)(void **);
    int (*desc_create)(void **, int, int);
    int (*desc_set)(void *, int, const void *, size_t);
    int (*layout_create)(void **, int, uint64_t, uint64_t, int64_t);
    int (*alloc)(device_pointer *, size_t);
    int (*synchronize)(void);
    int (*upload)(device_pointer, const void *, size_t);
    int (*download)(void *, device_pointer, size_t);
} api;

static void *handle, *lt;
static float *a, *b, *c, **a_list, **b_list, **c_list; /* on the GPU */
static float host_c[FLOATS];

static void need(void *found)
{
    if (found)
        return;
    puts("no GPU or no cuBLAS");
    exit(77);
}

static void *symbol(void *library, const char *name)
{
    void *found = dlsym(library, name);
    need(found);
    return found;
}

static void *device_memory(size_t bytes)
{
    device_pointer at = 0;
    need(api.alloc(&at, bytes) == 0 ? &at : NULL);
    return (void *)(uintptr_t)at;
}

static void upload(void *to, const void *from, size_t bytes)
{
    need(api.upload((device_pointer)(uintptr_t)to, from, bytes) == 0 ? to : NULL);
}

static void fill_c(void)
{
    for (int i = 0; i < FLOATS; i++)
        host_c[i] = (float)(i % 13) - 6.0f;
    upload(c, host_c, sizeof host_c);
}

static float **list_of(float *x)
{
    float *entries[2] = {x, x + N * N}, **list = device_memory(sizeof entries);
    upload(list, entries, sizeof entries);
    return list;
}

static void start(void)
{
    void *cuda = dlopen("libcuda.so.1", RTLD_NOW);
    need(cuda);
    *(void **)&api.create = symbol(RTLD_DEFAULT, "cublasCreate_v2");
    *(void **)&api.set_math = symbol(RTLD_DEFAULT, "cublasSetMathMode");
    *(void **)&api.set_pointer_mode = symbol(RTLD_DEFAULT, "cublasSetPointerMode_v2");
    *(void **)&api.lt_create = symbol(RTLD_DEFAULT, "cublasLtCreate");
    *(void **)&api.desc_create = symbol(RTLD_DEFAULT, "cublasLtMatmulDescCreate");
    *(void **)&api.desc_set = symbol(RTLD_DEFAULT, "cublasLtMatmulDescSetAttribute");
    *(void **)&api.layout_create = symbol(RTLD_DEFAULT, "cublasLtMatrixLayoutCreate");
    *(void **)&api.alloc = symbol(cuda, "cuMemAlloc_v2");
    *(void **)&api.synchronize = symbol(cuda, "cuCtxSynchronize");
    *(void **)&api.upload = symbol(cuda, "cuMemcpyHtoD_v2");
    *(void **)&api.download = symbol(cuda, "cuMemcpyDtoH_v2");
    need(api.create(&handle) == 0 && api.lt_create(&lt) == 0 ? &handle : NULL);
    a = device_memory(FLOATS * 4);
    b = device_memory(FLOATS * 4);
    c = device_memory(FLOATS * 4);
    fill_c();
    upload(a, host_c, sizeof host_c);
    upload(b, host_c, sizeof host_c);
    a_list = list_of(a);
    b_list = list_of(b);
    c_list = list_of(c);
}

/* ---- status ---- */

typedef struct call {
    const char *what;
    void *handle;
    int ta, tb;
    int64_t m, n, k, lda, ldb, ldc, batch;
    const float *alpha, *beta;
    int type_a, type_b, type_c, compute, algorithm, null_operands;
    int null_lt; /* cublasLt's descriptor, or its layout of A, B, or C and D */
} call;

static const float one = 1.0f, zero = 0.0f;
static float *const *null_list;

typedef int run_call(const call *);

/* Calls one product function, with a call's values in all its places. */
#define RUNNERS(suffix, INT)                                                                                           \
    static int sgemm##suffix(const call *x)                                                                            \
    {                                                                                                                  \
        return cublasSgemm_v2##suffix(x->handle, x->ta, x->tb, (INT)x->m, (INT)x->n, (INT)x->k, x->alpha,              \
                                      x->null_operands ? NULL : a, (INT)x->lda, x->null_operands ? NULL : b,           \
                                      (INT)x->ldb, x->beta, x->null_operands ? NULL : c, (INT)x->ldc);                 \
    }                                                                                                                  \
    static int strided##suffix(const call *x)                                                                          \
    {                                                                                                                  \
        return cublasSgemmStridedBatched##suffix(x->handle, x->ta, x->tb, (INT)x->m, (INT)x->n, (INT)x->k, x->alpha,   \
                                                 a, (INT)x->lda, N * N, b, (INT)x->ldb, N * N, x->beta, c,             \
                                                 (INT)x->ldc, N * N, (INT)x->batch);                                   \
    }                                                                                                                  \
    static int arrays##suffix(const call *x)                                                                           \
    {                                                                                                                  \
        return cublasSgemmBatched##suffix(x->handle, x->ta, x->tb, (INT)x->m, (INT)x->n, (INT)x->k, x->alpha,          \
                                          (const cf *)a_list, (INT)x->lda, (const cf *)b_list, (INT)x->ldb, x->beta,   \
                                          x->null_operands ? null_list : c_list, (INT)x->ldc, (INT)x->batch);          \
    }                                                                                                                  \
    static int sgemm_ex##suffix(const call *x)                                                                         \
    {                                                                                                                  \
        return cublasSgemmEx##suffix(x->handle, x->ta, x->tb, (INT)x->m, (INT)x->n, (INT)x->k, x->alpha, a, x->type_a, \
                                     (INT)x->lda, b, x->type_b, (INT)x->ldb, x->beta, c, x->type_c, (INT)x->ldc);      \
    }                                                                                                                  \
    static int gemm_ex##suffix(const call *x)                                                                          \
    {                                                                                                                  \
        return cublasGemmEx##suffix(x->handle, x->ta, x->tb, (INT)x->m, (INT)x->n, (INT)x->k, x->alpha, a, x->type_a,  \
                                    (INT)x->lda, b, x->type_b, (INT)x->ldb, x->beta, c, x->type_c, (INT)x->ldc,        \
                                    x->compute, x->algorithm);                                                         \
    }                                                                                                                  \
    static int strided_ex##suffix(const call *x)                                                                       \
    {                                                                                                                  \
        return cublasGemmStridedBatchedEx##suffix(x->handle, x->ta, x->tb, (INT)x->m, (INT)x->n, (INT)x->k, x->alpha,  \
                                                  a, x->type_a, (INT)x->lda, N * N, b, x->type_b, (INT)x->ldb, N * N,  \
                                                  x->beta, c, x->type_c, (INT)x->ldc, N * N, (INT)x->batch,            \
                                                  x->compute, x->algorithm);                                           \
    }                                                                                                                  \
    static int arrays_ex##suffix(const call *x)                                                                        \
    {                                                                                                                  \
        return cublasGemmBatchedEx##suffix(                                                                            \
            x->handle, x->ta, x->tb, (INT)x->m, (INT)x->n, (INT)x->k, x->alpha, (const void *const *)a_list,           \
            x->type_a, (INT)x->lda, (const void *const *)b_list, x->type_b, (INT)x->ldb, x->beta,                      \
            (void *const *)c_list, x->type_c, (INT)x->ldc, (INT)x->batch, x->compute, x->algorithm);                   \
    }
RUNNERS(, int)
RUNNERS(_64, int64_t)

static int lt_matmul(const call *x)
{
    void *desc = NULL, *layouts[3] = {NULL, NULL, NULL};
    int ta = x->ta, tb = x->tb;
    int64_t rows[3] = {ta ? x->k : x->m, tb ? x->n : x->k, x->m}, cols[3] = {ta ? x->m : x->k, tb ? x->k : x->n, x->n};
    int64_t lds[3] = {x->lda, x->ldb, x->ldc};
    int types[3] = {x->type_a, x->type_b, x->type_c};
    api.desc_create(&desc, x->compute, F32);
    if (desc) {
        api.desc_set(desc, 3, &ta, sizeof ta);
        api.desc_set(desc, 4, &tb, sizeof tb);
    }
    for (int i = 0; i < 3; i++)
        if (rows[i] >= 0 && cols[i] >= 0)
            api.layout_create(&layouts[i], types[i], (uint64_t)rows[i], (uint64_t)cols[i], lds[i]);
    if (x->null_lt == 1)
        desc = NULL;
    if (x->null_lt > 1)
        layouts[x->null_lt - 2] = NULL;
    return cublasLtMatmul(x->handle ? lt : NULL, desc, x->alpha, a, layouts[0], b, layouts[1], x->beta, c, layouts[2],
                          c, layouts[2], NULL, NULL, 0, NULL);
}

static const struct entry {
    const char *name;
    run_call *run;
} entries[] = {
    {"Sgemm", sgemm},
    {"SgemmStridedBatched", strided},
    {"SgemmBatched", arrays},
    {"SgemmEx", sgemm_ex},
    {"GemmEx", gemm_ex},
    {"GemmStridedBatchedEx", strided_ex},
    {"GemmBatchedEx", arrays_ex},
    {"Sgemm_64", sgemm_64},
    {"SgemmStridedBatched_64", strided_64},
    {"SgemmBatched_64", arrays_64},
    {"SgemmEx_64", sgemm_ex_64},
    {"GemmEx_64", gemm_ex_64},
    {"GemmStridedBatchedEx_64", strided_ex_64},
    {"GemmBatchedEx_64", arrays_ex_64},
    {"LtMatmul", lt_matmul},
};

static unsigned checksum(void)
{
    unsigned sum = 0;
    need(api.download(host_c, (device_pointer)(uintptr_t)c, sizeof host_c) == 0 ? c : NULL);
    for (int i = 0; i < FLOATS; i++) {
        unsigned bits;
        memcpy(&bits, &host_c[i], 4);
        sum = sum * 31 + bits;
    }
    return sum;
}

/* Returns 0 where the GPU's context is no longer of use. */
static int report(const struct entry *e, const call *x)
{
    fill_c();
    unsigned before = checksum();
    printf("%-24s %-28s ", e->name, x->what); /* should the call crash, it is known which */
    int status = e->run(x), after = api.synchronize();
    if (after)
        printf("%3d  GPU %d\n", status, after);
    else
        printf("%3d  GPU 0  C %s\n", status, checksum() == before ? "untouched" : "written");
    return after == 0;
}

static int status_table(size_t entry, int from)
{
    const call good = {"good", handle, 0, 0, N, N, N, N, N, N, 2, &one, &zero, F32, F32, F32, COMPUTE, -1, 0, 0};
    call calls[64];
    int count = 0;
#define CALL(text, change)                                                                                             \
    do {                                                                                                               \
        call *x = &calls[count++];                                                                                     \
        *x = good;                                                                                                     \
        x->what = text;                                                                                                \
        change;                                                                                                        \
    } while (0)
    CALL("good", (void)x);
    CALL("good, transposed", x->ta = x->tb = 1);
    CALL("good, conjugated", x->ta = 2);
    CALL("handle NULL", x->handle = NULL);
    CALL("transa 3", x->ta = 3);
    CALL("transb -1", x->tb = -1);
    CALL("m -1", x->m = -1);
    CALL("n -1", x->n = -1);
    CALL("k -1", x->k = -1);
    CALL("m 0", x->m = 0);
    CALL("n 0", x->n = 0);
    CALL("k 0", x->k = 0);
    CALL("m 0, operands NULL", (x->m = 0, x->null_operands = 1));
    CALL("lda N - 1", x->lda = N - 1);
    CALL("lda 0", x->lda = 0);
    CALL("lda too small for transa", (x->ta = 1, x->k = N, x->m = 8, x->lda = 8));
    CALL("ldb N - 1", x->ldb = N - 1);
    CALL("ldb -5", x->ldb = -5);
    CALL("ldc N - 1", x->ldc = N - 1);
    CALL("m 0 and lda 0", (x->m = 0, x->lda = 0));
    CALL("m -1 and transa 9", (x->m = -1, x->ta = 9));
    CALL("alpha NULL", x->alpha = NULL);
    CALL("beta NULL", x->beta = NULL);
    CALL("m 0 and alpha NULL", (x->m = 0, x->alpha = NULL));
    CALL("batch -1", x->batch = -1);
    CALL("batch 0", x->batch = 0);
    CALL("A of FP16", x->type_a = F16);
    CALL("B of FP64", x->type_b = F64);
    CALL("C of FP16", x->type_c = F16);
    CALL("types of number 99", x->type_a = x->type_b = x->type_c = 99);
    CALL("compute type 1234", x->compute = 1234);
    CALL("compute type FP64", x->compute = 70);
    CALL("compute type TF32", x->compute = TF32);
    CALL("algorithm 99", x->algorithm = 99);
    if (entry >= sizeof entries / sizeof entries[0])
        return 3;
    if (entries[entry].run == lt_matmul) {
        CALL("descriptor NULL", x->null_lt = 1);
        CALL("layout of A NULL", x->null_lt = 2);
        CALL("layout of B NULL", x->null_lt = 3);
        CALL("layouts of C and D NULL", x->null_lt = 4);
    }
    for (int i = from; i < count; i++)
        if (!report(&entries[entry], &calls[i]))
            return 4;
    return 0;
}

/* ---- time ---- */

static double microseconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static int by_value(const void *x, const void *y)
{
    return (*(const double *)x > *(const double *)y) - (*(const double *)x < *(const double *)y);
}

/* The CPU time of a call by who answers (0: cuBLAS, 1: the drop-in, where it is there): of 41 batches the lower
 * quartile, what else runs on the machine only adds; the queue is empty before each. */
static void time_call(const char *what, int n)
{
    enum { BATCHES = 41 };
    void (*answer)(int);
    *(void **)&answer = dlsym(RTLD_DEFAULT, "rung_cublas_answer");
    float *x = device_memory((size_t)n * (size_t)n * 4), *y = device_memory((size_t)n * (size_t)n * 4);
    int calls = n < 4096 ? 20 : 4, whos = answer ? 2 : 1;
    double each[2][BATCHES];
    for (int i = -3; i < BATCHES; i++)
        for (int who = 0; who < whos; who++) {
            if (answer)
                answer(who);
            api.synchronize();
            double since = microseconds();
            for (int j = 0; j < calls; j++)
                if (cublasSgemm_v2(handle, 0, 0, n, n, n, &one, x, n, x, n, &zero, y, n) != 0)
                    puts("a call failed");
            if (i >= 0)
                each[who][i] = (microseconds() - since) / calls;
        }
    api.synchronize();
    printf("%-28s %5d", what, n);
    for (int who = 0; who < whos; who++) {
        qsort(each[who], BATCHES, sizeof each[who][0], by_value);
        printf(" %8.2f", each[who][BATCHES / 4]);
    }
    puts(whos > 1 ? "" : "        -");
}

static int times(void)
{
    static const int sizes[] = {64, 512, 1024, 2048, 4096};
    for (int i = 0; i < 5; i++)
        time_call("FP32", sizes[i]);
    api.set_math(handle, MATH_TF32);
    for (int i = 0; i < 5; i++)
        time_call("TF32, not Rung's to answer", sizes[i]);
    return 0;
}

/* ---- who answers ---- */

typedef int sgemm_function(SHAPE(int), cf, cf, int, cf, int, cf, float *, int);

static int product(sgemm_function *function)
{
    int status = function(handle, 0, 0, N, N, N, &one, a, N, b, N, &zero, c, N);
    printf("status %d, GPU %d\n", status, api.synchronize());
    return status != 0;
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    setvbuf(stdout, NULL, _IONBF, 0);
    start();
    if (strcmp(mode, "status") == 0 && argc > 3)
        return status_table((size_t)atoi(argv[2]), atoi(argv[3]));
    if (strcmp(mode, "time") == 0)
        return times();
    if (strcmp(mode, "product") == 0)
        return product(cublasSgemm_v2);
    if (argc > 2 && (strcmp(mode, "dlopen") == 0 || strcmp(mode, "plugin") == 0)) {
        int plugin = mode[0] == 'p';
        void *library = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL | (plugin ? RTLD_DEEPBIND : 0));
        need(library);
        sgemm_function *function;
        *(void **)&function = symbol(library, plugin ? "plugin_sgemm" : "cublasSgemm_v2");
        return product(function);
    }
    puts("program_cublas status N FROM | time | product | dlopen FILE | plugin FILE");
    return 2;
}
