/* A stand-in for libcuda on machines without a GPU: device memory is host memory, streams are queues that run at once
 * or as late as the dependencies allow (so that a missing one shows as wrong data, or as workspace that an earlier
 * launch still needs), launches of kernels whose argument begins with rung_args compute the product plainly, the
 * others and strict tiles do nothing. Any call can be made to fail. With FAKE_OLD it lacks a function, as an old driver
 * would. */
#define _GNU_SOURCE /* gettid */
#include "fake_libcuda.h"

#include <cuda.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cuda/device/args.h"
#include "cuda/device/f16x3.h"
#include "cuda/device/reduce_args.h"
#include "cuda/device/row_copy.h"
#include "cuda/device/tma.h"
#include "cuda/device/turn.h"
#include "cuda/families/large/args.h"
#include "cuda/families/lone/args.h"
#include "cuda/families/medium/args.h"
#include "cuda/families/vector/gather.h"

#define EXPORT __attribute__((visibility("default")))

enum { MOST_BLOCKS = 512, MOST_OPS = 1 << 14, MOST_STREAMS = 64, MOST_DEVICES = 8 };

typedef struct block {
    char *at;
    size_t bytes;
    int device; /* -1: pinned host memory */
    int pooled; /* cuMemFree does not wait for what uses it */
} block;

typedef struct position {
    struct stream *stream;
    int index;             /* everything before it must have run */
    unsigned long long id; /* not 0: that stream's, should another one have taken its place */
} position;

typedef struct op {
    enum { LAUNCH, COPY, FILL, WAIT, RELEASE } kind;
    long order; /* of being queued, among all streams' */
    rung_args args;
    CUDA_MEMCPY2D copy;
    unsigned value;
    size_t count;
    CUdeviceptr at;
    position after;
} op;

typedef struct stream {
    int open, done, count, device;
    CUcontext context;
    unsigned long long id;
    op *ops;
} stream;

typedef struct event {
    position recorded;
} event;

static fake state = {.devices = 1, .arch = 80, .memory_left = (int64_t)1 << 32};
static block blocks[MOST_BLOCKS];
static stream streams[MOST_STREAMS]; /* the first stands for NULL */
static _Thread_local CUcontext stack[16];
static _Thread_local int depth; /* of this thread's stack; state.pushed counts all */
static _Thread_local CUstreamCaptureMode capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
static long queued;
static unsigned long long ids;

EXPORT fake *fake_state(void);
fake *fake_state(void)
{
    return &state;
}

/* Notes a call that ends another thread's recording in global mode, unless its own thread is in relaxed mode. */
static void unsafe(void)
{
    state.faults += state.recording && capture_mode != CU_STREAM_CAPTURE_MODE_RELAXED;
}

/* What a graph that is being recorded keeps. */
typedef struct user_object {
    CUhostFn destroy;
    void *data;
    unsigned count;
    struct user_object *next;
} user_object;

static user_object *kept_by_graph;

static void let_go(user_object *object, unsigned count)
{
    object->count -= count;
    if (object->count > 0)
        return;
    object->destroy(object->data);
    free(object);
    state.user_objects--;
}

/* A graph is gone as soon as nobody records it. */
static void forget_graph(void)
{
    while (kept_by_graph) {
        user_object *object = kept_by_graph;
        kept_by_graph = object->next;
        let_go(object, 1);
    }
}

/* Counts and logs a call. Returns what it must fail with; 0: it goes on. The library loads kernels beside its calls. No
 * mutex: under the thread sanitizer it would put the library's own accesses in an order. */
static CUresult enter(const char *name)
{
    static char busy;
    sigset_t blocked;
    while (__atomic_test_and_set(&busy, __ATOMIC_ACQUIRE))
        sched_yield();
    state.calls++;
    if (!state.capturing)
        forget_graph();
    if (gettid() != getpid() && pthread_sigmask(SIG_SETMASK, NULL, &blocked) == 0)
        state.open_to_signals += !sigismember(&blocked, SIGTERM) || !sigismember(&blocked, SIGUSR1);
    size_t length = strlen(state.log);
    if (length + strlen(name) + 2 < FAKE_LOG_BYTES)
        sprintf(state.log + length, "%s ", name);
    int chosen = (state.fail_call && state.calls == state.fail_call) ||
                 (state.lost_call && state.calls >= state.lost_call) ||
                 (state.fail_name && strcmp(name, state.fail_name) == 0);
    __atomic_clear(&busy, __ATOMIC_RELEASE);
    return chosen ? (CUresult)state.fail_result : CUDA_SUCCESS;
}

#define CALL(name, ...)                                                                                                \
    EXPORT CUresult CUDAAPI name(__VA_ARGS__);                                                                         \
    CUresult CUDAAPI name(__VA_ARGS__)
#define ENTER()                                                                                                        \
    do {                                                                                                               \
        CUresult fails_ = enter(__func__);                                                                             \
        if (fails_ != CUDA_SUCCESS)                                                                                    \
            return fails_;                                                                                             \
    } while (0)

static block *block_of(CUdeviceptr at, size_t bytes)
{
    for (int i = 0; i < MOST_BLOCKS; i++)
        if (blocks[i].at && (char *)(uintptr_t)at >= blocks[i].at &&
            (char *)(uintptr_t)at + bytes <= blocks[i].at + blocks[i].bytes)
            return &blocks[i];
    return NULL;
}

/* ---- what calls were given ---- */

static uint64_t mix(uint64_t sum, uint64_t value)
{
    sum = (sum ^ value) * 0x9e3779b97f4a7c15u;
    return sum ^ sum >> 29;
}

/* Adds a word. Where it is an address in a block, the block's number and the place there stand for it. */
static uint64_t mix_word(uint64_t sum, uint64_t word)
{
    const block *b = word >> 32 ? block_of((CUdeviceptr)word, 0) : NULL;
    return b ? mix(mix(sum, (uint64_t)(b - blocks) + 1), word - (uint64_t)(uintptr_t)b->at) : mix(sum, word);
}

typedef struct argument {
    const char *part;        /* of the kernel's name */
    size_t bytes, hole;      /* up to the end of the last field; where four bytes belong to no field, 0: nowhere */
    size_t drawn, drawn_end; /* addresses in a table of the library's, whose place is a hash of others: only whether
                                they are there counts */
} argument;

#define BYTES_UP_TO(type, last) (offsetof(type, last) + sizeof(((type *)0)->last))

