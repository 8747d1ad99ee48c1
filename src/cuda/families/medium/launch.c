/* Runs a planned product in medium tiles: copies what has to be copied, describes the operands, launches. */
#include "cuda/families/medium/args.h"
#include "cuda/families/medium/medium.h"
#include "cuda/host/boxes.h"
#include "cuda/host/row_copy.h"

/* Boxes of one step: 16 of k by the tile's rows; k innermost swizzled, so that reading along k meets no bank twice. */
static rung_status describe(rung_cuda *cuda, const rung_operand *o, int64_t batch, int k_innermost, int extent,
                            CUtensorMap *map)
{
    rung_boxes boxes = {.at = o->at,
                        .size = {o->inner, o->outer, batch},
                        .ld = o->ld,
                        .stride = o->stride,
                        .box = {k_innermost ? MEDIUM_BK : extent, k_innermost ? extent : MEDIUM_BK},
                        .swizzle = k_innermost ? CU_TENSOR_MAP_SWIZZLE_64B : CU_TENSOR_MAP_SWIZZLE_NONE,
                        .promotion = CU_TENSOR_MAP_L2_PROMOTION_L2_128B};
    return rung_boxes_describe(cuda, &boxes, map);
}

static rung_status launch(rung_cuda *cuda, const rung_kernel *kernel, const rung_problem *p, const medium_plan *s,
                          char *workspace)
{
    rung_function function;
    RUNG_TRY(rung_form_function(cuda, kernel, p, "", &function));
    int64_t streamed = (s->tiles - s->whole_tiles) * s->steps;
    rung_medium_args args = {.c = p->c,
                             .ldc = p->ldc,
                             .stride_c = p->stride_c,
                             .alpha_device = p->alpha_device,
                             .beta_device = p->beta_device,
                             .bias = p->bias,
                             .alpha = p->alpha,
                             .beta = p->beta,
                             .m = (int32_t)p->m,
                             .n = (int32_t)p->n,
                             .order.tiles_m = (int32_t)s->tiles_m,
                             .order.tiles_n = (int32_t)s->tiles_n,
                             .order.tiles = (int32_t)s->tiles,
                             .order.whole_tiles = (int32_t)s->whole_tiles,
                             .order.steps = (int32_t)s->steps,
                             .alone = (int32_t)(s->grid - s->streamers),
                             .share = (int32_t)(streamed / s->streamers),
                             .wider = (int32_t)(streamed % s->streamers),
                             .cluster = s->cluster,
                             .bias_kind = (int32_t)p->bias_kind,
                             .activation = (int32_t)p->activation,
                             .c_vector = p->align_c >= 16};
    if (p->k) { /* else nothing is read: any map will do */
        rung_operand a = rung_operand_a(p), b = rung_operand_b(p);
        a.readable = !s->copy_a;
        b.readable = !s->copy_b;
        RUNG_TRY(rung_operands_copy(cuda, p, &a, &b, workspace));
        RUNG_TRY(describe(cuda, &a, p->batch, !p->trans_a, kernel->bm, &args.a_map));
        RUNG_TRY(describe(cuda, &b, p->batch, p->trans_b, kernel->bn, &args.b_map));
    }
    if (s->bytes_partials) {
        args.partials = (float *)(workspace + s->bytes_a + s->bytes_b);
        args.counters = (uint32_t *)(workspace - RUNG_TICKET_BYTES);
    }
    rung_grid grid = {.x = (unsigned)s->grid,
                      .y = 1,
                      .z = 1,
                      .threads = (unsigned)kernel->threads,
                      .shared_bytes = (unsigned)kernel->shared_bytes,
                      /* Each multiprocessor is to have one block of each kind: none may start where a block of the
                       * kernel before has just ended, and a full grid must come in clusters. */
                      .cluster = s->unlike && s->grid % 2 == 0 ? 2 : (unsigned)s->cluster,
                      .overlaps = !s->unlike};
    return rung_launch(cuda, &function, &grid, &args);
}

static rung_status run(rung_cuda *cuda, const rung_choice *choice, const rung_problem *p)
{
    const medium_plan *s = &choice->plan.medium;
    void *workspace;
    RUNG_TRY(rung_workspace_get_with_tickets(cuda, s->bytes_a + s->bytes_b + s->bytes_partials, &workspace));
    rung_status status = launch(cuda, choice->kernel, p, s, workspace);
    rung_workspace_put_with_tickets(cuda, workspace);
    return status;
}

const rung_launcher rung_launch_medium = {"medium", medium_estimate, run, medium_floor_us};
