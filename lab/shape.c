/* Reads and prints shapes. */
#define _GNU_SOURCE /* getline */
#include "lab/shape.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int read_trans(const char *text, lab_shape *shape)
{
    if (!text[0] || !text[1] || !strchr("NnTt", text[0]) || !strchr("NnTt", text[1]))
        return 0;
    shape->trans_a = strchr("Tt", text[0]) ? RUNG_TRANS : RUNG_NO_TRANS;
    shape->trans_b = strchr("Tt", text[1]) ? RUNG_TRANS : RUNG_NO_TRANS;
    return 1;
}

static int positive(const lab_shape *s)
{
    return s->m > 0 && s->n > 0 && s->k > 0 && s->batch > 0 && s->pad >= 0;
}

/* Returns whether lines * (length + pad) * batch floats fit into 2^62 bytes, whichever of the two sizes is the line's.
 */
static int fits(int64_t lines, int64_t length, int64_t batch, int64_t pad)
{
    int64_t larger = lines > length ? lines : length, smaller = lines > length ? length : lines, floats;
    smaller += pad ? 1 : 0;
    return !__builtin_add_overflow(smaller, pad, &smaller) && !__builtin_mul_overflow(larger, smaller, &floats) &&
           !__builtin_mul_overflow(floats, batch, &floats) && floats < (int64_t)1 << 60;
}

rung_status lab_sizes_check(int64_t m, int64_t n, int64_t k, int64_t batch, int64_t pad)
{
    if (m < 0 || n < 0 || k < 0 || batch < 1 || pad < 0)
        return lab_fail(RUNG_INVALID_ARGUMENT, "%" PRId64 "x%" PRId64 "x%" PRId64 ": a size is negative", m, n, k);
    if (!fits(m, k, batch, pad) || !fits(k, n, batch, pad) || !fits(m, n, batch, pad))
        return lab_fail(RUNG_INVALID_ARGUMENT,
                        "%" PRId64 "x%" PRId64 "x%" PRId64 " (batch %" PRId64 ", pad %" PRId64
                        "): an operand would span more than 2^62 bytes",
                        m, n, k, batch, pad);
    return RUNG_SUCCESS;
}

/* Reads a number, and the 'x' behind it if there is one. */
static int read_size(const char **at, int64_t *value)
{
    char *end;
    errno = 0;
    *value = strtoll(*at, &end, 10);
    if (errno || end == *at)
        return 0;
    *at = end;
    return 1;
}

rung_status lab_shape_parse(const char *word, lab_shape *shape)
{
    *shape = (lab_shape){.batch = 1};
    const char *at = word;
    int good = read_size(&at, &shape->m) && *at++ == 'x' && read_size(&at, &shape->n) && *at++ == 'x' &&
               read_size(&at, &shape->k);
    if (good && *at == ':') {
        good = read_trans(at + 1, shape);
        at += good ? 3 : 0;
    }
    if (good && *at == 'x') {
        at++;
        good = read_size(&at, &shape->batch);
    }
    if (good && *at == '+') {
        at++;
        good = read_size(&at, &shape->pad);
    }
    if (good && !*at && !positive(shape))
        return lab_fail(RUNG_INVALID_ARGUMENT, "'%s': sizes begin at 1", word);
    if (!good || *at)
        return lab_fail(RUNG_INVALID_ARGUMENT,
                        "'%s' is neither a file nor a shape such as 4096x4096x4096, 512x64x512:TN or "
                        "64x64x64:NNx1000",
                        word);
    return lab_sizes_check(shape->m, shape->n, shape->k, shape->batch, shape->pad);
}

rung_status lab_shapes_add(lab_shapes *shapes, const lab_shape *shape)
{
    if (shapes->count == shapes->capacity) {
        int capacity = shapes->capacity ? shapes->capacity * 2 : 32;
        lab_shape *list = realloc(shapes->list, (size_t)capacity * sizeof *list);
        if (!list)
            return lab_fail(RUNG_OUT_OF_MEMORY, "no memory for %d shapes", capacity);
        shapes->list = list;
        shapes->capacity = capacity;
    }
    shapes->list[shapes->count++] = *shape;
    return RUNG_SUCCESS;
}

/* Reads what may follow the sizes: the number of matrices, the padding, a remark. Returns 0 where anything else does.
 */
static int read_rest(const char *at, lab_shape *shape)
{
    char word[24];
    int length;
    for (int i = 0; sscanf(at, "%23s%n", word, &length) == 1 && word[0] != '#'; i++, at += length) {
        int is_pad = strncmp(word, "pad=", 4) == 0;
        const char *number = word + (is_pad ? 4 : 0);
        if (i > 1 || (i == 1 && !is_pad) || !read_size(&number, is_pad ? &shape->pad : &shape->batch) || *number)
            return 0;
    }
    return 1;
}

