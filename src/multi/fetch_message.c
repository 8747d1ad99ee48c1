/* Units between processes, in two steps. The ranks that need a band of lines (a row of C's grid for A, a column for B)
 * are a group. Each member puts together the part of the panel whose k it owns, or an even share of it where the
 * layouts do not match (one message from each rank that holds a piece; none where all is its own). Then it broadcasts
 * its part to the group. */
#include "multi/fetch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A few neighbouring k of the panel, and the member that puts them together. */
typedef struct segment {
    int64_t at, count;
    int member;
    int64_t before; /* steps that the same member has before it */
} segment;

typedef struct message_unit {
    multi_mover mover;
    int assembling, mine_begun;
    segment *segments;
    int segment_count, segment_capacity;
    int64_t *steps;   /* of each member's part */
    int64_t *offsets; /* where each member's part begins in `parts`, in floats */
    multi_buffer parts;
    void **pending;       /* one for each broadcast */
    int members;          /* room for so many members */
    int64_t first, lines; /* the band, as my group has it */
} message_unit;

static message_unit *unit_state(multi_product *p, const product_unit *u)
{
    return &p->ring[u->index % p->ring_count];
}

/* Finds this rank's group on a side, and its place in it; -1: it is in none. */
static int my_group(const multi_product *p, int side)
{
    return side == SIDE_A ? p->shares[0].row : p->shares[0].col;
}

static int my_member(const multi_product *p, int side)
{
    return side == SIDE_A ? p->shares[0].col : p->shares[0].row;
}

static int64_t group_lines(const multi_product *p, int side, int group)
{
    const multi_runs *r = &p->side[side].lines[group];
    return r->count ? r->list[r->count - 1].at + r->list[r->count - 1].count : 0;
}

/* Reserves memory for one unit of A and one of B. Where all goes in a queue's order, it is free again once the unit is
 * queued. There is room for the widest panel at once, so that nothing is freed while others may still be waited for. */
static rung_status reserve_ordered(multi_product *p)
{
    for (int side = 0; side < SIDES; side++) {
        int group = my_group(p, side), members = product_members(p, side);
        int64_t lines = group >= 0 ? group_lines(p, side, group) : 0;
        if (lines > 0 && !p->shares[0].in_place[0][side])
            RUNG_TRY(multi_buffer_reserve(&p->multi->engines[0], &p->ring[side].parts,
                                          lines * p->cuts.widest + 64 * (int64_t)members));
    }
    return RUNG_SUCCESS;
}

rung_status fetch_message_open(multi_product *p)
{
    multi_transport *t = p->multi->transport;
    char why[MULTI_WHY_BYTES] = "";
    p->ring_count = t->ordered ? SIDES : UNITS_ON_THE_WAY;
    p->ring = calloc((size_t)p->ring_count, sizeof *p->ring);
    int members = (int)max64(product_members(p, SIDE_A), product_members(p, SIDE_B));
    for (int side = 0; p->ring && t->ordered && side < SIDES;
         side++) /* the end puts it back, whatever fails until then */
        p->ring[side].parts = p->multi->parts[side];
    for (int i = 0; p->ring && i < p->ring_count; i++) {
        message_unit *x = &p->ring[i];
        x->members = members;
        x->steps = calloc((size_t)members, sizeof *x->steps);
        x->offsets = calloc((size_t)members, sizeof *x->offsets);
        x->pending = calloc((size_t)members, sizeof *x->pending);
        if (!x->steps || !x->offsets || !x->pending)
            return rung_fail(RUNG_OUT_OF_MEMORY, "no memory for a panel's messages");
    }
    if (!p->ring)
        return rung_fail(RUNG_OUT_OF_MEMORY, "no memory for the panels' messages");
    p->first_tag = p->multi->next_tag;
    p->multi->next_tag += p->units * (members + 1);
    if (t->groups)
        RUNG_TRY(
            multi_transport_try(p->multi, t->groups(t->state, p->desc_c->grid_rows, p->desc_c->grid_cols, why), why));
    return t->ordered ? reserve_ordered(p) : RUNG_SUCCESS;
}

