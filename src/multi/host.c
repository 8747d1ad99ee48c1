/* rung_multi_sgemm: operands in host memory. C goes in tiles, and each is shared out over a grid of GPUs. Panels of A
 * and B come in over every host link at once, each part once, and go on between the GPUs. Finished parts of C leave
 * while the others are multiplied, and the next tile's panels come in meanwhile. Inside, matrices are column-major. */
#include "core/overlap.h"
#include "core/validate.h"
#include "multi/unit.h"
#include "multi/stage.h"

#include <stdlib.h>
#include <string.h>

enum { C_BUFFERS = 2 };

typedef struct host_side {
    const char *name;
    const float *at;
    int64_t ld;
    int trans, lines_are_rows, pinned;
} host_side;

/* A GPU's place in the grid, its memory and where its lanes stand. */
typedef struct host_share {
    int row, col;
    float *slots[PANEL_SLOTS][SIDES], *c[C_BUFFERS];
    int64_t ldc;
    multi_mark loaded[UNITS_ON_THE_WAY], fetched[UNITS_ON_THE_WAY], used[PANEL_SLOTS][WORK_LANES], left[C_BUFFERS];
    int next_lane, partition; /* they say how the last panel's products were cut */
} host_share;

typedef struct host_product {
    rung_multi *multi;
    int64_t m, n, k;
    float alpha, beta;
    host_side side[SIDES];
    float *c;
    int64_t ldc;
    int c_pinned, staged;
    int rows, cols;                   /* the grid */
    int64_t tile_m, tile_n;           /* a GPU's part of a tile of C */
    int64_t tiles_m, tiles_n, panels; /* panels: those of a tile; flights are tiles times panels */
    multi_cuts cuts;
    int first_bands;
    int64_t units, begun;
    host_share shares[MULTI_MAX_HELD];
} host_product;

typedef struct host_unit {
    int64_t index, flight, tile, panel, k0, kw;
    int side, band, slot;
} host_unit;

/* A GPU's part of a tile: its origin and size in C. */
typedef struct rectangle {
    int64_t row, rows, col, cols;
} rectangle;

static host_unit unit_at(const host_product *h, int64_t index)
{
    int64_t first = 2 * h->first_bands;
    host_unit u = {.index = index, .side = (int)(index % 2)};
    u.flight = index < first ? 0 : 1 + (index - first) / 2;
    u.band = index < first ? (int)(index / 2) : 0;
    u.slot = (int)(u.flight % PANEL_SLOTS);
    u.tile = u.flight / h->panels;
    u.panel = u.flight % h->panels;
    u.k0 = h->cuts.edges[u.panel];
    u.kw = h->cuts.count ? h->cuts.edges[u.panel + 1] - u.k0 : 0;
    return u;
}

static rectangle part_of(const host_product *h, int held, int64_t tile)
{
    const host_share *s = &h->shares[held];
    int64_t row = (tile % h->tiles_m * h->rows + s->row) * h->tile_m,
            col = (tile / h->tiles_m * h->cols + s->col) * h->tile_n;
    return (rectangle){row, max64(0, min64(h->tile_m, h->m - row)), col, max64(0, min64(h->tile_n, h->n - col))};
}

/* Finds the lines of a unit's band. Only the very first panel comes in bands: later ones come while others are
 * multiplied. */
static void find_band(const host_product *h, const host_unit *u, int64_t lines, int64_t *first, int64_t *end)
{
    int bands = u->flight == 0 ? h->first_bands : 1;
    *first = band_edge(lines, u->band, bands);
    *end = band_edge(lines, u->band + 1, bands);
}

static int64_t slot_ld(const host_product *h, int side)
{
    int64_t lines = side == SIDE_A ? h->tile_m : h->tile_n;
    return round_up(h->side[side].lines_are_rows ? lines : max64(h->cuts.widest, 1), 4);
}

static float *slot_at(const host_product *h, int held, const host_unit *u, int64_t line, int64_t step)
{
    float *at = h->shares[held].slots[u->slot][u->side];
    int64_t ld = slot_ld(h, u->side);
    return h->side[u->side].lines_are_rows ? at + line + step * ld : at + step + line * ld;
}

/* ---- bringing a unit in ---- */

/* A member's share of a band: its lines, and its steps of k. */
typedef struct piece {
    int64_t line, lines, step, steps;
} piece;