static rung_status read_line(const char *file, int number, const char *line, lab_shapes *shapes)
{
    char a = 0, b = 0;
    lab_shape shape = {.batch = 1};
    const char *at = line + strspn(line, " \t\r\n");
    if (!*at || *at == '#')
        return RUNG_SUCCESS;
    int read = 0;
    int fields = sscanf(at, "%c%c %" SCNd64 " %" SCNd64 " %" SCNd64 "%n", &a, &b, &shape.m, &shape.n, &shape.k, &read);
    char trans[3] = {a, b, 0};
    if (fields < 5 || !read_trans(trans, &shape) || !read_rest(at + read, &shape) || !positive(&shape))
        return lab_fail(
            RUNG_INVALID_ARGUMENT,
            "%s:%d: expected NN, NT, TN or TT, then 'm n k [batch] [pad=P]', such as 'NT 512 64 512', found '%.*s'",
            file, number, (int)strcspn(at, "\n"), at);
    LAB_TRY(lab_sizes_check(shape.m, shape.n, shape.k, shape.batch, shape.pad));
    return lab_shapes_add(shapes, &shape);
}

rung_status lab_shapes_read(const char *file, lab_shapes *shapes)
{
    char *line = NULL; /* a remark may be long: what comes behind it in its line is no shape */
    size_t room = 0;
    int number = 0, before = shapes->count;
    rung_status status = RUNG_SUCCESS;
    FILE *from = fopen(file, "r");
    if (!from)
        return lab_fail(RUNG_INVALID_ARGUMENT, "cannot read the shapes file '%s': %s", file, strerror(errno));
    while (status == RUNG_SUCCESS && getline(&line, &room, from) >= 0)
        status = read_line(file, ++number, line, shapes);
    if (status == RUNG_SUCCESS && ferror(from)) /* a folder opens, and cannot be read */
        status = lab_fail(RUNG_INVALID_ARGUMENT, "cannot read the shapes file '%s': %s", file, strerror(errno));
    else if (status == RUNG_SUCCESS && shapes->count == before)
        status = lab_fail(RUNG_INVALID_ARGUMENT, "the shapes file '%s' holds no shape", file);
    free(line);
    fclose(from);
    return status;
}

/* Sets the leading dimension of a stored matrix and returns how many elements it takes. */
static int64_t stored(int row_major, int trans, int64_t rows, int64_t columns, int64_t pad, int64_t *ld)
{
    int rows_are_lines = row_major != trans;
    *ld = (rows_are_lines ? columns : rows) + pad;
    return (rows_are_lines ? rows : columns) * *ld;
}

void lab_shape_gemm(const lab_shape *s, rung_layout layout, int64_t pad, rung_gemm *g)
{
    int row = layout == RUNG_ROW_MAJOR;
    rung_gemm_init(g);
    g->layout = layout;
    g->trans_a = s->trans_a;
    g->trans_b = s->trans_b;
    g->m = s->m;
    g->n = s->n;
    g->k = s->k;
    g->batch = s->batch;
    g->stride_a = stored(row, s->trans_a, s->m, s->k, pad, &g->lda);
    g->stride_b = stored(row, s->trans_b, s->k, s->n, pad, &g->ldb);
    g->stride_c = stored(row, 0, s->m, s->n, pad, &g->ldc);
}

void lab_shape_print(const lab_shape *s, char text[LAB_SHAPE_TEXT])
{
    int used = snprintf(text, LAB_SHAPE_TEXT, "%" PRId64 "x%" PRId64 "x%" PRId64, s->m, s->n, s->k);
    if (s->trans_a || s->trans_b || s->batch > 1)
        used += snprintf(text + used, LAB_SHAPE_TEXT - (size_t)used, ":%c%c", s->trans_a ? 'T' : 'N',
                         s->trans_b ? 'T' : 'N');
    if (s->batch > 1)
        used += snprintf(text + used, LAB_SHAPE_TEXT - (size_t)used, "x%" PRId64, s->batch);
    if (s->pad)
        snprintf(text + used, LAB_SHAPE_TEXT - (size_t)used, "+%" PRId64, s->pad);
}

double lab_shape_flops(const lab_shape *s)
{
    return 2.0 * (double)s->m * (double)s->n * (double)s->k * (double)s->batch;
}

double lab_shape_bytes(const lab_shape *s)
{
    double m = (double)s->m, n = (double)s->n, k = (double)s->k;
    return 4.0 * (m * k + k * n + m * n) * (double)s->batch;
}
