/* Runs a planned product by lone warps: copies what has to be copied, describes the operands, launches. */
#include "cuda/families/lone/lone.h"
#include "cuda/host/boxes.h"

/* Makes a divisor that is exact for what is below 2^31 (Granlund and Montgomery). */
static rung_divisor divisor(uint32_t by)
{
    uint32_t bits = 0;
    while (1ull << bits < by)
        bits++;
    return (rung_divisor){(uint32_t)((1ull << (31 + bits)) / by + 1), 31 + bits};
}

void lone_args_fill(rung_lone_args *args, const rung_problem *p, int64_t tiles_m, int64_t tiles_n, int64_t steps)
{
    *args = (rung_lone_args){.by_batch = divisor((uint32_t)(tiles_m * tiles_n)),
                             .by_row = divisor((uint32_t)tiles_n),
                             .per_batch = (int32_t)(tiles_m * tiles_n),
                             .tiles_n = (int32_t)tiles_n,
                             .tiles = (int32_t)(tiles_m * tiles_n * p->batch),
                             .steps = (int32_t)steps,
                             .batched_a = p->stride_a != 0,
                             .batched_b = p->stride_b != 0,
                             .c_vector = p->align_c >= 16};
    rung_args_fill(&args->g, p);
}

rung_status lone_describe(rung_cuda *cuda, const rung_operand *o, int64_t batch, int extent, int depth, int k_innermost,
                          CUtensorMap *map)
{
    rung_boxes boxes = {.at = o->at,
                        .size = {o->inner, o->outer, o->stride ? batch : 1},
                        .ld = o->ld,
                        .stride = o->stride,
                        .box = {k_innermost ? depth : extent, k_innermost ? extent : depth},
                        .swizzle = !k_innermost  ? CU_TENSOR_MAP_SWIZZLE_NONE
                                   : depth == 16 ? CU_TENSOR_MAP_SWIZZLE_64B
                                                 : CU_TENSOR_MAP_SWIZZLE_128B,
                        .promotion = CU_TENSOR_MAP_L2_PROMOTION_L2_128B};
    return rung_boxes_describe(cuda, &boxes, map);
}

static rung_status launch(rung_cuda *cuda, const rung_choice *choice, const rung_problem *p, char *workspace)
{
    const rung_kernel *kernel = choice->kernel;
    const lone_plan *s = &choice->plan.lone;
    rung_function function;
    rung_lone_args args;
    RUNG_TRY(rung_form_function(cuda, kernel, p, "", &function));
    lone_args_fill(&args, p, s->tiles_m, s->tiles_n, s->steps);
    args.together = s->together;
    args.cluster = s->cluster;
    args.tickets = s->tickets;
    args.g.workspace = workspace;
    if (p->k > 0 && !lone_tile_of(kernel)->copied) {
        rung_operand a = lone_operand_a(p), b = lone_operand_b(p);
        a.readable = !s->copy_a;
        b.readable = !s->copy_b;
        RUNG_TRY(rung_operands_copy(cuda, p, &a, &b, workspace + s->parts_bytes));
        RUNG_TRY(lone_describe(cuda, &a, p->batch, kernel->bm, kernel->bk, !p->trans_a, &args.a_map));
        RUNG_TRY(lone_describe(cuda, &b, p->batch, kernel->bn, kernel->bk, p->trans_b, &args.b_map));
    }
    rung_grid grid = {.x = (unsigned)s->grid,
                      .threads = (unsigned)kernel->threads,
                      .shared_bytes = (unsigned)kernel->shared_bytes,
                      .cluster = (unsigned)s->cluster,
                      .overlaps = s->overlaps};
    return rung_launch(cuda, &function, &grid, &args);
}

const rung_launcher rung_launch_lone = {
    .name = "lone",
    .estimate = lone_estimate,
    .floor_us = lone_floor_us,
    .launch = launch,
};
