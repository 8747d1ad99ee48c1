/* Host operands on a GPU context. A, B and C get packed copies on the device; C is made in panels of rows (or of batch
 * entries), so that panel i + 1 travels in while panel i is multiplied and panel i - 1 travels out. Pageable memory
 * goes through a ring of pinned buffers, pinned memory directly. */
#include "cuda/host/staging.h"
#include "core/divide.h"
#include "cuda/host/row_copy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef enum place { ON_HOST, ON_DEVICE, ON_OTHER_GPU } place;

/* The driver knows nothing of most host memory and says so by the type 0, or by an invalid value. Any other error is no
 * answer: taken for host memory, device memory would be read by the CPU. */
static rung_status find_place(rung_cuda *cuda, const void *pointer, place *found)
{
    CUmemorytype type = 0;
    int ordinal = -1;
    CUpointer_attribute names[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
    void *values[] = {&type, &ordinal};
    CUresult result = cuda->driver->pointer_attributes(2, names, values, rung_device_address(pointer));
    if (result != CUDA_SUCCESS && result != CUDA_ERROR_INVALID_VALUE)
        return rung_driver_fail(cuda->driver, result, "cuPointerGetAttributes");
    if (result != CUDA_SUCCESS ||
        (type != CU_MEMORYTYPE_DEVICE && type != CU_MEMORYTYPE_UNIFIED && type != CU_MEMORYTYPE_ARRAY))
        *found = ON_HOST;
    else
        *found = type == CU_MEMORYTYPE_DEVICE && ordinal != cuda->index ? ON_OTHER_GPU : ON_DEVICE;
    return RUNG_SUCCESS;
}

/* Refuses what only kernels read where it is not device memory of this GPU. Operands are. */
static rung_status check_others(rung_cuda *cuda, const rung_problem *p)
{
    const void *others[] = {p->bias_kind ? p->bias : NULL, p->alpha_device, p->beta_device};
    static const char *const names[] = {"bias", "alpha_device", "beta_device"};
    for (int i = 0; i < 3; i++) {
        place found = ON_DEVICE;
        if (others[i])
            RUNG_TRY(find_place(cuda, others[i], &found));
        if (found != ON_DEVICE)
            return rung_fail(RUNG_INVALID_ARGUMENT, "%s (%p) is %s memory, the operands lie on GPU %d", names[i],
                             others[i], found == ON_HOST ? "host" : "another GPU's", cuda->index);
    }
    return RUNG_SUCCESS;
}

rung_status rung_operands_where(rung_cuda *cuda, const rung_problem *p, int *on_host)
{
    *on_host = cuda->config.pointers == RUNG_POINTERS_HOST;
    if (cuda->config.pointers != RUNG_POINTERS_AUTO)
        return RUNG_SUCCESS;
    const void *operands[] = {p->arrays ? (const void *)p->c_array : p->c, p->arrays ? (const void *)p->a_array : p->a,
                              p->arrays ? (const void *)p->b_array : p->b};
    static const char *const names[] = {"c", "a", "b"};
    int seen = p->k > 0 ? 3 : 1;
    place first = ON_HOST, here = ON_HOST;
    for (int i = 0; i < seen; i++) {
        RUNG_TRY(find_place(cuda, operands[i], &here));
        first = i == 0 ? here : first;
        if (here == ON_OTHER_GPU)
            return rung_fail(RUNG_INVALID_ARGUMENT, "operand %s (%p) lies on another GPU than the context's GPU %d",
                             names[i], operands[i], cuda->index);
        if (here != first)
            return rung_fail(RUNG_INVALID_ARGUMENT, "operand %s (%p) is %s memory but c (%p) is %s memory", names[i],
                             operands[i], here == ON_HOST ? "host" : "device", operands[0],
                             first == ON_HOST ? "host" : "device");
    }
    *on_host = first == ON_HOST;
    return *on_host ? RUNG_SUCCESS : check_others(cuda, p);
}

/* A rectangle of floats that lies in host memory with one leading dimension and on the device with another. */
typedef struct slab {
    float *host;
    CUdeviceptr device;
    int64_t lines, length, host_ld, device_ld;
} slab;

enum { RING = 4, PIECE_FLOATS = 2 << 20 };

typedef struct ring_slot {
    float *pinned;
    CUevent done;
    slab unpack; /* lines > 0: results that still have to reach host memory */
} ring_slot;

struct rung_staging {
    CUstream in, out;
    CUevent order; /* one after another stream's work */
    ring_slot slots[RING];
    int next;
};

void rung_staging_close(rung_cuda *cuda)
{
    rung_staging *s = cuda->staging;
    if (!s)
        return;
    for (int i = 0; i < RING; i++) {
        if (s->slots[i].pinned)
            cuda->driver->host_free(s->slots[i].pinned);
        if (s->slots[i].done)
            cuda->driver->event_destroy(s->slots[i].done);
    }
    if (s->order)
        cuda->driver->event_destroy(s->order);
    if (s->in)
        cuda->driver->stream_destroy(s->in);
    if (s->out)
        cuda->driver->stream_destroy(s->out);
    free(s);
    cuda->staging = NULL;
}

static rung_status open_slots(rung_cuda *cuda, rung_staging *s)
{
    const rung_driver *d = cuda->driver;
    CU_TRY(d, stream_create(&s->in, CU_STREAM_NON_BLOCKING, 0));
    CU_TRY(d, stream_create(&s->out, CU_STREAM_NON_BLOCKING, 0));
    CU_TRY(d, event_create(&s->order, CU_EVENT_DISABLE_TIMING));
    for (int i = 0; i < RING; i++) {
        CU_TRY(d, host_alloc((void **)&s->slots[i].pinned, PIECE_FLOATS * sizeof(float), 0));
        CU_TRY(d, event_create(&s->slots[i].done, CU_EVENT_DISABLE_TIMING));
    }
    return RUNG_SUCCESS;
}

static rung_status open_staging(rung_cuda *cuda)
{
    if (cuda->staging)
        return RUNG_SUCCESS;
    cuda->staging = calloc(1, sizeof *cuda->staging);
    if (!cuda->staging)
        return rung_fail(RUNG_OUT_OF_MEMORY, "no memory for the staging ring");
    rung_status status = open_slots(cuda, cuda->staging);
    if (status != RUNG_SUCCESS)
        rung_staging_close(cuda);
    return status;
}

/* Makes everything issued so far on `first` come before what is issued later on `second`. */
static rung_status after(rung_cuda *cuda, CUstream first, CUstream second)
{
    CU_TRY(cuda->driver, event_record(cuda->staging->order, first));
    CU_TRY(cuda->driver, stream_wait(second, cuda->staging->order, 0));
    return RUNG_SUCCESS;
}

static void copy_lines(float *to, int64_t to_ld, const float *from, int64_t from_ld, int64_t lines, int64_t length)
{
    for (int64_t i = 0; i < lines; i++)
        memcpy(to + i * to_ld, from + i * from_ld, (size_t)length * sizeof(float));
}

/* Waits until the slot's last copy is over and delivers the results it may hold. */
static rung_status settle(rung_cuda *cuda, ring_slot *slot)
{
    CU_TRY(cuda->driver, event_synchronize(slot->done));
    slab *u = &slot->unpack;
    copy_lines(u->host, u->host_ld, slot->pinned, u->length, u->lines, u->length);
    u->lines = 0;
    return RUNG_SUCCESS;
}

static rung_status device_copy(rung_cuda *cuda, const slab *s, float *host, int64_t host_ld, int to_device,
                               CUstream stream)
{
    CUDA_MEMCPY2D copy = {0};
    copy.WidthInBytes = (size_t)s->length * 4;
    copy.Height = (size_t)s->lines;
    copy.srcMemoryType = to_device ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    copy.dstMemoryType = to_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
    copy.srcHost = copy.dstHost = host;
    copy.srcDevice = copy.dstDevice = s->device;
    copy.srcPitch = (size_t)(to_device ? host_ld : s->device_ld) * 4;
    copy.dstPitch = (size_t)(to_device ? s->device_ld : host_ld) * 4;
    CU_TRY(cuda->driver, copy_2d(&copy, stream));
    return RUNG_SUCCESS;
}

static rung_status copy_piece(rung_cuda *cuda, const slab *piece, int to_device)
{
    rung_staging *s = cuda->staging;
    ring_slot *slot = &s->slots[s->next];
    CUstream stream = to_device ? s->in : s->out;
    s->next = (s->next + 1) % RING;
    RUNG_TRY(settle(cuda, slot));
    if (to_device)
        copy_lines(slot->pinned, piece->length, piece->host, piece->host_ld, piece->lines, piece->length);
    RUNG_TRY(device_copy(cuda, piece, slot->pinned, piece->length, to_device, stream));
    CU_TRY(cuda->driver, event_record(slot->done, stream));
    if (!to_device)
        slot->unpack = *piece;
    return RUNG_SUCCESS;
}

static int is_pinned(rung_cuda *cuda, const void *pointer)
{
    CUmemorytype type = 0;
    return cuda->driver->pointer_attribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, rung_device_address(pointer)) ==
               CUDA_SUCCESS &&
           type == CU_MEMORYTYPE_HOST;
}