void fetch_message_close(multi_product *p)
{
    const multi_transport *t = p->multi->transport;
    for (int i = 0; p->ring && i < p->ring_count; i++) {
        message_unit *x = &p->ring[i];
        int open = 0;
        for (int j = 0; x->pending && j < x->members; j++)
            if (x->pending[j]) {
                t->abandon(t->state, x->pending[j]);
                open = 1;
            }
        multi_mover_free(p->multi, &x->mover);
        if (t->ordered) /* it stays for the next product */
            p->multi->parts[i] = x->parts;
        else if (!open) /* else messages may still arrive there, and it is left to the process */
            multi_buffer_free(&p->multi->engines[0], &x->parts);
        free(x->segments);
        free(x->steps);
        free(x->offsets);
        free(x->pending);
    }
    free(p->ring);
    p->ring = NULL;
}

static rung_status add_segment(message_unit *x, int64_t at, int64_t count, int member)
{
    if (x->segment_count == x->segment_capacity) {
        int capacity = x->segment_capacity ? 2 * x->segment_capacity : 8;
        segment *list = realloc(x->segments, (size_t)capacity * sizeof *list);
        if (!list)
            return rung_fail(RUNG_OUT_OF_MEMORY, "no memory for %d parts of a panel", capacity);
        x->segments = list;
        x->segment_capacity = capacity;
    }
    x->segments[x->segment_count++] = (segment){at, count, member, x->steps[member]};
    x->steps[member] += count;
    return RUNG_SUCCESS;
}

/* Finds the segments. Where the grids agree, the owner of a step of k in the stored matrix's grid is the member in its
 * row or column. */
static rung_status find_segments(multi_product *p, const product_unit *u, message_unit *x, const multi_runs *steps)
{
    const product_side *s = &p->side[u->side];
    int members = product_members(p, u->side);
    int k_parts = s->lines_are_rows ? s->desc->grid_cols : s->desc->grid_rows;
    int k_along_members = s->lines_are_rows == (u->side == SIDE_A) && k_parts == members;
    x->segment_count = 0;
    memset(x->steps, 0, (size_t)members * sizeof *x->steps);
    if (k_along_members) {
        for (int i = 0; i < steps->count; i++)
            RUNG_TRY(add_segment(x, steps->list[i].at, steps->list[i].count, steps->list[i].part));
        return RUNG_SUCCESS;
    }
    for (int i = 0; i < members; i++) {
        int64_t from = u->kw * i / members, end = u->kw * (i + 1) / members;
        if (end > from)
            RUNG_TRY(add_segment(x, from, end - from, i));
    }
    return RUNG_SUCCESS;
}

/* Returns whether this rank is alone in the group and all of the unit is its own: products read it where it lies. Other
 * groups may still need pieces from here. */
static int in_place(const multi_product *p, const product_unit *u)
{
    return p->shares[0].row >= 0 && p->shares[0].in_place[u->slot][u->side];
}

/* Returns where a part keeps element (line, step), both counted within the part. */
static float *part_at(const product_side *s, const message_unit *x, int member, int64_t line, int64_t step, int64_t *ld)
{
    float *at = x->parts.at + x->offsets[member];
    *ld = s->lines_are_rows ? x->lines : x->steps[member];
    return s->lines_are_rows ? at + line + step * *ld : at + step + line * *ld;
}

