/* Runs a planned product in large tiles: packs what has to be packed, describes the operands, launches. */
#include "cuda/driver/chain.h"
#include "cuda/families/accurate/accurate.h"
#include "cuda/families/large/args.h"
#include "cuda/families/large/large.h"
#include "cuda/host/boxes.h"
#include "cuda/host/turn.h"

#include <math.h>

typedef struct operand {
    const float *at;
    int64_t ld, stride; /* elements */
} operand;

/* Copies an operand to k outermost, with `classed` all k of a class together. */
static rung_status turn(rung_cuda *cuda, const rung_problem *p, int64_t mn, int align, int classed, float *to,
                        operand *o)
{
    const operand from = *o;
    *o = (operand){to, rung_row_copy_ld(mn), rung_row_copy_ld(mn) * p->k};
    const rung_turn_args args = {.from = from.at,
                                 .to = to,
                                 .k = p->k,
                                 .mn = mn,
                                 .ld_from = from.ld,
                                 .ld_to = o->ld,
                                 .stride_from = from.stride,
                                 .stride_to = o->stride,
                                 .class_rows = classed ? large_class_rows(p) : 0,
                                 .aligned = align >= 16};
    return rung_turn_run(cuda, &args, p->batch);
}

/* Describes a copy of the operand at `to`, in the order it lies. The copy takes the operand's place. */
static rung_row_copy copy_to(operand *o, int64_t inner, int64_t outer, int64_t batch, float *to)
{
    int64_t ld = rung_row_copy_ld(inner);
    rung_row_copy c = {o->at, to, inner, outer, batch, o->ld, ld, o->stride, ld * outer};
    *o = (operand){to, c.ld_to, c.stride_to};
    return c;
}

/* Copies what has to be copied. */
static rung_status pack(rung_cuda *cuda, const rung_kernel *kernel, const rung_problem *p, const large_plan *s,
                        char *workspace, operand *a, operand *b)
{
    float *to_a = (float *)workspace, *to_b = (float *)(workspace + s->bytes_a);
    rung_row_copy copies[2] = {{.from = NULL}, {.from = NULL}};
    int count = 0;
    if (s->turn_a)
        RUNG_TRY(turn(cuda, p, p->m, p->align_a, s->class_steps > 0, to_a, a));
    else if (s->pack_a)
        copies[count++] = large_tile_of(kernel)->a_k_innermost ? copy_to(a, p->k, p->m, p->batch, to_a)
                                                               : copy_to(a, p->m, p->k, p->batch, to_a);
    if (s->turn_b)
        RUNG_TRY(turn(cuda, p, p->n, p->align_b, s->class_steps > 0, to_b, b));
    else if (s->pack_b)
        copies[count++] = copy_to(b, p->n, p->k, p->batch, to_b);
    return count ? rung_row_copy_run(cuda, &copies[0], &copies[1], NULL, NULL) : RUNG_SUCCESS;
}

/* Describes boxes of x by y of a batch of matrices whose rows run along x. */
static rung_status describe(rung_cuda *cuda, const operand *o, int64_t x, int64_t y, int64_t batch, int box_x,
                            int box_y, int swizzle, CUtensorMap *map)
{
    rung_boxes boxes = {.at = o->at,
                        .size = {x, y, batch},
                        .ld = o->ld,
                        .stride = o->stride,
                        .box = {box_x, box_y},
                        .swizzle = swizzle ? CU_TENSOR_MAP_SWIZZLE_64B : CU_TENSOR_MAP_SWIZZLE_NONE,
                        .promotion = CU_TENSOR_MAP_L2_PROMOTION_L2_256B};
    return rung_boxes_describe(cuda, &boxes, map);
}

/* Describes rows k, k + 4, k + 8 ... of an operand with k outermost as it lies, or of its copy, where they follow each
 * other. `starts` gets how many elements before the first of each class its rows begin. */
