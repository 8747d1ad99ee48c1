/* Computes projections on all cores. */
#include "lab/projection.h"
#include "lab/host.h"

#include <math.h>
#include <unistd.h>

int lab_all_cores(void)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return cores > 0 ? (int)cores : 1;
}

typedef struct projection {
    const float *m;
    int64_t rows, cols, ld;
    int trans;
    const double *v, *v_size;
    double *out, *out_size;
} projection;

static void project_rows(void *state, int64_t first, int64_t end)
{
    const projection *p = state;
    for (int64_t i = first; i < end; i++)
        p->out[i] = p->out_size[i] = 0.0;
    for (int64_t j = 0; j < p->cols; j++) {
        const float *column = p->m + j * p->ld;
        double v = p->v[j], size = p->v_size[j];
        for (int64_t i = first; i < end; i++) {
            p->out[i] += column[i] * v;
            p->out_size[i] += fabs((double)column[i]) * size;
        }
    }
}

static void project_columns(void *state, int64_t first, int64_t end)
{
    const projection *p = state;
    for (int64_t j = first; j < end; j++) {
        const float *column = p->m + j * p->ld;
        double sum = 0.0, size = 0.0;
        for (int64_t i = 0; i < p->rows; i++) {
            sum += column[i] * p->v[i];
            size += fabs((double)column[i]) * p->v_size[i];
        }
        p->out[j] = sum;
        p->out_size[j] = size;
    }
}

void lab_project(const float *m, int64_t rows, int64_t cols, int64_t ld, int trans, const double *v[2], double *out[2])
{
    projection p = {m, rows, cols, ld, trans, v[0], v[1], out[0], out[1]};
    lab_parallel(lab_all_cores(), trans ? cols : rows, trans ? project_columns : project_rows, &p);
}

/* Errors of one row's elements come with random signs, so their sum is far smaller than n of them; a wrong element
 * is not. */
double lab_projection_bound(const lab_shape *s, rung_math math)
{
    double one = math == RUNG_FAST ? 0x1p14 : 8.0;
    return one / sqrt((double)s->n) + (math == RUNG_FAST ? 64.0 : 0.25);
}

size_t lab_vectors_bytes(const lab_shape *s)
{
    return (size_t)(2 * (s->n + s->k + 2 * s->m)) * sizeof(double);
}

lab_vectors lab_vectors_of(double *memory, const lab_shape *s)
{
    lab_vectors v;
    double **pairs[] = {v.x, v.y, v.z, v.r};
    const int64_t lengths[] = {s->n, s->k, s->m, s->m};
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 2; j++, memory += lengths[i])
            pairs[i][j] = memory;
    uint64_t bits = 0x243f6a8885a308d3u;
    for (int64_t j = 0; j < s->n; j++) {
        bits = bits * 6364136223846793005u + 1442695040888963407u;
        v.x[0][j] = bits >> 63 ? 1.0 : -1.0;
        v.x[1][j] = 1.0;
    }
    return v;
}

double lab_vectors_error(const lab_vectors *v, int64_t m)
{
    double worst = 0.0;
    for (int64_t i = 0; i < m; i++) {
        double error = fabs(v->r[0][i] - v->z[0][i]) / (v->z[1][i] > 0.0 ? v->z[1][i] : 1.0) * 0x1p24;
        if (isnan(error)) /* nothing is worse */
            return error;
        worst = fmax(worst, error);
    }
    return worst;
}
