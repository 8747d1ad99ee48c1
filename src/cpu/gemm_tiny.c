/* Products so small that planning would cost as much as computing: operands in place, on one thread, or tiles on those
 * that spin. No tile reads a transposed B: long k goes as dot products, else B is turned first, or C last. */
#include "cpu/paths/paths.h"

#include <stdlib.h>

/* How the tiles of a product cover C. */
typedef struct tiling {
    const rung_cpu_kernel *kernel, *tail; /* tail: NULL where none pays */
    int64_t vectors;
    int most;
    int is_one;
} tiling;

static inline tiling tiles_of(const rung_cpu_args *p, const rung_cpu_kernel *kernel)
{
    enum { STEPS_WITHOUT_TAIL = 2 }; /* of k, at most: a tile costs more than its empty lanes */
    enum { STEPS_OF_ONE_TILE = 24 }; /* the same where one tile takes all columns, and all rows; of more tiles fewer */
    const rung_cpu_kernel *tail = kernel == p->kernel ? tail_family(p) : NULL;
    tiling by = {.kernel = kernel,
                 .vectors = (p->n + kernel->vl - 1) >> kernel->vl_bits,
                 .most = vectors_in_place(kernel, p->m, p->n)};
    int rows_most = by.vectors <= by.most ? kernel->max_rows[by.vectors - 1] : 0;
    int is_whole = p->k <= STEPS_WITHOUT_TAIL || p->m * p->k <= STEPS_OF_ONE_TILE * rows_most ||
                   !has_tail(p->m, p->n, kernel, tail);
    by.tail = is_whole ? NULL : tail;
    by.is_one = is_whole && p->m <= rows_most;
    return by;
}

static inline int lanes_of_last(const rung_cpu_args *p, const rung_cpu_kernel *kernel, int64_t vectors)
{
    return (int)(p->n - ((vectors - 1) << kernel->vl_bits));
}

static inline rung_tile_fn tile_in_place(const rung_cpu_args *p, const rung_cpu_kernel *kernel, int64_t vectors,
                                         int64_t rows)
{
    int kind = p->trans_a ? RUNG_A_BY_K : RUNG_A_BY_ROW;
    return tile_of(kernel, kind, (int)vectors, rows, p->k, wants_four_sums(p));
}

static inline rung_tile_out tile_out(const rung_cpu_args *p, int lanes)
{
    return (rung_tile_out){.ldc = p->ldc,
                           .alpha = p->alpha,
                           .beta = p->beta,
                           .lanes = lanes,
                           .b_lanes = lanes,
                           .ask_c = asks_c(p, p->k, 0)};
}

/* Runs a product that one tile holds. */
static inline void run_one_tile(const rung_cpu_args *p, rung_tile_fn tile, int lanes)
{
    rung_tile_out out = tile_out(p, lanes);
    tile(p->k, p->a, p->lda, p->b, p->ldb, p->c, &out);
}

/* Runs a product of several tiles. */
static __attribute__((noinline)) void run_block(const rung_cpu_args *p, const tiling *by)
{
    block s; /* each field by itself: clearing all of them first takes as long as a tile */
    s.kernel = by->kernel;
    s.tail = by->tail;
    s.m = p->m;
    s.n = p->n;
    s.k = p->k;
    s.a = p->a;
    s.lda = p->lda;
    s.kind = p->trans_a ? RUNG_A_BY_K : RUNG_A_BY_ROW;
    s.packed_a = s.packed_b = 0;
    s.b = p->b;
    s.ldb = p->ldb;
    s.fetch_rows = 0;
    s.asks = ASKS_NOTHING;
    s.most = by->most;
    s.rows_most = rows_in_place(p);
    s.next = NULL;
    s.c = p->c;
    s.out.ldc = p->ldc;
    s.out.alpha = p->alpha;
    s.out.beta = p->beta;
    s.out.fetch = (rung_fetch){0};
    s.out.ask_c = asks_c(p, p->k, 0);
    s.out.past = 0;
    s.out.asks = RUNG_ASK_NOTHING;
    s.four_sums = wants_four_sums(p);
    rung_gemm_sweep(&s);
}

