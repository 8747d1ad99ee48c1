/* Host operands on a GPU context: packed copies on the device, the product there, C's lines back. */
#include "cuda/staging.h"

#include <inttypes.h>

typedef enum place { ON_HOST, ON_DEVICE, ON_OTHER_GPU } place;

static place where(rung_cuda *cuda, const void *pointer)
{
    CUmemorytype type = 0;
    int ordinal = -1;
    CUpointer_attribute names[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
    void *values[] = {&type, &ordinal};
    if (cuda->driver->pointer_attributes(2, names, values, (CUdeviceptr)(uintptr_t)pointer) != CUDA_SUCCESS)
        return ON_HOST;
    if (type != CU_MEMORYTYPE_DEVICE && type != CU_MEMORYTYPE_UNIFIED && type != CU_MEMORYTYPE_ARRAY)
        return ON_HOST;
    return type == CU_MEMORYTYPE_DEVICE && ordinal != cuda->index ? ON_OTHER_GPU : ON_DEVICE;
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
    place first = where(cuda, operands[0]);
    for (int i = 0; i < seen; i++) {
        place here = where(cuda, operands[i]);
        if (here == ON_OTHER_GPU)
            return rung_fail(RUNG_INVALID_ARGUMENT, "operand %s (%p) lies on another GPU than the context's GPU %d",
                             names[i], operands[i], cuda->index);
        if (here != first)
            return rung_fail(RUNG_INVALID_ARGUMENT, "operand %s (%p) is %s memory but c (%p) is %s memory", names[i],
                             operands[i], here == ON_HOST ? "host" : "device", operands[0],
                             first == ON_HOST ? "host" : "device");
    }
    *on_host = first == ON_HOST;
    return RUNG_SUCCESS;
}

typedef struct panel {
    int64_t lines, length, ld, stride; /* as stored */
} panel;

/* One batch entry after another: the lines that hold matrix elements, packed on the device as in host memory. */
static rung_status copy_panel(rung_cuda *cuda, const panel *host, void *host_memory, CUdeviceptr device, int to_device)
{
    CUDA_MEMCPY2D copy = {0};
    size_t length_bytes = (size_t)host->length * 4;
    copy.WidthInBytes = length_bytes;
    copy.Height = (size_t)host->lines;
    copy.srcMemoryType = to_device ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    copy.dstMemoryType = to_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
    copy.srcHost = host_memory;
    copy.dstHost = host_memory;
    copy.srcDevice = copy.dstDevice = device;
    copy.srcPitch = to_device ? (size_t)host->ld * 4 : length_bytes;
    copy.dstPitch = to_device ? length_bytes : (size_t)host->ld * 4;
    CU_TRY(cuda->driver, copy_2d(&copy, cuda->config.stream));
    return RUNG_SUCCESS;
}

static rung_status copy_batch(rung_cuda *cuda, const panel *host, const float *memory, CUdeviceptr device,
                              int64_t batch, int to_device)
{
    for (int64_t i = 0; i < batch; i++) {
        void *entry = (float *)(uintptr_t)memory + i * host->stride;
        CUdeviceptr there = device + (CUdeviceptr)(i * host->lines * host->length * 4);
        RUNG_TRY(copy_panel(cuda, host, entry, there, to_device));
    }
    return RUNG_SUCCESS;
}

static int64_t panel_bytes(const panel *x, int64_t batch)
{
    return x->lines * x->length * batch * 4;
}

static panel describe(int64_t lines, int64_t length, int64_t ld, int64_t stride)
{
    return (panel){lines, length, ld, stride};
}

rung_status rung_run_staged(rung_cuda *cuda, const rung_choice *choice, const rung_problem *p, rung_run_function *run)
{
    if (p->arrays || p->device_scalars || p->bias_kind)
        return rung_fail(RUNG_UNSUPPORTED, "operands in host memory: pointer arrays, device scalars and bias need device "
                         "memory");
    panel a = p->trans_a ? describe(p->k, p->m, p->lda, p->stride_a) : describe(p->m, p->k, p->lda, p->stride_a);
    panel b = p->trans_b ? describe(p->n, p->k, p->ldb, p->stride_b) : describe(p->k, p->n, p->ldb, p->stride_b);
    panel c = describe(p->m, p->n, p->ldc, p->stride_c);
    int64_t batch_a = p->stride_a ? p->batch : 1, batch_b = p->stride_b ? p->batch : 1; /* stride 0: shared */
    int64_t bytes_a = (panel_bytes(&a, batch_a) + 255) & -256, bytes_b = (panel_bytes(&b, batch_b) + 255) & -256;
    void *memory = NULL;
    RUNG_TRY(rung_workspace_get(cuda, bytes_a + bytes_b + panel_bytes(&c, p->batch), &memory));
    CUdeviceptr at = (CUdeviceptr)(uintptr_t)memory;
    rung_problem staged = *p;
    staged.a = memory;
    staged.b = (const float *)((char *)memory + bytes_a);
    staged.c = (float *)((char *)memory + bytes_a + bytes_b);
    staged.lda = a.length;
    staged.ldb = b.length;
    staged.ldc = c.length;
    staged.stride_a = p->stride_a ? a.lines * a.length : 0;
    staged.stride_b = p->stride_b ? b.lines * b.length : 0;
    staged.stride_c = c.lines * c.length;
    rung_status status = RUNG_SUCCESS;
    if (p->k > 0) {
        RUNG_TRY_OUT(copy_batch(cuda, &a, p->a, at, batch_a, 1));
        RUNG_TRY_OUT(copy_batch(cuda, &b, p->b, at + (CUdeviceptr)bytes_a, batch_b, 1));
    }
    if (!p->beta_zero)
        RUNG_TRY_OUT(copy_batch(cuda, &c, p->c, at + (CUdeviceptr)(bytes_a + bytes_b), p->batch, 1));
    RUNG_TRY_OUT(run(cuda, choice, &staged));
    RUNG_TRY_OUT(copy_batch(cuda, &c, p->c, at + (CUdeviceptr)(bytes_a + bytes_b), p->batch, 0));
    CU_TRY_OUT(cuda->driver, stream_synchronize(cuda->config.stream));
out:
    rung_workspace_put(cuda, memory);
    return status;
}
