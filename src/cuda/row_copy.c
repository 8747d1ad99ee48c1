/* Copies of operands that the bulk copy engine cannot read as they lie: whether, what it costs, the launch. */
#include "cuda/row_copy.h"

static const double start_us = 3, bytes_per_us = 3.9e6; /* read and written bytes both count */

int rung_rows_readable(int align, int64_t batch, int64_t stride)
{
    return align >= 16 && (batch == 1 || (stride > 0 && stride % 4 == 0));
}

int64_t rung_row_copy_ld(int64_t inner)
{
    int64_t unit = inner < 256 ? 8 : 32;
    return (inner + unit - 1) / unit * unit;
}

static int64_t blocks_of(const rung_row_copy *c)
{
    int64_t pieces = (c->inner + RUNG_ROW_PIECE - 1) / RUNG_ROW_PIECE * c->outer * c->batch;
    return (pieces + RUNG_ROW_BLOCK_PIECES - 1) / RUNG_ROW_BLOCK_PIECES;
}

const char *rung_row_copy_refuses(int64_t inner, int64_t rows)
{
    if (inner >= INT32_MAX - RUNG_ROW_PIECE * RUNG_ROW_PIECES || rows >= INT32_MAX ||
        (inner + RUNG_ROW_PIECE - 1) / RUNG_ROW_PIECE * rows >= UINT32_MAX - RUNG_ROW_BLOCK_PIECES)
        return "too many rows to copy";
    return NULL;
}

double rung_row_copy_us(int64_t bytes)
{
    return bytes ? start_us + 2.0 * (double)bytes / bytes_per_us : 0;
}

rung_status rung_row_copy_run(rung_cuda *cuda, const rung_row_copy *first, const rung_row_copy *second)
{
    rung_function function;
    RUNG_TRY(rung_gpu_function(cuda->gpu, "sm90_tmawarp_f32_64x64x64_s3", "row_copy_two", 0, &function));
    rung_row_copy_args args = {.of = {*first}, .blocks_of_first = (uint32_t)blocks_of(first)};
    rung_grid grid = {.x = args.blocks_of_first, .y = 1, .z = 1, .threads = RUNG_ROW_COPY_THREADS, .overlaps = 1};
    if (second->from) {
        args.of[1] = *second;
        grid.x += (unsigned)blocks_of(second);
    }
    return rung_launch(cuda, &function, &grid, &args);
}
