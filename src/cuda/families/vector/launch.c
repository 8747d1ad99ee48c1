/* Launcher "vector": a matrix with rows contiguous times a vector, fed by bulk copies (families/vector/ring.inc).
 * Decides how many blocks share k and what that costs. */
#include "cuda/driver/device.h"
#include "cuda/families/vector/args.h"
#include "cuda/host/row_copy.h"

#include <math.h>
#include <stdio.h>

enum { MAX_SIZE = 1 << 30, MAX_PARTS = 32, SHARED_BYTES = 233472 /* of a multiprocessor */ };

/* Microseconds, and bytes a microsecond; fitted to timings on an H200 (docs/performance-log.md, "Matrix-vector"). */
static const double launch_us = 3.0, block_us = 1.2, meet_us = 1.5, memory_rate = 4.55e6, block_rate = 0.07e6;

/* The matrix of the product: A where n = 1, B where m = 1. Rows of it are contiguous along `rows`. */
typedef struct vector_matrix {
    const float *at;
    int64_t rows, ld, stride;
    int readable;
} vector_matrix;

static vector_matrix matrix_of(const rung_problem *p)
{
    vector_matrix a = {p->a, p->m, p->lda, p->stride_a, rung_rows_readable(p->align_a, p->batch, p->stride_a)};
    vector_matrix b = {p->b, p->n, p->ldb, p->stride_b, rung_rows_readable(p->align_b, p->batch, p->stride_b)};
    return p->n == 1 ? a : b;
}

static int64_t ceil_div(int64_t x, int64_t y)
{
    return (x + y - 1) / y;
}

/* NULL when sums of so many parts have room. */
static const char *refuse_parts(const rung_config *config, int64_t groups, int64_t bytes)
{
    int64_t limit = config->workspace_limit_bytes;
    if (limit < 0 || bytes + RUNG_TICKET_BYTES > (limit ? limit : INT64_MAX))
        return "partial sums do not fit the context's workspace limit";
    return groups > RUNG_TICKET_BYTES / 4 ? "too many groups of rows to count partial sums" : NULL;
}

static const char *estimate(const rung_machine *machine, const rung_config *config, const rung_kernel *kernel,
                            const rung_problem *p, rung_choice *choice)
{
    if (p->m != 1 && p->n != 1)
        return "neither m nor n is 1";
    if (p->n == 1 ? !p->trans_a : p->trans_b)
        return "k is contiguous in the matrix";
    if (p->m >= MAX_SIZE || p->n >= MAX_SIZE || p->k >= MAX_SIZE)
        return "a dimension is 2^30 or more";
    vector_matrix a = matrix_of(p);
    if (a.ld >= MAX_SIZE)
        return "a leading dimension is 2^30 or more";
    if (!a.readable)
        return "rows of the matrix do not start at multiples of 16 bytes";
    int64_t groups = ceil_div(a.rows, kernel->bm) * p->batch, steps = ceil_div(p->k, kernel->bk),
            slots = (int64_t)machine->sms * (SHARED_BYTES / (kernel->shared_bytes + 1024));
    if (groups > INT32_MAX)
        return "more than 2^31 - 1 blocks: the grid has no room";
    double bytes = 4.0 * (double)p->batch * (double)a.rows * (double)p->k;
    choice->cost_us = HUGE_VAL;
    for (int64_t parts = 1; parts <= MAX_PARTS; parts++) {
        int64_t blocks = groups * parts, partials = parts > 1 ? blocks * kernel->bm * 4 : 0;
        if (parts > 1 && (blocks > slots || steps < 2 * parts || refuse_parts(config, groups, partials)))
            break;
        /* A multiprocessor's blocks share what it can take in. */
        double rate = block_rate / (double)ceil_div(blocks < slots ? blocks : slots, machine->sms);
        double rounds_us = (double)ceil_div(blocks, slots) * (block_us + bytes / (double)blocks / rate);
        double cost = launch_us + (parts > 1 ? meet_us : 0.0) + fmax(bytes / memory_rate, rounds_us);
        if (cost < choice->cost_us) {
            choice->cost_us = cost;
            choice->split_k = (int32_t)parts;
            choice->workspace_bytes = partials;
        }
    }
    snprintf(choice->note, sizeof choice->note, "memory bound, %d parts of k", (int)choice->split_k);
    return NULL;
}

static rung_status run(rung_cuda *cuda, const rung_choice *choice, const rung_problem *p)
{
    const rung_kernel *kernel = choice->kernel;
    rung_function function;
    RUNG_TRY(rung_gpu_function(cuda->gpu, kernel->name, kernel->name, &function));
    vector_matrix a = matrix_of(p);
    rung_vector_args args = {.args = {.k = 0}};
    rung_args_fill_vector(&args.args, p);
    args.args.split_k = choice->split_k;
    if (p->k) { /* else nothing is read */
        cuuint64_t sizes[3] = {(cuuint64_t)a.rows, (cuuint64_t)p->k, (cuuint64_t)p->batch};
        cuuint64_t strides[2] = {(cuuint64_t)a.ld * 4, (cuuint64_t)(p->batch > 1 ? a.stride : a.ld) * 4};
        cuuint32_t box[3] = {(cuuint32_t)kernel->bm, RUNG_VECTOR_BOX / (cuuint32_t)kernel->bm, 1}, unit[3] = {1, 1, 1};
        /* Measured: L2 that fetches 256 bytes at a time is 8% slower. */
        CU_TRY(cuda->driver, tensor_map(&args.a_map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 3, (void *)(uintptr_t)a.at, sizes,
                                        strides, box, unit, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                                        CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
    }
    int64_t groups = ceil_div(a.rows, kernel->bm) * p->batch;
    rung_grid grid = {.x = (unsigned)(groups * choice->split_k),
                      .y = 1,
                      .z = 1,
                      .threads = (unsigned)kernel->threads,
                      .shared_bytes = (unsigned)kernel->shared_bytes,
                      .overlaps = 1};
    RUNG_TRY(rung_workspace_get_with_tickets(cuda, choice->workspace_bytes, &args.args.workspace));
    rung_status status = rung_launch(cuda, &function, &grid, &args);
    rung_workspace_put_with_tickets(cuda, args.args.workspace);
    return status;
}

const rung_launcher rung_launch_vector = {"vector", estimate, run};
