/* A distributed product under way (product.h), and its units: a fetch of one unit brings a side (A or B), a panel of k,
 * and a band of its lines (rows of A, columns of B) to the ranks that need them. */
#ifndef RUNG_MULTI_UNIT_H
#define RUNG_MULTI_UNIT_H

#include "multi/mover.h"

enum { SIDE_A, SIDE_B, SIDES };
enum { PANEL_SLOTS = 3, MOST_BANDS = 4, UNITS_ON_THE_WAY = 2 * (MOST_BANDS + PANEL_SLOTS) };
enum { TILE = 256 }; /* bands and parts of C end at multiples of so many lines */

typedef struct product_side {
    const char *name;
    const rung_matrix *desc;
    const float *const *local; /* one for each rank that is held here */
    int trans;
    /* the stored rows lie along C: neighbours in memory are neighbouring lines, not neighbouring k */
    int lines_are_rows;
    int64_t line_origin, k_origin;
    multi_runs *lines; /* for each row (A) or column (B) of C's grid: where its lines lie in the stored matrix */
    int groups;
} product_side;

/* The part of C of a rank that is held here; row is -1 where it has none. */
typedef struct product_share {
    int rank, row, col;
    float *c;                               /* its first element of the sub-matrix */
    int64_t lines[SIDES];                   /* its rows and columns */
    const float *panel[PANEL_SLOTS][SIDES]; /* what the products read: a slot, or the matrix in place */
    int64_t panel_ld[PANEL_SLOTS][SIDES];
    int in_place[PANEL_SLOTS][SIDES];
    multi_mark fetched[UNITS_ON_THE_WAY];     /* marks after each unit, by its index */
    multi_mark used[PANEL_SLOTS][WORK_LANES]; /* marks after the products that read a slot */
    int used_lanes[PANEL_SLOTS];
    int next_lane;
    /* The marks of the first panel in bands: after all of its products but the last, when this many columns are done.
     */
    multi_mark left_done[WORK_LANES];
    int64_t left_cols;
} product_share;

struct message_unit;

typedef struct multi_product {
    rung_multi *multi;
    int64_t m, n, k;
    float alpha, beta;
    product_side side[SIDES];
    const rung_matrix *desc_c;
    int64_t row_origin, col_origin;
    product_share shares[MULTI_MAX_HELD];
    multi_cuts cuts;
    int64_t panels, units;
    int first_bands;           /* how many bands panel 0 has: products start before all of it is there */
    struct message_unit *ring; /* what is under way between processes */
    int ring_count;
    int64_t begun, completed; /* they count units */
    int64_t first_tag;
} multi_product;

typedef struct product_unit {
    int64_t index, panel;
    int side, band, slot;
    int64_t k0, kw; /* the panel's steps */
} product_unit;

product_unit product_unit_at(const multi_product *p, int64_t index);
/* Returns where a band of `lines` lines begins. Bands double: of four, they are an eighth, an eighth, a quarter, a
 * half.
 */
int64_t band_edge(int64_t lines, int band, int bands);
/* Returns the same in a panel: all but the first come in one band. */
int64_t product_band_edge(const multi_product *p, int64_t panel, int band, int64_t lines);
/* Returns a slot's memory, and its leading dimension. */
multi_buffer *product_slot_buffer(const multi_product *p, int held, int slot, int side);
int64_t product_slot_ld(const multi_product *p, int held, int side);
/* Returns the slot's element (line, k step). */
float *product_slot_at(const multi_product *p, int held, const product_unit *u, int64_t line, int64_t step,
                       int64_t *ld);
/* Returns a stored element (line, k) of a side, both local indices of rank `owner`, which is held. */
const float *product_source_at(const multi_product *p, const product_side *s, int owner, int64_t line, int64_t step);
/* Returns the rank that holds it. */
int product_owner(const product_side *s, int line_part, int k_part);
/* Returns the rank in C's grid of member `member` of the group that shares the lines of a side. */
int product_member(const multi_product *p, int side, int group, int member);
int product_members(const multi_product *p, int side);
/* Describes a copy of count x steps elements. Its lines run as the elements lie in memory. */
multi_copy product_copy(const product_side *s, const float *from, int64_t from_ld, float *to, int64_t to_ld,
                        int64_t count, int64_t steps);

#endif
