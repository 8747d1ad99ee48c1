/* Launcher "strict": the bulk-copy FP32 kernels for large products. Decides what is packed first, how many tiles one
 * block does whole and how many are streamed along k over all blocks, and what that should cost. */
#include "cuda/driver/device.h"
#include "cuda/families/large/args.h"
#include "cuda/host/row_copy.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Fitted to timings on an H200 (docs/performance-log.md, "the planner"); the clock and the SM count come from the
 * machine. */
static const double step_cycles = 4755; /* 16 along k of a 128 x 256 tile on one SM; 4096 would be all FFMA */
static const double along_k_step_cycles = 4830;
static const double launch_us = 4.88; /* start and end of the kernel */
/* End of a tile: 16-byte stores; in lines at any address; in lines down the columns of a C stored the other way round;
 * and what beta, bias or an activation add. */
static const double end_us = 4.48, scattered_end_us = 5.31, transposed_end_us = 5.11, more_end_us = 3.00;
/* Where four blocks or more share a tile: leaving sums and meeting; what the parts beyond 32 add; blocks with parts of
 * two tiles. Where fewer do. */
static const double meet_us = 5.46, more_parts_us = 0.58, straddle_us = 7.03, leave_us = 7.75;
static const double turn_us = 2.72, turn_bytes_per_us = 1.91e6;
/* Of classes: a small operand's turning, and adding parts that start apart. */
static const double class_turn_us = 4.5, class_meet_us = 11;
/* Cycles of a step that the copying warps take from the multiplying ones: each time, and for each copy of theirs, with
 * k outermost and innermost. */
static const double copy_cycles = 14.72, copy_row_cycles = 4.90, copy_line_cycles = 40.1;
static const double write_bytes_per_us = 4.47e6;

typedef struct strict_plan {
    int transposed;     /* C^T = B^T A^T is made instead */
    int pack_a, pack_b; /* copied first: turned, unless k lies as the kernel reads it */
    int turn_a, turn_b;
    int copied; /* 'a' or 'b': 4 bytes a lane as it is needed; 0: neither */
    int64_t tiles_m, tiles_n, tiles, whole_tiles, steps;
    int grid;
    int64_t tile_rows, tile_cols; /* stored of a tile */
    int64_t class_steps;          /* k is cut in four classes, k % 4, each streamed by blocks of its own; or 0 */
    int64_t bytes_a, bytes_b, bytes_partials; /* workspace, in this order */
    double cost_us;
} strict_plan;

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* A is read with k innermost, as it lies. */
static int along_k(const rung_kernel *kernel)
{
    return strncmp(kernel->name, "sm90_tmak", 9) == 0;
}

static double turn_cost_us(int64_t bytes)
{
    return bytes ? turn_us + 2.0 * (double)bytes / turn_bytes_per_us : 0;
}

/* Time of `streamed` tiles cut along k over `grid` blocks, and the others done whole. */
static double wave_cost_us(const strict_plan *s, int64_t streamed, int64_t grid, double step_us, double tile_us)
{
    int64_t rounds = ceil_div(s->tiles - streamed, grid);
    double us = (double)rounds * ((double)s->steps * step_us + tile_us);
    if (streamed) {
        const double parts = (double)grid / (double)streamed;
        us += (double)ceil_div(streamed * s->steps, grid) * step_us + tile_us;
        if (parts < 4)
            us += leave_us;
        else
            us += meet_us + fmax(parts / 32 - 1, 0) * more_parts_us + (grid % streamed ? straddle_us : 0);
    }
    return us;
}

