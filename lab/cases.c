/* Which cases a kernel's row calls for. Sizes stand on the edges of its tile; the other dimensions of the contract
 * (padding, misalignment, alpha and beta, data) rotate along, so that a short list covers every pair of interest. */
#include "lab/case.h"
#include "lab/covering.h"

#include <stdlib.h>

typedef struct maker {
    lab_cases *cases;
    const rung_kernel *kernel; /* NULL: the library's choice under `math` */
    rung_math math;
    unsigned accepts;
    rung_backend_id backend;
    lab_depth depth;
    int turn; /* rotates the secondary dimensions */
    rung_status status;
} maker;

static const float scalars[][2] = {{1, 0}, {-0.5f, 1}, {1, -0.5f}, {0, -0.5f},
                                   {1, 1}, {-0.5f, 0}, {0, 0},     {-0.5f, -0.5f}};
enum { SCALARS = sizeof scalars / sizeof scalars[0] };

enum { CPU_LIMIT = 1200000000 }; /* multiply-adds of one case */

static void push(maker *x, const lab_case *c)
{
    lab_cases *cases = x->cases;
    if (cases->count == cases->capacity) {
        int capacity = cases->capacity ? cases->capacity * 2 : 64;
        lab_case *list = realloc(cases->list, (size_t)capacity * sizeof *list);
        if (!list) {
            x->status = lab_fail(RUNG_OUT_OF_MEMORY, "no memory for %d cases", capacity);
            return;
        }
        cases->list = list;
        cases->capacity = capacity;
    }
    cases->list[cases->count++] = *c;
}

static int takes(const maker *x, int trans_a, int trans_b)
{
    return (x->accepts >> (trans_a * 2 + trans_b)) & 1;
}

/* Makes a case whose secondary dimensions are the next of the rotation. Whole multiples keep the alignment that is
 * needed. */
static lab_case next(maker *x, int64_t m, int64_t n, int64_t k)
{
    static const int64_t pads[] = {0, 3, 0, 1, 8}, offsets[] = {0, 0, 1, 0, 2, 3};
    lab_case c;
    lab_case_init(&c);
    int turn = x->turn++;
    int unit = x->kernel && x->kernel->align_bytes > 4 ? x->kernel->align_bytes / 4 : 1;
    c.m = m;
    c.n = n;
    c.k = k;
    c.layout = turn % 3 == 2 ? RUNG_COL_MAJOR : RUNG_ROW_MAJOR;
    c.pad = pads[turn % 5] * unit;
    c.offset = offsets[turn % 6] * unit;
    c.alpha = scalars[turn % SCALARS][0];
    c.beta = scalars[turn % SCALARS][1];
    c.seed = (uint32_t)turn + 1;
    for (int i = 0; i < 4; i++) { /* transposes rotate among those the row takes */
        int trans = (turn + i) % 4;
        if (takes(x, trans >> 1, trans & 1)) {
            /* The row speaks of row-major operands, and a column-major call swaps A with B. */
            c.trans_a = (c.layout == RUNG_ROW_MAJOR ? trans >> 1 : trans & 1) ? RUNG_TRANS : RUNG_NO_TRANS;
            c.trans_b = (c.layout == RUNG_ROW_MAJOR ? trans & 1 : trans >> 1) ? RUNG_TRANS : RUNG_NO_TRANS;
            break;
        }
    }
    return c;
}

static void add(maker *x, int64_t m, int64_t n, int64_t k)
{
    lab_case c = next(x, m, n, k);
    push(x, &c);
}

static int64_t edge(int tile, int which)
{
    int64_t edges[] = {1, tile - 1, tile, tile + 1, 2 * tile + 1};
    return edges[which % 5] > 0 ? edges[which % 5] : 1;
}

/* Tries every edge of each dimension with three of each other one's. */
static void add_edges(maker *x)
{
    const rung_kernel *row = x->kernel;
    int bm = row && row->bm ? row->bm : row && row->tm ? row->tm * 4 : 96;
    int bn = row && row->bn ? row->bn : row && row->tn ? row->tn * 4 : 64;
    int bk = row && row->bk ? row->bk : 16;
    int rounds = x->depth == LAB_QUICK ? 2 : 5;
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < 5; i++)
            add(x, edge(bm, i), edge(bn, i + round), edge(bk, i * 2 + round));
    add(x, 0, bn, bk);
    add(x, bm, 0, bk);
    add(x, bm + 1, bn + 1, 0);
    add(x, 1, 1, 1);
}

