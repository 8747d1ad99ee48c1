/* Says what CUDA C means under the lens. It is included before a kernel's own text when the host compiler compiles it
 * as C++. Shared variables are thread-local: no other storage class may stand alone and after extern and gives each
 * host thread its own. Threads of a block are fibers of one host thread, so they share them. */
#ifndef RUNG_LENS_CUDA_H
#define RUNG_LENS_CUDA_H

/* Each function has one line, as in a table. */
/* clang-format off */

/* C++17's special functions, which no kernel calls, take most of the time that <math.h> takes. */
#if __has_include(<bits/c++config.h>)
#include <bits/c++config.h>
#undef _GLIBCXX_USE_STD_SPEC_FUNCS
#endif
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* assert() calls it where it fails. */
#define __assert_fail rung_lens_assert_fail
#define __CUDACC__ 1
#define __CUDA_ARCH__ 900
#ifdef RUNG_LENS_CLONES /* it is compiled for processors with FMA, too: nobody looks at this file's accesses */
#define __global__ __attribute__((noinline, used, target_clones("default", "fma")))
#else
#define __global__ __attribute__((noinline, used))
#endif
#define __device__
#define __host__
#define __constant__ const
#define __forceinline__ inline __attribute__((always_inline))
/* Before such a kernel stand as many empty bytes as its blocks may have threads, and a list says where they begin: so
 * the lens reads the bound out of the object. */
#define __launch_bounds__(threads, ...) __attribute__((patchable_function_entry((threads), (threads))))
#define __grid_constant__
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __shared__ thread_local __attribute__((aligned(16)))
/* Nobody looks at a thread's registers, so such a function is compiled as for the processor, and calls no hooks. */
#define RUNG_IN_REGISTERS static __attribute__((noinline, noclone, unused, no_sanitize_thread, optimize("O3", "tree-vectorize")))
#define RUNG_LENS_INLINE static inline __attribute__((always_inline, unused))

/* ---- vector types: a load of one is one access ---- */
#define RUNG_LENS_VECTORS(T, name, align1, align2, align4)                                                             \
    struct __align__(align2) name##2 { T x, y; };                                                                      \
    struct name##3 { T x, y, z; };                                                                                     \
    struct __align__(align4) name##4 { T x, y, z, w; };                                                                \
    RUNG_LENS_INLINE name##2 make_##name##2(T x, T y) { return name##2{x, y}; }                                        \
    RUNG_LENS_INLINE name##3 make_##name##3(T x, T y, T z) { return name##3{x, y, z}; }                                \
    RUNG_LENS_INLINE name##4 make_##name##4(T x, T y, T z, T w) { return name##4{x, y, z, w}; }
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef long long longlong;
typedef unsigned long long ulonglong;
RUNG_LENS_VECTORS(float, float, 4, 8, 16)
RUNG_LENS_VECTORS(int, int, 4, 8, 16)
RUNG_LENS_VECTORS(unsigned, uint, 4, 8, 16)
RUNG_LENS_VECTORS(unsigned char, uchar, 1, 2, 4)
RUNG_LENS_VECTORS(short, short, 2, 4, 8)
RUNG_LENS_VECTORS(unsigned short, ushort, 2, 4, 8)
RUNG_LENS_VECTORS(double, double, 8, 16, 16)
RUNG_LENS_VECTORS(long long, longlong, 8, 16, 16)
RUNG_LENS_VECTORS(unsigned long long, ulonglong, 8, 16, 16)
typedef uint3 dim3;