/* Returns what member `member` of `members` brings of a band. It is cut so that each copy stays long in memory. */
static piece piece_of(const host_product *h, const host_unit *u, int64_t first, int64_t end, int member, int members)
{
    int by_steps = h->side[u->side].lines_are_rows;
    int64_t all = by_steps ? u->kw : end - first;
    int64_t share = round_up(divide_up(all, members), 32);
    int64_t from = min64(all, member * share), to = min64(all, from + share);
    return by_steps ? (piece){first, end - first, from, to - from} : (piece){first + from, to - from, 0, u->kw};
}

static multi_copy copy_of(const host_product *h, const host_unit *u, const piece *p, const float *from, int64_t from_ld,
                          float *to)
{
    int rows = h->side[u->side].lines_are_rows;
    return (multi_copy){.from = from,
                        .from_ld = from_ld,
                        .to = to,
                        .to_ld = slot_ld(h, u->side),
                        .length = rows ? p->lines : p->steps,
                        .lines = rows ? p->steps : p->lines};
}

static void band_of(const host_product *h, const host_unit *u, int held, int64_t *first, int64_t *end)
{
    rectangle r = part_of(h, held, u->tile);
    int64_t lines = u->side == SIDE_A ? r.rows : r.cols;
    find_band(h, u, lines, first, end);
}

static int member_of(const host_product *h, int side, int held)
{
    return side == SIDE_A ? h->shares[held].col : h->shares[held].row;
}

static int members_of(const host_product *h, int side)
{
    return side == SIDE_A ? h->cols : h->rows;
}

static int held_of(const host_product *h, int side, int held, int member)
{
    const host_share *s = &h->shares[held];
    return side == SIDE_A ? s->row * h->cols + member : member * h->cols + s->col;
}

/* Returns whether the next unit may be begun before unit u is multiplied. Copies through the rings take this thread's
 * time, so none is begun before it is needed. And a tile's old C comes with its first unit, into the buffer of the tile
 * two before, whose products must be queued. */
static int may_begin(const host_product *h, const host_unit *u)
{
    if (h->begun == h->units)
        return 0;
    const host_unit next = unit_at(h, h->begun);
    return h->begun <= u->index ||
           (next.flight < u->flight + (h->staged ? 0 : PANEL_SLOTS) && next.tile < u->tile + C_BUFFERS);
}

/* Brings what C held before, once its buffer is free. */
static rung_status bring_c(host_product *h, int held, const host_unit *u)
{
    multi_engine *e = &h->multi->engines[held];
    host_share *s = &h->shares[held];
    rectangle r = part_of(h, held, u->tile);
    int buffer = (int)(u->tile % C_BUFFERS);
    RUNG_TRY(e->ops->wait(e, LANE_IN, s->left[buffer]));
    if (h->beta == 0.0f)
        return RUNG_SUCCESS;
    e->label = (multi_label){"C", (int)u->panel, (int)u->tile};
    multi_copy copy = {.from = h->c + r.row + r.col * h->ldc,
                       .from_ld = h->ldc,
                       .to = s->c[buffer],
                       .to_ld = s->ldc,
                       .length = r.rows,
                       .lines = r.cols,
                       .from_host = 1};
    return multi_stage_copy(h->multi, held, LANE_IN, &copy, h->c_pinned);
}

/* Loads this GPU's own piece from host memory. All that read its slot before must be over, the other GPUs' copies too.
 */
static rung_status load(host_product *h, int held, const host_unit *u)
{
    multi_engine *e = &h->multi->engines[held];
    host_share *s = &h->shares[held];
    const host_side *side = &h->side[u->side];
    for (int i = 0; i < h->rows * h->cols && u->band == 0; i++)
        for (int j = 0; j < WORK_LANES; j++)
            RUNG_TRY(e->ops->wait(e, LANE_IN, h->shares[i].used[u->slot][j]));
    if (u->panel == 0 && u->side == SIDE_A && u->band == 0)
        RUNG_TRY(bring_c(h, held, u));
    int64_t first, end;
    band_of(h, u, held, &first, &end);
    rectangle r = part_of(h, held, u->tile);
    piece p = piece_of(h, u, first, end, member_of(h, u->side, held), members_of(h, u->side));
    int64_t line = p.line + (u->side == SIDE_A ? r.row : r.col), step = u->k0 + p.step;
    const float *from =
        side->at ? side->at + (side->lines_are_rows ? line + step * side->ld : step + line * side->ld) : NULL;
    multi_copy copy = copy_of(h, u, &p, from, side->ld, slot_at(h, held, u, p.line, p.step));
    copy.from_host = 1;
    e->label = (multi_label){side->name, (int)u->flight, u->band};
    RUNG_TRY(multi_stage_copy(h->multi, held, LANE_IN, &copy, side->pinned));
    return e->ops->mark(e, LANE_IN, &s->loaded[u->index % UNITS_ON_THE_WAY]);
}