static void add_scalars(maker *x)
{
    static const float values[] = {0.0f, 1.0f, -0.5f};
    for (int i = 0; i < 9; i++) {
        lab_case c = next(x, 67, 131, 45);
        c.alpha = values[i % 3];
        c.beta = values[i / 3];
        push(x, &c);
    }
}

static void add_shapes(maker *x)
{
    static const int64_t small[][3] = {{35, 700, 2048}, {2, 300, 5},   {300, 2, 5},
                                       {1, 1, 3000},    {129, 1, 257}, {1, 129, 257}};
    static const int64_t odd[][3] = {{4097, 17, 33},  {17, 4097, 33},  {33, 17, 4097},   {257, 255, 1023},
                                     {513, 16, 1030}, {16, 513, 1030}, {1000, 8, 3},     {8, 1000, 77},
                                     {64, 64, 8192},  {31, 33, 10003}, {2049, 1000, 33}, {300, 260, 700},
                                     {1025, 1, 2049}, {1, 1025, 2049}, {700, 4, 700}};
    static const int64_t large[][3] = {{4097, 4097, 4097}, {64, 64, 65536},    {4096, 16, 4096},  {16, 4096, 4096},
                                       {4096, 4096, 16},   {1024, 1024, 1024}, {2048, 2560, 1536}};
    for (size_t i = 0; i < sizeof small / sizeof small[0]; i++)
        add(x, small[i][0], small[i][1], small[i][2]);
    for (size_t i = 0; x->depth != LAB_QUICK && i < sizeof odd / sizeof odd[0]; i++)
        add(x, odd[i][0], odd[i][1], odd[i][2]);
    int gpu = x->backend == RUNG_BACKEND_CUDA;
    for (int trans = 0; !gpu && trans < 4; trans++) /* few rows or columns of many: CPUs take them in strips */
        for (int rows = 0; rows < 2; rows++) {
            lab_case c = next(x, rows ? 9 : 1301, rows ? 1301 : 9, 21);
            if (!takes(x, trans >> 1, trans & 1))
                continue;
            c.layout = RUNG_ROW_MAJOR;
            c.trans_a = trans >> 1 ? RUNG_TRANS : RUNG_NO_TRANS;
            c.trans_b = trans & 1 ? RUNG_TRANS : RUNG_NO_TRANS;
            c.alpha = c.alpha == 0.0f ? 2.0f : c.alpha;
            push(x, &c);
        }
    for (size_t i = 0; x->depth != LAB_QUICK && i < sizeof large / sizeof large[0]; i++)
        if (gpu ||
            ((!x->kernel || x->kernel->role == RUNG_PRODUCTION) && large[i][0] * large[i][1] * large[i][2] < CPU_LIMIT))
            add(x, large[i][0], large[i][1], large[i][2]);
}

/* Returns whether the kernel takes such data. TF32 and bf16 have FP32's exponents, and no scale: below 2^-126 their
 * parts run out of bits. */
static int takes_data(const maker *x, lab_data data)
{
    rung_arith arith = x->kernel ? x->kernel->arith : x->math == RUNG_FAST ? RUNG_TF32 : RUNG_F32;
    return data != LAB_SUBNORMAL || arith == RUNG_F32 || arith == RUNG_F16X3 || arith == RUNG_F16X3_CHAIN ||
           arith == RUNG_F16X3_ALONE;
}

/* Returns true for kernels that split their operands, and for the library's choice, which may be one. */
static int may_split(const maker *x)
{
    return x->backend == RUNG_BACKEND_CUDA && (!x->kernel || x->kernel->arith != RUNG_F32);
}

static void add_data(maker *x)
{
    for (int data = 0; data < LAB_DATA_COUNT; data++) {
        if ((data >= LAB_ACROSS && data < LAB_SPECIAL && !may_split(x)) || !takes_data(x, (lab_data)data))
            continue;
        lab_case c = next(x, 133, 97, 71);
        c.data = (lab_data)data;
        c.alpha = 1.0f;
        c.beta = 0.0f;
        push(x, &c);
        if (data == LAB_SPECIAL) { /* where NaN and Inf meet beta and unpadded full tiles */
            c = next(x, 256, 256, 256);
            c.data = (lab_data)data;
            c.pad = c.offset = 0;
            c.alpha = 1.0f;
            push(x, &c);
        }
    }
}