static void run(const rung_cpu_args *p, const rung_cpu_kernel *kernel)
{
    tiling by = tiles_of(p, kernel);
    if (by.is_one)
        run_one_tile(p, tile_in_place(p, kernel, by.vectors, p->m), lanes_of_last(p, kernel, by.vectors));
    else
        run_block(p, &by);
}

/* Runs dot products, a few columns at a time: both operands have k innermost, but for a few rows of A, which are
 * turned.
 */
static __attribute__((noinline)) void run_dots(const rung_cpu_args *p)
{
    enum { COLUMNS = RUNG_DOT_COLS_OF_TINY };
    float turned[RUNG_TINY_FLOATS + COLUMNS * LINE_FLOATS + RUNG_PACK_SLACK];
    int of_b = p->trans_a || (p->m <= COLUMNS && p->m < p->n) || wants_dots_in_fours(p);
    int64_t rows = of_b ? p->n : p->m, columns = of_b ? p->m : p->n;
    const rung_cpu_kernel *kernel = halves_vectors(p) ? p->kernel->half : p->kernel;
    rung_dot_args dot = dot_args(p, of_b, kernel);
    if (p->trans_a)
        turn_columns(&dot, kernel, columns, turned);
    int64_t most = of_b && columns > COLUMNS ? RUNG_DOT_COLS_LEAST : COLUMNS;
    for (int64_t left = columns, together; left > 0; left -= together) {
        together = of_b ? left / divide_up(left, most) : min64(left, most);
        kernel->dot[together - 1](&dot, rows);
        dot.t += together * dot.t_ld;
        dot.c += together * dot.c_col;
    }
}

/* Copies what run() reads, a field at a time: a copy as a whole would load two fields at once, and wait for both to be
 * written. */
static inline void copy(rung_cpu_args *to, const rung_cpu_args *p)
{
    to->kernel = p->kernel;
    to->cpu = p->cpu;
    to->m = p->m;
    to->n = p->n;
    to->k = p->k;
    to->a = p->a;
    to->lda = p->lda;
    to->b = p->b;
    to->ldb = p->ldb;
    to->c = p->c;
    to->ldc = p->ldc;
    to->alpha = p->alpha;
    to->beta = p->beta;
    to->trans_a = p->trans_a;
    to->trans_b = p->trans_b;
}

/* Copies the transposed product, whose C is the caller's and is not read. */
static inline void copy_transposed(rung_cpu_args *to, const rung_cpu_args *p)
{
    copy(to, p);
    to->m = p->n;
    to->n = p->m;
    to->a = p->b;
    to->lda = p->ldb;
    to->b = p->a;
    to->ldb = p->lda;
    to->trans_a = !p->trans_b;
    to->beta = 0.0f;
}

void rung_gemm_vectors(const rung_cpu_args *p, float *room)
{
    const float *a = p->a, *b = p->b;
    int64_t a_step = p->trans_a ? p->lda : 1, b_step = p->trans_b ? 1 : p->ldb;
    if (a_step != 1)
        a = gather(room, a, a_step, p->k);
    if (b_step != 1)
        b = gather(room + p->k, b, b_step, p->k);
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->n; j++) {
            float product = p->alpha * p->kernel->dot_of_vectors(p->k, a + i * p->lda, b + j * p->ldb);
            float *c = p->c + i * p->ldc + j;
            *c = p->beta == 0.0f ? product : product + p->beta * *c;
        }
}

/* Returns true for two sums of so many steps that each would wait for itself, were they summed together; three keep a
 * unit of FMAs busy. */
static int is_two_sums(const rung_cpu_args *p)
{
    enum { SUMS = 2, STEPS_LEAST = 128 };
    return p->m * p->n == SUMS && p->k >= STEPS_LEAST && (p->m == 1 || !p->trans_a) && (p->n == 1 || p->trans_b);
}