/* Copies the others' pieces from their slots. */
static rung_status spread(host_product *h, int held, const host_unit *u)
{
    multi_engine *e = &h->multi->engines[held];
    host_share *s = &h->shares[held];
    int ring = (int)(u->index % UNITS_ON_THE_WAY), members = members_of(h, u->side), mine = member_of(h, u->side, held);
    int64_t first, end;
    band_of(h, u, held, &first, &end);
    RUNG_TRY(e->ops->wait(e, LANE_SPREAD, s->loaded[ring]));
    for (int i = 1; i < members; i++) { /* each begins with its neighbour, so that no GPU is asked by all at once */
        int member = (mine + i) % members, other = held_of(h, u->side, held, member);
        piece p = piece_of(h, u, first, end, member, members);
        multi_copy copy = copy_of(h, u, &p, slot_at(h, other, u, p.line, p.step), slot_ld(h, u->side),
                                  slot_at(h, held, u, p.line, p.step));
        if (copy.length <= 0 || copy.lines <= 0)
            continue;
        RUNG_TRY(e->ops->wait(e, LANE_SPREAD, h->shares[other].loaded[ring]));
        RUNG_TRY(e->ops->copy(e, LANE_SPREAD, &copy, &h->multi->engines[other]));
    }
    return e->ops->mark(e, LANE_SPREAD, &s->fetched[ring]);
}

static rung_status begin_unit(host_product *h)
{
    host_unit u = unit_at(h, h->begun++);
    for (int i = 0; i < h->rows * h->cols; i++)
        RUNG_TRY(load(h, i, &u));
    for (int i = 0; i < h->rows * h->cols; i++)
        RUNG_TRY(spread(h, i, &u));
    return RUNG_SUCCESS;
}

/* ---- products, and results on their way out ---- */

enum { CUT_BANDS, CUT_HALVES, CUT_LEAVING };

static rung_status send_out(host_product *h, int held, const host_unit *u, const rectangle *part, int64_t row,
                            int64_t rows, int64_t col, int64_t cols, multi_lane lane)
{
    multi_engine *e = &h->multi->engines[held];
    host_share *s = &h->shares[held];
    multi_mark ready;
    RUNG_TRY(e->ops->mark(e, lane, &ready));
    RUNG_TRY(e->ops->wait(e, LANE_OUT, ready));
    multi_copy copy = {.from = s->c[u->tile % C_BUFFERS] + row + col * s->ldc,
                       .from_ld = s->ldc,
                       .to = h->c + part->row + row + (part->col + col) * h->ldc,
                       .to_ld = h->ldc,
                       .length = rows,
                       .lines = cols,
                       .to_host = 1};
    return multi_stage_copy(h->multi, held, LANE_OUT, &copy, h->c_pinned);
}

static rung_status multiply(host_product *h, int held, const host_unit *u, int64_t row, int64_t rows, int64_t col,
                            int64_t cols)
{
    multi_engine *e = &h->multi->engines[held];
    host_share *s = &h->shares[held];
    rectangle part = part_of(h, held, u->tile);
    if (rows <= 0 || cols <= 0)
        return RUNG_SUCCESS;
    /* the GPU does not keep the order of more than two at once, and parts leave in order; only bands fill it together
     */
    int lanes = s->partition == CUT_BANDS ? WORK_LANES : 2;
    multi_lane lane = (multi_lane)(LANE_WORK + s->next_lane);
    s->next_lane = (s->next_lane + 1) % lanes;
    RUNG_TRY(e->ops->wait(e, lane, s->fetched[u->index % UNITS_ON_THE_WAY]));
    if (u->panel == 0)
        RUNG_TRY(e->ops->wait(e, lane, s->left[u->tile % C_BUFFERS]));
    host_unit a = *u, b = *u;
    a.side = SIDE_A, b.side = SIDE_B;
    rung_gemm gemm;
    rung_gemm_init(&gemm);
    gemm.layout = RUNG_COL_MAJOR;
    gemm.trans_a = (rung_transpose)h->side[SIDE_A].trans;
    gemm.trans_b = (rung_transpose)h->side[SIDE_B].trans;
    gemm.m = rows, gemm.n = cols, gemm.k = u->kw;
    gemm.a = slot_at(h, held, &a, row, 0), gemm.lda = slot_ld(h, SIDE_A);
    gemm.b = slot_at(h, held, &b, col, 0), gemm.ldb = slot_ld(h, SIDE_B);
    gemm.c = s->c[u->tile % C_BUFFERS] + row + col * s->ldc, gemm.ldc = s->ldc;
    gemm.alpha = h->alpha;
    gemm.beta = u->panel == 0 ? h->beta : 1.0f;
    e->label = (multi_label){"C", (int)u->flight, u->band};
    RUNG_TRY(e->ops->product(e, lane, &gemm));
    return u->panel == h->panels - 1 ? send_out(h, held, u, &part, row, rows, col, cols, lane) : RUNG_SUCCESS;
}

