/* Says what a unit of a product is, and where its elements lie: in the stored matrices, in slots, on which rank. */
#include "multi/unit.h"

product_unit product_unit_at(const multi_product *p, int64_t index)
{
    product_unit u = {.index = index};
    int64_t first = 2 * p->first_bands;
    u.side = (int)(index % 2);
    u.panel = index < first ? 0 : 1 + (index - first) / 2;
    u.band = index < first ? (int)(index / 2) : 0;
    u.slot = (int)(u.panel % PANEL_SLOTS);
    u.k0 = p->cuts.edges[u.panel];
    u.kw = p->cuts.edges[u.panel + 1] - u.k0;
    return u;
}

int64_t band_edge(int64_t lines, int band, int bands)
{
    if (band == 0 || band >= bands)
        return band == 0 ? 0 : lines;
    return min64(lines, round_up(lines >> (bands - band), TILE));
}

int64_t product_band_edge(const multi_product *p, int64_t panel, int band, int64_t lines)
{
    return band_edge(lines, band, panel == 0 ? p->first_bands : 1);
}

int product_owner(const product_side *s, int line_part, int k_part)
{
    int row = s->lines_are_rows ? line_part : k_part, col = s->lines_are_rows ? k_part : line_part;
    return row * s->desc->grid_cols + col;
}

const float *product_source_at(const multi_product *p, const product_side *s, int owner, int64_t line, int64_t step)
{
    const float *at = s->local[owner - p->multi->first_rank];
    return s->lines_are_rows ? at + line + step * s->desc->ld : at + step + line * s->desc->ld;
}

int product_members(const multi_product *p, int side)
{
    return side == SIDE_A ? p->desc_c->grid_cols : p->desc_c->grid_rows;
}

int product_member(const multi_product *p, int side, int group, int member)
{
    return side == SIDE_A ? group * p->desc_c->grid_cols + member : member * p->desc_c->grid_cols + group;
}

multi_copy product_copy(const product_side *s, const float *from, int64_t from_ld, float *to, int64_t to_ld,
                        int64_t count, int64_t steps)
{
    return (multi_copy){.from = from,
                        .from_ld = from_ld,
                        .to = to,
                        .to_ld = to_ld,
                        .length = s->lines_are_rows ? count : steps,
                        .lines = s->lines_are_rows ? steps : count};
}

/* Lines of a slot start at multiples of 16 bytes, as the kernels like them. */
int64_t product_slot_ld(const multi_product *p, int held, int side)
{
    int64_t length = p->side[side].lines_are_rows ? p->shares[held].lines[side] : p->cuts.widest;
    return (length + 3) & -4;
}

multi_buffer *product_slot_buffer(const multi_product *p, int held, int slot, int side)
{
    return &p->multi->buffers[held][slot * SIDES + side];
}

float *product_slot_at(const multi_product *p, int held, const product_unit *u, int64_t line, int64_t step, int64_t *ld)
{
    float *at = product_slot_buffer(p, held, u->slot, u->side)->at;
    *ld = product_slot_ld(p, held, u->side);
    return p->side[u->side].lines_are_rows ? at + line + step * *ld : at + step + line * *ld;
}
