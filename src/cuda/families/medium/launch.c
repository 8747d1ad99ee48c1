/* Runs a planned product in medium tiles: copies what has to be copied, describes the operands, launches. */
#include "cuda/driver/chain.h"
#include "cuda/families/accurate/accurate.h"
#include "cuda/families/medium/args.h"
#include "cuda/families/medium/medium.h"
#include "cuda/host/boxes.h"
#include "core/divide.h"
#include "cuda/host/row_copy.h"

#include <math.h>

/* In kernels of marked blocks a tile has so many rows and columns, and a multiprocessor holds so many blocks. */
enum { MARKED_TILE = 64, MARKED_RESIDENT = 2 };

/* Describes boxes of one step: 16 of k by the tile's rows. With k innermost they are swizzled, so that reading along k
 * meets no bank twice. */
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

static rung_status launch(rung_cuda *cuda, const rung_choice *choice, const rung_problem *p, char *workspace)
{
    const rung_kernel *kernel = choice->kernel;
    const medium_plan *s = &choice->plan.medium;
    rung_operand a = rung_operand_a(p), b = medium_operand_b(medium_tile_of(kernel), p);
    rung_problem read = *p;
    read.trans_b = p->trans_b && !medium_tile_of(kernel)->large_loop;
    rung_function function;
    RUNG_TRY(rung_form_function(cuda, kernel, &read, "", &function));
    int64_t streamed = (s->tiles - s->whole_tiles) * s->steps;
    rung_medium_args args = {.order.tiles_m = (int32_t)s->tiles_m,
                             .order.tiles_n = (int32_t)s->tiles_n,
                             .order.tiles = (int32_t)s->tiles,
                             .order.whole_tiles = (int32_t)s->whole_tiles,
                             .order.steps = (int32_t)s->steps,
                             .alone = (int32_t)(s->grid - s->streamers),
                             .share = (int32_t)(streamed / s->streamers),
                             .wider = (int32_t)(streamed % s->streamers),
                             .cluster = s->cluster,
                             .c_vector = p->align_c >= 16};
    rung_args_fill(&args.g, p);
    if (p->k) { /* else nothing is read: any map will do */
        a.readable = !s->copy_a;
        b.readable = !s->copy_b;
        RUNG_TRY(rung_operands_copy(cuda, p, &a, &b, workspace));
        RUNG_TRY(describe(cuda, &a, p->batch, !p->trans_a, kernel->bm, &args.a_map));
        RUNG_TRY(describe(cuda, &b, p->batch, read.trans_b, kernel->bn, &args.b_map));
    }
    if (s->bytes_partials) {
        args.partials = (float *)(workspace + s->bytes_a + s->bytes_b);
        args.counters = (uint32_t *)(workspace - RUNG_TICKET_BYTES);
    }
    rung_grid grid = {.x = (unsigned)s->grid,
                      .threads = (unsigned)kernel->threads,
                      .shared_bytes = (unsigned)kernel->shared_bytes,
                      /* Each multiprocessor is to have one block of each kind: none may start where a block of the
                       * kernel before has just ended, and a full grid must come in clusters. */
                      .cluster = s->unlike && s->grid % 2 == 0 ? 2 : (unsigned)s->cluster,
                      .overlaps = !s->unlike};
    return rung_launch(cuda, &function, &grid, &args);
}

/* ---- the blocks of a product that accurate mode has marked ---- */

static int at_16_bytes(const float *x, int64_t ld)
{
    return ((uintptr_t)x | (uintptr_t)ld * 4) % 16 == 0;
}

/* Finds where the marked kernels read A and B: rows at odd addresses are copied first. */
static void marked_operands(const rung_problem *p, rung_operand of[2])
{
    of[0] = rung_operand_a(p);
    of[1] = rung_operand_b(p);
    for (int i = 0; i < 2; i++)
        of[i].readable = at_16_bytes(of[i].at, of[i].ld);
}

int rung_marked_blocks_fit(const rung_problem *p, const rung_marked *w)
{
    rung_operand of[2];
    if (p->arrays || medium_refuses_sums(p))
        return 0;
    marked_operands(p, of);
    for (int i = 0; i < 2; i++)
        if (!of[i].readable && !w->copies[i])
            return 0;
    return 1;
}

double rung_marked_blocks_us(const rung_machine *machine, const rung_config *config, const rung_problem *p)
{
    rung_choice choice = {.note = NULL};
    const rung_kernel *kernel = rung_kernel_find(medium_marked_tile(p->trans_b != 0)->name);
    return medium_estimate(machine, config, kernel, p, &choice) ? INFINITY : choice.cost_us;
}