/* Runs two vectors that make one number, or three that make two. */
static __attribute__((noinline)) void run_vectors(const rung_cpu_args *p)
{
    float gathered[2 * RUNG_TINY_FLOATS];
    rung_gemm_vectors(p, gathered);
}

static __attribute__((noinline)) void run_streamed(const rung_cpu_args *p)
{
    float sums[RUNG_TINY_FLOATS];
    rung_stream_one_row(p, RUNG_TINY_FLOATS, sums);
}

/* Turns A first and C last: the transposed product reads B as it lies. */
static __attribute__((noinline)) void run_with_turned_a(const rung_cpu_args *p)
{
    float turned_a[RUNG_TINY_FLOATS + 2 * RUNG_PACK_SLACK]; /* C behind it */
    const rung_cpu_kernel *kernel = family_of_columns(p, p->m);
    rung_cpu_args turn;
    copy_transposed(&turn, p);
    turn.b = turned_a;
    turn.ldb = turn.ldc = round_up(p->m, kernel->vl);
    turn.c = turned_a + turn.ldb * p->k + RUNG_PACK_SLACK;
    narrow_of(p->kernel)->pack_by_row(turned_a, p->a, p->lda, p->m, p->k, (int)turn.ldb);
    run(&turn, kernel);
    narrow_of(p->kernel)->turn(p->c, p->ldc, turn.c, turn.ldc, p->m, p->n, p->beta);
}

/* Turns B first, or C last. */
static void run_turned(rung_cpu_args *t)
{
    float turned[RUNG_TINY_FLOATS + RUNG_PACK_SLACK];
    if (is_cheaper_transposed(t)) {
        const rung_cpu_kernel *kernel = family_of_columns(t, t->m);
        rung_cpu_args turn;
        copy_transposed(&turn, t);
        turn.c = turned;
        turn.ldc = round_up(turn.n, kernel->vl);
        if (is_small_row_that_streams(&turn))
            run_streamed(&turn);
        else
            run(&turn, kernel);
        narrow_of(t->kernel)->turn(t->c, t->ldc, turned, turn.ldc, t->m, t->n, t->beta);
        return;
    }
    const int last = last_as_dots(t);
    if (last) /* as they lie */
        rung_run_last(t, last, 0, t->k, 0, NULL);
    t->n -= last;
    if (t->n == 0)
        return;
    const rung_cpu_kernel *kernel = family_of_columns(t, t->n);
    int64_t panel = round_up(t->n, kernel->vl);
    narrow_of(t->kernel)->pack_by_row(turned, t->b, t->ldb, t->n, t->k, (int)panel);
    t->b = turned;
    t->ldb = panel;
    run(t, kernel);
}

/* Runs a product with a transposed operand that tiles would not take as it lies. A vector whose elements lie side by
 * side is its own transpose. */
static __attribute__((noinline)) void run_with_transposed(const rung_cpu_args *p)
{
    rung_cpu_args t;
    copy(&t, p);
    if (t.trans_b && t.n == 1 && t.trans_a && !is_cheaper_transposed(&t)) {
        t.ldb = 1;
        run(&t, family_of_columns(&t, t.n));
        return;
    }
    if (t.m == 1)
        t.trans_a = 0;
    int is_asked = p->trans_a || p->k == 1; /* else choose_way() has */
    if (is_asked && (wants_dots(&t) || is_few_rows_of_dots(&t))) {
        float gathered[RUNG_TINY_FLOATS];
        if (p->m == 1 && p->trans_a && p->lda != 1)
            t.a = gather(gathered, p->a, p->lda, p->k);
        run_dots(&t);
        return;
    }
    t.trans_a = p->trans_a; /* as is_tiny() has judged the room for it */
    run_turned(&t);
}

enum { SCALARS_STEPS = 5 };

/* Returns true for a single column whose elements lie apart, and so few steps that it takes least to go one number
 * after the other. Vectors take a transposed A as it lies, so that it must have few rows too. */
