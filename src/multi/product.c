/* The order of fetches and products. Products of one element of C run in the order of the panels, on the same kernel,
 * whatever the grid: that is what makes the bits independent of it. */
#include "multi/product.h"
#include "multi/fetch.h"

#include <stdlib.h>
#include <string.h>

enum { POLLED_CHUNKS = 8 };

/* Finds panels that need no copy: all of one lies in this rank's own part, in one piece, and nobody else of its group
 * needs it from here. */
static rung_status find_in_place(multi_product *p, int held, const product_unit *u)
{
    product_share *share = &p->shares[held];
    const product_side *s = &p->side[u->side];
    const multi_runs *lines = &s->lines[u->side == SIDE_A ? share->row : share->col];
    multi_axis steps = multi_whole(p->k), stored = s->lines_are_rows ? multi_cols(s->desc) : multi_rows(s->desc);
    multi_runs runs = {0};
    int *in_place = &share->in_place[u->slot][u->side];
    *in_place = 0;
    if (lines->count != 1 || (p->multi->transport && product_members(p, u->side) > 1))
        return RUNG_SUCCESS;
    rung_status status = multi_runs_find(&runs, &steps, 0, u->k0, u->kw, 0, &stored, s->k_origin);
    if (status == RUNG_SUCCESS && runs.count == 1 &&
        product_owner(s, lines->list[0].part, runs.list[0].part) == share->rank) {
        *in_place = 1;
        share->panel[u->slot][u->side] = product_source_at(p, s, share->rank, lines->list[0].local, runs.list[0].local);
        share->panel_ld[u->slot][u->side] = s->desc->ld;
    }
    multi_runs_free(&runs);
    return status;
}

/* Prepares the slot before the first unit of a panel's side: finds where its products will read, and makes room there.
 */
static rung_status prepare_slot(multi_product *p, int held, const product_unit *u)
{
    product_share *share = &p->shares[held];
    multi_engine *e = &p->multi->engines[held];
    for (int i = 0; i < share->used_lanes[u->slot]; i++)
        RUNG_TRY(e->ops->wait(e, LANE_IN, share->used[u->slot][i]));
    if (u->band > 0)
        return RUNG_SUCCESS;
    RUNG_TRY(find_in_place(p, held, u));
    if (share->in_place[u->slot][u->side])
        return RUNG_SUCCESS;
    share->panel[u->slot][u->side] = product_slot_at(p, held, u, 0, 0, &share->panel_ld[u->slot][u->side]);
    return RUNG_SUCCESS;
}

static rung_status mark_fetched(multi_product *p, const product_unit *u)
{
    for (int i = 0; i < p->multi->held; i++) {
        multi_engine *e = &p->multi->engines[i];
        if (p->shares[i].row >= 0)
            RUNG_TRY(e->ops->mark(e, LANE_IN, &p->shares[i].fetched[u->index % UNITS_ON_THE_WAY]));
    }
    return RUNG_SUCCESS;
}

/* Returns whether a unit has to be waited for here. Else it is only queued, and complete once it is begun. */
static int waits(const multi_product *p)
{
    return p->multi->transport && !p->multi->transport->ordered;
}

static rung_status begin_unit(multi_product *p)
{
    product_unit u = product_unit_at(p, p->begun);
    for (int i = 0; i < p->multi->held; i++)
        if (p->shares[i].row >= 0)
            RUNG_TRY(prepare_slot(p, i, &u));
    for (int i = 0; i < p->multi->held; i++)
        p->multi->engines[i].label = (multi_label){p->side[u.side].name, (int)u.panel, u.band};
    p->begun++;
    if (!p->multi->transport)
        RUNG_TRY(fetch_local_begin(p, &u));
    else
        RUNG_TRY(fetch_message_begin(p, &u));
    if (waits(p))
        return RUNG_SUCCESS;
    if (p->multi->transport)
        RUNG_TRY(fetch_message_finish(p, &u));
    return mark_fetched(p, &u);
}

/* Multiplies one panel into one rectangle of C. */
static rung_status multiply(multi_product *p, int held, const product_unit *u, int64_t row, int64_t rows, int64_t col,
                            int64_t cols, multi_lane lane)
{
    product_share *share = &p->shares[held];
    multi_engine *e = &p->multi->engines[held];
    const float *a = share->panel[u->slot][SIDE_A], *b = share->panel[u->slot][SIDE_B];
    int64_t lda = share->panel_ld[u->slot][SIDE_A], ldb = share->panel_ld[u->slot][SIDE_B];
    rung_gemm gemm;
    rung_gemm_init(&gemm);
    gemm.layout = RUNG_COL_MAJOR;
    gemm.trans_a = (rung_transpose)p->side[SIDE_A].trans;
    gemm.trans_b = (rung_transpose)p->side[SIDE_B].trans;
    gemm.m = rows;
    gemm.n = cols;
    gemm.k = u->kw;
    gemm.a = a + (gemm.trans_a ? row * lda : row);
    gemm.lda = lda;
    gemm.b = b + (gemm.trans_b ? col : col * ldb);
    gemm.ldb = ldb;
    gemm.c = share->c + row + col * p->desc_c->ld;
    gemm.ldc = p->desc_c->ld;
    gemm.alpha = p->alpha;
    gemm.beta = u->panel == 0 ? p->beta : 1.0f;
    e->label = (multi_label){"C", (int)u->panel, u->band};
    return rows > 0 && cols > 0 ? e->ops->product(e, lane, &gemm) : RUNG_SUCCESS;
}

