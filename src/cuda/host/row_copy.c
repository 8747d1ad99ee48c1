/* Copies of operands that the bulk copy engine cannot read as they lie: which are refused, and the launch. */
#include "cuda/host/row_copy.h"
#include "core/divide.h"
#include "cuda/host/workspace_limit.h"

static int64_t shares_of(const rung_row_copy *c)
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

rung_status rung_row_copy_run(rung_cuda *cuda, const rung_row_copy *first, const rung_row_copy *second,
                              const uint8_t *only_if, const uint8_t *unless)
{
    rung_function function;
    RUNG_TRY(rung_gpu_function(cuda->gpu, "row_copy", "row_copy_two", &function));
    const int64_t shares[2] = {shares_of(first), second->from ? shares_of(second) : 0};
    rung_row_copy_args args = {.of = {*first, *second},
                               .shares = (uint32_t)(shares[0] + shares[1]),
                               .shares_of_first = (uint32_t)shares[0],
                               .only_if = only_if,
                               .unless = unless};
    rung_grid grid = {.x =
                          only_if ? (unsigned)min64(args.shares, RUNG_SELDOM_BLOCKS * cuda->machine->sms) : args.shares,
                      .threads = RUNG_ROW_COPY_THREADS,
                      .overlaps = 1,
                      .argument_bytes = sizeof args,
                      .prepares = 1};
    return rung_launch(cuda, &function, &grid, &args);
}

const char *rung_operand_copies_refuse(const rung_machine *machine, const rung_config *config, const rung_problem *p,
                                       const rung_operand *a, const rung_operand *b)
{
    const int64_t bytes_a = rung_operand_copy_bytes(a, p), bytes_b = rung_operand_copy_bytes(b, p);
    const char *reason = bytes_a && !a->turned ? rung_row_copy_refuses(a->inner, a->outer * p->batch) : NULL;
    if (!reason && bytes_b && !b->turned)
        reason = rung_row_copy_refuses(b->inner, b->outer * p->batch);
    if (reason)
        return reason;
    if (bytes_a + bytes_b > machine->memory_bytes / 4)
        return "the packed copy would take over a quarter of the GPU's memory";
    if (!rung_workspace_allows(config, bytes_a + bytes_b))
        return "the packed copy does not fit the context's workspace limit";
    return NULL;
}

rung_row_copy rung_operand_copy_to(rung_operand *o, int64_t batch, float *to)
{
    const int64_t ld = rung_row_copy_ld(o->inner);
    rung_row_copy c = {o->at, to, o->inner, o->outer, batch, o->ld, ld, o->stride, ld * o->outer};
    o->at = to;
    o->ld = c.ld_to;
    o->stride = c.stride_to;
    return c;
}

static int rows_at_16_bytes(const rung_operand *o, int64_t batch)
{
    return ((uintptr_t)o->at | (uintptr_t)o->ld * 4 | (batch > 1 ? (uintptr_t)o->stride * 4 : 0)) % 16 == 0;
}

rung_turn_args rung_operand_turn_to(rung_operand *o, int64_t batch, float *to)
{
    const int64_t ld = rung_row_copy_ld(o->outer);
    const rung_turn_args args = {.from = o->at,
                                 .to = to,
                                 .k = o->inner,
                                 .mn = o->outer,
                                 .ld_from = o->ld,
                                 .ld_to = ld,
                                 .stride_from = o->stride,
                                 .stride_to = ld * o->inner,
                                 .aligned = rows_at_16_bytes(o, batch)};
    *o = (rung_operand){to, ld, args.stride_to, args.mn, args.k, 1, 0};
    return args;
}

static rung_status turn(rung_cuda *cuda, rung_operand *o, int64_t batch, float *to)
{
    const rung_turn_args args = rung_operand_turn_to(o, batch, to);
    return rung_turn_run(cuda, &args, batch);
}

rung_status rung_operands_copy(rung_cuda *cuda, const rung_problem *p, rung_operand *a, rung_operand *b,
                               void *workspace)
{
    const int64_t bytes_a = rung_operand_copy_bytes(a, p), bytes_b = rung_operand_copy_bytes(b, p);
    float *to_a = workspace, *to_b = (float *)((char *)workspace + bytes_a);
    rung_row_copy copies[2] = {{.from = NULL}, {.from = NULL}};
    int count = 0;
    if (a->turned)
        RUNG_TRY(turn(cuda, a, p->batch, to_a));
    else if (bytes_a)
        copies[count++] = rung_operand_copy_to(a, p->batch, to_a);
    if (b->turned)
        RUNG_TRY(turn(cuda, b, p->batch, to_b));
    else if (bytes_b)
        copies[count++] = rung_operand_copy_to(b, p->batch, to_b);
    return count ? rung_row_copy_run(cuda, &copies[0], &copies[1], NULL, NULL) : RUNG_SUCCESS;
}