static inline int is_column_of_scalars(const rung_cpu_args *p)
{
    enum { STEPS_OF_ANY = 2, STEPS_OF_TRANSPOSED = 4, ROWS_OF_TRANSPOSED = 32 };
    if (p->n != 1 || p->m <= 1)
        return 0;
    if (p->trans_a)
        return p->k <= STEPS_OF_ANY || (p->k <= STEPS_OF_TRANSPOSED && p->m <= ROWS_OF_TRANSPOSED);
    return p->k <= SCALARS_STEPS;
}

/* Runs such a column; `adds`: C is read. Inline, so that the loop asks for neither that nor the steps. */
static inline __attribute__((always_inline)) void scalars(const rung_cpu_args *p, const int steps, const int adds)
{
    int64_t m = p->m, ldc = p->ldc, a_row = p->trans_a ? 1 : p->lda, a_step = p->trans_a ? p->lda : 1;
    const float *a = p->a;
    float *c = p->c, alpha = p->alpha, beta = p->beta, b[SCALARS_STEPS] = {p->b[0]};
#pragma GCC unroll 5
    for (int q = 1; q < steps; q++)
        b[q] = p->b[q * (p->trans_b ? 1 : p->ldb)];
    for (int64_t i = 0; i < m; i++, a += a_row, c += ldc) {
        float sum = a[0] * b[0];
#pragma GCC unroll 5
        for (int q = 1; q < steps; q++)
            sum += a[q * a_step] * b[q];
        *c = adds ? alpha * sum + beta * *c : alpha * sum;
    }
}

static __attribute__((noinline)) void run_scalars(const rung_cpu_args *p)
{
    if (p->beta != 0.0f) {
        scalars(p, (int)p->k, 1);
        return;
    }
    switch (p->k) {
    case 1: scalars(p, 1, 0); break;
    case 2: scalars(p, 2, 0); break;
    case 3: scalars(p, 3, 0); break;
    case 4: scalars(p, 4, 0); break;
    default: scalars(p, SCALARS_STEPS, 0); break;
    }
}

/* Runs rows along k that meet a single column. */
static __attribute__((noinline)) void run_column(const rung_cpu_args *p)
{
    float gathered[RUNG_TINY_FLOATS];
    rung_cpu_args t;
    copy(&t, p);
    if (!t.trans_b && t.ldb != 1)
        t.b = gather(gathered, p->b, p->ldb, p->k);
    t.trans_b = 1;
    run_dots(&t);
}

/* Runs a product that is_rank(). A copied B needs room for a last group of columns more, for each step. */
static __attribute__((noinline)) void run_rank(const rung_cpu_args *p)
{
    enum { RANK_FLOATS_MORE = 8 * 2 * LINE_FLOATS, FLOATS_OF_ONE_PASS = RUNG_TINY_FLOATS / 2 };
    float copied[RUNG_TINY_FLOATS + RANK_FLOATS_MORE];
    rung_gemm_rank(p, p->k * p->n <= FLOATS_OF_ONE_PASS ? p->n : rank_columns(p), copied);
}

/* Runs a product whose last columns go as dot products. */
static __attribute__((noinline)) void run_with_last(const rung_cpu_args *p, int last)
{
    float turned[RUNG_TINY_FLOATS + RUNG_PACK_SLACK];
    rung_cpu_args rest;
    copy(&rest, p);
    rest.n -= last;
    if (rest.n > 0)
        run(&rest, family_of_columns(p, rest.n));
    rung_run_last(p, last, 0, p->k, 0, turned);
}

