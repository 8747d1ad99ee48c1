/* Launcher "strict": the bulk-copy FP32 kernels for large products. Decides what is packed first, how many tiles one
 * block does whole and how many are streamed along k over all blocks, and what that should cost. */
#include "cuda/device.h"
#include "cuda/device/strict_args.h"
#include "cuda/row_copy.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Fitted to results/strict-squares-h200.jsonl and strict-transposes-h200.jsonl; the clock and the SM count come from
 * the machine. */
static const double step_cycles = 4680; /* 16 along k of a 128 x 256 tile on one SM; 4096 would be all FFMA */
static const double along_k_step_cycles = 4780;
static const double launch_us = 6; /* start and end of the kernel */
/* End of a tile: 16-byte stores; in lines at any address; in lines down the columns of a C stored the other way round;
 * and what beta, bias or an activation add. */
static const double end_us = 1.5, scattered_end_us = 5, transposed_end_us = 3, more_end_us = 3;
static const double stream_us = 5, piece_us = 1.4; /* clearing flags and leaving sums; adding one block's part */
static const double turn_us = 3, turn_bytes_per_us = 1.8e6;
/* Of the products' time, for spare warps' copies of B: 0.19 and 0.33 with two warps, less with three. */
static const double spare_share = 0.14, along_k_spare_share = 0.25;
static const double write_bytes_per_us = 4.2e6;

