/* Units within a process: every rank copies what it needs straight from where it lies. */
#include "multi/fetch.h"

/* Copies the part of one run of lines that is in the band, times one run of k. */
static rung_status copy_piece(multi_product *p, int held, const product_unit *u, int64_t first, int64_t end,
                              const multi_run *line, const multi_run *step)
{
    const product_side *s = &p->side[u->side];
    multi_engine *e = &p->multi->engines[held];
    int64_t at = max64(line->at, first), count = min64(line->at + line->count, end) - at, ld;
    if (count <= 0)
        return RUNG_SUCCESS;
    int owner = product_owner(s, line->part, step->part);
    const float *from = product_source_at(p, s, owner, line->local + at - line->at, step->local);
    float *to = product_slot_at(p, held, u, at, step->at, &ld);
    multi_copy copy = product_copy(s, from, s->desc->ld, to, ld, count, step->count);
    multi_engine *other = owner == e->rank ? NULL : multi_engine_of(p->multi, owner);
    return e->ops->copy(e, LANE_IN, &copy, other);
}

static rung_status fetch_share(multi_product *p, int held, const product_unit *u, const multi_runs *steps)
{
    const product_share *share = &p->shares[held];
    const product_side *s = &p->side[u->side];
    const multi_runs *lines = &s->lines[u->side == SIDE_A ? share->row : share->col];
    int64_t first = product_band_edge(p, u->panel, u->band, share->lines[u->side]),
            end = product_band_edge(p, u->panel, u->band + 1, share->lines[u->side]);
    for (int i = 0; i < steps->count; i++)
        for (int j = 0; j < lines->count; j++)
            RUNG_TRY(copy_piece(p, held, u, first, end, &lines->list[j], &steps->list[i]));
    return RUNG_SUCCESS;
}

rung_status fetch_local_begin(multi_product *p, const product_unit *u)
{
    const product_side *s = &p->side[u->side];
    multi_axis steps = multi_whole(p->k), stored = s->lines_are_rows ? multi_cols(s->desc) : multi_rows(s->desc);
    multi_runs runs = {0};
    rung_status status = multi_runs_find(&runs, &steps, 0, u->k0, u->kw, 0, &stored, s->k_origin);
    for (int i = 0; i < p->multi->held && status == RUNG_SUCCESS; i++)
        if (p->shares[i].row >= 0 && !p->shares[i].in_place[u->slot][u->side])
            status = fetch_share(p, i, u, &runs);
    multi_runs_free(&runs);
    return status;
}