/* Runs a product that is_short_rows(). A transposed B is turned first. */
static void run_short_rows(const rung_cpu_args *p)
{
    float turned[SHORT_VECTORS_MOST * LINE_FLOATS * RUNG_SHORT_STEPS + RUNG_PACK_SLACK];
    const rung_cpu_kernel *kernel = family_of_columns(p, p->n);
    rung_rank_args rows;
    rows.m = p->m;
    rows.n = p->n;
    rows.k = p->k;
    rows.a = p->a;
    rows.a_row = p->trans_a ? 1 : p->lda;
    rows.a_step = p->trans_a ? p->lda : 1;
    rows.b = p->b;
    rows.ldb = p->ldb;
    rows.c = p->c;
    rows.ldc = p->ldc;
    rows.alpha = p->alpha;
    rows.beta = p->beta;
    rows.masks = p->cpu->wide_units;
    rows.ask_c = p->ldc - p->n < LINE_FLOATS && asks_for_rows(p); /* rows of lines apart cost more than they wait */
    if (p->trans_b) {
        rows.b = turned;
        rows.ldb = round_up(p->n, kernel->vl);
        narrow_of(p->kernel)->pack_by_row(turned, p->b, p->ldb, p->n, p->k, (int)rows.ldb);
    }
    kernel->short_rows[p->k - 1](&rows);
}

/* How a product is computed: ELSEWHERE, by a plan, because it is not tiny. */
typedef enum way {
    WAY_ELSEWHERE,
    WAY_ONE_TILE,
    WAY_FEW_TILES,
    WAY_TILES,
    WAY_VECTORS,
    WAY_SCALARS,
    WAY_TURNED,
    WAY_SHORT_ROWS,
    WAY_RANK,
    WAY_COLUMN,
    WAY_DOTS,
    WAY_TRANSPOSED,
    WAY_TURNED_A,
    WAY_STREAMED,
    WAY_LAST
} way;

/* What was asked about a product, and the answer. A product that has the same fields has the same answer, but for what
 * C's address decides: bits are the same either way. */
typedef struct known_way {
    const rung_cpu_kernel *kernel;
    int64_t m, n, k, lda, ldc;
    int in_order, reads_c;
    way way;
    int lanes;                       /* of one tile, or few: columns in use of the last vector */
    row_tiles by;                    /* of few tiles */
    rung_tile_fn tile, tile_of_more; /* of `least` rows, and of one more */
} known_way;

enum { WAYS_BITS = 4 };

struct rung_tiny_ways {
    known_way at[2][2][1 << WAYS_BITS]; /* by trans_a and trans_b */
};

rung_tiny_ways *rung_tiny_ways_create(void)
{
    return calloc(1, sizeof(rung_tiny_ways)); /* no product has a kernel of NULL */
}

/* Returns the tiles that cover the product's rows where its columns are one group and the tiles are so few that each is
 * best called by itself, else none. */
static row_tiles few_tiles(const rung_cpu_args *p, const tiling *by)
{
    enum { TILES_MOST = 3 };
    if (by->tail || by->vectors > by->most)
        return (row_tiles){0};
    int most = by->kernel->max_rows[by->vectors - 1], in_place = rows_in_place(p);
    row_tiles rows = tile_rows(p->m, in_place && in_place < most ? in_place : most);
    return rows.count <= TILES_MOST ? rows : (row_tiles){0};
}

/* Returns true where a few tiles take less time than rows of C written one after the other: from some steps on, if the
 * columns are few or tiles wide. */
static int wants_few_tiles(const rung_cpu_args *p)
{
    enum { STEPS_LEAST = 8 };
    if (p->k < STEPS_LEAST || p->trans_b || (p->n > LINE_FLOATS && has_narrow_tiles(p)) || is_cheaper_transposed(p))
        return 0;
    tiling by = tiles_of(p, family_of_columns(p, p->n));
    return few_tiles(p, &by).count > 0;
}

static way choose_way(const rung_cpu_args *p)
{
    if (is_dot_of_vectors(p) || is_two_sums(p))
        return WAY_VECTORS;
    if (is_column_of_scalars(p))
        return WAY_SCALARS;
    if (is_turned(p))
        return WAY_TURNED;
    if (is_short_rows(p) && !wants_few_tiles(p))
        return WAY_SHORT_ROWS;
    if (is_rank(p))
        return WAY_RANK;
    if (is_column_of_dots(p))
        return WAY_COLUMN;
    if (p->trans_b && !p->trans_a && p->k > 1 && (wants_dots(p) || is_few_rows_of_dots(p)))
        return WAY_DOTS;
    if (is_cheaper_with_turned_a(p))
        return WAY_TURNED_A;
    if (p->trans_b || is_cheaper_transposed(p))
        return WAY_TRANSPOSED;
    if (is_small_row_that_streams(p))
        return WAY_STREAMED;
    return last_as_dots(p) ? WAY_LAST : WAY_TILES;
}