/* Adds the pieces of one segment that one group needs from one run of k. */
static rung_status add_pieces(multi_product *p, const product_unit *u, message_unit *x, int group, const segment *g,
                              const multi_run *step)
{
    const product_side *s = &p->side[u->side];
    int64_t from_step = max64(g->at, step->at), steps = min64(g->at + g->count, step->at + step->count) - from_step;
    if (steps <= 0)
        return RUNG_SUCCESS;
    int to = product_member(p, u->side, group, g->member), mine = multi_holds(p->multi, to);
    int64_t all = group_lines(p, u->side, group), first = product_band_edge(p, u->panel, u->band, all),
            end = product_band_edge(p, u->panel, u->band + 1, all);
    for (int i = 0; i < s->lines[group].count; i++) {
        const multi_run *line = &s->lines[group].list[i];
        int64_t at = max64(line->at, first), count = min64(line->at + line->count, end) - at, ld = 0;
        int from = product_owner(s, line->part, step->part), from_me = multi_holds(p->multi, from);
        if (count <= 0 || (!mine && !from_me) || (mine && in_place(p, u)))
            continue;
        float *dest = mine ? part_at(s, x, g->member, at - first, g->before + from_step - g->at, &ld) : NULL;
        const float *source =
            from_me ? product_source_at(p, s, from, line->local + at - line->at, step->local + from_step - step->at)
                    : NULL;
        multi_copy copy = product_copy(s, source, s->desc->ld, dest, ld, count, steps);
        RUNG_TRY(multi_mover_add(p->multi, &x->mover, from, to, &copy));
    }
    return RUNG_SUCCESS;
}

static rung_status assemble(multi_product *p, const product_unit *u, message_unit *x, const multi_runs *steps)
{
    const product_side *s = &p->side[u->side];
    for (int group = 0; group < s->groups; group++)
        for (int i = 0; i < x->segment_count; i++)
            for (int j = 0; j < steps->count; j++)
                RUNG_TRY(add_pieces(p, u, x, group, &x->segments[i], &steps->list[j]));
    x->assembling = 1;
    return multi_mover_begin(p->multi, &x->mover, p->first_tag + u->index * (x->members + 1));
}

static rung_status broadcast(multi_product *p, const product_unit *u, message_unit *x, int member)
{
    int members = product_members(p, u->side), group = my_group(p, u->side);
    int64_t floats = x->lines * x->steps[member];
    if (members == 1 || floats == 0)
        return RUNG_SUCCESS;
    int *ranks = malloc((size_t)members * sizeof *ranks);
    if (!ranks)
        return rung_fail(RUNG_OUT_OF_MEMORY, "no memory for %d ranks", members);
    for (int i = 0; i < members; i++)
        ranks[i] = product_member(p, u->side, group, i);
    multi_transport *t = p->multi->transport;
    char why[MULTI_WHY_BYTES] = "";
    int result = t->broadcast(t->state, ranks, members, member, x->parts.at + x->offsets[member], floats * 4,
                              p->first_tag + u->index * (x->members + 1) + 1 + member, &x->pending[member], why);
    free(ranks);
    return multi_transport_try(p->multi, result, why);
}

/* Begins broadcasts. A queue needs the same order on all ranks, so all begin once the own part is there. Without a
 * queue the others' may begin before. */
static rung_status advance(multi_product *p, const product_unit *u, message_unit *x)
{
    int done = 1, waiting_for, mine = my_member(p, u->side), members = product_members(p, u->side);
    if (!x->assembling)
        return RUNG_SUCCESS;
    RUNG_TRY(multi_mover_poll(p->multi, &x->mover, &done, &waiting_for));
    if (!done)
        return RUNG_SUCCESS;
    x->assembling = 0;
    for (int i = 0; mine >= 0 && i < members; i++)
        if (p->multi->transport->ordered || i == mine)
            RUNG_TRY(broadcast(p, u, x, i));
    return RUNG_SUCCESS;
}

static rung_status reserve_parts(multi_product *p, const product_unit *u, message_unit *x)
{
    int group = my_group(p, u->side), members = product_members(p, u->side);
    int64_t all = group >= 0 ? group_lines(p, u->side, group) : 0, at = 0;
    x->first = product_band_edge(p, u->panel, u->band, all);
    x->lines = product_band_edge(p, u->panel, u->band + 1, all) - x->first;
    for (int i = 0; i < members; i++) {
        x->offsets[i] = at;
        at += (x->lines * x->steps[i] + 63) & -64;
    }
    if (in_place(p, u))
        return RUNG_SUCCESS;
    return multi_buffer_reserve(&p->multi->engines[0], &x->parts, at);
}