static void plan_tiles(const rung_machine *machine, const rung_kernel *kernel, const rung_problem *p, strict_plan *s)
{
    double step_us = (along_k(kernel) ? along_k_step_cycles : step_cycles) / (machine->clock_ghz * 1e3);
    double tile_us = s->transposed ? transposed_end_us : p->align_c >= 16 && p->n % 4 == 0 ? end_us : scattered_end_us;
    if (!p->beta_zero || p->bias_kind || p->activation)
        tile_us += more_end_us;
    /* All blocks end their tiles at once: what L2 does not hold is written while nothing is multiplied. */
    if (4.0 * (double)p->m * (double)p->n * (double)p->batch > (double)machine->l2_bytes)
        tile_us = fmax(tile_us, 4.0 * kernel->bm * kernel->bn * machine->sms / write_bytes_per_us);
    s->tile_rows = kernel->bm;
    s->tile_cols = kernel->bn;
    s->tiles_m = ceil_div(p->m, kernel->bm);
    s->tiles_n = ceil_div(p->n, kernel->bn);
    s->tiles = s->tiles_m * s->tiles_n * p->batch;
    s->steps = ceil_div(p->k, kernel->bk);
    /* None with fewer than eight steps. */
    int64_t most = min64(machine->sms, s->tiles * s->steps / 8);
    most = most < 1 ? 1 : most;
    /* All whole; the last round over all blocks; the last two; all, in equal parts. */
    int64_t rest = s->tiles % most, even = most / s->tiles * s->tiles;
    const int64_t streamed[4] = {0, rest, s->tiles > most ? rest + most : 0, s->tiles};
    const int64_t grids[4] = {min64(most, s->tiles), most, most, even};
    s->grid = (int)grids[0];
    s->whole_tiles = s->tiles;
    s->cost_us = wave_cost_us(s, 0, s->grid, step_us, tile_us);
    for (int i = 1; i < 4; i++) {
        if (p->in_order || !rest || grids[i] < 2 || streamed[i] == 0 || streamed[i] * s->steps < 4 * grids[i])
            continue;
        double us = wave_cost_us(s, streamed[i], grids[i], step_us, tile_us);
        if (us < s->cost_us) {
            s->cost_us = us;
            s->whole_tiles = s->tiles - streamed[i];
            s->grid = (int)grids[i];
        }
    }
    s->bytes_partials = s->whole_tiles < s->tiles ? (int64_t)s->grid * 2 * kernel->bm * kernel->bn * 4 : 0;
}

/* What the warps that copy an operand take from those that multiply. */
static double copied_cost_us(const rung_kernel *kernel, char which, double products_us)
{
    const int along = which == 'a' && along_k(kernel), width = which == 'a' ? kernel->bm : kernel->bn;
    const double copies = width * kernel->bk / 32 / 4; /* of a warp and step */
    const double cycles = copy_cycles + copies * (along ? copy_line_cycles : copy_row_cycles);
    return products_us * cycles / (along_k(kernel) ? along_k_step_cycles : step_cycles);
}

enum {
    CLASSES = 4,
    CLASS_STEPS = 8, /* of a block at least */
    SHORTER = 4,     /* a tile's rows that start anywhere */
    MOST_TAIL = 4    /* of k, left to where the parts are added */
};

/* What k holds beyond whole steps of all classes, where it is little. */
static int64_t class_tail(const rung_kernel *kernel, const rung_problem *p)
{
    const int64_t tail = p->k % (CLASSES * kernel->bk);
    return tail <= MOST_TAIL ? tail : 0;
}

static int64_t class_rows(const rung_problem *p)
{
    return ceil_div(p->k, CLASSES);
}

/* Rows k, k + 4, k + 8 ... start alike whatever the leading dimension: where k is cut anyhow, each block takes one of
 * the four classes, whose rows the copy engine can read from the multiple of 16 bytes before them on. The parts of a
 * tile then start up to three columns (rows of A) apart, which is made good when they are added. An operand with k
 * innermost is turned; the one of two that both lie at odd addresses may be packed, where shorter tiles would be too
 * many. */