/* Takes the next work lane and lets it wait for the unit; units come in order. */
static rung_status next_lane(multi_product *p, int held, const product_unit *u, multi_lane *lane)
{
    product_share *share = &p->shares[held];
    multi_engine *e = &p->multi->engines[held];
    *lane = (multi_lane)(LANE_WORK + share->next_lane);
    share->next_lane = (share->next_lane + 1) % WORK_LANES;
    return e->ops->wait(e, *lane, share->fetched[u->index % UNITS_ON_THE_WAY]);
}

/* Multiplies a band of the first panel: with every band of A and of B, the part of C that they complete to a larger
 * rectangle. The last product is of the right columns and goes on a lane of its own: the left ones' next panel need not
 * wait for it. */
static rung_status multiply_band(multi_product *p, int held, const product_unit *u)
{
    product_share *share = &p->shares[held];
    int64_t row = product_band_edge(p, 0, u->band, share->lines[SIDE_A]),
            row_end = product_band_edge(p, 0, u->band + 1, share->lines[SIDE_A]),
            col = product_band_edge(p, 0, u->band, share->lines[SIDE_B]),
            col_end = product_band_edge(p, 0, u->band + 1, share->lines[SIDE_B]);
    multi_engine *e = &p->multi->engines[held];
    multi_lane lane;
    if (row > 0) {
        RUNG_TRY(next_lane(p, held, u, &lane));
        RUNG_TRY(multiply(p, held, u, row, row_end - row, 0, col, lane));
    }
    if (u->band == p->first_bands - 1) {
        for (int i = 0; i < WORK_LANES; i++)
            RUNG_TRY(e->ops->mark(e, (multi_lane)(LANE_WORK + i), &share->left_done[i]));
        share->left_cols = col;
        share->next_lane = WORK_LANES - 1;
    }
    RUNG_TRY(next_lane(p, held, u, &lane));
    return multiply(p, held, u, 0, row_end, col, col_end - col, lane);
}

/* Lets `lane` wait for the first panel, which was cut in another way than the second. The second panel's products of
 * columns up to `end` go on this lane. */
static rung_status after_bands(multi_product *p, int held, multi_lane lane, int64_t end)
{
    const product_share *share = &p->shares[held];
    multi_engine *e = &p->multi->engines[held];
    const multi_mark *marks = end <= share->left_cols ? share->left_done : share->used[0];
    for (int i = 0; i < WORK_LANES; i++)
        RUNG_TRY(e->ops->wait(e, lane, marks[i]));
    return RUNG_SUCCESS;
}

/* Multiplies a later panel: C in chunks of columns, each on a lane of its own, so that one's last tiles run beside
 * another's first. Between processes on CPUs messages get their turn between chunks. */
static rung_status multiply_chunks(multi_product *p, int held, const product_unit *u)
{
    product_share *share = &p->shares[held];
    int polled = p->multi->transport && !p->multi->is_gpu;
    int64_t cols = share->lines[SIDE_B];
    int chunks = polled ? POLLED_CHUNKS
                 : p->multi->is_gpu && share->lines[SIDE_A] * cols >= 2 * p->multi->wave_elements
                     ? p->multi->panels.chunks
                     : 1;
    int64_t width = round_up(divide_up(cols, chunks), TILE);
    share->next_lane = 0;
    for (int64_t col = 0; col < cols; col += width) {
        multi_lane lane;
        RUNG_TRY(next_lane(p, held, u, &lane));
        if (u->panel == 1 && p->first_bands > 1)
            RUNG_TRY(after_bands(p, held, lane, min64(col + width, cols)));
        RUNG_TRY(multiply(p, held, u, 0, share->lines[SIDE_A], col, min64(width, cols - col), lane));
        if (polled)
            RUNG_TRY(fetch_message_progress(p));
    }
    return RUNG_SUCCESS;
}

/* Multiplies what a unit of B makes possible: its panel's products, or the first panel's with this band. */
static rung_status multiply_unit(multi_product *p, int held, const product_unit *u)
{
    product_share *share = &p->shares[held];
    multi_engine *e = &p->multi->engines[held];
    int last = u->panel > 0 || u->band == p->first_bands - 1;
    RUNG_TRY(u->panel == 0 && p->first_bands > 1 ? multiply_band(p, held, u) : multiply_chunks(p, held, u));
    if (!last)
        return RUNG_SUCCESS;
    share->used_lanes[u->slot] = WORK_LANES;
    for (int i = 0; i < WORK_LANES; i++)
        RUNG_TRY(e->ops->mark(e, (multi_lane)(LANE_WORK + i), &share->used[u->slot][i]));
    return RUNG_SUCCESS;
}