/* Results of which most lie below the normal range: what flushes them to zero is no IEEE arithmetic. They are few, so
 * that each has a bound of its own, which allows for roundings there: alpha may meet each product, or their sum. */
static void add_small_results(maker *x)
{
    lab_case c;
    lab_case_init(&c);
    c.layout = RUNG_ROW_MAJOR;
    c.m = 31, c.n = 29, c.k = 4;
    c.alpha = 1.5e-38f;
    push(x, &c);
}

static void add_batches(maker *x)
{
    static const int64_t shapes[][4] = {{16, 16, 16, 7}, {33, 31, 17, 5}, {64, 64, 64, 9},   {130, 70, 50, 3},
                                        {1, 1, 1, 3},    {5, 6, 0, 2},    {197, 64, 197, 4}, {8, 8, 8, 100},
                                        {64, 64, 64, 37}}; /* the last: threads share it out */
    static const lab_form forms[] = {LAB_STRIDED, LAB_SHARED_B, LAB_ARRAYS};
    for (int f = 0; f < 3; f++) {
        unsigned needs = forms[f] == LAB_ARRAYS ? RUNG_ACCEPTS_ARRAYS : RUNG_ACCEPTS_BATCH;
        for (size_t i = 0;
             (x->accepts & needs) && i + (x->backend != RUNG_BACKEND_CPU) < sizeof shapes / sizeof shapes[0]; i++) {
            lab_case c = next(x, shapes[i][0], shapes[i][1], shapes[i][2]);
            c.form = forms[f];
            c.batch = shapes[i][3];
            push(x, &c);
        }
    }
}

static void add_epilogues(maker *x)
{
    for (int i = 0; (x->accepts & RUNG_ACCEPTS_EPILOGUE) && i < 12; i++) {
        lab_case c = next(x, i % 2 ? 67 : 256, i % 3 ? 130 : 64, i % 4 ? 512 : 45);
        c.bias = (rung_bias)(i % 3);
        c.activation = (rung_activation)(i / 3 % 3);
        push(x, &c);
    }
    for (int i = 0; (x->accepts & RUNG_ACCEPTS_DEVICE_SCALARS) && x->backend == RUNG_BACKEND_CUDA && i < SCALARS; i++) {
        lab_case c = next(x, 67, 130, i % 2 ? 45 : 512);
        c.device_scalars = LAB_SCALARS_THERE;
        push(x, &c);
    }
}

static void push_accuracy(maker *x, int64_t size, int64_t k, lab_data data)
{
    lab_case c = next(x, size, size, k);
    c.data = data;
    c.alpha = 1.0f;
    c.beta = 0.0f;
    c.pad = c.offset = 0;
    c.accuracy = 1;
    push(x, &c);
}

/* Adds the cases of the acceptance rule: every distribution at every k of the list, with enough results to speak of a
 * maximum. What is meant to break split operands is for the kernels that split them. */
static void add_accuracy(maker *x)
{
    static const int64_t depths[] = {1, 16, 257, 1024, 4096, 32768, 3, 64};
    enum { FUZZ = 96 };
    if (x->kernel && x->kernel->role != RUNG_PRODUCTION)
        return;
    int gpu = x->backend == RUNG_BACKEND_CUDA, splits = may_split(x);
    int64_t size = gpu ? 256 : 128;
    int kinds = splits ? LAB_SPECIAL : LAB_ACROSS, count = gpu ? 8 : 6, every = x->depth == LAB_QUICK ? 5 : 1;
    for (int i = 0; i < count * kinds; i += every) {
        const int few =
            !gpu && x->depth == LAB_QUICK && depths[i / kinds] > 4096; /* else most of the time is this one's */
        if ((gpu || depths[i / kinds] <= 4096 || i % kinds <= LAB_SPAN24) && takes_data(x, (lab_data)(i % kinds)))
            push_accuracy(x, few ? 48 : size, depths[i / kinds], (lab_data)(i % kinds));
    }
    for (int i = 0; splits && i < FUZZ; i += every)
        push_accuracy(x, size, 64 + (int64_t)(i * i) % 1931, LAB_FUZZ);
}