static void try_classes(const rung_machine *machine, const rung_kernel *kernel, const rung_problem *p, int pack_a,
                        int pack_b, strict_plan *least)
{
    strict_plan plan = {.turn_a = !p->trans_a, .turn_b = p->trans_b, .pack_a = pack_a, .pack_b = pack_b}, *s = &plan;
    s->bytes_a = pack_a ? rung_row_copy_ld(p->m) * class_rows(p) * CLASSES * 4 : 0;
    s->bytes_b = pack_b ? rung_row_copy_ld(p->n) * class_rows(p) * CLASSES * 4 : 0;
    if (s->bytes_a + s->bytes_b > machine->memory_bytes / 4 ||
        (pack_a && !s->turn_a && rung_row_copy_refuses(p->m, p->k)) ||
        (pack_b && !s->turn_b && rung_row_copy_refuses(p->n, p->k)))
        return;
    s->tile_rows = kernel->bm - (!pack_a && p->align_a < 16 ? SHORTER : 0);
    s->tile_cols = kernel->bn - (!pack_b && p->align_b < 16 ? SHORTER : 0);
    s->tiles_m = ceil_div(p->m, s->tile_rows);
    s->tiles_n = ceil_div(p->n, s->tile_cols);
    s->tiles = s->tiles_m * s->tiles_n;
    s->class_steps = ceil_div(p->k - class_tail(kernel, p), CLASSES * kernel->bk);
    s->steps = s->class_steps * CLASSES;
    const int64_t pieces = min64(machine->sms / CLASSES / s->tiles, s->class_steps / CLASS_STEPS); /* of a class */
    if (pieces < 1 || s->tiles * s->steps >= INT32_MAX)
        return;
    s->grid = (int)(s->tiles * pieces * CLASSES);
    s->bytes_partials = (int64_t)s->grid * 2 * kernel->bm * kernel->bn * 4;
    const double step_us = step_cycles / (machine->clock_ghz * 1e3);
    const int64_t turned = (s->turn_a ? s->bytes_a : 0) + (s->turn_b ? s->bytes_b : 0);
    s->cost_us = launch_us + (s->turn_a + s->turn_b) * class_turn_us + 2.0 * (double)turned / turn_bytes_per_us +
                 rung_row_copy_us(s->bytes_a + s->bytes_b - turned) + end_us + class_meet_us +
                 (double)ceil_div(s->class_steps, pieces) * step_us +
                 fmax((double)pieces * CLASSES / 32 - 1, 0) * more_parts_us;
    if (s->cost_us < least->cost_us)
        *least = *s;
}

static void plan_classes(const rung_machine *machine, const rung_kernel *kernel, const rung_problem *p, strict_plan *s)
{
    const int odd_a = p->trans_a && p->align_a < 16, odd_b = !p->trans_b && p->align_b < 16;
    if (along_k(kernel) || p->batch != 1 || p->in_order || p->k < CLASSES * CLASS_STEPS * kernel->bk)
        return;
    if (odd_a && odd_b)
        try_classes(machine, kernel, p, 0, 0, s);
    if (odd_b)
        try_classes(machine, kernel, p, !p->trans_a || odd_a, 0, s);
    if (odd_a)
        try_classes(machine, kernel, p, 0, p->trans_b || odd_b, s);
}

/* Decides which operands are copied first, and whether one is copied as it is needed. */
static const char *plan_operands(const rung_machine *machine, const rung_kernel *kernel, const rung_problem *p,
                                 strict_plan *s)
{
    const int along = along_k(kernel), a_readable = rung_rows_readable(p->align_a, p->batch, p->stride_a),
              b_readable = rung_rows_readable(p->align_b, p->batch, p->stride_b);
    s->turn_a = p->k && !along && !p->trans_a;
    s->turn_b = p->k && p->trans_b;
    const int odd_a = p->k && !s->turn_a && !a_readable, odd_b = p->k && !s->turn_b && !b_readable;
    /* Rows of the operands as the kernel reads them. */
    const int64_t rows_a = along ? p->m : p->k, inner_a = along ? p->k : p->m, limit = machine->memory_bytes / 4;
    const int64_t bytes_a = rung_row_copy_ld(inner_a) * rows_a * p->batch * 4,
                  bytes_b = rung_row_copy_ld(p->n) * p->k * p->batch * 4;
    const char *reason = "the packed copy would take over a quarter of the GPU's memory";
    double least = INFINITY;
    static const char choices[3] = {0, 'a', 'b'};
    for (const char *at = choices; at < choices + 3; at++) {
        if ((*at == 'a' && !odd_a) || (*at == 'b' && !odd_b))
            continue;
        const int pack_a = s->turn_a || (odd_a && *at != 'a'), pack_b = s->turn_b || (odd_b && *at != 'b');
        const int64_t to_a = pack_a ? bytes_a : 0, to_b = pack_b ? bytes_b : 0;
        if (to_a + to_b > limit)
            continue;
        const char *refusal = pack_a && !s->turn_a ? rung_row_copy_refuses(inner_a, rows_a * p->batch) : NULL;
        if (!refusal && pack_b && !s->turn_b)
            refusal = rung_row_copy_refuses(p->n, p->k * p->batch);
        const double us = turn_cost_us(s->turn_a ? to_a : 0) + turn_cost_us(s->turn_b ? to_b : 0) +
                          rung_row_copy_us((s->turn_a ? 0 : to_a) + (s->turn_b ? 0 : to_b)) +
                          (*at ? copied_cost_us(kernel, *at, s->cost_us) : 0);
        if (refusal || us >= least) {
            reason = refusal && isinf(least) ? refusal : reason;
            continue;
        }
        least = us;
        s->copied = *at;
        s->pack_a = pack_a;
        s->pack_b = pack_b;
        s->bytes_a = to_a;
        s->bytes_b = to_b;
    }
    s->cost_us += launch_us + least;
    return isinf(least) ? reason : NULL;
}