/* Multiplies columns in parts. Parts that leave get smaller: only the last one's way out is waited for. */
static rung_status multiply_columns(host_product *h, int held, const host_unit *u, int64_t row, int64_t rows,
                                    int64_t col, int64_t end)
{
    static const int sixteenths[] = {0, 4, 8, 12, 14, 15, 16};
    int64_t cols = end - col, from = 0, waves = rows * cols / h->multi->wave_elements;
    int shrinks = u->panel == h->panels - 1 && waves >= 16;
    int parts = shrinks ? 6 : (int)max64(1, min64(waves, u->panel == h->panels - 1 ? 4 : 2));
    for (int i = 1; i <= parts; i++) {
        int64_t to = shrinks ? cols * sixteenths[i] / 16 : cols * i / parts;
        to = i == parts ? cols : min64(cols, round_up(to, TILE));
        RUNG_TRY(multiply(h, held, u, row, rows, col + from, to - from));
        from = to;
    }
    return RUNG_SUCCESS;
}

static rung_status join_lanes(host_product *h, int held)
{
    multi_engine *e = &h->multi->engines[held];
    multi_mark marks[WORK_LANES];
    for (int i = 0; i < WORK_LANES; i++)
        RUNG_TRY(e->ops->mark(e, (multi_lane)(LANE_WORK + i), &marks[i]));
    for (int i = 0; i < WORK_LANES; i++)
        for (int j = 0; j < WORK_LANES; j++)
            if (i != j)
                RUNG_TRY(e->ops->wait(e, (multi_lane)(LANE_WORK + i), marks[j]));
    return RUNG_SUCCESS;
}

/* Begins a panel. The products of one part of C must follow each other from panel to panel, so lanes are joined where
 * the cut changes. */
static rung_status begin_panel(host_product *h, int held, const host_unit *u)
{
    host_share *s = &h->shares[held];
    int banded = u->flight == 0 && h->first_bands > 1;
    int partition = banded ? CUT_BANDS : u->panel == h->panels - 1 ? CUT_LEAVING : CUT_HALVES;
    if (u->band == 0 && u->panel > 0 && partition != s->partition)
        RUNG_TRY(join_lanes(h, held));
    s->partition = partition;
    if (!banded)
        s->next_lane = 0;
    return RUNG_SUCCESS;
}

static rung_status end_panel(host_product *h, int held, const host_unit *u)
{
    multi_engine *e = &h->multi->engines[held];
    host_share *s = &h->shares[held];
    for (int i = 0; i < WORK_LANES; i++)
        RUNG_TRY(e->ops->mark(e, (multi_lane)(LANE_WORK + i), &s->used[u->slot][i]));
    if (u->panel == h->panels - 1)
        RUNG_TRY(e->ops->mark(e, LANE_OUT, &s->left[u->tile % C_BUFFERS]));
    return RUNG_SUCCESS;
}

static rung_status multiply_unit(host_product *h, int held, const host_unit *u)
{
    rectangle r = part_of(h, held, u->tile);
    int64_t row, row_end, col, col_end;
    find_band(h, u, r.rows, &row, &row_end);
    find_band(h, u, r.cols, &col, &col_end);
    RUNG_TRY(begin_panel(h, held, u));
    RUNG_TRY(multiply_columns(h, held, u, row, row_end - row, 0, col_end));
    RUNG_TRY(multiply_columns(h, held, u, 0, row, col, col_end));
    return u->flight > 0 || u->band == h->first_bands - 1 ? end_panel(h, held, u) : RUNG_SUCCESS;
}