static void add_huge(maker *x)
{
    static const int64_t shapes[][3] = {{65537, 32771, 17}, {32771, 65537, 3}, {131, 17, 16777300}, {2147483700, 1, 2}};
    for (size_t i = 0; x->depth == LAB_HUGE && i < sizeof shapes / sizeof shapes[0]; i++) {
        lab_case c = next(x, shapes[i][0], shapes[i][1], shapes[i][2]);
        c.layout = RUNG_ROW_MAJOR;
        c.alpha = 1.0f;
        c.pad = c.offset = 0;
        push(x, &c);
    }
}

/* ---- every pair of choices ---- */

enum factor {
    LAYOUT,
    TRANSPOSES,
    ROWS,
    COLUMNS,
    STEPS,
    PADDING,
    OFFSET,
    A_APART,
    C_PADDING,
    SCALARS_OF,
    FORM,
    BIAS,
    ACTIVATION,
    ON_DEVICE,
    WORKSPACE,
    FACTORS
};

enum { PAIRS_WORK = 3 << 20 }; /* multiply-adds of one case: kernels run on the CPU too */

/* Returns a size. The levels lie at the edges of a tile, below and above it, and at the edges of a warp's part of it.
 * Some are very small. */
static int64_t beside(int tile, int level)
{
    const int64_t sizes[] = {tile - 1, tile / 4 + 1, tile, 2 * tile + 3, tile / 2 + 1, tile + 1, 5};
    return sizes[level] > 0 ? sizes[level] : 1;
}

static int64_t steps_of(int bk, int level, int64_t results)
{
    const int64_t sizes[] = {bk + 1, 3 * bk - 1, 2 * bk, 20 * bk + 3, 1};
    int64_t most = PAIRS_WORK / (results ? results : 1);
    return sizes[level] < most || level != 3 ? sizes[level] : most > bk ? most : bk + 3;
}

static int transposes_taken(const maker *x, int *taken)
{
    int count = 0;
    for (int trans = 0; trans < 4; trans++)
        if (takes(x, trans >> 1, trans & 1))
            taken[count++] = trans;
    return count;
}

/* What the rows of choices are about: all of them; plain products, which end in code of their own that few rows would
 * reach otherwise; every bias with every activation where C is not read; NaN and Inf where a scalar is 0, here or on
 * the device, or in what is added to a product; and products that get too little memory for all at once. */
typedef enum topic { ALL_CHOICES, PLAIN, ENDINGS, SPECIAL_DATA, SPECIAL_ADDED, LITTLE_WORKSPACE, TOPICS } topic;

static lab_case case_of(const maker *x, topic about, const unsigned char *level, const int *taken)
{
    static const int64_t pads[] = {0, 1, 3, 4}, offsets[] = {0, 1, 2};
    static const lab_form forms[] = {LAB_SINGLE, LAB_STRIDED, LAB_SHARED_B, LAB_ARRAYS};
    static const float of[][2] = {{1, 0}, {0, 0.5f}, {-0.5f, 1}, {2, -0.5f}};
    static const int64_t a_apart[] = {0, 1,
                                      3}; /* rows of A at odd addresses where B's are not, and the other way round */
    static const int64_t kib[] = {300, 420, 600};
    const rung_kernel *row = x->kernel;
    int unit = row && row->align_bytes > 4 ? row->align_bytes / 4 : 1, trans = taken[level[TRANSPOSES]];
    lab_case c;
    lab_case_init(&c);
    c.layout = level[LAYOUT] ? RUNG_COL_MAJOR : RUNG_ROW_MAJOR;
    c.trans_a = (level[LAYOUT] ? trans & 1 : trans >> 1) ? RUNG_TRANS : RUNG_NO_TRANS;
    c.trans_b = (level[LAYOUT] ? trans >> 1 : trans & 1) ? RUNG_TRANS : RUNG_NO_TRANS;
    const int larger = about == LITTLE_WORKSPACE ? 3 : 0; /* several tiles */
    int64_t m = beside(row && row->bm ? row->bm : 64, level[ROWS] + larger),
            n = beside(row && row->bn ? row->bn : 64, level[COLUMNS] + larger);
    if (row && row->bn == 1 && n != 1) /* a tile of one column is one of one row, too */
        n = m, m = 1;
    c.m = level[LAYOUT] ? n : m; /* the row speaks of row-major operands */
    c.n = level[LAYOUT] ? m : n;
    c.form = forms[level[FORM]];
    c.batch = c.form == LAB_SINGLE ? 1 : 2 + level[PADDING] % 2;
    c.k = steps_of(row && row->bk ? row->bk : 16, level[STEPS] + (about == LITTLE_WORKSPACE), m * n * c.batch);
    c.pad = pads[level[PADDING]] * unit;
    c.offset = offsets[level[OFFSET]] * unit;
    c.a_pad = a_apart[level[A_APART]] * unit;
    c.a_offset = level[A_APART] == 2 ? unit : 0;
    c.c_pad = level[C_PADDING]; /* rows of C at odd addresses where the operands' are not, and the other way round */
    const float *scalar = of[about == LITTLE_WORKSPACE ? 2 * level[SCALARS_OF] : level[SCALARS_OF]];
    c.alpha = scalar[0];
    c.beta = scalar[1];
    c.bias = (rung_bias)level[BIAS];
    c.activation = (rung_activation)level[ACTIVATION];
    if (level[ON_DEVICE]) /* both, or one of them */
        c.device_scalars = (lab_scalars)(LAB_SCALARS_THERE + (level[ROWS] + level[STEPS]) % 3);
    c.data = about == SPECIAL_DATA ? LAB_SPECIAL : LAB_SIGNED;
    c.added_special = about == SPECIAL_ADDED;
    c.workspace_kib = about == LITTLE_WORKSPACE ? kib[level[WORKSPACE]] : 0;
    c.seed = 1u + level[ROWS] + 10u * level[STEPS];
    return c;
}