static const char *plan_as_asked(const rung_machine *machine, const rung_kernel *kernel, const rung_problem *p,
                                 int transposed, strict_plan *s)
{
    memset(s, 0, sizeof *s);
    s->transposed = transposed;
    if (p->m >= INT32_MAX - 256 || p->n >= INT32_MAX - 256 || p->k >= INT32_MAX - 256)
        return "a size of 2^31 or more";
    if (along_k(kernel) && p->trans_a)
        return "A lies with k outermost: another kernel reads it so";
    plan_tiles(machine, kernel, p, s);
    if (s->tiles >= INT32_MAX || s->tiles * s->steps >= INT32_MAX)
        return "too many tiles for 32-bit counters";
    const char *reason = plan_operands(machine, kernel, p, s);
    if (reason)
        s->cost_us = INFINITY;
    plan_classes(machine, kernel, p, s);
    return isinf(s->cost_us) ? reason : NULL;
}

/* C^T = B^T A^T: the same numbers, the operands' parts exchanged. */
static rung_problem transposed_problem(const rung_problem *p)
{
    rung_problem t = *p;
    t.m = p->n;
    t.n = p->m;
    t.a = p->b;
    t.b = p->a;
    t.lda = p->ldb;
    t.ldb = p->lda;
    t.stride_a = p->stride_b;
    t.stride_b = p->stride_a;
    t.trans_a = !p->trans_b;
    t.trans_b = !p->trans_a;
    t.align_a = p->align_b;
    t.align_b = p->align_a;
    t.bias_kind = p->bias_kind == RUNG_BIAS_PER_ROW      ? RUNG_BIAS_PER_COLUMN
                  : p->bias_kind == RUNG_BIAS_PER_COLUMN ? RUNG_BIAS_PER_ROW
                                                         : RUNG_NO_BIAS;
    return t;
}

/* A kernel that reads A along k may as well read B so, for C^T. */
static const char *plan(const rung_machine *machine, const rung_kernel *kernel, const rung_problem *p, strict_plan *s)
{
    const char *reason = plan_as_asked(machine, kernel, p, 0, s);
    if (!along_k(kernel) || !p->trans_b)
        return reason;
    rung_problem t = transposed_problem(p);
    strict_plan other;
    if (!plan_as_asked(machine, kernel, &t, 1, &other) && (reason || other.cost_us < s->cost_us)) {
        *s = other;
        return NULL;
    }
    return reason;
}

static const char *estimate(const rung_machine *machine, const rung_config *config, const rung_kernel *kernel,
                            const rung_problem *p, rung_choice *choice)
{
    (void)config;
    strict_plan s;
    const char *reason = plan(machine, kernel, p, &s);
    if (reason)
        return reason;
    choice->cost_us = s.cost_us;
    choice->workspace_bytes = s.bytes_a + s.bytes_b + s.bytes_partials;
    const int copied_a = s.copied == (s.transposed ? 'b' : 'a'), copied_b = s.copied == (s.transposed ? 'a' : 'b');
    const int pack_a = s.transposed ? s.pack_b : s.pack_a, pack_b = s.transposed ? s.pack_a : s.pack_b;
    snprintf(choice->note, sizeof choice->note, "%lld tiles, %lld of them %s over %d blocks%s%s", (long long)s.tiles,
             (long long)(s.tiles - s.whole_tiles), s.class_steps ? "by k % 4" : "streamed", s.grid,
             pack_a     ? ", A packed"
             : copied_a ? ", A copied as needed"
                        : "",
             pack_b     ? ", B packed"
             : copied_b ? ", B copied as needed"
                        : "");
    return NULL;
}