extern "C" {
extern const uint3 threadIdx, blockIdx;
extern const dim3 blockDim, gridDim;
void __syncthreads(void);
void rung_lens_bar_check(int id, int count);
void rung_lens_bar_sync(int id, int count);
void rung_lens_bar_arrive(int id, int count);
int rung_lens_syncthreads_count(int predicate);
uint64_t rung_lens_exchange(const char *what, uint32_t mask, uint64_t value, int from_lane);
uint32_t rung_lens_ballot(const char *what, uint32_t mask, int predicate);
void rung_lens_syncwarp(uint32_t mask);
void rung_lens_atomic(const void *at, int bytes);
void rung_lens_trap(const char *what) __attribute__((noreturn));
void rung_lens_yield(void);
void *rung_lens_memset(void *at, int value, size_t bytes);
void *rung_lens_memmove(void *to, const void *from, size_t bytes);
void rung_lens_threadfence(void);
void rung_lens_after_earlier_kernels(void);
uint32_t rung_lens_shared_offset(const void *at);
void *rung_lens_shared_pointer(uint32_t offset);
float4 rung_lens_shared_load4(uint32_t offset);
float rung_lens_shared_load(uint32_t offset);
void rung_lens_cp_async(void *to, const void *from, int bytes, int source_bytes);
void rung_lens_cp_async_commit(void);
void rung_lens_cp_async_wait(int groups_left); /* negative: none is left, committed or not */
void rung_lens_mbarrier_init(const void *object, uint32_t count);
void rung_lens_mbarrier_publish(void); /* fences those that this thread has initialised */
void rung_lens_mbarrier_arrive(const void *object, int64_t transaction_bytes);
void rung_lens_mbarrier_wait(const void *object, unsigned parity);
int rung_lens_mbarrier_test(const void *object, unsigned parity);
/* Copies the map's box at element `at` (innermost first) to shared memory, and completes on the mbarrier. */
void rung_lens_tensor_load(void *shared, const void *map, const int at[5], const void *mbarrier);
void rung_lens_tensor_store(const void *map, const void *shared, const int at[5]);
void rung_lens_tensor_stores_read(void); /* waits until those of this thread have been read */
void rung_lens_async_fence(void);
/* Copies bytes in a row from global to shared memory. mask: the blocks of the cluster that get them; 0: this one. */
void rung_lens_bulk_load(void *shared, const void *global, int bytes, const void *mbarrier, uint32_t mask);
void rung_lens_mbarrier_arrive_cluster(const void *object, uint32_t rank);
uint32_t rung_lens_cluster_rank(void);
void rung_lens_cluster_load(void *to, uint32_t offset, uint32_t rank, int bytes);
void rung_lens_cluster_sync(void);
/* Adds a (16 x 8) b (8 x 8) to d (16 x 8) in TF32; the lanes of a warp hold the fragments. */
void rung_lens_mma_tf32(float *d, const uint32_t *a, const uint32_t *b);
/* Computes d (64 rows x n of this warpgroup) = a b + (keep ? d : 0). Operands have k innermost, in rows of 128 swizzled
 * bytes. */
void rung_lens_wgmma(float *d, uint64_t a, uint64_t b, int keep, int n, int type);
void rung_lens_wgmma_commit(void);
void rung_lens_wgmma_wait(int groups_left);
}
enum { warpSize = 32 };

/* ---- arithmetic ---- */
RUNG_LENS_INLINE float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
RUNG_LENS_INLINE float __fadd_rn(float a, float b) { return a + b; }
RUNG_LENS_INLINE float __fsub_rn(float a, float b) { return a - b; }
RUNG_LENS_INLINE float __fmul_rn(float a, float b) { return a * b; }
RUNG_LENS_INLINE float __fdiv_rn(float a, float b) { return a / b; }
RUNG_LENS_INLINE float __frcp_rn(float a) { return 1.0f / a; }
RUNG_LENS_INLINE float __fsqrt_rn(float a) { return sqrtf(a); }
#define __expf(a) expf(a)
RUNG_LENS_INLINE unsigned __float_as_uint(float a) { unsigned u; memcpy(&u, &a, 4); return u; }
RUNG_LENS_INLINE int __float_as_int(float a) { int i; memcpy(&i, &a, 4); return i; }
RUNG_LENS_INLINE float __uint_as_float(unsigned a) { float f; memcpy(&f, &a, 4); return f; }
RUNG_LENS_INLINE float __int_as_float(int a) { float f; memcpy(&f, &a, 4); return f; }
RUNG_LENS_INLINE int __popc(unsigned a) { return __builtin_popcount(a); }
RUNG_LENS_INLINE int __clz(int a) { return a ? __builtin_clz((unsigned)a) : 32; }
RUNG_LENS_INLINE int __ffsll(long long a) { return __builtin_ffsll(a); }
RUNG_LENS_INLINE int __popcll(unsigned long long a) { return __builtin_popcountll(a); }
RUNG_LENS_INLINE int __ffs(int a) { return __builtin_ffs(a); }
RUNG_LENS_INLINE unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((uint64_t)a * b >> 32); }
RUNG_LENS_INLINE unsigned __byte_perm(unsigned a, unsigned b, unsigned pick)
{
    uint64_t bytes = (uint64_t)b << 32 | a;
    unsigned r = 0;
    for (int i = 0; i < 4; i++)
        r |= (unsigned)(bytes >> (pick >> (4 * i) & 7) * 8 & 255) << (8 * i);
    return r;
}
RUNG_LENS_INLINE unsigned __brev(unsigned a)
{
    unsigned r = 0;
    for (int i = 0; i < 32; i++)
        r |= (a >> i & 1) << (31 - i);
    return r;
}
#define RUNG_LENS_MINMAX(T)                                                                                            \
    RUNG_LENS_INLINE T min(T a, T b) { return a < b ? a : b; }                                                         \
    RUNG_LENS_INLINE T max(T a, T b) { return a > b ? a : b; }