static rung_status describe_classes(rung_cuda *cuda, const rung_kernel *kernel, const rung_problem *p, operand o,
                                    int turned, int64_t mn, int extent, CUtensorMap of[LARGE_CLASSES],
                                    int32_t starts[LARGE_CLASSES])
{
    for (int r = 0; r < LARGE_CLASSES; r++) {
        operand rows = {o.at + r * o.ld * (turned ? large_class_rows(p) : 1), o.ld * (turned ? 1 : LARGE_CLASSES), 0};
        starts[r] = (int32_t)((uintptr_t)rows.at % 16 / 4);
        rows.at -= starts[r];
        RUNG_TRY(describe(cuda, &rows, mn + starts[r], (p->k - r + LARGE_CLASSES - 1) / LARGE_CLASSES, 1, extent,
                          kernel->bk, 0, &of[r]));
    }
    return RUNG_SUCCESS;
}

static rung_status operands(rung_cuda *cuda, const rung_kernel *kernel, const rung_problem *p, const large_plan *s,
                            char *workspace, rung_large_args *args)
{
    operand a = {p->a, p->lda, p->stride_a}, b = {p->b, p->ldb, p->stride_b};
    if (p->k == 0) /* nothing is read then: any valid map will do */
        return RUNG_SUCCESS;
    RUNG_TRY(pack(cuda, kernel, p, s, workspace, &a, &b));
    if (s->class_steps) {
        const int64_t k = p->k - large_class_tail(kernel, p);
        args->tail = (int32_t)large_class_tail(kernel, p);
        args->a_row = p->trans_a ? 1 : p->lda;
        args->a_k = p->trans_a ? p->lda : 1;
        args->a_tail = p->a + k * args->a_k;
        args->b_col = p->trans_b ? p->ldb : 1;
        args->b_k = p->trans_b ? 1 : p->ldb;
        args->b_tail = p->b + k * args->b_k;
        RUNG_TRY(describe_classes(cuda, kernel, p, a, s->turn_a, p->m, kernel->bm, args->a_of, args->a_starts));
        return describe_classes(cuda, kernel, p, b, s->turn_b, p->n, kernel->bn, args->b_of, args->b_starts);
    }
    if (s->copied) {
        const operand *o = s->copied == 'a' ? &a : &b;
        args->copied = o->at;
        args->copied_ld = o->ld;
        args->copied_stride = o->stride;
        args->copied_a = s->copied == 'a';
    }
    if (s->copied != 'b')
        RUNG_TRY(describe(cuda, &b, p->n, p->k, p->batch, kernel->bn, kernel->bk, 0, &args->b_map));
    if (s->copied == 'a')
        return RUNG_SUCCESS;
    if (large_tile_of(kernel)->a_k_innermost)
        return describe(cuda, &a, p->k, p->m, p->batch, kernel->bk, kernel->bm, 1, &args->a_map);
    return describe(cuda, &a, p->m, p->k, p->batch, kernel->bm, kernel->bk, 0, &args->a_map);
}

/* Fills the argument, but for the operands and the places where parts meet. */
static void fill(rung_large_args *args, const rung_problem *p, const large_plan *s)
{
    *args = (rung_large_args){.c = p->c,
                              .ldc = p->ldc,
                              .stride_c = p->stride_c,
                              .alpha_device = p->alpha_device,
                              .beta_device = p->beta_device,
                              .bias = p->bias,
                              .alpha = p->alpha,
                              .beta = p->beta,
                              .m = (int32_t)p->m,
                              .n = (int32_t)p->n,
                              .k = (int32_t)p->k,
                              .order.tiles_m = (int32_t)s->tiles_m,
                              .order.tiles_n = (int32_t)s->tiles_n,
                              .order.tiles = (int32_t)s->tiles,
                              .order.whole_tiles = (int32_t)s->whole_tiles,
                              .order.steps = (int32_t)s->steps,
                              .class_steps = (int32_t)s->class_steps,
                              .tile_rows = (int32_t)s->tile_rows,
                              .tile_cols = (int32_t)s->tile_cols,
                              .bias_kind = (int32_t)p->bias_kind,
                              .activation = (int32_t)p->activation,
                              .c_vector = p->align_c >= 16,
                              .c_transposed = s->transposed};
}

