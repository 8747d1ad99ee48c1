/* Measures peaks. Twelve independent chains of the widest FMA, or of products and sums where there is none, cover the
 * latency of two units; memory's peak is that of plain reads and writes. */
#include "lab/peak.h"
#include "lab/host.h"
#include "lab/measure.h"

#include <sched.h>
#include <stdatomic.h>

enum { CHAINS = 12, STEPS = 1000000 };

typedef struct peak_job {
    float (*chains)(int64_t steps);
    int lanes;
    volatile float sink;
    int threads;
    atomic_int came, goes; /* how many are there; nobody waits any longer */
    double start;          /* when all were there */
} peak_job;

#define LANES_OF(VECTOR) (sizeof(VECTOR) / sizeof(float))

#if defined(__x86_64__)
#include <immintrin.h>

/* Chains in the vectors of an instruction set, whose functions begin with MM, and their job. */
#define CHAINS_IN(NAME, SET, VECTOR, MM, STEP)                                                                         \
    __attribute__((target(SET))) static float chains_##NAME(int64_t steps)                                             \
    {                                                                                                                  \
        VECTOR sums[CHAINS], x = MM##_set1_ps(0.999f), y = MM##_set1_ps(0.001f);                                       \
        for (int i = 0; i < CHAINS; i++)                                                                               \
            sums[i] = MM##_set1_ps((float)i);                                                                          \
        for (int64_t s = 0; s < steps; s++)                                                                            \
            _Pragma("GCC unroll 12") for (int i = 0; i < CHAINS; i++) sums[i] = STEP(sums[i], x, y);                   \
        for (int i = 1; i < CHAINS; i++)                                                                               \
            sums[0] = MM##_add_ps(sums[0], sums[i]);                                                                   \
        return MM##_cvtss_f32(sums[0]);                                                                                \
    }                                                                                                                  \
    static const peak_job job_##NAME = {.chains = chains_##NAME, .lanes = LANES_OF(VECTOR)};
#define MULTIPLY_THEN_ADD(x, y, z) _mm256_add_ps(_mm256_mul_ps(x, y), z)
CHAINS_IN(avx, "avx", __m256, _mm256, MULTIPLY_THEN_ADD)
CHAINS_IN(avx2, "avx2,fma", __m256, _mm256, _mm256_fmadd_ps)
CHAINS_IN(avx512, "avx512f", __m512, _mm512, _mm512_fmadd_ps)
#endif

#ifdef __FP_FAST_FMAF
#define MULTIPLY_ADD(x, y, z) __builtin_fmaf(x, y, z)
#else
#define MULTIPLY_ADD(x, y, z) ((x) * (y) + (z)) /* fmaf() would be computed in some hundred steps */
#endif

typedef float four __attribute__((vector_size(16)));

static float chains_plain(int64_t steps)
{
    four sums[CHAINS];
    for (int i = 0; i < CHAINS; i++)
        for (int lane = 0; lane < 4; lane++)
            sums[i][lane] = (float)i;
    for (int64_t s = 0; s < steps; s++)
#pragma GCC unroll 12
        for (int i = 0; i < CHAINS; i++)
            for (int lane = 0; lane < 4; lane++)
                sums[i][lane] = MULTIPLY_ADD(sums[i][lane], 0.999f, 0.001f);
    for (int i = 1; i < CHAINS; i++)
        sums[0] += sums[i];
    return sums[0][0] + sums[0][1] + sums[0][2] + sums[0][3];
}

/* Picks the widest that the library may use: where RUNG_CPU_FEATURES holds it to less, its share is one of less. */
static peak_job pick(rung_context *context)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && !rung_kernel_unusable(context, rung_kernel_find("avx512_f32_8x48")))
        return job_avx512;
    if (__builtin_cpu_supports("fma") && !rung_kernel_unusable(context, rung_kernel_find("avx2_f32_6x16")))
        return job_avx2;
    if (!rung_kernel_unusable(context, rung_kernel_find("avx_f32_5x16")))
        return job_avx;
#else
    (void)context;
#endif
    return (peak_job){.chains = chains_plain, .lanes = LANES_OF(four)};
}

/* Waits until all threads are there: to start many takes as long as their work. Where some could not be started, their
 * work is done one after the other, and who waits in vain goes on. */
static void meet(peak_job *job)
{
    enum { MOST_TURNS = 1 << 20 };
    atomic_fetch_add(&job->came, 1);
    for (int turn = 0; turn < MOST_TURNS && !atomic_load(&job->goes); turn++)
        if (atomic_load(&job->came) >= job->threads)
            atomic_store(&job->goes, 1);
        else
            sched_yield();
    atomic_store(&job->goes, 1);
}

static void work(void *state, int64_t first, int64_t end)
{
    peak_job *job = state;
    for (int64_t i = first; i < end; i++) {
        meet(job);
        if (i == 0) /* the caller's own */
            job->start = lab_now_s();
        job->sink = job->chains(STEPS);
    }
}

double lab_cpu_peak_gflops(rung_context *context, int threads)
{
    peak_job job = pick(context);
    job.threads = threads;
    lab_parallel(threads, threads, work, &job);
    return 2.0 * CHAINS * job.lanes * (double)STEPS * threads / (lab_now_s() - job.start) * 1e-9;
}

typedef struct move_job {
    const float *from;
    float *to;
    int64_t read, written, parts;
    volatile float sink;
} move_job;

static void move_part(void *state, int64_t first, int64_t end)
{
    move_job *job = state;
    float lanes[64] = {0};
    for (int64_t i = job->read * first / job->parts; i + 64 <= job->read * end / job->parts; i += 64)
        for (int lane = 0; lane < 64; lane++)
            lanes[lane] += job->from[i + lane];
    for (int lane = 1; lane < 64; lane++)
        lanes[0] += lanes[lane];
    job->sink = lanes[0];
    for (int64_t i = job->written * first / job->parts; i < job->written * end / job->parts; i++)
        job->to[i] = lanes[0];
}

void lab_cpu_move(const float *from, int64_t read, float *to, int64_t written, int threads)
{
    move_job job = {from, to, read, written, threads, 0.0f};
    lab_parallel(threads, threads, move_part, &job);
}