typedef struct operand {
    const float *at;
    int64_t ld, stride; /* elements */
} operand;

/* Copies an operand to k outermost, with `classed` all k of a class together. */
static rung_status turn(rung_cuda *cuda, const rung_problem *p, int64_t mn, int align, int classed, float *to,
                        operand *o)
{
    rung_function function;
    RUNG_TRY(rung_gpu_function(cuda->gpu, "sm90_tma_f32_128x256x16_s8",
                               classed ? "strict_pack_classes" : "strict_pack_operand", &function));
    const operand from = *o;
    *o = (operand){to, rung_row_copy_ld(mn), rung_row_copy_ld(mn) * p->k};
    rung_pack_args args = {.from = from.at,
                           .to = to,
                           .k = p->k,
                           .mn = mn,
                           .ld_from = from.ld,
                           .ld_to = o->ld,
                           .stride_from = from.stride,
                           .stride_to = o->stride,
                           .class_rows = classed ? class_rows(p) : 0,
                           .aligned = align >= 16};
    for (int64_t z = 0; z < p->batch; z += 65535) { /* the grid's limit */
        rung_grid grid = {.x = (unsigned)ceil_div(mn, RUNG_PACK_TILE),
                          .y = (unsigned)min64(ceil_div(p->k, RUNG_PACK_TILE), 65535),
                          .z = (unsigned)min64(p->batch - z, 65535),
                          .threads = RUNG_PACK_THREADS,
                          .overlaps = 1};
        RUNG_TRY(rung_launch(cuda, &function, &grid, &args));
        args.from += 65535 * from.stride;
        args.to += 65535 * o->stride;
    }
    return RUNG_SUCCESS;
}

/* The operand's copy at `to`, in the order it lies; it takes the operand's place. */
static rung_row_copy copy_to(operand *o, int64_t inner, int64_t outer, int64_t batch, float *to)
{
    int64_t ld = rung_row_copy_ld(inner);
    rung_row_copy c = {o->at, to, inner, outer, batch, o->ld, ld, o->stride, ld * outer};
    *o = (operand){to, c.ld_to, c.stride_to};
    return c;
}

/* Copies what has to be copied. */
static rung_status pack(rung_cuda *cuda, const rung_kernel *kernel, const rung_problem *p, const strict_plan *s,
                        char *workspace, operand *a, operand *b)
{
    float *to_a = (float *)workspace, *to_b = (float *)(workspace + s->bytes_a);
    rung_row_copy copies[2] = {{.from = NULL}, {.from = NULL}};
    int count = 0;
    if (s->turn_a)
        RUNG_TRY(turn(cuda, p, p->m, p->align_a, s->class_steps > 0, to_a, a));
    else if (s->pack_a)
        copies[count++] =
            along_k(kernel) ? copy_to(a, p->k, p->m, p->batch, to_a) : copy_to(a, p->m, p->k, p->batch, to_a);
    if (s->turn_b)
        RUNG_TRY(turn(cuda, p, p->n, p->align_b, s->class_steps > 0, to_b, b));
    else if (s->pack_b)
        copies[count++] = copy_to(b, p->n, p->k, p->batch, to_b);
    return count ? rung_row_copy_run(cuda, &copies[0], &copies[1]) : RUNG_SUCCESS;
}

