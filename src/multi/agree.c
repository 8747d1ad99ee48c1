/* Agreement: checks that all ranks of a call were given what must be alike. */
#include "multi/multi.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a rank sends: its arguments, and its own verdict on them. */
typedef struct sent {
    int32_t count, status, argument;
    int64_t values[64];
    char call[32], why[256];
} sent;

typedef struct verdict {
    int32_t status;
    char why[384];
} verdict;

void multi_record_add(multi_record *r, const char *name, int64_t value)
{
    r->names[r->count] = name;
    r->values[r->count++] = value;
}

void multi_record_matrix(multi_record *r, char letter, const rung_matrix *x)
{
#define NAMES(desc)                                                                                                    \
    {                                                                                                                  \
        desc ".m", desc ".n", desc ".mb", desc ".nb", desc ".grid_rows", desc ".grid_cols", desc ".row_source",        \
            desc ".col_source"                                                                                         \
    }
    static const char *const names[3][8] = {NAMES("desc_a"), NAMES("desc_b"), NAMES("desc_c")};
#undef NAMES
    static const rung_matrix none;
    const rung_matrix *d = x ? x : &none;
    const int64_t values[8] = {d->m, d->n, d->mb, d->nb, d->grid_rows, d->grid_cols, d->row_source, d->col_source};
    for (int i = 0; i < 8; i++)
        multi_record_add(r, names[letter - 'a'][i], values[i]);
}

static verdict judge(const multi_record *r, const sent *all, int size)
{
    verdict v = {0};
    for (int i = 0; i < size && !v.status; i++) {
        const sent *s = &all[i];
        if (strcmp(s->call, all[0].call) != 0) {
            v.status = RUNG_INVALID_ARGUMENT;
            snprintf(v.why, sizeof v.why, "rank %d called %s, rank 0 %s", i, s->call, all[0].call);
        } else if (s->status) {
            v.status = s->status;
            snprintf(v.why, sizeof v.why, "rank %d: %s", i, s->why);
        }
        for (int j = 0; j < r->count && !v.status; j++)
            if (s->values[j] != all[0].values[j]) {
                v.status = RUNG_INVALID_ARGUMENT;
                snprintf(v.why, sizeof v.why, "rank %d was given %s = %" PRId64 ", rank 0 %" PRId64, i, r->names[j],
                         s->values[j], all[0].values[j]);
            }
    }
    return v;
}

rung_status multi_agree(rung_multi *multi, const multi_record *r, rung_status mine, const char *call)
{
    if (!multi->control)
        return mine;
    sent own = {.count = r->count, .status = (int32_t)mine}, *all = NULL;
    char what[64];
    verdict v = {0};
    memcpy(own.values, r->values, sizeof r->values[0] * (size_t)r->count);
    snprintf(own.call, sizeof own.call, "%s", call);
    snprintf(own.why, sizeof own.why, "%s", mine ? rung_last_error() : "");
    snprintf(what, sizeof what, "called %s", call);
    rung_status status = RUNG_SUCCESS;
    if (multi->first_rank == 0 && !(all = calloc((size_t)multi->ranks, sizeof *all)))
        RUNG_TRY_OUT(rung_fail(RUNG_OUT_OF_MEMORY, "no memory for the arguments of %d ranks", multi->ranks));
    RUNG_TRY_OUT(multi_control_gather(multi->control, &own, all, sizeof own, what, multi->timeout_s));
    if (all)
        v = judge(r, all, multi->ranks);
    RUNG_TRY_OUT(multi_control_share(multi->control, &v, sizeof v, "agreed", multi->timeout_s));
out:
    free(all);
    if (status != RUNG_SUCCESS) /* a rank is missing, or cannot judge: the context is of no more use */
        return multi_break(multi, status);
    return v.status ? rung_fail((rung_status)v.status, "%s", v.why) : RUNG_SUCCESS;
}

rung_status rung_multi_barrier(rung_multi *multi)
{
    multi_record nothing = {.count = 0};
    if (!multi)
        return rung_fail(RUNG_INVALID_ARGUMENT, "multi is NULL");
    RUNG_TRY(multi_usable(multi));
    return multi_agree(multi, &nothing, RUNG_SUCCESS, "rung_multi_barrier");
}