static argument argument_of(const char *name)
{
    static const argument known[] = {
        {"turn_", BYTES_UP_TO(rung_turn_args, aligned), 0, 0, 0},
        {"row_copy", sizeof(rung_row_copy_args), 0, 0, 0},
        {"vector_gather", sizeof(vector_gather_args), 0, 0, 0},
        {"f16x3_look", sizeof(f16x3_look_args), BYTES_UP_TO(f16x3_look_args, min_terms),
         offsetof(f16x3_look_args, recalled), BYTES_UP_TO(f16x3_look_args, told)},
        {"f16x3_", sizeof(f16x3_split_args), BYTES_UP_TO(f16x3_split_args, entry), 0, 0},
        {"tf32_pack", sizeof(f16x3_split_args), BYTES_UP_TO(f16x3_split_args, entry), 0, 0},
        {"_wgmma_", sizeof(f16x3_args), 0, 0, 0},
        {"_tma_", BYTES_UP_TO(rung_large_args, c_transposed), BYTES_UP_TO(rung_large_args, order), 0, 0},
        {"_tmak_", BYTES_UP_TO(rung_large_args, c_transposed), BYTES_UP_TO(rung_large_args, order), 0, 0},
        {"_tmawarp_", BYTES_UP_TO(rung_medium_args, meeting_us), 0, 0, 0},
        {"_tmaslice_", BYTES_UP_TO(rung_medium_args, meeting_us), 0, 0, 0},
        {"_mark", BYTES_UP_TO(rung_medium_args, meeting_us), 0, offsetof(rung_medium_args, recalled),
         BYTES_UP_TO(rung_medium_args, told)},
        {"_tmapair_", BYTES_UP_TO(rung_lone_args, c_boxes), 0, 0, 0},
        {"_tmashift_", BYTES_UP_TO(rung_lone_args, c_boxes), 0, 0, 0},
        {"_lone", BYTES_UP_TO(rung_lone_args, c_boxes), 0, 0, 0}};
    if (name[0] == 'r' && name[1] >= '0' && name[1] <= '9') /* r01_atomics ... */
        return (argument){"", sizeof(rung_reduce_args), 0, 0, 0};
    if (name[0] == 'l' && name[1] >= '0' && name[1] <= '9') /* a rung's begins with what every rung is given, */
        return (argument){"",
                          strstr(name, "_pack") ? sizeof(rung_pack_args)
                          : strcmp(name, "l21") > 0 && strcmp(name, "l30") < 0
                              ? sizeof(rung_tma_args) /* or with two maps before that */
                              : sizeof(rung_args),
                          0, 0, 0};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strstr(name, known[i].part))
            return known[i];
    return (argument){"", strncmp(name, "sm", 2) == 0 ? sizeof(rung_args) : 0, 0, 0, 0};
}

static void give_argument(const char *name, const void *fields)
{
    const argument of = argument_of(name);
    for (size_t at = 0; at < of.bytes; at += sizeof(uint64_t)) {
        const size_t bytes = of.bytes - at < sizeof(uint64_t) || at + 4 == of.hole ? 4 : sizeof(uint64_t);
        uint64_t word = 0;
        memcpy(&word, (const char *)fields + at, bytes);
        if (at >= of.drawn && at < of.drawn_end)
            word = word != 0;
        state.given = mix_word(state.given, word);
    }
}

static void give_copy(const CUDA_MEMCPY2D *c)
{
    const uint64_t words[] = {c->srcMemoryType == CU_MEMORYTYPE_DEVICE ? c->srcDevice : 0,
                              c->dstMemoryType == CU_MEMORYTYPE_DEVICE ? c->dstDevice : 0,
                              c->WidthInBytes,
                              c->Height,
                              c->srcPitch,
                              c->dstPitch};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        state.given = mix_word(state.given, words[i]);
}

static int current_device(void)
{
    return depth ? (int)((uintptr_t)stack[depth - 1] % FAKE_OTHER_CONTEXT) - 1 : 0;
}

enum { PAGE_BYTES = 4096 };

/* Returns memory for a block. In order its address is the same in each run, since what a call is given may follow from
 * where its operands lie. */