rung_status fetch_message_begin(multi_product *p, const product_unit *u)
{
    const product_side *s = &p->side[u->side];
    message_unit *x = unit_state(p, u);
    multi_axis k = multi_whole(p->k), stored = s->lines_are_rows ? multi_cols(s->desc) : multi_rows(s->desc);
    multi_runs steps = {0};
    int mine = my_member(p, u->side);
    rung_status status;
    RUNG_TRY_OUT(multi_runs_find(&steps, &k, 0, u->k0, u->kw, 0, &stored, s->k_origin));
    RUNG_TRY_OUT(find_segments(p, u, x, &steps));
    RUNG_TRY_OUT(reserve_parts(p, u, x));
    RUNG_TRY_OUT(assemble(p, u, x, &steps));
    for (int i = 0; mine >= 0 && !p->multi->transport->ordered && i < product_members(p, u->side); i++)
        if (i != mine)
            RUNG_TRY_OUT(broadcast(p, u, x, i));
    status = advance(p, u, x);
out:
    multi_runs_free(&steps);
    return status;
}

/* Asks how far a unit is. *open is set where something of it is still on its way. */
static rung_status poll_unit(multi_product *p, const product_unit *u, int *open, int *waiting_for)
{
    message_unit *x = unit_state(p, u);
    multi_transport *t = p->multi->transport;
    char why[MULTI_WHY_BYTES] = "";
    int done = 1;
    if (x->assembling) {
        RUNG_TRY(multi_mover_poll(p->multi, &x->mover, &done, waiting_for));
        if (done)
            RUNG_TRY(advance(p, u, x));
    }
    *open = x->assembling;
    for (int i = 0; i < x->members; i++) {
        if (!x->pending[i])
            continue;
        RUNG_TRY(multi_transport_try(p->multi, t->poll(t->state, x->pending[i], &done, waiting_for, why), why));
        if (done)
            x->pending[i] = NULL;
        else
            *open = 1;
    }
    return RUNG_SUCCESS;
}

rung_status fetch_message_progress(multi_product *p)
{
    int open, waiting_for;
    for (int64_t i = p->completed; i < p->begun; i++) {
        product_unit u = product_unit_at(p, i);
        RUNG_TRY(poll_unit(p, &u, &open, &waiting_for));
    }
    return RUNG_SUCCESS;
}

/* Copies the members' parts into the panel's own order of k. */
static rung_status unpack(multi_product *p, const product_unit *u, message_unit *x)
{
    const product_side *s = &p->side[u->side];
    multi_engine *e = &p->multi->engines[0];
    for (int i = 0; i < x->segment_count; i++) {
        const segment *g = &x->segments[i];
        int64_t from_ld, to_ld;
        float *from = part_at(s, x, g->member, 0, g->before, &from_ld);
        float *to = product_slot_at(p, 0, u, x->first, g->at, &to_ld);
        multi_copy copy = product_copy(s, from, from_ld, to, to_ld, x->lines, g->count);
        if (copy.length > 0 && copy.lines > 0)
            RUNG_TRY(e->ops->copy(e, LANE_IN, &copy, NULL));
    }
    return RUNG_SUCCESS;
}

rung_status fetch_message_finish(multi_product *p, const product_unit *u)
{
    message_unit *x = unit_state(p, u);
    multi_deadline deadline = multi_deadline_start(p->multi);
    char what[64];
    int open, waiting_for = -1;
    snprintf(what, sizeof what, "panel %lld of %s", (long long)u->panel, p->side[u->side].name);
    RUNG_TRY(poll_unit(p, u, &open, &waiting_for));
    while (open) {
        RUNG_TRY(multi_wait_turn(p->multi, &deadline, what, waiting_for));
        RUNG_TRY(fetch_message_progress(p)); /* this relays later units, too, as others may wait for them */
        RUNG_TRY(poll_unit(p, u, &open, &waiting_for));
    }
    if (my_member(p, u->side) >= 0 && !in_place(p, u))
        RUNG_TRY(unpack(p, u, x));
    p->completed = u->index + 1;
    return RUNG_SUCCESS;
}