/* A box of x by y of a batch of matrices whose rows run along x. */
static rung_status describe(rung_cuda *cuda, const operand *o, int64_t x, int64_t y, int64_t batch, int box_x,
                            int box_y, int swizzle, CUtensorMap *map)
{
    cuuint64_t sizes[3] = {(cuuint64_t)x, (cuuint64_t)y, (cuuint64_t)batch};
    cuuint64_t strides[2] = {(cuuint64_t)o->ld * 4, (cuuint64_t)(batch > 1 ? o->stride : o->ld) * 4};
    cuuint32_t box[3] = {(cuuint32_t)box_x, (cuuint32_t)box_y, 1}, unit[3] = {1, 1, 1};
    CU_TRY(cuda->driver,
           tensor_map(map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 3, (void *)(uintptr_t)o->at, sizes, strides, box, unit,
                      CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle ? CU_TENSOR_MAP_SWIZZLE_64B : CU_TENSOR_MAP_SWIZZLE_NONE,
                      CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
    return RUNG_SUCCESS;
}

/* Rows k, k + 4, k + 8 ... of an operand with k outermost as it lies, or of its copy, where they follow each other;
 * returns in `starts` how many elements before the first of each class its rows begin. */
static rung_status describe_classes(rung_cuda *cuda, const rung_kernel *kernel, const rung_problem *p, operand o,
                                    int turned, int64_t mn, int extent, CUtensorMap of[CLASSES],
                                    int32_t starts[CLASSES])
{
    for (int r = 0; r < CLASSES; r++) {
        operand rows = {o.at + r * o.ld * (turned ? class_rows(p) : 1), o.ld * (turned ? 1 : CLASSES), 0};
        starts[r] = (int32_t)((uintptr_t)rows.at % 16 / 4);
        rows.at -= starts[r];
        RUNG_TRY(describe(cuda, &rows, mn + starts[r], (p->k - r + CLASSES - 1) / CLASSES, 1, extent, kernel->bk, 0,
                          &of[r]));
    }
    return RUNG_SUCCESS;
}

static rung_status operands(rung_cuda *cuda, const rung_kernel *kernel, const rung_problem *p, const strict_plan *s,
                            char *workspace, rung_strict_args *args)
{
    operand a = {p->a, p->lda, p->stride_a}, b = {p->b, p->ldb, p->stride_b};
    if (p->k == 0) /* nothing is read: any valid map will do */
        return RUNG_SUCCESS;
    RUNG_TRY(pack(cuda, kernel, p, s, workspace, &a, &b));
    if (s->class_steps) {
        const int64_t k = p->k - class_tail(kernel, p);
        args->tail = (int32_t)class_tail(kernel, p);
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
    if (along_k(kernel))
        return describe(cuda, &a, p->k, p->m, p->batch, kernel->bk, kernel->bm, 1, &args->a_map);
    return describe(cuda, &a, p->m, p->k, p->batch, kernel->bm, kernel->bk, 0, &args->a_map);
}

static rung_status launch(rung_cuda *cuda, const rung_kernel *kernel, const rung_problem *p, const strict_plan *s,
                          char *workspace)
{
    rung_function function;
    RUNG_TRY(rung_gpu_function(cuda->gpu, kernel->name, kernel->name, &function));
    rung_strict_args args = {.c = p->c,
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
                             .tiles_m = (int32_t)s->tiles_m,
                             .tiles_n = (int32_t)s->tiles_n,
                             .tiles = (int32_t)s->tiles,
                             .whole_tiles = (int32_t)s->whole_tiles,
                             .steps = (int32_t)s->steps,
                             .class_steps = (int32_t)s->class_steps,
                             .tile_rows = (int32_t)s->tile_rows,
                             .tile_cols = (int32_t)s->tile_cols,
                             .bias_kind = (int32_t)p->bias_kind,
                             .activation = (int32_t)p->activation,
                             .c_vector = p->align_c >= 16,
                             .c_transposed = s->transposed};
    if (s->bytes_partials) {
        args.partials = (float *)(workspace + s->bytes_a + s->bytes_b);
        args.counters = (uint32_t *)(workspace - RUNG_TICKET_BYTES);
    }
    RUNG_TRY(operands(cuda, kernel, p, s, workspace, &args));
    rung_grid grid = {.x = (unsigned)s->grid,
                      .y = 1,
                      .z = 1,
                      .threads = (unsigned)kernel->threads,
                      .shared_bytes = (unsigned)kernel->shared_bytes,
                      .overlaps = 1};
    return rung_launch(cuda, &function, &grid, &args);
}

static rung_status run(rung_cuda *cuda, const rung_choice *choice, const rung_problem *p)
{
    strict_plan s;
    const char *reason = plan(cuda->machine, choice->kernel, p, &s);
    if (reason)
        return rung_fail(RUNG_INTERNAL, "%s: %s", choice->kernel->name, reason);
    void *workspace;
    RUNG_TRY(rung_workspace_get_with_tickets(cuda, s.bytes_a + s.bytes_b + s.bytes_partials, &workspace));
    rung_problem t = s.transposed ? transposed_problem(p) : *p;
    rung_status status = launch(cuda, choice->kernel, &t, &s, workspace);
    rung_workspace_put_with_tickets(cuda, workspace);
    return status;
}

const rung_launcher rung_launch_strict = {"strict", estimate, run};