typedef struct strict_plan {
    int transposed;     /* C^T = B^T A^T is made instead */
    int pack_a, pack_b; /* copied first: turned, unless k lies as the kernel reads it */
    int turn_a, turn_b;
    int spare_b; /* copied by spare warps as it is needed */
    int64_t tiles_m, tiles_n, tiles, whole_tiles, steps;
    int grid;
    int64_t bytes_a, bytes_b, bytes_partials, bytes_flags; /* workspace, in this order */
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

/* Time of `streamed` tiles cut along k over all blocks, and the others done whole. */
static double wave_cost_us(const strict_plan *s, int64_t streamed, double step_us, double tile_us)
{
    int64_t whole = s->tiles - streamed, rounds = ceil_div(whole, s->grid);
    double us = (double)rounds * ((double)s->steps * step_us + tile_us);
    if (streamed) {
        double pieces = (double)ceil_div(s->grid, streamed) + 1;
        us += (double)ceil_div(streamed * s->steps, s->grid) * step_us + tile_us + stream_us + pieces * piece_us;
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
    s->tiles_m = ceil_div(p->m, kernel->bm);
    s->tiles_n = ceil_div(p->n, kernel->bn);
    s->tiles = s->tiles_m * s->tiles_n * p->batch;
    s->steps = ceil_div(p->k, kernel->bk);
    /* No more than eight blocks a tile, none with fewer than eight steps. */
    s->grid = (int)min64(machine->sms, min64(s->tiles * 8, s->tiles * s->steps / 8));
    if (s->grid < 1)
        s->grid = 1;
    int64_t rest = s->tiles % s->grid, streamed[3] = {0, rest, rest && s->tiles > s->grid ? rest + s->grid : 0};
    s->whole_tiles = s->tiles;
    s->cost_us = wave_cost_us(s, 0, step_us, tile_us);
    for (int i = 1; i < 3; i++) {
        double us = wave_cost_us(s, streamed[i], step_us, tile_us);
        if (s->steps && us < s->cost_us && !p->in_order) {
            s->cost_us = us;
            s->whole_tiles = s->tiles - streamed[i];
        }
    }
    s->grid = (int)min64(s->grid, s->whole_tiles == s->tiles ? s->tiles : s->grid);
    if (s->whole_tiles < s->tiles) {
        s->bytes_partials = (int64_t)s->grid * kernel->bm * kernel->bn * 4;
        s->bytes_flags = (int64_t)s->grid * 4;
    }
}

static const char *plan_as_asked(const rung_machine *machine, const rung_kernel *kernel, const rung_problem *p,
                                 int transposed, strict_plan *s)
{
    memset(s, 0, sizeof *s);
    s->transposed = transposed;
    int a_readable = rung_rows_readable(p->align_a, p->batch, p->stride_a),
        b_readable = rung_rows_readable(p->align_b, p->batch, p->stride_b);
    if (p->m >= INT32_MAX - 256 || p->n >= INT32_MAX - 256 || p->k >= INT32_MAX - 256)
        return "a size of 2^31 or more";
    if (along_k(kernel) && p->trans_a)
        return "A lies with k outermost: another kernel reads it so";
    plan_tiles(machine, kernel, p, s);
    if (s->tiles >= INT32_MAX || s->tiles * s->steps >= INT32_MAX)
        return "too many tiles for 32-bit counters";
    s->turn_a = p->k && !along_k(kernel) && !p->trans_a;
    s->turn_b = p->k && p->trans_b;
    /* Rows of the operands as the kernel reads them. */
    int64_t rows_a = along_k(kernel) ? p->m : p->k, inner_a = along_k(kernel) ? p->k : p->m;
    int64_t bytes_a = rung_row_copy_ld(inner_a) * rows_a * p->batch * 4,
            bytes_b = rung_row_copy_ld(p->n) * p->k * p->batch * 4, limit = machine->memory_bytes / 4;
    const double products_us = s->cost_us;
    const double spare_us = products_us * (along_k(kernel) ? along_k_spare_share : spare_share);
    s->spare_b =
        p->k && !s->turn_b && !b_readable &&
        (spare_us < rung_row_copy_us(bytes_b) || bytes_b > limit / 2 || rung_row_copy_refuses(p->n, p->k * p->batch));
    s->pack_a = p->k && (s->turn_a || !a_readable);
    s->pack_b = p->k && (s->turn_b || (!b_readable && !s->spare_b));
    s->bytes_a = s->pack_a ? bytes_a : 0;
    s->bytes_b = s->pack_b ? bytes_b : 0;
    if (s->bytes_a + s->bytes_b > limit)
        return "the packed copy would take over a quarter of the GPU's memory";
    s->cost_us += launch_us + turn_cost_us(s->turn_a ? s->bytes_a : 0) + turn_cost_us(s->turn_b ? s->bytes_b : 0) +
                  rung_row_copy_us((s->turn_a ? 0 : s->bytes_a) + (s->turn_b ? 0 : s->bytes_b)) +
                  (s->spare_b ? spare_us : 0);
    return NULL;
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
    choice->workspace_bytes = s.bytes_a + s.bytes_b + s.bytes_partials + s.bytes_flags;
    const int spare_a = s.transposed && s.spare_b, spare_b = !s.transposed && s.spare_b;
    const int pack_a = s.transposed ? s.pack_b : s.pack_a, pack_b = s.transposed ? s.pack_a : s.pack_b;
    snprintf(choice->note, sizeof choice->note, "%lld tiles, %lld of them streamed over %d blocks%s%s",
             (long long)s.tiles, (long long)(s.tiles - s.whole_tiles), s.grid,
             pack_a    ? ", A packed"
             : spare_a ? ", A by spare warps"
                       : "",
             pack_b    ? ", B packed"
             : spare_b ? ", B by spare warps"
                       : "");
    return NULL;
}

typedef struct operand {
    const float *at;
    int64_t ld, stride; /* elements */
} operand;

/* Copies an operand to k outermost. */
static rung_status turn(rung_cuda *cuda, const rung_problem *p, int64_t mn, int align, float *to, operand *o)
{
    rung_function function;
    RUNG_TRY(rung_gpu_function(cuda->gpu, "sm90_tma_f32_128x256x16_s8", "strict_pack_operand", &function));
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
                           .aligned = align >= 16};
    for (int64_t z = 0; z < p->batch; z += 65535) { /* the grid's limit */
        rung_grid grid = {.x = (unsigned)ceil_div(mn, RUNG_PACK_TILE),
                          .y = (unsigned)min64(ceil_div(p->k, RUNG_PACK_TILE), 65535),
                          .z = (unsigned)min64(p->batch - z, 65535),
                          .threads = RUNG_PACK_THREADS};
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
        RUNG_TRY(turn(cuda, p, p->m, p->align_a, to_a, a));
    else if (s->pack_a)
        copies[count++] =
            along_k(kernel) ? copy_to(a, p->k, p->m, p->batch, to_a) : copy_to(a, p->m, p->k, p->batch, to_a);
    if (s->turn_b)
        RUNG_TRY(turn(cuda, p, p->n, p->align_b, to_b, b));
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

static rung_status operands(rung_cuda *cuda, const rung_kernel *kernel, const rung_problem *p, const strict_plan *s,
                            char *workspace, rung_strict_args *args)
{
    operand a = {p->a, p->lda, p->stride_a}, b = {p->b, p->ldb, p->stride_b};
    if (p->k == 0) /* nothing is read: any valid map will do */
        return RUNG_SUCCESS;
    RUNG_TRY(pack(cuda, kernel, p, s, workspace, &a, &b));
    if (along_k(kernel))
        RUNG_TRY(describe(cuda, &a, p->k, p->m, p->batch, kernel->bk, kernel->bm, 1, &args->a_map));
    else
        RUNG_TRY(describe(cuda, &a, p->m, p->k, p->batch, kernel->bm, kernel->bk, 0, &args->a_map));
    if (!s->spare_b)
        return describe(cuda, &b, p->n, p->k, p->batch, kernel->bn, kernel->bk, 0, &args->b_map);
    args->b = b.at;
    args->ldb = b.ld;
    args->stride_b = b.stride;
    return RUNG_SUCCESS;
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
                             .bias_kind = (int32_t)p->bias_kind,
                             .activation = (int32_t)p->activation,
                             .c_vector = p->align_c >= 16,
                             .c_transposed = s->transposed};
    if (s->bytes_flags) {
        args.partials = (float *)(workspace + s->bytes_a + s->bytes_b);
        args.flags = (uint32_t *)(workspace + s->bytes_a + s->bytes_b + s->bytes_partials);
        CU_TRY(cuda->driver, set_32((CUdeviceptr)(uintptr_t)args.flags, 0, (size_t)s->grid, cuda->config.stream));
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
    RUNG_TRY(rung_workspace_get(cuda, s.bytes_a + s.bytes_b + s.bytes_partials + s.bytes_flags, &workspace));
    rung_problem t = s.transposed ? transposed_problem(p) : *p;
    rung_status status = launch(cuda, choice->kernel, &t, &s, workspace);
    rung_workspace_put(cuda, workspace);
    return status;
}

const rung_launcher rung_launch_strict = {"strict", estimate, run};