static void add_pairs(maker *x)
{
    int taken[4], transposes = transposes_taken(x, taken), gpu = x->backend == RUNG_BACKEND_CUDA;
    int epilogue = x->accepts & RUNG_ACCEPTS_EPILOGUE ? 3 : 1;
    int forms = !(x->accepts & RUNG_ACCEPTS_BATCH) ? 1 : x->accepts & RUNG_ACCEPTS_ARRAYS ? 4 : 3;
    int places = gpu && (x->accepts & RUNG_ACCEPTS_DEVICE_SCALARS) ? 2 : 1;
    const int levels[TOPICS][FACTORS] = {{2, transposes, 7, 7, 5, 4, 3, 3, 2, 4, forms, epilogue, epilogue, places, 1},
                                         {2, transposes, 5, 5, 4, 4, 3, 3, 2, 1, forms, 1, 1, 1, 1},
                                         {1, 1, 3, 3, 2, 2, 1, 1, 2, 1, 1, epilogue, epilogue, 1, 1},
                                         {2, transposes, 2, 2, 2, 2, 1, 2, 1, 2, 1, 1, 1, places, 1},
                                         {1, 1, 2, 2, 2, 2, 1, 2, 1, 4, 1, epilogue, epilogue, 1, 1},
                                         {2, transposes, 2, 2, 2, 2, 1, 2, 1, 2, 1, epilogue, epilogue, 1, 3}};
    lab_covering covering;
    int rung = x->kernel && x->kernel->role != RUNG_PRODUCTION;
    if (!transposes || x->depth == LAB_QUICK || (rung && x->depth != LAB_PAIRS))
        return;
    for (int about = 0; about < TOPICS; about++) {
        if ((rung && about >= SPECIAL_DATA) || (epilogue == 1 && about == ENDINGS) ||
            (about == LITTLE_WORKSPACE && !may_split(x)))
            continue; /* the rungs' cases have all data; kernels that split their operands borrow most */
        lab_cover_pairs(levels[about], FACTORS, &covering);
        for (int i = 0; i < covering.count; i++) {
            lab_case c = case_of(x, (topic)about, covering.row[i], taken);
            push(x, &c);
        }
    }
}

rung_status lab_cases_for(const rung_kernel *kernel, rung_math math, rung_backend_id backend, lab_depth depth,
                          lab_cases *cases)
{
    maker x = {.cases = cases,
               .kernel = kernel,
               .math = math,
               .accepts = kernel ? kernel->accepts : RUNG_ACCEPTS_ALL,
               .backend = backend,
               .depth = depth};
    *cases = (lab_cases){0};
    if (!kernel && backend == RUNG_BACKEND_CPU)
        x.accepts &= ~(unsigned)RUNG_ACCEPTS_DEVICE_SCALARS;
    if (depth == LAB_PAIRS) {
        add_pairs(&x);
        return x.status;
    }
    add_edges(&x);
    add_scalars(&x);
    add_shapes(&x);
    add_data(&x);
    add_small_results(&x);
    add_batches(&x);
    add_epilogues(&x);
    add_accuracy(&x);
    add_huge(&x);
    add_pairs(&x);
    return x.status;
}
