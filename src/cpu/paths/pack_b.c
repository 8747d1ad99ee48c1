/* B packed, A in place: few columns, or an A that L1 or L2 keeps; and a C that L2 does not hold after a short k, which
 * is then written by rows. */
#include "cpu/paths/paths.h"

/* Returns true where packing B pays. A tile as wide as a cache line reads two lines a step where B's rows start
 * anywhere; where they lie whole lines apart, all steps of it share few sets of L1. Packing mends both. It pays once
 * enough rows read B again; fewer are enough where B fills a good part of L2. */
int rung_wants_packed_b(const rung_cpu_args *p)
{
    enum { ROWS_LEAST = 128, ROWS_LEAST_OF_LARGE = 64 };
    int64_t least = b_bytes(p) > p->cpu->l2_bytes / 4 ? ROWS_LEAST_OF_LARGE : ROWS_LEAST;
    return has_narrow_tiles(p) && p->m >= least && !rung_is_narrow_b_close(p) && !rung_is_small_c_in_runs(p);
}

/* Returns true where packing A pays. A tile takes a few floats of each row of a transposed A, so that it reads a line
 * or two for them each step, and up to two of B. Where the steps of a narrow tile do not fit L1, it pushes out the B
 * that the next tile needs. Packing mends that, and pays once enough rows share it. */
int rung_wants_packed_a(const rung_cpu_args *p)
{
    enum { STEP_BYTES = 13 * 16, PANELS_LEAST = 8 };
    return p->trans_a && !rung_is_small_c_in_runs(p) && has_narrow_tiles(p) && p->m >= PANELS_LEAST * p->kernel->mr &&
           p->k * STEP_BYTES > p->cpu->l1_bytes;
}

/* Returns how many columns, at most, a B may have that is turned by packing, beside an A that stays in place. */
static int64_t columns_beside_a(const rung_cpu_args *p)
{
    enum { MOST = 256, MOST_TURNED = 512, STEPS_LEAST = 128, STEPS_MOST = 640, MOST_OF_FEW_STEPS = 448 };
    if (!p->cpu->far_l3 || !p->trans_b || p->trans_a || p->k > STEPS_MOST)
        return MOST;
    return p->k >= STEPS_LEAST ? MOST_TURNED : MOST_OF_FEW_STEPS;
}

/* Returns true where the one group of tiles that would read a transposed A in place waits for it: rows that begin at
 * odd floats, of more steps than L2 has room for. Rows that begin at even ones come in time; why is not known. */
static int waits_for_odd_rows(const rung_cpu_args *p)
{
    enum { L2_PARTS = 2 };
    return halves_vectors(p) && p->trans_a && p->lda % 2 && p->n > p->kernel->nv * p->kernel->vl &&
           a_bytes(p) > L2_PARTS * p->cpu->l2_bytes;
}

/* Returns true for so few steps that packing A takes longer than all tiles gain by it. Measured on a Zen 3. */
static int has_few_steps(const rung_cpu_args *p)
{
    enum { STEPS_MOST = 40 };
    return p->cpu->asks_next_rows && has_narrow_tiles(p) && p->k <= STEPS_MOST;
}

/* Returns true where A stays in place: each group of columns reads it again, which takes few groups less time than
 * packing. Tiles narrower than a line read rows of A as fast in place, as long as L2 has most of them. Of a transposed
 * A that L2 does not keep, packing is worth it for narrow tiles, or where L3 is near. */