static rung_status run_units(host_product *h)
{
    for (int64_t i = 0; i < h->units; i++) {
        host_unit u = unit_at(h, i);
        while (may_begin(h, &u))
            RUNG_TRY(begin_unit(h));
        for (int held = 0; u.side == SIDE_B && held < h->rows * h->cols; held++)
            RUNG_TRY(multiply_unit(h, held, &u));
    }
    RUNG_TRY(multi_stage_flush(h->multi));
    return multi_finish(h->multi);
}

/* ---- how much at a time, and where ---- */

/* Chooses the grid with the least to bring in: parts of C as square as can be. */
static void choose_grid(host_product *h)
{
    int best = 1, ranks = h->multi->held;
    double least_sum = 0.0;
    for (int rows = 1; rows <= ranks; rows++) {
        if (ranks % rows)
            continue;
        double sum = (double)h->m / rows + (double)h->n / (ranks / rows);
        if (rows == 1 || sum < least_sum) {
            least_sum = sum;
            best = rows;
        }
    }
    h->rows = best;
    h->cols = ranks / best;
    for (int i = 0; i < ranks; i++) {
        h->shares[i].row = i / h->cols;
        h->shares[i].col = i % h->cols;
    }
}

static int64_t slot_floats(const host_product *h, int side)
{
    int64_t lines = side == SIDE_A ? h->tile_m : h->tile_n, steps = max64(h->cuts.widest, 1);
    return slot_ld(h, side) * (h->side[side].lines_are_rows ? steps : lines);
}

static int c_buffers(const host_product *h)
{
    return h->tiles_m * h->tiles_n > 1 ? C_BUFFERS : 1;
}

static int slots_used(const host_product *h)
{
    return (int)min64(PANEL_SLOTS, h->tiles_m * h->tiles_n * h->panels);
}

static int64_t memory_floats(host_product *h)
{
    h->tiles_m = divide_up(h->m, h->tile_m * h->rows);
    h->tiles_n = divide_up(h->n, h->tile_n * h->cols);
    return c_buffers(h) * round_up(h->tile_m, 4) * h->tile_n +
           slots_used(h) * (slot_floats(h, SIDE_A) + slot_floats(h, SIDE_B)) + 64 * (C_BUFFERS + 2 * PANEL_SLOTS);
}

/* Returns what each GPU may use: what the caller said, or what is free without the part that products borrow
 * themselves. */
static rung_status memory_limit_floats(const host_product *h, int64_t *limit)
{
    *limit = INT64_MAX;
    for (int i = 0; i < h->multi->held; i++) {
        multi_engine *e = &h->multi->engines[i];
        int64_t left;
        RUNG_TRY(e->ops->free_bytes(e, &left));
        left += 4 * h->multi->host_buffers[i].floats;
        *limit = min64(*limit, left / 8 * 7 / 4);
    }
    if (h->multi->config.memory_bytes)
        *limit = min64(*limit, h->multi->config.memory_bytes / 4);
    return RUNG_SUCCESS;
}

/* Chooses the largest tiles that fit. */
static rung_status choose_tiles(host_product *h)
{
    int64_t limit;
    RUNG_TRY(memory_limit_floats(h, &limit));
    h->tile_m = round_up(divide_up(h->m, h->rows), h->m >= TILE ? TILE : 4);
    h->tile_n = round_up(divide_up(h->n, h->cols), h->n >= TILE ? TILE : 4);
    while (memory_floats(h) > limit) {
        int64_t *larger = h->tile_m >= h->tile_n ? &h->tile_m : &h->tile_n;
        if (*larger <= TILE)
            return rung_fail(RUNG_OUT_OF_MEMORY,
                             "the smallest tile of the product, %lld x %lld with panels of %lld, "
                             "needs %lld bytes of a GPU, there are %lld",
                             (long long)h->tile_m, (long long)h->tile_n, (long long)h->cuts.widest,
                             (long long)memory_floats(h) * 4, (long long)limit * 4);
        *larger = round_up(divide_up(*larger, 2), TILE);
    }
    int64_t waves = h->tile_m * h->tile_n / h->multi->wave_elements;
    h->first_bands = !h->multi->is_gpu || h->staged || waves < 4 ? 1 : waves < 16 ? 2 : MOST_BANDS;
    h->units = 2 * h->first_bands + 2 * (h->tiles_m * h->tiles_n * h->panels - 1);
    return RUNG_SUCCESS;
}

