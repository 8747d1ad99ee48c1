/* Copies of operands that the bulk copy engine cannot read as they lie (device/row_copy.h). */
#ifndef RUNG_CUDA_ROW_COPY_H
#define RUNG_CUDA_ROW_COPY_H

#include "cuda/driver/device.h"
#include "cuda/device/row_copy.h"
#include "cuda/host/turn.h"

/* Blocks that a multiprocessor gets where there may be nothing to copy or turn. With 8, which it has at once, the split
 * of the next product in a captured graph takes 3 to 5 us longer (2047 x 2049 x 2051); with 2 copies take 9 us longer.
 */
enum { RUNG_SELDOM_BLOCKS = 4 };

/* An operand as it lies: `outer` rows of `inner` elements, in each batch. */
typedef struct rung_operand {
    const float *at;
    int64_t ld, stride, inner, outer;
    int readable; /* by the copy engine */
    int turned;   /* first, since k is innermost and the kernel reads it with k outermost */
} rung_operand;

/* Returns whether the copy engine can read the rows: they start at multiples of 16 bytes, and batches lie a positive
 * multiple of that apart. */
static inline int rung_rows_readable(int align, int64_t batch, int64_t stride)
{
    return align >= 16 && (batch == 1 || (stride > 0 && stride % 4 == 0));
}

/* So many floats at most rows or matrices may lie apart: a tensor map has room for 40 bits of the bytes. */
static const int64_t rung_rows_reach = ((int64_t)1 << 38) - 4;

/* Returns whether the copy engine reaches from row to row and from matrix to matrix. */
static inline int rung_rows_in_reach(int64_t rows, int64_t ld, int64_t batch, int64_t stride)
{
    return (rows == 1 || ld <= rung_rows_reach) && (batch == 1 || stride <= rung_rows_reach);
}

static inline rung_operand rung_operand_a(const rung_problem *p)
{
    return (rung_operand){p->a,
                          p->lda,
                          p->stride_a,
                          p->trans_a ? p->m : p->k,
                          p->trans_a ? p->k : p->m,
                          rung_rows_readable(p->align_a, p->batch, p->stride_a) &&
                              rung_rows_in_reach(p->trans_a ? p->k : p->m, p->lda, p->batch, p->stride_a),
                          0};
}

static inline rung_operand rung_operand_b(const rung_problem *p)
{
    return (rung_operand){p->b,
                          p->ldb,
                          p->stride_b,
                          p->trans_b ? p->k : p->n,
                          p->trans_b ? p->n : p->k,
                          rung_rows_readable(p->align_b, p->batch, p->stride_b) &&
                              rung_rows_in_reach(p->trans_b ? p->n : p->k, p->ldb, p->batch, p->stride_b),
                          0};
}

/* Returns the elements from one row of a copy to the next: rows start with a sector, long ones with a line. */
static inline int64_t rung_row_copy_ld(int64_t inner)
{
    const int64_t unit = inner < 256 ? 8 : 32;
    return (inner + unit - 1) / unit * unit;
}

/* Returns the bytes of the copy that makes it readable; 0 where it is readable, or k is 0. */
static inline int64_t rung_operand_copy_bytes(const rung_operand *o, const rung_problem *p)
{
    if (o->turned)
        return rung_row_copy_ld(o->outer) * p->k * p->batch * 4;
    return o->readable || !p->k ? 0 : rung_row_copy_ld(o->inner) * o->outer * p->batch * 4;
}

/* Returns the time of a launch that copies so many bytes, both operands counted; 0 for none. */
static inline double rung_row_copy_us(const rung_machine *machine, int64_t bytes)
{
    const double start_us = 3.0, bytes_per_us = 3.9e6; /* read and written bytes both count */
    return bytes ? start_us + 2.0 * (double)bytes / (bytes_per_us * machine->memory_speed) : 0.0;
}

/* Returns the bytes that an operand's copy counts for: a warp moves a piece of a row at a time, whole or not. */
static inline int64_t rung_operand_moved_bytes(const rung_operand *o, const rung_problem *p)
{
    const int64_t pieces = (o->inner + RUNG_ROW_PIECE - 1) / RUNG_ROW_PIECE * o->outer * p->batch;
    return o->readable || o->turned || !p->k ? 0 : pieces * RUNG_ROW_PIECE * (int64_t)sizeof(float);
}

/* Returns the time of the launches that copy or turn those of the two operands that are not read as they lie. */
static inline double rung_operand_copies_us(const rung_machine *machine, const rung_operand *a, const rung_operand *b,
                                            const rung_problem *p)
{
    return rung_row_copy_us(machine, rung_operand_moved_bytes(a, p) + rung_operand_moved_bytes(b, p)) +
           (a->turned ? rung_turn_us(machine, rung_operand_copy_bytes(a, p)) : 0.0) +
           (b->turned ? rung_turn_us(machine, rung_operand_copy_bytes(b, p)) : 0.0);
}

/* Returns why these copies of A and B cannot be made; NULL where they can. */
const char *rung_operand_copies_refuse(const rung_machine *machine, const rung_config *config, const rung_problem *p,
                                       const rung_operand *a, const rung_operand *b);
/* Describes the operand's copy at `to`. The copy takes the operand's place. */
rung_row_copy rung_operand_copy_to(rung_operand *o, int64_t batch, float *to);
/* Describes how the operand is turned to `to`, in the same way. */
rung_turn_args rung_operand_turn_to(rung_operand *o, int64_t batch, float *to);
/* Copies or turns what is not read as it lies, A first in the workspace; the copies take the operands' places. */
rung_status rung_operands_copy(rung_cuda *cuda, const rung_problem *p, rung_operand *a, rung_operand *b,
                               void *workspace);

/* Returns NULL when `rows` rows of `inner` elements, all matrices counted, are few enough, else why not. */
const char *rung_row_copy_refuses(int64_t inner, int64_t rows);
/* Copies one operand or, where the second's `from` is set, two; and may start while the kernel before it ends.
 * only_if, unless: NULL, or a byte of device memory that says by then whether anything is to be copied, or nothing. */
rung_status rung_row_copy_run(rung_cuda *cuda, const rung_row_copy *first, const rung_row_copy *second,
                              const uint8_t *only_if, const uint8_t *unless);

#endif