/* Scales C where there are no products. */
static rung_status scale(multi_product *p)
{
    product_unit u = {.panel = 0, .kw = 0};
    for (int i = 0; i < p->multi->held; i++) {
        product_share *share = &p->shares[i];
        if (share->row < 0)
            continue;
        for (int side = 0; side < SIDES; side++)
            share->panel_ld[0][side] =
                share->lines[side] + 1; /* nothing is read, but the leading dimension must be right */
        RUNG_TRY(multiply(p, i, &u, 0, share->lines[SIDE_A], 0, share->lines[SIDE_B], LANE_WORK));
    }
    return RUNG_SUCCESS;
}

static rung_status reserve_slots(multi_product *p)
{
    rung_multi *multi = p->multi;
    for (int i = 0; i < multi->held; i++) {
        if (!multi->buffers[i] && !(multi->buffers[i] = calloc(PANEL_SLOTS * SIDES, sizeof(multi_buffer))))
            return rung_fail(RUNG_OUT_OF_MEMORY, "no memory for a list of buffers");
        for (int slot = 0; slot < min64(PANEL_SLOTS, p->panels) && p->shares[i].row >= 0; slot++)
            for (int side = 0; side < SIDES; side++) {
                /* A panel that lies in place needs no room. This asks about all of k at once: what holds for the first
                 * panel need not hold for the others. */
                product_unit u = {.panel = slot, .side = side, .slot = slot, .k0 = 0, .kw = p->k};
                int64_t lines = p->side[side].lines_are_rows ? p->cuts.widest : p->shares[i].lines[side];
                RUNG_TRY(find_in_place(p, i, &u));
                if (!p->shares[i].in_place[slot][side])
                    RUNG_TRY(multi_buffer_reserve(&multi->engines[i], product_slot_buffer(p, i, slot, side),
                                                  product_slot_ld(p, i, side) * lines));
            }
    }
    return RUNG_SUCCESS;
}

/* Returns whether a unit may begin: not further ahead than there are slots. Where all is only queued, the first
 * products go before the copies of later panels. */
static int may_begin(const multi_product *p, const product_unit *u)
{
    if (p->begun == p->units || product_unit_at(p, p->begun).panel >= u->panel + PANEL_SLOTS)
        return 0;
    return waits(p) || p->begun <= 2 * u->index + 1;
}

static rung_status run_panels(multi_product *p)
{
    RUNG_TRY(reserve_slots(p));
    if (p->multi->transport)
        RUNG_TRY(fetch_message_open(p));
    for (int64_t i = 0; i < p->units; i++) {
        product_unit u = product_unit_at(p, i);
        while (may_begin(p, &u))
            RUNG_TRY(begin_unit(p));
        if (waits(p)) {
            RUNG_TRY(fetch_message_finish(p, &u));
            RUNG_TRY(mark_fetched(p, &u));
        }
        if (u.side == SIDE_A)
            continue;
        for (int held = 0; held < p->multi->held; held++)
            if (p->shares[held].row >= 0)
                RUNG_TRY(multiply_unit(p, held, &u));
    }
    return RUNG_SUCCESS;
}

rung_status multi_product_run(multi_product *p)
{
    rung_multi *multi = p->multi;
    RUNG_TRY(multi_panels_cut(&multi->panels, p->k, &p->cuts));
    p->panels = p->m > 0 && p->n > 0 && p->alpha != 0.0f ? p->cuts.count : 0;
    int64_t part = (p->m / p->desc_c->grid_rows + 1) * (p->n / p->desc_c->grid_cols + 1);
    int worth = part >= 16 * multi->wave_elements ? MOST_BANDS : part >= 4 * multi->wave_elements ? 2 : 1;
    p->first_bands = multi->is_gpu ? (int)max64(1, min64(worth, multi->panels.bands)) : 1;
    p->units = p->panels > 0 ? 2 * p->first_bands + 2 * (p->panels - 1) : 0;
    for (int i = 0; i < multi->held; i++)
        RUNG_TRY(multi->engines[i].ops->begin(&multi->engines[i]));
    rung_status status = p->panels > 0 ? run_panels(p) : scale(p);
    if (status == RUNG_SUCCESS)
        status = multi_finish(multi);
    return status;
}

void multi_product_close(rung_multi *multi)
{
    for (int i = 0; i < multi->held; i++) {
        for (int j = 0; multi->buffers[i] && j < PANEL_SLOTS * SIDES; j++)
            multi_buffer_free(&multi->engines[i], &multi->buffers[i][j]);
        free(multi->buffers[i]);
        multi->buffers[i] = NULL;
        multi_buffer_free(&multi->engines[i], &multi->host_buffers[i]);
    }
    for (int i = 0; i < 2 && multi->held > 0; i++)
        multi_buffer_free(&multi->engines[0], &multi->parts[i]);
}