static rung_status reserve(host_product *h)
{
    for (int i = 0; i < h->multi->held; i++) {
        host_share *s = &h->shares[i];
        RUNG_TRY(multi_buffer_reserve(&h->multi->engines[i], &h->multi->host_buffers[i], memory_floats(h)));
        float *at = h->multi->host_buffers[i].at;
        s->ldc = round_up(h->tile_m, 4);
        for (int j = 0; j < C_BUFFERS; j++) {
            s->c[j] = at;
            if (j + 1 < c_buffers(h))
                at += round_up(s->ldc * h->tile_n, 64);
        }
        at += round_up(s->ldc * h->tile_n, 64);
        for (int j = 0; j < slots_used(h); j++)
            for (int side = 0; side < SIDES; side++) {
                s->slots[j][side] = at;
                at += round_up(slot_floats(h, side), 64);
            }
    }
    return RUNG_SUCCESS;
}

static int is_pinned(rung_multi *multi, const void *memory)
{
    return multi->engines[0].ops->is_pinned(&multi->engines[0], memory);
}

/* Describes the product. A row-major one is the column-major product of the exchanged operands. */
static void describe(host_product *h, rung_multi *multi, const rung_problem *p)
{
    *h = (host_product){
        .multi = multi, .m = p->n, .n = p->m, .k = p->k, .alpha = p->alpha, .beta = p->beta, .c = p->c, .ldc = p->ldc};
    h->side[SIDE_A] = (host_side){"A", p->b, p->ldb, p->trans_b, !p->trans_b, 1};
    h->side[SIDE_B] = (host_side){"B", p->a, p->lda, p->trans_a, p->trans_a, 1};
    h->c_pinned = is_pinned(multi, h->c);
    for (int i = 0; i < SIDES; i++)
        h->side[i].pinned = h->k == 0 || is_pinned(multi, h->side[i].at);
    h->staged = multi->is_gpu && !(h->c_pinned && h->side[SIDE_A].pinned && h->side[SIDE_B].pinned);
}

static rung_status run(host_product *h)
{
    rung_status status;
    RUNG_TRY(multi_panels_cut(&h->multi->panels, h->k, &h->cuts));
    h->panels = max64(1, h->cuts.count);
    choose_grid(h);
    RUNG_TRY_OUT(choose_tiles(h));
    RUNG_TRY_OUT(reserve(h));
    for (int i = 0; i < h->multi->held; i++)
        RUNG_TRY_OUT(h->multi->engines[i].ops->begin(&h->multi->engines[i]));
    status = run_units(h);
    if (status != RUNG_SUCCESS) {
        status = multi_drain(h->multi, status);
        multi_stage_forget(h->multi);
    }
out:
    multi_panels_free(&h->cuts);
    return status;
}

rung_status rung_multi_sgemm(rung_multi *multi, rung_layout layout, rung_transpose trans_a, rung_transpose trans_b,
                             int64_t m, int64_t n, int64_t k, float alpha, const float *a, int64_t lda, const float *b,
                             int64_t ldb, float beta, float *c, int64_t ldc)
{
    if (!multi)
        return rung_fail(RUNG_INVALID_ARGUMENT, "multi is NULL");
    RUNG_TRY(multi_usable(multi));
    if (multi->transport)
        return rung_fail(RUNG_UNSUPPORTED,
                         "operands in host memory need all ranks in one process: the local transport");
    rung_gemm gemm = {.layout = layout,
                      .trans_a = trans_a,
                      .trans_b = trans_b,
                      .m = m,
                      .n = n,
                      .k = k,
                      .a = a,
                      .b = b,
                      .c = c,
                      .lda = lda,
                      .ldb = ldb,
                      .ldc = ldc,
                      .batch = 1,
                      .alpha = alpha,
                      .beta = beta};
    rung_problem problem;
    int nothing;
    memset(&problem, 0, sizeof problem);
    RUNG_TRY(rung_validate(&gemm, multi->config.math, &problem, &nothing));
    if (nothing)
        return RUNG_SUCCESS;
    RUNG_TRY(rung_refuse_overlap(&problem, &gemm));
    host_product *h = malloc(sizeof *h);
    if (!h)
        return rung_fail(RUNG_OUT_OF_MEMORY, "no memory for a product (%zu bytes)", sizeof *h);
    describe(h, multi, &problem);
    rung_status status = run(h);
    free(h);
    return status;
}