static rung_grid grid_of(const rung_kernel *kernel, const large_plan *s)
{
    return (rung_grid){.x = (unsigned)s->grid,
                       .threads = (unsigned)kernel->threads,
                       .shared_bytes = (unsigned)kernel->shared_bytes,
                       .overlaps = 1};
}

static rung_status launch(rung_cuda *cuda, const rung_choice *choice, const rung_problem *p, char *workspace)
{
    const rung_kernel *kernel = choice->kernel;
    const large_plan *s = &choice->plan.large;
    const rung_problem t = s->transposed ? large_transposed(p) : *p;
    rung_function function;
    rung_large_args args;
    RUNG_TRY(rung_kernel_function(cuda, kernel, &function));
    fill(&args, &t, s);
    if (s->bytes_partials) {
        args.partials = (float *)(workspace + s->bytes_a + s->bytes_b);
        args.counters = (uint32_t *)(workspace - RUNG_TICKET_BYTES);
    }
    RUNG_TRY(operands(cuda, kernel, &t, s, workspace, &args));
    const rung_grid grid = grid_of(kernel, s);
    return rung_launch(cuda, &function, &grid, &args);
}

/* ---- products of which accurate mode has refused all blocks ---- */

const rung_kernel *rung_refused_large_plan(const rung_machine *machine, const rung_config *config,
                                           const rung_problem *p, int turns, large_plan *plan, double *us)
{
    const rung_kernel *best = NULL;
    *us = INFINITY;
    for (int i = 0; large_tile_name(i); i++) {
        const rung_kernel *kernel = rung_kernel_find(large_tile_name(i));
        rung_choice choice = {.note = NULL};
        if (rung_gpu_unusable(machine, kernel) || large_estimate(machine, config, kernel, p, &choice))
            continue;
        const large_plan *s = &choice.plan.large;
        const int packs = (s->pack_a && !s->turn_a) || (s->pack_b && !s->turn_b);
        if (packs || s->copied || (s->turn_a || s->turn_b) != turns || (turns && s->class_steps) ||
            choice.cost_us >= *us)
            continue;
        best = kernel;
        *plan = *s;
        *us = choice.cost_us;
    }
    return best;
}

_Static_assert(sizeof(rung_large_args) <= RUNG_CHAIN_ARGUMENT_BYTES, "large tiles follow in their product's chain");

rung_status rung_refused_large_run(rung_cuda *cuda, const rung_kernel *kernel, const rung_problem *p,
                                   const large_plan *s, const f16x3_guard *guard, rung_chain_order order,
                                   float *partials, uint32_t *tickets)
{
    const rung_problem t = s->transposed ? large_transposed(p) : *p;
    large_plan as_it_lies = *s;
    rung_function function;
    rung_large_args args;
    RUNG_TRY(rung_kernel_function(cuda, kernel, &function));
    fill(&args, &t, s);
    as_it_lies.turn_a = as_it_lies.turn_b = as_it_lies.pack_a = as_it_lies.pack_b = 0;
    args.guarded = 1;
    args.guard = *guard;
    args.partials = partials;
    args.counters = tickets;
    RUNG_TRY(operands(cuda, kernel, &t, &as_it_lies, NULL, &args));
    rung_grid grid = grid_of(kernel, s);
    grid.order = order;
    grid.argument_bytes = sizeof args;
    return rung_launch(cuda, &function, &grid, &args);
}

const rung_launcher rung_launch_large = {
    .name = "large",
    .estimate = large_estimate,
    .floor_us = large_floor_us,
    .launch = launch,
};