static rung_status copy_slab(rung_cuda *cuda, const slab *s, int to_device)
{
    rung_staging *staging = cuda->staging;
    if (is_pinned(cuda, s->host))
        return device_copy(cuda, s, s->host, s->host_ld, to_device, to_device ? staging->in : staging->out);
    int64_t width = min64(s->length, PIECE_FLOATS), height = min64(s->lines, PIECE_FLOATS / width);
    for (int64_t i = 0; i < s->lines; i += height)
        for (int64_t j = 0; j < s->length; j += width) {
            slab piece = {s->host + i * s->host_ld + j,
                          s->device + (CUdeviceptr)(i * s->device_ld + j) * 4,
                          min64(height, s->lines - i),
                          min64(width, s->length - j),
                          s->host_ld,
                          s->device_ld};
            RUNG_TRY(copy_piece(cuda, &piece, to_device));
        }
    return RUNG_SUCCESS;
}

/* The whole product, in host memory and on the device. Panels are rows of C, or batch entries when there is more than
 * one. */
typedef struct staged {
    const rung_problem *host;
    rung_problem device; /* packed */
    int64_t panel;       /* rows, or batch entries */
    int64_t count;       /* m, or batch */
} staged;

static CUdeviceptr address(const void *pointer, int64_t offset)
{
    return rung_device_address(pointer) + (CUdeviceptr)offset * 4;
}