static char *memory_of(size_t bytes)
{
    static uintptr_t next = (uintptr_t)1 << 44;
    if (!state.in_order)
        return malloc(bytes);
    void *at = mmap((void *)next, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    next += (bytes / PAGE_BYTES + 2) * PAGE_BYTES;
    return at == MAP_FAILED ? NULL : at;
}

static CUresult allocate(CUdeviceptr *out, size_t bytes, int device)
{
    if (device >= 0 && (int64_t)bytes > state.memory_left)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (int i = 0; i < MOST_BLOCKS; i++)
        if (!blocks[i].at) {
            blocks[i] = (block){memory_of(bytes), bytes, device, 0};
            if (!state.idle)
                memset(blocks[i].at, 0xff, bytes); /* NaN */
            *out = (CUdeviceptr)(uintptr_t)blocks[i].at;
            device < 0 ? state.pinned++ : state.memory++;
            state.held_bytes += device < 0 ? 0 : (int64_t)bytes;
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult release(CUdeviceptr at)
{
    block *b = block_of(at, 1);
    if (!b || b->at != (char *)(uintptr_t)at) {
        state.faults++;
        return CUDA_ERROR_INVALID_VALUE;
    }
    b->device < 0 ? state.pinned-- : state.memory--;
    state.held_bytes -= b->device < 0 ? 0 : (int64_t)b->bytes;
    if ((uintptr_t)b->at >> 44 == 1)
        munmap(b->at, b->bytes);
    else
        free(b->at);
    memset(b, 0, sizeof *b);
    return CUDA_SUCCESS;
}

static void run_until(position p);

/* Says that what was pushed is complete: eager streams do it now. */
static void pushed(CUstream handle)
{
    stream *s = handle ? (stream *)handle : &streams[0];
    if (state.eager >> (s - streams) & 1)
        run_until((position){s, s->count, 0});
}

static stream *stream_of(CUstream handle)
{
    stream *s = handle ? (stream *)handle : &streams[0];
    if (handle && !s->open)
        state.faults++;
    return s;
}

static op *push(CUstream handle, int kind)
{
    stream *s = stream_of(handle);
    if (!s->ops)
        s->ops = calloc(MOST_OPS, sizeof *s->ops);
    if (s->count == MOST_OPS && s->done == s->count)
        s->done = s->count = 0;
    if (s->count == MOST_OPS)
        abort();
    op *o = &s->ops[s->count++];
    memset(o, 0, sizeof *o);
    o->kind = kind;
    o->order = ++queued;
    return o;
}

/* Computes row i of op(A) op(B), each element's sum along k in order; B is read along its lines. */
static void multiply_row(const rung_args *g, const float *a, const float *b, int64_t i, float *sums)
{
    for (int64_t j = 0; j < g->n; j++)
        sums[j] = 0.0f;
    for (int64_t j = 0; j < g->n && g->trans_b; j++)
        for (int64_t p = 0; p < g->k; p++)
            sums[j] += a[g->trans_a ? p * g->lda + i : i * g->lda + p] * b[j * g->ldb + p];
    for (int64_t p = 0; p < g->k && !g->trans_b; p++) {
        float x = a[g->trans_a ? p * g->lda + i : i * g->lda + p];
        for (int64_t j = 0; j < g->n; j++)
            sums[j] += x * b[p * g->ldb + j];
    }
}

static void multiply_entry(const rung_args *g, const float *a, const float *b, float *c)
{
    float *sums = malloc((size_t)(g->n + 1) * sizeof *sums);
    for (int64_t i = 0; i < g->m; i++, c += g->ldc) {
        if (g->n > 0 && !block_of((CUdeviceptr)(uintptr_t)c, (size_t)g->n * 4)) {
            state.faults++;
            break;
        }
        multiply_row(g, a, b, i, sums);
        for (int64_t j = 0; j < g->n; j++) {
            const float value = g->alpha * sums[j] + (g->beta == 0.0f ? 0.0f : g->beta * c[j]) +
                                (g->bias_kind == 1   ? g->bias[i]
                                 : g->bias_kind == 2 ? g->bias[j]
                                                     : 0.0f);
            c[j] = g->activation == 1 && value < 0.0f ? 0.0f : value;
        }
    }
    free(sums);
}

static void multiply(const rung_args *g)
{
    int64_t batch = g->batch > 1 ? g->batch : 1;
    for (int64_t e = 0; e < batch; e++)
        multiply_entry(g, g->a + e * g->stride_a, g->b + e * g->stride_b, g->c + e * g->stride_c);
}

static void copy_lines(const CUDA_MEMCPY2D *c)
{
    const char *from = c->srcMemoryType == CU_MEMORYTYPE_HOST ? c->srcHost : (const char *)(uintptr_t)c->srcDevice;
    char *to = c->dstMemoryType == CU_MEMORYTYPE_HOST ? c->dstHost : (char *)(uintptr_t)c->dstDevice;
    CUdeviceptr device = c->srcMemoryType == CU_MEMORYTYPE_DEVICE ? c->srcDevice : c->dstDevice;
    size_t pitch = c->srcMemoryType == CU_MEMORYTYPE_DEVICE ? c->srcPitch : c->dstPitch;
    if (c->Height && !block_of(device, pitch * (c->Height - 1) + c->WidthInBytes)) {
        state.faults++;
        return;
    }
    for (size_t i = 0; i < c->Height; i++)
        memcpy(to + i * c->dstPitch, from + i * c->srcPitch, c->WidthInBytes);
}

/* Kernels may read the last 16 bytes of a line at once. In memory that Rung has of its own all of them are written. */
static void check_line_ends(const float *at, int64_t lines, int64_t length, int64_t ld)
{
    const block *b = block_of((CUdeviceptr)(uintptr_t)at, 4);
    const int64_t end = (length + 3) & -4;
    if (!b || !b->pooled || ld < end)
        return;
    for (int64_t i = 0; i < lines; i++)
        for (int64_t j = length; j < end; j++) {
            unsigned bits;
            memcpy(&bits, at + i * ld + j, sizeof bits);
            state.faults += bits == 0xffffffffu; /* as it came */
        }
}

/* A launch that was queued before and has not run yet works in this block. */
static int awaited(const block *b, long before)
{
    for (int i = 0; b && i < MOST_STREAMS; i++)
        for (int j = streams[i].done; j < streams[i].count; j++) {
            const op *o = &streams[i].ops[j];
            if (o->kind == LAUNCH && o->order < before && o->args.workspace &&
                block_of((CUdeviceptr)(uintptr_t)o->args.workspace, 1) == b)
                return 1;
        }
    return 0;
}

static void run_launch(const op *o)
{
    const block *workspace = block_of((CUdeviceptr)(uintptr_t)o->args.workspace, 1);
    if (o->args.workspace && (!workspace || awaited(workspace, o->order)))
        state.faults++;
    if (workspace && o->args.split_k > 1) { /* its counters, where it has such, lie before it */
        const char *at = o->args.workspace;
        state.workspace_bytes = workspace->at + workspace->bytes - at;
        for (const char *p = at - RUNG_TICKET_BYTES; p >= workspace->at && p < at; p++)
            if (*p) {
                state.faults++;
                break;
            }
        const int64_t sums_bytes = o->args.m * o->args.n * o->args.split_k * 4; /* of the parts that meet there */
        memset(o->args.workspace, 0xff,
               (size_t)(sums_bytes < state.workspace_bytes ? sums_bytes : state.workspace_bytes));
    }
    const rung_args *g = &o->args;
    if (g->k > 0) {
        check_line_ends(g->a, g->trans_a ? g->k : g->m, g->trans_a ? g->m : g->k, g->lda);
        check_line_ends(g->b, g->trans_b ? g->n : g->k, g->trans_b ? g->k : g->n, g->ldb);
    }
    multiply(g);
}

static void run_op(const op *o)
{
    switch (o->kind) {
    case LAUNCH: run_launch(o); break;
    case COPY: copy_lines(&o->copy); break;
    case FILL:
        if (!block_of(o->at, o->count * 4)) {
            state.faults++;
            break;
        }
        for (size_t i = 0; i < o->count; i++)
            ((unsigned *)(uintptr_t)o->at)[i] = o->value;
        break;
    case WAIT: run_until(o->after); break;
    case RELEASE:
        state.faults += awaited(block_of(o->at, 1), o->order);
        release(o->at);
        break;
    }
}

static void run_until(position p)
{
    if (p.id && p.id != p.stream->id)
        return; /* that one is long done */
    for (stream *s = p.stream; s && s->done < p.index && s->done < s->count; s->done++)
        run_op(&s->ops[s->done]);
}

static void run_all(void)
{
    for (int i = MOST_STREAMS - 1; i >= 0; i--)
        run_until((position){&streams[i], streams[i].count, 0});
}

CALL(cuInit, unsigned flags)
{
    (void)flags;
    ENTER();
    if (getenv("FAKE_DEVICES")) /* for programs that cannot reach fake_state */
        state.devices = atoi(getenv("FAKE_DEVICES"));
    return (CUresult)state.init_result;
}

CALL(cuDriverGetVersion, int *version)
{
    ENTER();
    *version = state.driver_version ? state.driver_version : 13000;
    return CUDA_SUCCESS;
}

CALL(cuGetErrorName, CUresult result, const char **name)
{
    *name = result == CUDA_ERROR_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY"
            : result == CUDA_ERROR_NO_DEVICE   ? "CUDA_ERROR_NO_DEVICE"
                                               : "CUDA_ERROR_LAUNCH_FAILED";
    return CUDA_SUCCESS;
}

CALL(cuGetErrorString, CUresult result, const char **text)
{
    (void)result;
    *text = "as the test wants it";
    return CUDA_SUCCESS;
}

CALL(cuDeviceGetCount, int *count)
{
    ENTER();
    *count = state.devices;
    return CUDA_SUCCESS;
}

CALL(cuDeviceGet, CUdevice *device, int ordinal)
{
    ENTER();
    *device = ordinal;
    return ordinal < state.devices ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CALL(cuDeviceGetName, char *name, int bytes, CUdevice device)
{
    ENTER();
    snprintf(name, (size_t)bytes, "Stand-in %d", device);
    return CUDA_SUCCESS;
}

CALL(cuDeviceGetPCIBusId, char *id, int bytes, CUdevice device)
{
    ENTER();
    snprintf(id, (size_t)bytes, "0000:0%d:00.0", device);
    return CUDA_SUCCESS;
}

CALL(cuDeviceGetAttribute, int *value, CUdevice_attribute attribute, CUdevice device)
{
    (void)device;
    ENTER();
    switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = state.arch / 10; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = state.arch % 10; break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = state.sms ? state.sms : state.arch == 90 ? 132 : 108; break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: *value = state.arch == 90 ? 232448 : 166912; break;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE: *value = state.arch == 90 ? 1980000 : 1410000; break;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE: *value = (state.arch == 90 ? 60 : 40) << 20; break;
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE: *value = state.arch == 90 ? 3201000 : 1215000; break;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH: *value = state.arch == 90 ? 6144 : 5120; break;
    default: *value = 1;
    }
    return CUDA_SUCCESS;
}

CALL(cuDeviceTotalMem_v2, size_t *bytes, CUdevice device)
{
    (void)device;
    ENTER();
    *bytes = (size_t)40 << 30;
    return CUDA_SUCCESS;
}

CALL(cuDevicePrimaryCtxRetain, CUcontext *context, CUdevice device)
{
    ENTER();
    while (gettid() != getpid() && __atomic_load_n(&state.hold, __ATOMIC_ACQUIRE))
        sched_yield();
    *context = (CUcontext)(uintptr_t)(device + 1);
    state.primaries++;
    return CUDA_SUCCESS;
}

CALL(cuDevicePrimaryCtxRelease_v2, CUdevice device)
{
    (void)device;
    ENTER();
    state.primaries--;
    return CUDA_SUCCESS;
}

CALL(cuCtxPushCurrent_v2, CUcontext context)
{
    ENTER();
    stack[depth++] = context;
    __atomic_add_fetch(&state.pushed, 1, __ATOMIC_RELAXED);
    return CUDA_SUCCESS;
}

CALL(cuCtxPopCurrent_v2, CUcontext *context) /* never fails: nobody could put that right */
{
    *context = stack[--depth];
    __atomic_sub_fetch(&state.pushed, 1, __ATOMIC_RELAXED);
    return CUDA_SUCCESS;
}

CALL(cuDeviceCanAccessPeer, int *possible, CUdevice device, CUdevice peer)
{
    ENTER();
    *possible = device != peer;
    return CUDA_SUCCESS;
}

static unsigned char reaches[FAKE_OTHER_CONTEXT][FAKE_OTHER_CONTEXT]; /* a device another one's memory */

CALL(cuCtxEnablePeerAccess, CUcontext peer, unsigned flags)
{
    ENTER();
    const int there = (int)((uintptr_t)peer % FAKE_OTHER_CONTEXT) - 1;
    if (flags || there == current_device())
        return CUDA_ERROR_INVALID_VALUE;
    if (__atomic_exchange_n(&reaches[current_device()][there], 1, __ATOMIC_RELAXED))
        return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    return CUDA_SUCCESS;
}

CALL(cuCtxGetCurrent, CUcontext *context)
{
    ENTER();
    *context = depth ? stack[depth - 1] : NULL;
    return CUDA_SUCCESS;
}

CALL(cuCtxGetDevice, CUdevice *device)
{
    ENTER();
    *device = current_device();
    return CUDA_SUCCESS;
}

CALL(cuCtxSynchronize, void)
{
    state.faults += state.recording;
    ENTER();
    run_all();
    return CUDA_SUCCESS;
}

#ifndef FAKE_OLD
CALL(cuLibraryLoadData, CUlibrary *library, const void *code, CUjit_option *jit, void **jit_values, unsigned jits,
     CUlibraryOption *options, void **values, unsigned count)
{
    (void)jit, (void)jit_values, (void)jits;
    unsafe();
    ENTER();
    const int preserved = count == 1 && options[0] == CU_LIBRARY_BINARY_IS_PRESERVED && values[0];
    if (!preserved)
        __atomic_add_fetch(&state.copied, 1, __ATOMIC_RELAXED);
    while (gettid() != getpid() && __atomic_load_n(&state.hold, __ATOMIC_ACQUIRE))
        sched_yield();
    if (*(const unsigned *)code != 0xba55ed50) /* the magic number of a fatbin */
        state.faults++;
    *library = (CUlibrary)(uintptr_t)code;
    __atomic_add_fetch(&state.libraries, 1, __ATOMIC_RELAXED);
    return CUDA_SUCCESS;
}
#endif

CALL(cuLibraryUnload, CUlibrary library)
{
    (void)library;
    ENTER();
    state.libraries--;
    return CUDA_SUCCESS;
}

CALL(cuLibraryGetKernel, CUkernel *kernel, CUlibrary library, const char *name)
{
    (void)library;
    ENTER();
    *kernel = (CUkernel)(uintptr_t)strdup(name); /* kept until the process ends, as a module is */
    return CUDA_SUCCESS;
}

CALL(cuLibraryGetGlobal, CUdeviceptr *at, size_t *bytes, CUlibrary library, const char *name)
{
    (void)at, (void)bytes, (void)library, (void)name;
    ENTER();
    return CUDA_ERROR_NOT_FOUND;
}

CALL(cuKernelGetFunction, CUfunction *function, CUkernel kernel)
{
    ENTER();
    *function = (CUfunction)kernel;
    return CUDA_SUCCESS;
}

CALL(cuFuncGetAttribute, int *value, CUfunction_attribute attribute, CUfunction function)
{
    (void)function;
    ENTER();
    *value = attribute == CU_FUNC_ATTRIBUTE_NUM_REGS ? 64 : 0;
    return CUDA_SUCCESS;
}

CALL(cuFuncSetAttribute, CUfunction function, CUfunction_attribute attribute, int value)
{
    (void)function, (void)attribute, (void)value;
    ENTER();
    return CUDA_SUCCESS;
}

CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor, int *blocks_out, CUfunction function, int threads, size_t shared)
{
    (void)function, (void)threads, (void)shared;
    ENTER();
    *blocks_out = 1;
    return CUDA_SUCCESS;
}

/* Nothing is ever marked for strict tiles here. */
static int multiplies(CUfunction function, void **parameters)
{
    const char *name = (const char *)function;
    return !state.idle && strncmp(name, "f16x3_", 6) != 0 && !strstr(name, "_mark") &&
           !((const rung_args *)parameters[0])->marks;
}

enum { STREAM_PRIORITY = -1 };

static void tell_launch(const char *name, const unsigned grid[3], unsigned threads, unsigned shared, unsigned cluster,
                        int priority)
{
    size_t length = strlen(state.launched);
    snprintf(state.launched + length, FAKE_LAUNCHED_BYTES - length, "%s %ux%ux%u %u %u %u %d\n", name, grid[0], grid[1],
             grid[2], threads, shared, cluster, priority);
}

static unsigned cluster_of(const CUlaunchConfig *config)
{
    for (unsigned i = 0; i < config->numAttrs; i++)
        if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
            return config->attrs[i].value.clusterDim.x;
    return 1;
}

static int overlaps(const CUlaunchConfig *config)
{
    for (unsigned i = 0; i < config->numAttrs; i++)
        if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
            return config->attrs[i].value.programmaticStreamSerializationAllowed;
    return 0;
}

/* What a GPU refuses. */
static int grid_is_sound(const CUlaunchConfig *c)
{
    const unsigned x = c->gridDimX, y = c->gridDimY, z = c->gridDimZ;
    return x && y && z && x <= INT32_MAX && y <= UINT16_MAX && z <= UINT16_MAX && c->blockDimX && c->blockDimX <= 1024;
}

/* An operand that is turned in several launches goes on where the one before has ended. */
static void check_turn(const rung_turn_args *now, unsigned matrices)
{
    static rung_turn_args before;
    static unsigned before_matrices;
    if (before_matrices && now->from == before.from + before_matrices * before.stride_from && before.stride_from)
        state.faults += now->to != before.to + before_matrices * before.stride_to;
    before = *now;
    before_matrices = matrices;
}

/* The byte that says whether any block is marked lies behind the marks, and before the list of the marked ones. */
static void check_marks(const rung_medium_args *now)
{
    const char *any = (const char *)now->any, *list = (const char *)now->list;
    state.faults += any && (any < (const char *)now->g.marks || any >= list);
}

/* What a recorded launch waits for: those that were recorded last, or were set to be. The line that tells of it has
 * their numbers where these are not the one before it alone. */
static struct {
    int of, launches; /* the recording that they belong to */
    CUgraphNode next[8];
    size_t count;
} recorded;

static void begin_recording(void)
{
    if (recorded.of == state.capturing && recorded.launches)
        return;
    recorded.of = state.capturing;
    recorded.launches = 0;
    recorded.count = 0;
}

static void record_node(void)
{
    begin_recording();
    const CUgraphNode last = (CUgraphNode)(uintptr_t)recorded.launches;
    char *end = state.launched + strlen(state.launched) - 1;
    if (recorded.launches && (recorded.count != 1 || recorded.next[0] != last)) {
        end += sprintf(end, " after");
        for (size_t i = 0; i < recorded.count; i++)
            end += sprintf(end, " %d", (int)(uintptr_t)recorded.next[i]);
        sprintf(end, "\n");
    }
    recorded.next[0] = (CUgraphNode)(uintptr_t)++recorded.launches;
    recorded.count = 1;
}

CALL(cuLaunchKernelEx, const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra)
{
    (void)extra;
    ENTER();
    if (!grid_is_sound(config)) {
        state.faults++;
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (config->hStream && stream_of(config->hStream)->device != current_device())
        return (CUresult)400; /* an invalid handle */
    if (strncmp((const char *)function, "turn_", 5) == 0)
        check_turn(parameters[0], config->gridDimZ);
    if (strstr((const char *)function, "_mark"))
        check_marks(parameters[0]);
    state.grid[0] = config->gridDimX, state.grid[1] = config->gridDimY, state.grid[2] = config->gridDimZ;
    state.threads = config->blockDimX;
    state.shared_bytes = config->sharedMemBytes;
    state.overlapped = overlaps(config);
    state.stream = config->hStream;
    snprintf(state.kernel, sizeof state.kernel, "%s", (const char *)function);
    tell_launch(state.kernel, state.grid, state.threads, state.shared_bytes, cluster_of(config), STREAM_PRIORITY);
    if (state.capturing)
        record_node();
    state.given = mix(state.given, (uint64_t)state.overlapped);
    give_argument(state.kernel, parameters[0]);
    if (!state.capturing && multiplies(function, parameters)) {
        push(config->hStream, LAUNCH)->args = *(const rung_args *)parameters[0];
        pushed(config->hStream);
    }
    return CUDA_SUCCESS;
}

CALL(cuMemAlloc_v2, CUdeviceptr *out, size_t bytes)
{
    unsafe();
    ENTER();
    return allocate(out, bytes, current_device());
}

CALL(cuMemFree_v2, CUdeviceptr at)
{
    unsafe();
    ENTER();
    block *b = block_of(at, 1);
    if (!b || !b->pooled)
        run_all();
    else if (awaited(b, queued + 1))
        state.faults++;
    return release(at);
}

static CUresult allocate_pooled(CUdeviceptr *out, size_t bytes)
{
    CUresult result = allocate(out, bytes, current_device());
    if (result == CUDA_SUCCESS)
        block_of(*out, 1)->pooled = 1;
    if (result == CUDA_SUCCESS && (int64_t)bytes > state.most_pooled)
        state.most_pooled = (int64_t)bytes;
    return result;
}

CALL(cuMemAllocAsync, CUdeviceptr *out, size_t bytes, CUstream on)
{
    (void)on;
    ENTER();
    return allocate_pooled(out, bytes);
}

CALL(cuMemAllocFromPoolAsync, CUdeviceptr *out, size_t bytes, CUmemoryPool pool, CUstream on)
{
    (void)pool, (void)on;
    unsafe();
    ENTER();
    return allocate_pooled(out, bytes);
}

CALL(cuMemFreeAsync, CUdeviceptr at, CUstream on)
{
    unsafe();
    ENTER();
    push(on, RELEASE)->at = at;
    pushed(on);
    return CUDA_SUCCESS;
}

CALL(cuMemGetInfo_v2, size_t *left, size_t *total)
{
    ENTER();
    *left = (size_t)state.memory_left;
    *total = (size_t)40 << 30;
    return CUDA_SUCCESS;
}

CALL(cuMemPoolCreate, CUmemoryPool *pool, const CUmemPoolProps *properties)
{
    (void)properties;
    unsafe();
    ENTER();
    *pool = (CUmemoryPool)(uintptr_t)1;
    state.pools++;
    return CUDA_SUCCESS;
}

CALL(cuMemPoolDestroy, CUmemoryPool pool)
{
    (void)pool;
    unsafe();
    ENTER();
    state.pools--;
    return CUDA_SUCCESS;
}

CALL(cuMemPoolSetAttribute, CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
    (void)pool;
    unsafe();
    ENTER();
    if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
        state.release_threshold = *(cuuint64_t *)value;
    return CUDA_SUCCESS;
}

CALL(cuMemHostAlloc, void **out, size_t bytes, unsigned flags)
{
    (void)flags;
    unsafe();
    ENTER();
    CUdeviceptr at;
    CUresult result = allocate(&at, bytes, -1);
    *out = result == CUDA_SUCCESS ? (void *)(uintptr_t)at : NULL;
    return result;
}

CALL(cuMemFreeHost, void *at)
{
    unsafe();
    ENTER();
    run_all();
    return release((CUdeviceptr)(uintptr_t)at);
}

/* A copy says where its ends are: in a device's memory, or in the host's. */
static void check_end(CUdeviceptr at, CUmemorytype said)
{
    const block *b = block_of(at, 1);
    const int on_device = b && b->device >= 0;
    state.faults += on_device != (said == CU_MEMORYTYPE_DEVICE);
}

static void check_ends(const CUDA_MEMCPY2D *c)
{
    check_end(c->srcMemoryType == CU_MEMORYTYPE_HOST ? (CUdeviceptr)(uintptr_t)c->srcHost : c->srcDevice,
              c->srcMemoryType);
    check_end(c->dstMemoryType == CU_MEMORYTYPE_HOST ? (CUdeviceptr)(uintptr_t)c->dstHost : c->dstDevice,
              c->dstMemoryType);
}

static CUresult copy_flat(CUdeviceptr to, int to_host, CUdeviceptr from, int from_host, size_t bytes, CUstream on)
{
    CUDA_MEMCPY2D *c = &push(on, COPY)->copy;
    c->srcMemoryType = from_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    c->dstMemoryType = to_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    c->srcHost = (void *)(uintptr_t)from;
    c->dstHost = (void *)(uintptr_t)to;
    c->srcDevice = from;
    c->dstDevice = to;
    c->WidthInBytes = c->srcPitch = c->dstPitch = bytes;
    c->Height = 1;
    check_ends(c);
    give_copy(c);
    state.moved_bytes += to_host ? 0 : (int64_t)bytes;
    pushed(on);
    return CUDA_SUCCESS;
}

CALL(cuMemcpyHtoDAsync_v2, CUdeviceptr to, const void *from, size_t bytes, CUstream on)
{
    unsafe();
    ENTER();
    return copy_flat(to, 0, (CUdeviceptr)(uintptr_t)from, 1, bytes, on);
}

CALL(cuMemcpyDtoHAsync_v2, void *to, CUdeviceptr from, size_t bytes, CUstream on)
{
    unsafe();
    ENTER();
    return copy_flat((CUdeviceptr)(uintptr_t)to, 1, from, 0, bytes, on);
}

CALL(cuMemcpyDtoDAsync_v2, CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream on)
{
    ENTER();
    return copy_flat(to, 0, from, 0, bytes, on);
}

/* The context that a peer copy names must be that of the memory. */
static void check_place(CUdeviceptr at, CUcontext context)
{
    block *b = block_of(at, 1);
    if (!b || b->device != (int)(uintptr_t)context - 1)
        state.faults++;
}

/* A copy between devices that do not reach each other would go through host memory. */
static void check_reach(CUcontext to, CUcontext from)
{
    const int there = (int)((uintptr_t)to % FAKE_OTHER_CONTEXT) - 1,
              here = (int)((uintptr_t)from % FAKE_OTHER_CONTEXT) - 1;
    if (there != here && !__atomic_load_n(&reaches[there][here], __ATOMIC_RELAXED))
        state.faults++;
}

CALL(cuMemcpyPeerAsync, CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes,
     CUstream on)
{
    ENTER();
    check_place(to, to_context);
    check_place(from, from_context);
    check_reach(to_context, from_context);
    return copy_flat(to, 0, from, 0, bytes, on);
}

CALL(cuMemcpy3DPeerAsync, const CUDA_MEMCPY3D_PEER *c, CUstream on)
{
    ENTER();
    check_place(c->srcDevice, c->srcContext);
    check_place(c->dstDevice, c->dstContext);
    check_reach(c->dstContext, c->srcContext);
    push(on, COPY)->copy = (CUDA_MEMCPY2D){.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                                           .srcDevice = c->srcDevice,
                                           .srcPitch = c->srcPitch,
                                           .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                                           .dstDevice = c->dstDevice,
                                           .dstPitch = c->dstPitch,
                                           .WidthInBytes = c->WidthInBytes,
                                           .Height = c->Height};
    state.moved_bytes += (int64_t)(c->WidthInBytes * c->Height);
    pushed(on);
    return CUDA_SUCCESS;
}

CALL(cuMemcpy2DAsync_v2, const CUDA_MEMCPY2D *copy, CUstream on)
{
    ENTER();
    check_ends(copy);
    give_copy(copy);
    if (copy->dstMemoryType == CU_MEMORYTYPE_DEVICE)
        state.moved_bytes += (int64_t)(copy->WidthInBytes * copy->Height);
    push(on, COPY)->copy = *copy;
    pushed(on);
    return CUDA_SUCCESS;
}

CALL(cuMemsetD32Async, CUdeviceptr at, unsigned value, size_t count, CUstream on)
{
    ENTER();
    const block *b = block_of(at, 1);
    if (b && b->at != (char *)(uintptr_t)at)
        state.filled_bytes = (int64_t)count * 4;
    state.given = mix(mix(mix_word(state.given, at), value), count);
    op *o = push(on, FILL);
    o->at = at, o->value = value, o->count = count;
    pushed(on);
    return CUDA_SUCCESS;
}

CALL(cuPointerGetAttribute, void *value, CUpointer_attribute attribute, CUdeviceptr at)
{
    ENTER();
    block *b = block_of(at, 1);
    if (!b)
        return CUDA_ERROR_INVALID_VALUE;
    if (attribute == CU_POINTER_ATTRIBUTE_MEMORY_TYPE)
        *(CUmemorytype *)value = b->device < 0 ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    return CUDA_SUCCESS;
}

CALL(cuPointerGetAttributes, unsigned count, CUpointer_attribute *attributes, void **values, CUdeviceptr at)
{
    ENTER();
    block *b = block_of(at, 1);
    for (unsigned i = 0; i < count; i++) {
        if (attributes[i] == CU_POINTER_ATTRIBUTE_MEMORY_TYPE)
            *(CUmemorytype *)values[i] = !b ? 0 : b->device < 0 ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
        if (attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
            *(int *)values[i] = b ? b->device : -2;
    }
    return CUDA_SUCCESS;
}

CALL(cuStreamCreateWithPriority, CUstream *out, unsigned flags, int priority)
{
    (void)flags, (void)priority;
    ENTER();
    for (int i = 1; i < MOST_STREAMS; i++)
        if (!streams[i].open && streams[i].done == streams[i].count) {
            streams[i].open = 1;
            streams[i].device = current_device();
            streams[i].context = depth ? stack[depth - 1] : (CUcontext)(uintptr_t)1;
            streams[i].done = streams[i].count = 0;
            streams[i].id = ++ids;
            *out = (CUstream)&streams[i];
            state.streams++;
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_OUT_OF_MEMORY;
}

CALL(cuStreamDestroy_v2, CUstream handle)
{
    ENTER();
    stream_of(handle)->open = 0; /* its work goes on */
    state.streams--;
    return CUDA_SUCCESS;
}

CALL(cuStreamSynchronize, CUstream handle)
{
    unsafe();
    ENTER();
    stream *s = stream_of(handle);
    run_until((position){s, s->count, 0});
    return CUDA_SUCCESS;
}

/* Work goes on while the program waits. */
CALL(cuStreamQuery, CUstream handle)
{
    unsafe();
    ENTER();
    stream *s = stream_of(handle);
    if (s->done < s->count) {
        run_until((position){s, s->done + 1, 0});
        return CUDA_ERROR_NOT_READY;
    }
    return CUDA_SUCCESS;
}

CALL(cuEventQuery, CUevent handle)
{
    unsafe();
    ENTER();
    position p = ((event *)handle)->recorded;
    if (p.stream && p.stream->id == p.id && p.stream->done < p.index) {
        run_until((position){p.stream, p.stream->done + 1, 0});
        return CUDA_ERROR_NOT_READY;
    }
    return CUDA_SUCCESS;
}

CALL(cuStreamWaitEvent, CUstream handle, CUevent waited, unsigned flags)
{
    (void)flags;
    ENTER();
    push(handle, WAIT)->after = ((event *)waited)->recorded;
    pushed(handle);
    return CUDA_SUCCESS;
}

CALL(cuStreamGetCtx, CUstream handle, CUcontext *context)
{
    ENTER();
    const stream *s = stream_of(handle);
    *context = s->context ? s->context : (CUcontext)(uintptr_t)(s->device + 1);
    return CUDA_SUCCESS;
}

CALL(cuStreamGetId, CUstream handle, unsigned long long *id)
{
    ENTER();
    *id = stream_of(handle)->id;
    return CUDA_SUCCESS;
}

CALL(cuStreamGetPriority, CUstream handle, int *priority)
{
    (void)handle;
    ENTER();
    *priority = STREAM_PRIORITY;
    return CUDA_SUCCESS;
}

CALL(cuStreamIsCapturing, CUstream handle, CUstreamCaptureStatus *status)
{
    (void)handle;
    ENTER();
    if (!state.capturing)
        recorded.launches = 0; /* the next recording is another one */
    *status = state.capturing ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
}

CALL(cuStreamGetCaptureInfo_v2, CUstream handle, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
     const CUgraphNode **last, size_t *count)
{
    (void)handle;
    ENTER();
    begin_recording();
    if (last)
        *last = recorded.next;
    if (count)
        *count = recorded.count;
    *status = state.capturing ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
    *id = (cuuint64_t)state.capturing;
    *graph = (CUgraph)&kept_by_graph;
    return CUDA_SUCCESS;
}

CALL(cuStreamUpdateCaptureDependencies, CUstream handle, CUgraphNode *nodes, size_t count, unsigned flags)
{
    (void)handle;
    ENTER();
    if (!state.capturing || flags != CU_STREAM_SET_CAPTURE_DEPENDENCIES || count > sizeof recorded.next / sizeof *nodes)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++)
        if ((uintptr_t)nodes[i] < 1 || (uintptr_t)nodes[i] > (uintptr_t)recorded.launches)
            state.faults++;
    memcpy(recorded.next, nodes, count * sizeof *nodes);
    recorded.count = count;
    return CUDA_SUCCESS;
}

CALL(cuUserObjectCreate, CUuserObject *object, void *data, CUhostFn destroy, unsigned count, unsigned flags)
{
    ENTER();
    user_object *made = calloc(1, sizeof *made);
    if (!made || flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
        return CUDA_ERROR_INVALID_VALUE;
    *made = (user_object){destroy, data, count, NULL};
    *object = (CUuserObject)made;
    state.user_objects++;
    return CUDA_SUCCESS;
}

CALL(cuUserObjectRelease, CUuserObject object, unsigned count)
{
    ENTER();
    let_go((user_object *)object, count);
    return CUDA_SUCCESS;
}

CALL(cuGraphRetainUserObject, CUgraph graph, CUuserObject object, unsigned count, unsigned flags)
{
    ENTER();
    if (graph != (CUgraph)&kept_by_graph || count != 1 || flags != CU_GRAPH_USER_OBJECT_MOVE)
        return CUDA_ERROR_INVALID_VALUE;
    ((user_object *)object)->next = kept_by_graph;
    kept_by_graph = (user_object *)object;
    return CUDA_SUCCESS;
}

CALL(cuThreadExchangeStreamCaptureMode, CUstreamCaptureMode *mode)
{
    ENTER();
    CUstreamCaptureMode before = capture_mode;
    capture_mode = *mode;
    state.relaxed += (capture_mode != CU_STREAM_CAPTURE_MODE_GLOBAL) - (before != CU_STREAM_CAPTURE_MODE_GLOBAL);
    *mode = before;
    return CUDA_SUCCESS;
}

CALL(cuStreamBeginCapture_v2, CUstream handle, CUstreamCaptureMode mode)
{
    (void)handle, (void)mode;
    ENTER();
    return CUDA_SUCCESS;
}

/* A graph is its kernels in the order they were added. */
typedef struct kernels {
    int count;
    rung_args args[4];
    int is_product[4];
    CUDA_KERNEL_NODE_PARAMS node[4];
    unsigned cluster[4];
    int priority[4];
} kernels;

/* Nothing is recorded: the graph is empty. */
CALL(cuStreamEndCapture, CUstream handle, CUgraph *graph)
{
    (void)handle;
    ENTER();
    *graph = calloc(1, sizeof(kernels));
    state.graphs++;
    return CUDA_SUCCESS;
}

static kernels *being_made; /* nodes are numbers: their attributes are those of this graph */

static CUresult set_kernel(kernels *graph, int i, const CUDA_KERNEL_NODE_PARAMS *node)
{
    give_argument((const char *)node->func, node->kernelParams[0]);
    graph->is_product[i] = multiplies(node->func, node->kernelParams);
    graph->node[i] = *node;
    if (graph->is_product[i])
        graph->args[i] = *(const rung_args *)node->kernelParams[0];
    return CUDA_SUCCESS;
}

CALL(cuGraphCreate, CUgraph *graph, unsigned flags)
{
    (void)flags;
    ENTER();
    *graph = calloc(1, sizeof(kernels));
    being_made = (kernels *)*graph;
    state.graphs++;
    return CUDA_SUCCESS;
}

CALL(cuGraphAddKernelNode_v2, CUgraphNode *node, CUgraph graph, const CUgraphNode *before, size_t count,
     const CUDA_KERNEL_NODE_PARAMS *parameters)
{
    kernels *g = (kernels *)graph;
    ENTER();
    /* A kernel waits for the one before it. One may stand beside that, and the next one waits for both. */
    const size_t last = (size_t)g->count, newest = count ? (size_t)(uintptr_t)before[0] : 0;
    const int beside = last > 1 && count == 1 && newest == last - 1;
    const int both = count == 2 && newest == last && (size_t)(uintptr_t)before[1] == last - 1;
    if (last == 4 || (!beside && !both && (count != (size_t)(last > 0) || newest != last)))
        return CUDA_ERROR_INVALID_VALUE;
    set_kernel(g, g->count, parameters);
    g->cluster[g->count] = 1;
    *node = (CUgraphNode)(uintptr_t)++g->count;
    return CUDA_SUCCESS;
}

CALL(cuGraphKernelNodeSetAttribute, CUgraphNode node, CUkernelNodeAttrID id, const CUkernelNodeAttrValue *value)
{
    int i = (int)(uintptr_t)node - 1;
    ENTER();
    if (id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
        being_made->cluster[i] = value->clusterDim.x;
    if (id == CU_LAUNCH_ATTRIBUTE_PRIORITY)
        being_made->priority[i] = value->priority;
    return CUDA_SUCCESS;
}

CALL(cuGraphExecKernelNodeSetParams_v2, CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *parameters)
{
    ENTER();
    return set_kernel((kernels *)exec, (int)(uintptr_t)node - 1, parameters);
}

CALL(cuGraphInstantiateWithFlags, CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
    (void)flags;
    unsafe();
    ENTER();
    *exec = NULL;
    if (graph) {
        *exec = malloc(sizeof(kernels));
        memcpy(*exec, graph, sizeof(kernels));
        state.graphs++;
    }
    return CUDA_SUCCESS;
}

CALL(cuGraphLaunch, CUgraphExec exec, CUstream handle)
{
    const kernels *g = (const kernels *)exec;
    ENTER();
    for (int i = 0; g && i < g->count; i++) {
        const CUDA_KERNEL_NODE_PARAMS *n = &g->node[i];
        tell_launch((const char *)n->func, (unsigned[]){n->gridDimX, n->gridDimY, n->gridDimZ}, n->blockDimX,
                    n->sharedMemBytes, g->cluster[i], g->priority[i]);
        if (g->is_product[i])
            push(handle, LAUNCH)->args = g->args[i];
    }
    pushed(handle);
    return CUDA_SUCCESS;
}

CALL(cuGraphExecDestroy, CUgraphExec exec)
{
    unsafe();
    ENTER();
    state.graphs -= exec != NULL;
    free(exec);
    return CUDA_SUCCESS;
}

CALL(cuGraphDestroy, CUgraph graph)
{
    ENTER();
    state.graphs -= graph != NULL;
    free(graph);
    return CUDA_SUCCESS;
}

CALL(cuEventCreate, CUevent *out, unsigned flags)
{
    (void)flags;
    ENTER();
    *out = calloc(1, sizeof(event));
    state.events++;
    return CUDA_SUCCESS;
}

CALL(cuEventDestroy_v2, CUevent handle)
{
    ENTER();
    free(handle);
    state.events--;
    return CUDA_SUCCESS;
}

CALL(cuEventRecord, CUevent handle, CUstream on)
{
    ENTER();
    stream *s = stream_of(on);
    ((event *)handle)->recorded = (position){s, s->count, s->id};
    return CUDA_SUCCESS;
}

CALL(cuEventSynchronize, CUevent handle)
{
    unsafe();
    ENTER();
    run_until(((event *)handle)->recorded);
    return CUDA_SUCCESS;
}

CALL(cuEventElapsedTime, float *ms, CUevent from, CUevent to)
{
    ENTER();
    for (int i = 0; i < 2; i++) { /* both must have come to pass */
        const position p = ((event *)(i ? to : from))->recorded;
        if (!p.stream)
            return CUDA_ERROR_INVALID_VALUE;
        if (p.stream->id == p.id && p.stream->done < p.index)
            return CUDA_ERROR_NOT_READY;
    }
    *ms = 1.0f;
    return CUDA_SUCCESS;
}

/* Returns whether the driver takes such a map: its manual's rules, as far as maps of FP32 without interleaving go. */
static int map_is_sound(cuuint32_t rank, const void *at, const cuuint64_t *sizes, const cuuint64_t *strides,
                        const cuuint32_t *box, const cuuint32_t *steps, CUtensorMapSwizzle swizzle)
{
    const cuuint32_t reach = swizzle == CU_TENSOR_MAP_SWIZZLE_64B    ? 64
                             : swizzle == CU_TENSOR_MAP_SWIZZLE_128B ? 128
                                                                     : 0;
    int sound =
        rank >= 1 && rank <= 5 && (uintptr_t)at % 16 == 0 && box[0] * 4 % 16 == 0 && (!reach || box[0] * 4 <= reach);
    for (cuuint32_t i = 0; i < rank && i < 5; i++)
        sound &= sizes[i] >= 1 && sizes[i] <= (cuuint64_t)1 << 32 && box[i] >= 1 && box[i] <= 256 && steps[i] == 1 &&
                 (i + 1 == rank || (strides[i] % 16 == 0 && strides[i] >= 16 && strides[i] < (cuuint64_t)1 << 40));
    return sound;
}

CALL(cuTensorMapEncodeTiled, CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *at,
     const cuuint64_t *sizes, const cuuint64_t *strides, const cuuint32_t *box, const cuuint32_t *steps,
     CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
     CUtensorMapFloatOOBfill fill)
{
    ENTER();
    if (!map_is_sound(rank, at, sizes, strides, box, steps, swizzle))
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t sum = mix(mix(mix(mix(mix(rank, type), interleave), swizzle), promotion), fill);
    for (cuuint32_t i = 0; i < rank; i++)
        sum = mix(mix(mix(sum, sizes[i]), i + 1 < rank ? strides[i] : 0), box[i]);
    memset(map, 0, sizeof *map);
    map->opaque[0] = mix_word(sum, (uint64_t)(uintptr_t)at) >> 32; /* a map is what it was made of */
    return CUDA_SUCCESS;
}
