/* Makes random calls, and makes a failing one smaller. */
#include "lab/fuzz.h"
#include "lab/names.h"

enum { MOST_WORK = 1 << 24, MOST_BATCH = 5 };

typedef struct dice {
    uint64_t state;
} dice;

/* Rolls the dice: SplitMix64. */
static uint64_t roll(dice *d)
{
    uint64_t x = d->state += 0x9E3779B97F4A7C15ull;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ x >> 27) * 0x94D049BB133111EBull;
    return x ^ x >> 31;
}

static int64_t below(dice *d, int64_t count)
{
    return (int64_t)(roll(d) % (uint64_t)count);
}

static int one_in(dice *d, int64_t count)
{
    return below(d, count) == 0;
}

/* Returns a size where code may change its way: a small one, or one beside a multiple of a power of two. */
static int64_t size(dice *d, int64_t most)
{
    int64_t x;
    switch (below(d, 4)) {
    case 0: x = below(d, 9); break;
    case 1: x = below(d, 65); break;
    case 2: x = (1 + below(d, 6)) * ((int64_t)8 << below(d, 5)) + below(d, 3) - 1; break;
    default: x = below(d, most + 1);
    }
    return x < most ? x : most;
}

static float scalar(dice *d)
{
    static const float values[] = {0.0f, 1.0f, -0.5f, 1.0f, 2.5f, -1.0f, 0.0f, 1e-3f};
    return values[below(d, (int64_t)(sizeof values / sizeof values[0]))];
}

static int names_count(const char *const *names)
{
    int count = 0;
    while (names[count])
        count++;
    return count;
}

/* Returns the multiply-adds of a case: of large sizes they are more than an integer counts. */
static double work(const lab_case *c)
{
    return (double)c->m * (double)c->n * (double)c->k;
}

void lab_fuzz_case(uint64_t seed, uint64_t number, int64_t most, lab_case *c)
{
    dice d = {seed * 0x2545F4914F6CDD1Dull + number};
    lab_case_init(c);
    c->layout = one_in(&d, 2) ? RUNG_ROW_MAJOR : RUNG_COL_MAJOR;
    c->trans_a = one_in(&d, 2) ? RUNG_TRANS : RUNG_NO_TRANS;
    c->trans_b = one_in(&d, 2) ? RUNG_TRANS : RUNG_NO_TRANS;
    c->m = size(&d, most);
    c->n = size(&d, most);
    c->k = size(&d, most);
    while (work(c) > MOST_WORK)
        c->k /= 2;
    c->pad = one_in(&d, 2) ? below(&d, 20) : 0;
    c->offset = one_in(&d, 3) ? below(&d, 8) : 0;
    c->alpha = scalar(&d);
    c->beta = scalar(&d);
    c->data = one_in(&d, 2) ? LAB_SIGNED : (lab_data)below(&d, names_count(lab_data_names));
    if (one_in(&d, 3) && work(c) <= MOST_WORK / MOST_BATCH) {
        c->form = (lab_form)(1 + below(&d, 3));
        c->batch = 1 + below(&d, MOST_BATCH);
    }
    if (one_in(&d, 5))
        c->bias = (rung_bias)(1 + below(&d, 2));
    if (one_in(&d, 5))
        c->activation = (rung_activation)(1 + below(&d, 2));
    c->device_scalars = one_in(&d, 8) ? LAB_SCALARS_THERE : LAB_SCALARS_HERE; /* both: as cuBLAS has them */
    c->seed = (uint32_t)(1 + below(&d, 1 << 20));
    c->c_pad = one_in(&d, 4) ? below(&d, 9) : 0;
    c->c_offset = one_in(&d, 6) ? below(&d, 4) : 0;
    c->a_pad = one_in(&d, 4) ? below(&d, 9) : 0;
    c->a_offset = one_in(&d, 6) ? below(&d, 4) : 0;
    c->workspace_kib = one_in(&d, 8) ? (int64_t)16 << below(&d, 9) : 0; /* 16 KiB to 4 MiB */
    c->added_special = one_in(&d, 8) && (c->bias || c->beta != 0.0f);
}

void lab_fuzz_plain(lab_case *c)
{
    c->form = LAB_SINGLE;
    c->batch = 1;
    c->bias = RUNG_NO_BIAS;
    c->activation = RUNG_IDENTITY;
    c->device_scalars = 0;
}

/* ---- smaller ---- */

/* Makes proposal number `which` of a plainer case. It returns 0 where there are no more. */
static int plainer(const lab_case *from, int which, lab_case *c)
{
    int64_t *const sizes[] = {&c->m,     &c->n,        &c->k,     &c->pad,     &c->offset,
                              &c->a_pad, &c->a_offset, &c->c_pad, &c->c_offset};
    enum { SIZES = 9, WAYS = 3 };
    *c = *from;
    if (which < SIZES * WAYS) {
        int64_t *x = sizes[which / WAYS];
        *x = which % WAYS == 0 ? (which / WAYS < 3 && *x > 0) : which % WAYS == 1 ? *x / 2 : *x > 0 ? *x - 1 : 0;
        return 1;
    }
    switch (which - SIZES * WAYS) {
    case 0: c->form = LAB_SINGLE, c->batch = 1; return 1;
    case 1: c->batch = c->batch > 2 ? 2 : c->batch; return 1;
    case 2: c->bias = RUNG_NO_BIAS; return 1;
    case 3: c->activation = RUNG_IDENTITY; return 1;
    case 4: c->device_scalars = 0; return 1;
    case 5: c->data = LAB_SIGNED; return 1;
    case 6: c->alpha = 1.0f; return 1;
    case 7: c->beta = 0.0f; return 1;
    case 8: c->trans_a = RUNG_NO_TRANS; return 1;
    case 9: c->trans_b = RUNG_NO_TRANS; return 1;
    case 10: c->layout = RUNG_COL_MAJOR; return 1;
    case 11: c->seed = 1; return 1;
    case 12: c->workspace_kib = 0; return 1;
    case 13: c->added_special = 0; return 1;
    default: return 0;
    }
}

static int is_same(const lab_case *x, const lab_case *y)
{
    char a[LAB_CASE_TEXT], b[LAB_CASE_TEXT];
    lab_case_print(x, a);
    lab_case_print(y, b);
    for (int i = 0; a[i] || b[i]; i++)
        if (a[i] != b[i])
            return 0;
    return 1;
}

rung_status lab_fuzz_shrink(lab_verifier *v, const rung_kernel *kernel, lab_case *c, lab_verdict *verdict)
{
    lab_case next;
    for (int which = 0; plainer(c, which, &next);) {
        lab_verdict its;
        int fails = 0;
        if (!is_same(c, &next)) {
            LAB_TRY(lab_verify(v, kernel, &next, &its));
            fails = its.outcome == LAB_FAIL;
        }
        if (fails) {
            *c = next;
            *verdict = its;
        }
        which = fails ? 0 : which + 1; /* what did not help before may help now */
    }
    return RUNG_SUCCESS;
}