/* Lines start at multiples of 16 bytes: no kernel then refuses the copies for their alignment. */
static int64_t line_floats(int64_t length)
{
    return (length + 3) & -4;
}

static rung_operand operand_c(const rung_problem *p)
{
    return (rung_operand){.at = p->c, .ld = p->ldc, .stride = p->stride_c, .inner = p->n, .outer = p->m};
}

/* Copies matrices of a batch; on the device they lie packed, one behind the other. */
static rung_status copy_entries(rung_cuda *cuda, const rung_operand *host, const float *device, int64_t first,
                                int64_t entries, int to_device)
{
    const int64_t ld = line_floats(host->inner);
    for (int64_t e = first; e < first + entries; e++) {
        slab s = {(float *)(uintptr_t)host->at + e * host->stride,
                  address(device, e * host->outer * ld),
                  host->outer,
                  host->inner,
                  host->ld,
                  ld};
        RUNG_TRY(copy_slab(cuda, &s, to_device));
    }
    return RUNG_SUCCESS;
}

static rung_status a_in(rung_cuda *cuda, const staged *s, int64_t first, int64_t size)
{
    const rung_problem *h = s->host, *d = &s->device;
    const rung_operand a = rung_operand_a(h);
    if (h->batch > 1)
        return copy_entries(cuda, &a, d->a, first, size, 1);
    slab rows = {(float *)(uintptr_t)h->a + first * h->lda, address(d->a, first * d->lda), size, h->k, h->lda, d->lda};
    slab columns = {(float *)(uintptr_t)h->a + first, address(d->a, first), h->k, size, h->lda, d->lda};
    return copy_slab(cuda, h->trans_a ? &columns : &rows, 1);
}