static int wants_a_in_place(const rung_cpu_args *p)
{
    enum { COLUMNS_MOST = 256, COLUMNS_MOST_OF_LARGE = 128, L2_THIRDS_MOST = 4, L2_MOST_OF_TRANSPOSED = 2 };
    enum { COLUMNS_FROM_AFAR = 800, L2_QUARTERS_FROM_AFAR = 3 };
    if (waits_for_odd_rows(p))
        return 0;
    if (p->n <= 2 * FEW || a_bytes(p) <= p->cpu->l1_bytes / 2)
        return 1;
    int comes_from_afar =
        p->cpu->far_l3 && p->n >= COLUMNS_FROM_AFAR && b_bytes(p) > p->cpu->l2_bytes / 4 * L2_QUARTERS_FROM_AFAR;
    if (has_narrow_tiles(p) && !p->trans_a && !rows_collide(p) && !comes_from_afar &&
        a_bytes(p) <= p->cpu->l2_bytes * L2_THIRDS_MOST / 3)
        return 1;
    if (a_bytes(p) <= p->cpu->l2_bytes / 2)
        return (p->n <= columns_beside_a(p) || has_few_steps(p)) && !rung_wants_packed_a(p);
    if (p->trans_a && (!p->cpu->far_l3 || has_narrow_tiles(p) || a_bytes(p) > L2_MOST_OF_TRANSPOSED * p->cpu->l2_bytes))
        return 0;
    return p->n <= (p->cpu->far_l3 ? COLUMNS_MOST : COLUMNS_MOST_OF_LARGE);
}

/* Plans with one group: a tile takes all columns, so each element of A is read once. Where the hardware follows A's
 * rows they are read in runs as long as L2 has room for their part of B. Elsewhere the next tile's rows are asked for.
 */
static void one_group(gemm_plan *plan, const rung_cpu_args *p, int vectors)
{
    enum { ROWS_MOST = 12 }; /* streams that the hardware's prefetchers still follow */
    int64_t rows = rows_in_place(p);
    plan->most = vectors;
    plan->rows_most = (int)min64(p->kernel->max_rows[vectors - 1], rows ? min64(rows, ROWS_MOST) : ROWS_MOST);
    plan->mc = plan->rows_most;
    int64_t longest = p->cpu->l2_bytes / 2 / (4 * vectors * p->kernel->vl);
    plan->kc = even_block(p->k, p->cpu->follows_rows ? longest : 256, 8);
    plan->fetch = !p->cpu->follows_rows;
}

/* Returns how many rows pass the one group before its tail's columns do, for which L2 still has them: whole tiles of
 * both. */
static int64_t rows_before_tail(const rung_cpu_args *p, int64_t kc)
{
    enum { ROWS_OF_TILES = 16, ROWS_MOST = 96, L2_PARTS = 4 };
    int64_t rows = p->cpu->l2_bytes / L2_PARTS / (4 * min64(kc, p->k)) / ROWS_OF_TILES * ROWS_OF_TILES;
    return min64(max64(rows, ROWS_OF_TILES), ROWS_MOST);
}

void rung_plan_last(const rung_cpu_args *p, gemm_plan *plan)
{
    enum { STEPS_LEAST = 256 }; /* of a block of k: dot products of fewer take as long to add up their lanes */
    int is_far = a_bytes(p) > FAR_FROM_L2 * p->cpu->l2_bytes;
    int in_turn = !p->trans_a && is_far && min64(plan->kc, p->k) >= min64(STEPS_LEAST, p->k);
    plan->last = in_turn ? rung_last_columns(p) : rung_last_beside_packed(p);
    if (plan->last && in_turn)
        plan->last_rows = rows_before_tail(p, plan->kc);
}

/* Returns true where tiles ask for a transposed A in place: it may come from a far L3, and has more steps than the
 * hardware follows. */
static int may_wait_for_a(const rung_cpu_args *p)
{
    enum { STEPS_LEAST = 44, L2_PARTS = 8, COLUMNS_MOST = 2 * FEW };
    return p->cpu->far_l3 && has_narrow_tiles(p) && p->trans_a && p->k > STEPS_LEAST && p->n <= COLUMNS_MOST &&
           a_bytes(p) > p->cpu->l2_bytes / L2_PARTS;
}