rung_status rung_marked_copies_run(rung_cuda *cuda, const rung_marked *w, rung_problem *p)
{
    rung_row_copy copies[2] = {{.from = NULL}, {.from = NULL}};
    rung_operand of[2];
    int count = 0;
    marked_operands(p, of);
    for (int i = 0; i < 2; i++)
        if (!of[i].readable)
            copies[count++] = rung_operand_copy_to(&of[i], 1, w->copies[i]);
    if (!count)
        return RUNG_SUCCESS;
    RUNG_TRY(rung_row_copy_run(cuda, &copies[0], &copies[1], w->any, w->turned ? w->all : NULL));
    p->a = of[0].at, p->lda = of[0].ld;
    p->b = of[1].at, p->ldb = of[1].ld;
    p->align_a = p->align_b = 16;
    return RUNG_SUCCESS;
}

int64_t rung_marked_blocks_partial_bytes(int sms)
{
    return sms * 2 * MARKED_TILE * MARKED_TILE * (int64_t)sizeof(float) * MARKED_RESIDENT;
}

int64_t rung_marked_blocks_ticket_bytes(int sms)
{
    return sms * 2 * (int64_t)sizeof(uint32_t) * MARKED_RESIDENT;
}

_Static_assert(sizeof(rung_medium_args) <= RUNG_CHAIN_ARGUMENT_BYTES,
               "the marked blocks follow in their product's chain");

static void fill_marked(rung_medium_args *args, const rung_kernel *kernel, const rung_problem *p, const rung_marked *w)
{
    const medium_tile *t = medium_tile_of(kernel);
    *args = (rung_medium_args){.partials = w->partials,
                               .counters = w->tickets,
                               .order.tiles_m = (int32_t)divide_up(p->m, kernel->bm),
                               .order.tiles_n = (int32_t)divide_up(p->n, kernel->bn),
                               .order.steps = (int32_t)divide_up(p->k, MEDIUM_BK),
                               .c_vector = at_16_bytes(p->c, p->ldc),
                               .any = w->any,
                               .all = w->all,
                               .elsewhere = w->elsewhere,
                               .list = w->list,
                               .recalled = w->recalled,
                               .number = w->number,
                               .told = w->told,
                               .blocks_m = (int32_t)divide_up(p->m, MARKED_BLOCK),
                               .blocks_n = (int32_t)divide_up(p->n, MARKED_BLOCK),
                               .alone_us = (float)t->cost.alone_us,
                               .full_us = (float)t->cost.full_us,
                               .meeting_us = (float)(t->cost.finish_us + t->cost.uneven_us)};
    args->order.tiles = args->order.tiles_m * args->order.tiles_n;
    rung_args_fill(&args->g, p);
    args->g.marks = w->marks;
    args->g.zero = w->zero;
    args->g.zero_words = w->zero_words;
}

rung_status rung_marked_blocks_run(rung_cuda *cuda, const rung_problem *p, const rung_marked *w)
{
    static const rung_kernel *found[2]; /* every accurate product asks for one */
    const int b_k_innermost = p->trans_b != 0;
    const rung_kernel *kernel = __atomic_load_n(&found[b_k_innermost], __ATOMIC_RELAXED);
    if (!kernel) {
        kernel = rung_kernel_find(medium_marked_tile(b_k_innermost)->name);
        __atomic_store_n(&found[b_k_innermost], kernel, __ATOMIC_RELAXED);
    }
    rung_function function;
    rung_medium_args args;
    fill_marked(&args, kernel, p, w);
    RUNG_TRY(rung_form_function(cuda, kernel, p, "", &function));
    rung_operand of[2];
    marked_operands(p, of);
    RUNG_TRY(describe(cuda, &of[0], 1, !p->trans_a, kernel->bm, &args.a_map));
    RUNG_TRY(describe(cuda, &of[1], 1, b_k_innermost, kernel->bn, &args.b_map));
    rung_grid grid = {.x = (unsigned)(cuda->machine->sms * MARKED_RESIDENT),
                      .threads = (unsigned)kernel->threads,
                      .shared_bytes = (unsigned)kernel->shared_bytes,
                      /* Where there are fewer tiles than blocks, the first blocks have them: each multiprocessor is to
                       * have one of these. In clusters of two they are spread so, singly they come in pairs. */
                      .cluster = 2,
                      .overlaps = 1,
                      .argument_bytes = sizeof args};
    return rung_launch(cuda, &function, &grid, &args);
}

const rung_launcher rung_launch_medium = {
    .name = "medium",
    .estimate = medium_estimate,
    .floor_us = medium_floor_us,
    .launch = launch,
};