static rung_status c_copy(rung_cuda *cuda, const staged *s, int64_t first, int64_t size, int to_device)
{
    const rung_problem *h = s->host, *d = &s->device;
    const rung_operand c = operand_c(h);
    if (h->batch > 1)
        return copy_entries(cuda, &c, d->c, first, size, to_device);
    slab rows = {h->c + first * h->ldc, address(d->c, first * d->ldc), size, h->n, h->ldc, d->ldc};
    return copy_slab(cuda, &rows, to_device);
}

/* Copies in what all panels share: B, unless each batch entry has its own, and A where one A serves the batch. */
static rung_status shared_in(rung_cuda *cuda, const staged *s)
{
    const rung_problem *h = s->host;
    const rung_operand b = rung_operand_b(h);
    if (h->batch == 1 || h->stride_b == 0)
        RUNG_TRY(copy_entries(cuda, &b, s->device.b, 0, 1, 1));
    if (h->batch > 1 && h->stride_a == 0)
        RUNG_TRY(a_in(cuda, s, 0, 1));
    return RUNG_SUCCESS;
}

static rung_status panel_in(rung_cuda *cuda, const staged *s, int64_t first, int64_t size)
{
    const rung_problem *h = s->host;
    const rung_operand b = rung_operand_b(h);
    if (h->k > 0 && (h->batch == 1 || h->stride_a))
        RUNG_TRY(a_in(cuda, s, first, size));
    if (h->k > 0 && h->batch > 1 && h->stride_b)
        RUNG_TRY(copy_entries(cuda, &b, s->device.b, first, size, 1));
    if (!h->beta_zero)
        RUNG_TRY(c_copy(cuda, s, first, size, 1));
    return RUNG_SUCCESS;
}

static rung_status panel_run(rung_cuda *cuda, const staged *s, const rung_kernel *kernel, int64_t first, int64_t size,
                             rung_run_function *run)
{
    rung_problem p = s->device;
    if (p.batch > 1) {
        p.batch = size;
        p.a += first * p.stride_a;
        p.b += first * p.stride_b;
        p.c += first * p.stride_c;
    } else {
        p.m = size;
        p.a += p.trans_a ? first : first * p.lda;
        p.c += first * p.ldc;
    }
    rung_choice choice = {.kernel = kernel, .parts = 1, .limit_us = INFINITY};
    const char *reason = rung_launcher_of(kernel)->estimate(cuda->machine, &cuda->config, kernel, &p, &choice);
    if (reason)
        return rung_fail(RUNG_UNSUPPORTED, "%s cannot run a panel of this product: %s", kernel->name, reason);
    return run(cuda, &choice, &p);
}

static rung_status pipeline(rung_cuda *cuda, const staged *s, const rung_kernel *kernel, rung_run_function *run)
{
    CUstream in = cuda->staging->in, out = cuda->staging->out, work = cuda->config.stream;
    RUNG_TRY(after(cuda, work, in)); /* the device copies were allocated in the order of the work stream */
    if (s->host->k > 0)
        RUNG_TRY(shared_in(cuda, s));
    int64_t previous = -1;
    for (int64_t first = 0; first < s->count; first += s->panel) {
        RUNG_TRY(panel_in(cuda, s, first, min64(s->panel, s->count - first)));
        RUNG_TRY(after(cuda, in, work));
        if (previous >= 0) /* issued only now, so that waiting for a result does not hold up the next panel's way in */
            RUNG_TRY(c_copy(cuda, s, previous, s->panel, 0));
        RUNG_TRY(panel_run(cuda, s, kernel, first, min64(s->panel, s->count - first), run));
        RUNG_TRY(after(cuda, work, out));
        previous = first;
    }
    RUNG_TRY(c_copy(cuda, s, previous, s->count - previous, 0));
    for (int i = 0; i < RING; i++)
        RUNG_TRY(settle(cuda, &cuda->staging->slots[i]));
    CU_TRY(cuda->driver, stream_synchronize(out));
    return RUNG_SUCCESS;
}