void rung_plan_pack_b(const rung_cpu_args *p, gemm_plan *plan)
{
    enum { ONE_GROUP_ROWS = 4 }; /* lower tiles read B more often than two groups read A */
    /* Low tiles of a transposed A take little of each line. The second group finds so many rows of so many steps in L1.
     */
    enum { TURNED_PANELS = 4, TURNED_STEPS = 256 };
    enum { IN_TURN_L1_PARTS = 4, LAST_OF_MANY = 4 };
    const rung_cpu_kernel *kernel = p->kernel;
    plan->path = PATH_PACK_B;
    plan->asks = may_wait_for_a(p) ? ASKS_OF_A : ASKS_NOTHING;
    if (p->n > 2 * FEW) {
        int64_t panel = panel_columns(kernel);
        plan->nc = even_block(p->n, max64(p->cpu->l2_bytes / 2 / (4 * plan->kc) / panel, 1) * panel, panel);
        plan->mc = max64(p->cpu->l2_bytes / 4 / (4 * plan->kc) / kernel->mr, 1) * kernel->mr;
        if (plan->split_m)
            rung_plan_last(p, plan);
        else /* of strips of columns one may have no others */
            plan->last = rung_last_beside_packed(p);
        return;
    }
    plan->nc = p->n;
    plan->split_m = 1;
    plan->mc = max64(p->cpu->l1_bytes / IN_TURN_L1_PARTS / (4 * min64(plan->kc, p->k)) / kernel->mr, 1) * kernel->mr;
    if (p->n <= FEW || p->n % LINE_FLOATS <= LAST_OF_MANY)
        rung_plan_last(p, plan);
    int64_t vectors = divide_up(p->n - plan->last, kernel->vl);
    if (p->trans_a && vectors > kernel->nv && vectors <= RUNG_TILE_WIDE_VECTORS && has_narrow_tiles(p)) {
        plan->mc = TURNED_PANELS * kernel->mr;
        plan->kc = even_block(p->k, TURNED_STEPS, 8);
    } else if (vectors > 0 && vectors <= RUNG_TILE_WIDE_VECTORS && kernel->max_rows[vectors - 1] >= ONE_GROUP_ROWS) {
        one_group(plan, p, (int)vectors);
        if (has_tail(p->m, p->n - plan->last, kernel, tail_family(p)))
            plan->mc = rows_before_tail(p, plan->kc);
    }
}

const gemm_rule rung_rule_a_in_place = {"wants_a_in_place", wants_a_in_place, rung_plan_pack_b};

/* Returns true where k is so short that writing C takes longer than adding up, and C is not in L2. Where stores wait,
 * few steps pay for it already where C may not be there. Where no line is shared between tiles, packing A pays from a
 * middling k on. */
static int is_short_k(const rung_cpu_args *p)
{
    enum { STEPS_LEAST_PACKED = 17, FEW_STEPS = 20, ROWS_OF_FEW = 48, L2_PARTS_OF_FEW = 16 };
    if (p->cpu->stores_wait && p->k <= FEW_STEPS && p->m >= ROWS_OF_FEW && p->n > 4 * FEW)
        return c_bytes(p) > p->cpu->l2_bytes / L2_PARTS_OF_FEW;
    if (p->cpu->stores_wait)
        return p->k <= OUTER_STEPS && p->m >= 2 * FEW && p->n > 2 * FEW && c_bytes(p) > p->cpu->l2_bytes / 8 * 3;
    if (p->k >= STEPS_LEAST_PACKED && c_has_whole_lines(p) && !has_few_steps(p))
        return 0;
    return p->k <= OUTER_STEPS && p->m >= 2 * FEW && p->n > 2 * FEW && c_bytes(p) > p->cpu->l2_bytes;
}

/* By columns of tiles, lines that two tiles share would come from memory twice. By rows, narrow tiles take little of
 * each line of a transposed A, again for each few rows, for which a Zen 3 pays more than for packing both operands,
 * unless steps are few; a Zen 4, whose L2 is twice as large, pays less. Neighbours leave alone a small share of L3: a C
 * in it is read twice in little time. */
static void plan_short_k(const rung_cpu_args *p, gemm_plan *plan)
{
    enum { SMALL_L2 = 512 << 10, L3_SHARE_AT_HAND = 16, FEW_STEPS = 24 };
    if (!p->cpu->stores_wait) {
        if (c_bytes(p) <= max64(FAR_FROM_L2 * p->cpu->l2_bytes, p->cpu->l3_bytes / L3_SHARE_AT_HAND)) {
            rung_plan_pack_b(p, plan);
            return;
        }
        if (p->trans_a && p->k > FEW_STEPS && !has_few_steps(p) && has_narrow_tiles(p) &&
            p->cpu->l2_bytes <= SMALL_L2) {
            rung_plan_packed(p, plan);
            return;
        }
    }
    int64_t panel = panel_columns(p->kernel);
    plan->path = PATH_OUTER;
    plan->split_m = 1;
    plan->mc = plan->rows_most = p->kernel->mr;
    plan->kc = p->k;
    plan->nc = even_block(p->n, max64(p->cpu->l2_bytes / 2 / (4 * p->k) / panel, 1) * panel, panel); /* B stays in L2 */
}