RUNG_LENS_MINMAX(int)
RUNG_LENS_MINMAX(unsigned)
RUNG_LENS_MINMAX(long)
RUNG_LENS_MINMAX(unsigned long)
RUNG_LENS_MINMAX(long long)
RUNG_LENS_MINMAX(unsigned long long)
/* NaN is less and more than nothing: the other one is the least and the most. */
#define RUNG_LENS_MINMAX_REAL(T)                                                                                       \
    RUNG_LENS_INLINE T min(T a, T b) { return a < b || b != b ? a : b; }                                               \
    RUNG_LENS_INLINE T max(T a, T b) { return a > b || b != b ? a : b; }
RUNG_LENS_MINMAX_REAL(float)
RUNG_LENS_MINMAX_REAL(double)
/* Of two types CUDA has the wider one, or the unsigned one. */
#define RUNG_LENS_MINMAX_OF_TWO(T, U)                                                                                  \
    RUNG_LENS_INLINE T min(T a, U b) { return min(a, (T)b); }                                                          \
    RUNG_LENS_INLINE T min(U a, T b) { return min((T)a, b); }                                                          \
    RUNG_LENS_INLINE T max(T a, U b) { return max(a, (T)b); }                                                          \
    RUNG_LENS_INLINE T max(U a, T b) { return max((T)a, b); }
RUNG_LENS_MINMAX_OF_TWO(unsigned, int)
RUNG_LENS_MINMAX_OF_TWO(unsigned long, long)
RUNG_LENS_MINMAX_OF_TWO(unsigned long long, long long)
RUNG_LENS_MINMAX_OF_TWO(double, float)

/* ---- memory; cache hints change nothing that the lens counts ---- */
#define RUNG_LENS_LOAD(name)                                                                                           \
    template <typename T> RUNG_LENS_INLINE T name(const T *at) { return *at; }
RUNG_LENS_LOAD(__ldg)
RUNG_LENS_LOAD(__ldca)
RUNG_LENS_LOAD(__ldcg)
RUNG_LENS_LOAD(__ldcs)
RUNG_LENS_LOAD(__ldlu)
RUNG_LENS_LOAD(__ldcv)
#define RUNG_LENS_STORE(name)                                                                                          \
    template <typename T> RUNG_LENS_INLINE void name(T *at, T value) { *at = value; }
RUNG_LENS_STORE(__stwb)
RUNG_LENS_STORE(__stcg)
RUNG_LENS_STORE(__stcs)
RUNG_LENS_STORE(__stwt)
RUNG_LENS_INLINE size_t __cvta_generic_to_shared(const void *at) { return rung_lens_shared_offset(at); }
RUNG_LENS_INLINE void *__cvta_shared_to_generic(size_t at) { return rung_lens_shared_pointer((uint32_t)at); }
RUNG_LENS_INLINE void __threadfence(void) { rung_lens_threadfence(); }
RUNG_LENS_INLINE void __threadfence_block(void) { __asm__ volatile("" ::: "memory"); }
RUNG_LENS_INLINE void __threadfence_system(void) { rung_lens_threadfence(); }
RUNG_LENS_INLINE void __nanosleep(unsigned) { rung_lens_yield(); }
RUNG_LENS_INLINE void __trap(void) { rung_lens_trap("executes __trap()"); }
RUNG_LENS_INLINE void __prof_trigger(int) {}