static void drain(rung_cuda *cuda)
{
    cuda->driver->stream_synchronize(cuda->staging->in);
    cuda->driver->stream_synchronize(cuda->config.stream);
    cuda->driver->stream_synchronize(cuda->staging->out);
    for (int i = 0; i < RING; i++)
        cuda->staging->slots[i].unpack.lines = 0;
}

static void pack(staged *s, const rung_problem *p, char *memory, int64_t bytes_a, int64_t bytes_b)
{
    s->host = p;
    const rung_operand a = rung_operand_a(p), b = rung_operand_b(p);
    rung_problem *d = &s->device;
    *d = *p;
    d->a = (const float *)memory;
    d->b = (const float *)(memory + bytes_a);
    d->c = (float *)(memory + bytes_a + bytes_b);
    d->lda = line_floats(a.inner);
    d->ldb = line_floats(b.inner);
    d->ldc = line_floats(p->n);
    d->stride_a = p->stride_a ? a.outer * d->lda : 0;
    d->stride_b = p->stride_b ? b.outer * d->ldb : 0;
    d->stride_c = p->batch > 1 ? p->m * d->ldc : 0;
    d->align_a = d->align_b = d->align_c = 16;
    s->count = p->batch > 1 ? p->batch : p->m;
    int64_t eighth = (s->count + 7) / 8, floats = p->batch > 1 ? p->m * p->n : p->n;
    int64_t least =
        floats > 0 ? (4 << 20) / floats + 1 : 1; /* a panel of less than 16 MiB of C is not worth its launches */
    s->panel = eighth > least ? eighth : least;
    if (p->batch == 1)
        s->panel = (s->panel + 255) / 256 * 256;
}

static int64_t packed_bytes(const rung_operand *o, int64_t batch)
{
    return (o->outer * line_floats(o->inner) * batch * 4 + 255) & -256;
}

/* Clears what lies behind the ends of lines: a kernel may read the last four floats of a line at once. */
static rung_status clear_line_ends(rung_cuda *cuda, const rung_problem *p, void *operands, int64_t bytes)
{
    if (p->m % 4 || p->n % 4 || p->k % 4)
        CU_TRY(cuda->driver, set_32(rung_device_address(operands), 0, (size_t)bytes / 4, cuda->config.stream));
    return RUNG_SUCCESS;
}

rung_status rung_run_staged(rung_cuda *cuda, const rung_choice *choice, const rung_problem *p, rung_run_function *run)
{
    if (p->arrays || p->device_scalars || p->bias_kind)
        return rung_fail(RUNG_UNSUPPORTED,
                         "operands in host memory: pointer arrays, device scalars and bias need device "
                         "memory");
    RUNG_TRY(open_staging(cuda));
    const rung_operand a = rung_operand_a(p), b = rung_operand_b(p), c = operand_c(p);
    const int64_t bytes_a = packed_bytes(&a, p->stride_a ? p->batch : 1),
                  bytes_b = packed_bytes(&b, p->stride_b ? p->batch : 1);
    void *memory = NULL;
    RUNG_TRY(rung_workspace_get(cuda, bytes_a + bytes_b + packed_bytes(&c, p->batch), &memory));
    staged s;
    pack(&s, p, memory, bytes_a, bytes_b);
    rung_status status = clear_line_ends(cuda, p, memory, bytes_a + bytes_b);
    if (status == RUNG_SUCCESS)
        status = pipeline(cuda, &s, choice->kernel, run);
    if (status != RUNG_SUCCESS)
        drain(cuda); /* nothing may still be writing to the caller's memory */
    rung_workspace_put(cuda, memory);
    return status;
}