const gemm_rule rung_rule_short_k = {"is_short_k", is_short_k, plan_short_k};

static int64_t packed_b_floats(const rung_cpu_args *p, const gemm_plan *plan, int64_t columns)
{
    int64_t panel = panel_columns(p->kernel);
    return min64(plan->kc, p->k) * min64(round_up(plan->nc, panel), round_up(columns, panel)) + 2 * RUNG_PACK_SLACK;
}

int64_t rung_pack_b_floats(const rung_cpu_args *p, const gemm_plan *plan, int64_t columns)
{
    return packed_b_floats(p, plan, columns) + rung_last_floats(p, plan->last);
}

/* Computes the last columns of some rows. */
static void run_last(const rung_cpu_args *p, int last, int64_t row, int64_t rows, int64_t step, int64_t steps,
                     float *workspace)
{
    rung_cpu_args part = *p;
    part.m = rows;
    part.a = a_at(p, row, 0);
    part.c += row * p->ldc;
    rung_run_last(&part, last, step, steps, row > 0, workspace);
}

/* Runs a product whose B is packed, a block of k at a time, and whose A is read in place, mc rows at a time that stay
 * in L1 or L2. */
void rung_pack_b_run(const rung_cpu_args *p, const gemm_plan *plan, float *workspace)
{
    block s = {.kernel = p->kernel,
               .tail = tail_family(p),
               .lda = p->lda,
               .kind = p->trans_a ? RUNG_A_BY_K : RUNG_A_BY_ROW,
               .b = workspace,
               .packed_b = 1,
               .most = plan->most,
               .asks = plan->asks == ASKS_OF_A ? ASKS_OF_A : ASKS_NOTHING, /* a transposed product's B is packed here */
               .out = {.ldc = p->ldc}};
    const int last_ones = last_of_strip(p, plan);
    float *rest = workspace + packed_b_floats(p, plan, p->n);
    int64_t n = p->n - last_ones;
    for (int64_t j = 0; j < n; j += plan->nc) {
        s.n = min64(plan->nc, n - j);
        grouping by = group_columns(p->m, s.n, p->kernel, s.tail, plan->most);
        int is_one_group = by.groups == 1 && plan->rows_most > 0;         /* which needs no blocks of rows */
        const int last = plan->last_rows && j + s.n == n ? last_ones : 0; /* behind the last groups, in turn */
        int64_t mc = !is_one_group ? plan->mc : last ? plan->last_rows : p->m;
        s.rows_most = is_one_group ? plan->rows_most : rows_in_place(p);
        for (int64_t step = 0; step < p->k; step += plan->kc) {
            s.k = min64(plan->kc, p->k - step);
            rung_gemm_pack_b(p, step, j, s.k, s.n, &by, 0, by.groups, workspace);
            set_beta(&s, p, step);
            int64_t done = 0; /* rows of the last columns */
            for (int64_t i = 0; i < p->m; i += mc) {
                s.m = min64(mc, p->m - i);
                s.a = a_at(p, i, step);
                s.c = p->c + i * p->ldc + j;
                s.fetch_rows = plan->fetch && !p->trans_a ? p->m - i : 0;
                rung_gemm_sweep_groups(&s, &by, 0, by.groups);
                int64_t now = i + s.m;
                if (last && (now == p->m || now - done >= plan->last_rows)) {
                    run_last(p, last, done, now - done, step, s.k, rest);
                    done = now;
                }
            }
        }
    }
    if (last_ones && (n == 0 || !plan->last_rows))
        run_last(p, last_ones, 0, p->m, 0, p->k, rest);
}