/* Says which tiles they are, if they are few. */
static void name_tiles(known_way *known, const rung_cpu_args *p)
{
    tiling by = tiles_of(p, family_of_columns(p, p->n));
    row_tiles rows = few_tiles(p, &by);
    if (rows.count == 0)
        return;
    known->way = rows.count == 1 ? WAY_ONE_TILE : WAY_FEW_TILES;
    known->lanes = lanes_of_last(p, by.kernel, by.vectors);
    known->by = rows;
    known->tile = tile_in_place(p, by.kernel, by.vectors, rows.least);
    known->tile_of_more = rows.higher ? tile_in_place(p, by.kernel, by.vectors, rows.least + 1) : NULL;
}

static known_way ask_way(const rung_cpu_args *p, way chosen)
{
    known_way known = {.kernel = p->kernel,
                       .m = p->m,
                       .n = p->n,
                       .k = p->k,
                       .lda = p->lda,
                       .ldc = p->ldc,
                       .in_order = p->in_order,
                       .reads_c = p->beta != 0.0f,
                       .way = chosen};
    if (chosen == WAY_TILES)
        name_tiles(&known, p);
    return known;
}

static inline int is_known(const known_way *known, const rung_cpu_args *p)
{
    int64_t sizes =
        (known->m ^ p->m) | (known->n ^ p->n) | (known->k ^ p->k) | (known->lda ^ p->lda) | (known->ldc ^ p->ldc);
    return (sizes | (known->in_order ^ p->in_order)) == 0 && known->kernel == p->kernel &&
           known->reads_c == (p->beta != 0.0f);
}

/* Returns where in the table a product has its place; the one that was there before is forgotten. */
static inline known_way *place_of(const rung_cpu_args *p)
{
    uint64_t sizes = (uint64_t)p->m + 3 * (uint64_t)p->n + 9 * (uint64_t)p->k;
    return &p->ways->at[p->trans_a][p->trans_b][sizes & ((1u << WAYS_BITS) - 1)];
}

static __attribute__((noinline)) void run_few_tiles(const rung_cpu_args *p, const known_way *known)
{
    rung_tile_out out = tile_out(p, known->lanes);
    const float *a = p->a;
    float *c = p->c;
    for (int64_t t = 0; t < known->by.count; t++) {
        int has_more = t < known->by.higher;
        int64_t rows = known->by.least + has_more;
        (has_more ? known->tile_of_more : known->tile)(p->k, a, p->lda, p->b, p->ldb, c, &out);
        a += rows * (p->trans_a ? 1 : p->lda);
        c += rows * p->ldc;
    }
}

/* Runs a product as it is known to be computed. */
static inline void run_way(const rung_cpu_args *p, const known_way *known)
{
    switch (known->way) {
    case WAY_ELSEWHERE: break;
    case WAY_ONE_TILE: run_one_tile(p, known->tile, known->lanes); break;
    case WAY_FEW_TILES: run_few_tiles(p, known); break;
    case WAY_TILES: run(p, family_of_columns(p, p->n)); break;
    case WAY_VECTORS: run_vectors(p); break;
    case WAY_SCALARS: run_scalars(p); break;
    case WAY_TURNED: rung_turned_run(p, NULL, NULL); break;
    case WAY_SHORT_ROWS: run_short_rows(p); break;
    case WAY_RANK: run_rank(p); break;
    case WAY_COLUMN: run_column(p); break;
    case WAY_DOTS: run_dots(p); break;
    case WAY_TRANSPOSED: run_with_transposed(p); break;
    case WAY_TURNED_A: run_with_turned_a(p); break;
    case WAY_STREAMED: run_streamed(p); break;
    case WAY_LAST: run_with_last(p, last_as_dots(p)); break;
    }
}