/* ---- barriers and warps ---- */
RUNG_LENS_INLINE int __syncthreads_count(int p) { return rung_lens_syncthreads_count(p); }
RUNG_LENS_INLINE int __syncthreads_or(int p) { return rung_lens_syncthreads_count(p) != 0; }
RUNG_LENS_INLINE int __syncthreads_and(int p) { return rung_lens_syncthreads_count(p) == (int)blockDim.x; }
RUNG_LENS_INLINE void __syncwarp(unsigned mask = 0xffffffffu) { rung_lens_syncwarp(mask); }
RUNG_LENS_INLINE unsigned __ballot_sync(unsigned mask, int p) { return rung_lens_ballot("__ballot_sync", mask, p); }
RUNG_LENS_INLINE int __any_sync(unsigned mask, int p) { return rung_lens_ballot("__any_sync", mask, p) != 0; }
RUNG_LENS_INLINE int __all_sync(unsigned mask, int p) { return rung_lens_ballot("__all_sync", mask, !p) == 0; }
template <typename T> RUNG_LENS_INLINE T rung_lens_shuffle(const char *what, unsigned mask, T value, int from)
{
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    bits = rung_lens_exchange(what, mask, bits, from);
    memcpy(&value, &bits, sizeof value);
    return value;
}
template <typename T> RUNG_LENS_INLINE T __shfl_sync(unsigned mask, T value, int from, int width = 32)
{
    int lane = threadIdx.x % 32;
    return rung_lens_shuffle("__shfl_sync", mask, value, (lane & ~(width - 1)) | (from & (width - 1)));
}
template <typename T> RUNG_LENS_INLINE T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32)
{
    int lane = threadIdx.x % 32, from = lane ^ bits;
    return rung_lens_shuffle("__shfl_xor_sync", mask, value, (from & ~(width - 1)) > (lane & ~(width - 1)) ? lane : from);
}
template <typename T> RUNG_LENS_INLINE T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32)
{
    int lane = threadIdx.x % 32, from = lane + (int)by;
    return rung_lens_shuffle("__shfl_down_sync", mask, value, (from & ~(width - 1)) != (lane & ~(width - 1)) ? lane : from);
}
template <typename T> RUNG_LENS_INLINE T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32)
{
    int lane = threadIdx.x % 32, from = lane - (int)by;
    return rung_lens_shuffle("__shfl_up_sync", mask, value, from < (lane & ~(width - 1)) ? lane : from);
}
template <typename T> RUNG_LENS_INLINE T rung_lens_warp_sum(unsigned mask, T value)
{
    T sum = 0;
    for (int lane = 0; lane < 32; lane++) {
        T other = rung_lens_shuffle("__reduce_add_sync", mask, value, lane);
        if (mask >> lane & 1)
            sum += other;
    }
    return sum;
}
template <typename T> RUNG_LENS_INLINE T __reduce_add_sync(unsigned mask, T value) { return rung_lens_warp_sum(mask, value); }

/* ---- atomics: the old value comes back ---- */
#define RUNG_LENS_ATOMIC(name, expression)                                                                             \
    template <typename T, typename U> RUNG_LENS_INLINE T name(T *at, U given)                                          \
    {                                                                                                                  \
        T value = (T)given;                                                                                            \
        rung_lens_atomic(at, sizeof *at);                                                                              \
        T old = rung_lens_peek(at);                                                                                    \
        rung_lens_poke(at, (T)(expression));                                                                           \
        return old;                                                                                                    \
    }
/* ---- reads and writes that no hook sees: the call beside each of them reports the access ---- */
template <typename T> static __attribute__((noinline, no_sanitize_thread)) T rung_lens_peek(const T *at) { return *at; }
template <typename T> static __attribute__((noinline, no_sanitize_thread)) void rung_lens_poke(T *at, T v) { *at = v; }
RUNG_LENS_ATOMIC(atomicAdd, old + value)
RUNG_LENS_ATOMIC(atomicSub, old - value)
RUNG_LENS_ATOMIC(atomicExch, value)
RUNG_LENS_ATOMIC(atomicMin, old < value ? old : value)
RUNG_LENS_ATOMIC(atomicMax, old > value ? old : value)
RUNG_LENS_ATOMIC(atomicAnd, old & value)
RUNG_LENS_ATOMIC(atomicOr, old | value)
RUNG_LENS_ATOMIC(atomicXor, old ^ value)
RUNG_LENS_ATOMIC(atomicInc, old >= value ? 0 : old + 1)
RUNG_LENS_ATOMIC(atomicDec, old == 0 || old > value ? value : old - 1)
template <typename T, typename U, typename V> RUNG_LENS_INLINE T atomicCAS(T *at, U compare, V value)
{
    rung_lens_atomic(at, sizeof *at);
    T old = rung_lens_peek(at);
    if (old == (T)compare)
        rung_lens_poke(at, (T)value);
    return old;
}

/* ---- C's library: its own code calls no hooks. What fits in a register is a load and a store, which do ---- */
RUNG_LENS_INLINE void *rung_lens_copy(void *to, const void *from, size_t bytes)
{
    return __builtin_constant_p(bytes) && bytes <= 16 ? __builtin_memcpy(to, from, bytes) : rung_lens_memmove(to, from, bytes);
}
#define memset(...) rung_lens_memset(__VA_ARGS__)
#define memcpy(...) rung_lens_copy(__VA_ARGS__)
#define memmove(...) rung_lens_memmove(__VA_ARGS__)
#endif