void rung_tiny_run(const rung_cpu_args *p, const gemm_plan *plan, float *workspace)
{
    (void)plan, (void)workspace;
    known_way known = ask_way(p, choose_way(p));
    run_way(p, &known);
}

/* A product that threads share: each takes some rows of C, or some columns. */
typedef struct shared_tiles {
    const rung_cpu_args *p;
    const rung_cpu_kernel *kernel;
    int64_t rows, columns;
} shared_tiles;

static void cut_out(const shared_tiles *shared, int64_t task, rung_cpu_args *strip)
{
    const rung_cpu_args *p = shared->p;
    int64_t row = shared->rows < p->m ? task * shared->rows : 0;
    int64_t column = shared->columns < p->n ? task * shared->columns : 0;
    copy(strip, p);
    strip->m = min64(shared->rows, p->m - row);
    strip->n = min64(shared->columns, p->n - column);
    strip->a = a_at(p, row, 0);
    strip->b = b_at(p, 0, column);
    strip->c = p->c + row * p->ldc + column;
}

static void run_shared(void *argument, int64_t task, float *workspace)
{
    const shared_tiles *shared = argument;
    rung_cpu_args strip;
    (void)workspace;
    cut_out(shared, task, &strip);
    run(&strip, shared->kernel);
}

/* Runs tiles on these threads, and returns whether it does: only where each element is added up in the order in which
 * one thread adds it up. */
static __attribute__((noinline)) int share_tiles(const rung_cpu_args *p, int threads)
{
    shared_tiles shared = {.p = p, .kernel = family_of_columns(p, p->n), .rows = p->m, .columns = p->n};
    int64_t tasks;
    if (p->m >= p->n) {
        shared.rows = divide_up(p->m, threads);
        tasks = divide_up(p->m, shared.rows);
    } else {
        shared.columns = round_up(divide_up(p->n, threads), p->kernel->vl);
        tasks = divide_up(p->n, shared.columns);
    }
    rung_cpu_args last;
    cut_out(&shared, tasks - 1, &last);
    if (tasks < 2 || wants_four_sums(&last))
        return 0;
    rung_pool_run(p->pool, threads, tasks, run_shared, &shared);
    return 1;
}

int rung_gemm_if_tiny(const rung_cpu_args *p, int threads)
{
    known_way asked, *known = p->ways ? place_of(p) : &asked;
    if (!p->ways || !is_known(known, p))
        *known = ask_way(p, is_tiny(p) ? choose_way(p) : WAY_ELSEWHERE);
    if (known->way == WAY_ELSEWHERE)
        return 0;
    int is_tiles = known->way == WAY_TILES || known->way == WAY_FEW_TILES;
    if (threads == 1 || !is_tiles || !share_tiles(p, threads))
        run_way(p, known);
    return 1;
}

void rung_short_rows_run(const rung_cpu_args *p, const gemm_plan *plan, float *workspace)
{
    (void)plan, (void)workspace;
    run_short_rows(p);
}

static int holds_tiny(const rung_cpu_args *p)
{
    return is_tiny(p);
}

static void plan_tiny(const rung_cpu_args *p, gemm_plan *plan)
{
    (void)p;
    plan->path = PATH_TINY;
}

static int holds_short_rows(const rung_cpu_args *p)
{
    return is_short_rows(p);
}

static void plan_short_rows(const rung_cpu_args *p, gemm_plan *plan)
{
    (void)p;
    plan->path = PATH_SHORT_ROWS;
    plan->split_m = 1;
}

const gemm_rule rung_rule_tiny = {"is_tiny", holds_tiny, plan_tiny};
const gemm_rule rung_rule_short_rows = {"is_short_rows", holds_short_rows, plan_short_rows};
