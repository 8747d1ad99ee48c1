/* Reads and prints cases as text: the shape comes first, then what differs from the default. */
#include "lab/case.h"
#include "lab/shape.h"
#include "lab/names.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const form_names[] = {"single", "strided", "shared_b", "arrays", NULL};
static const char *const bias_names[] = {"none", "row", "column", NULL};
static const char *const activation_names[] = {"identity", "relu", "gelu", NULL};
static const char *const scalars_names[] = {"host", "device", "alpha", "beta", NULL}; /* which of them are there */

void lab_case_init(lab_case *c)
{
    memset(c, 0, sizeof *c);
    c->alpha = 1.0f;
    c->batch = 1;
    c->seed = 1;
}

static char *add(char *at, const char *end, const char *format, ...) __attribute__((format(printf, 3, 4)));

static char *add(char *at, const char *end, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int wrote = vsnprintf(at, (size_t)(end - at), format, list);
    va_end(list);
    return wrote < end - at ? at + wrote : (char *)(uintptr_t)end - 1;
}

/* Adds a factor with as many digits as it takes to read the same one again. */
static char *add_factor(char *at, const char *end, const char *name, float factor)
{
    char text[32];
    snprintf(text, sizeof text, "%g", (double)factor);
    const int same = strtof(text, NULL) == factor;
    return same ? add(at, end, ",%s=%s", name, text) : add(at, end, ",%s=%.9g", name, (double)factor);
}

void lab_case_print(const lab_case *c, char text[LAB_CASE_TEXT])
{
    char *at = text;
    const char *end = text + LAB_CASE_TEXT;
    at = add(at, end, "%c%c:%" PRId64 "x%" PRId64 "x%" PRId64 ":%s", c->trans_a ? 'T' : 'N', c->trans_b ? 'T' : 'N',
             c->m, c->n, c->k, c->layout == RUNG_ROW_MAJOR ? "row" : "col");
    if (c->form != LAB_SINGLE)
        at = add(at, end, ",%s=%" PRId64, form_names[c->form], c->batch);
    if (c->pad)
        at = add(at, end, ",pad=%" PRId64, c->pad);
    if (c->offset)
        at = add(at, end, ",offset=%" PRId64, c->offset);
    if (c->a_pad)
        at = add(at, end, ",apad=%" PRId64, c->a_pad);
    if (c->a_offset)
        at = add(at, end, ",aoffset=%" PRId64, c->a_offset);
    if (c->c_pad)
        at = add(at, end, ",cpad=%" PRId64, c->c_pad);
    if (c->c_offset)
        at = add(at, end, ",coffset=%" PRId64, c->c_offset);
    if (c->alpha != 1.0f)
        at = add_factor(at, end, "alpha", c->alpha);
    if (c->beta != 0.0f)
        at = add_factor(at, end, "beta", c->beta);
    if (c->data != LAB_SIGNED)
        at = add(at, end, ",data=%s", lab_data_names[c->data]);
    if (c->added_special)
        at = add(at, end, ",added=special");
    if (c->bias)
        at = add(at, end, ",bias=%s", bias_names[c->bias]);
    if (c->activation)
        at = add(at, end, ",act=%s", activation_names[c->activation]);
    if (c->device_scalars)
        at = add(at, end, ",scalars=%s", scalars_names[c->device_scalars]);
    if (c->workspace_kib)
        at = add(at, end, ",workspace=%" PRId64, c->workspace_kib);
    if (c->accuracy)
        at = add(at, end, ",judge=accuracy");
    if (c->seed != 1)
        add(at, end, ",seed=%" PRIu32, c->seed);
}

/* Returns the length of a case that has this name; NULL where none has. */
static int64_t *number_named(lab_case *c, const char *word)
{
    static const char *const names[] = {"pad", "offset", "apad", "aoffset", "cpad", "coffset", NULL};
    int64_t *const numbers[] = {&c->pad, &c->offset, &c->a_pad, &c->a_offset, &c->c_pad, &c->c_offset};
    int index = lab_name_find(names, word);
    return index >= 0 ? numbers[index] : NULL;
}

/* Returns whether the value is a number, which is *into then. */
static int read_number(const char *value, int64_t *into)
{
    char *end;
    *into = strtoll(value, &end, 10);
    return end != value && *end == 0;
}

static int read_float(const char *value, float *into)
{
    char *end;
    *into = strtof(value, &end);
    return end != value && *end == 0;
}

static rung_status parse_word(const char *word, const char *value, lab_case *c)
{
    int form = lab_name_find(form_names, word), index;
    int64_t number, *named = number_named(c, word);
    float *factor = strcmp(word, "alpha") == 0 ? &c->alpha : strcmp(word, "beta") == 0 ? &c->beta : NULL;
    if (strcmp(word, "row") == 0)
        c->layout = RUNG_ROW_MAJOR;
    else if (strcmp(word, "col") == 0)
        c->layout = RUNG_COL_MAJOR;
    else if (!value)
        return lab_fail(RUNG_INVALID_ARGUMENT, "case: '%s' needs a value (%s=...)", word, word);
    else if (form >= 0 && read_number(value, &c->batch))
        c->form = (lab_form)form;
    else if (named && read_number(value, named))
        return RUNG_SUCCESS;
    else if (factor && read_float(value, factor))
        return RUNG_SUCCESS;
    else if (strcmp(word, "seed") == 0 && read_number(value, &number) && number == (uint32_t)number)
        c->seed = (uint32_t)number;
    else if (strcmp(word, "data") == 0 && (index = lab_name_find(lab_data_names, value)) >= 0)
        c->data = (lab_data)index;
    else if (strcmp(word, "bias") == 0 && (index = lab_name_find(bias_names, value)) >= 0)
        c->bias = (rung_bias)index;
    else if (strcmp(word, "act") == 0 && (index = lab_name_find(activation_names, value)) >= 0)
        c->activation = (rung_activation)index;
    else if (strcmp(word, "added") == 0 && strcmp(value, "special") == 0)
        c->added_special = 1;
    else if (strcmp(word, "scalars") == 0 && (index = lab_name_find(scalars_names, value)) >= 0)
        c->device_scalars = (lab_scalars)index;
    else if (strcmp(word, "workspace") == 0 && read_number(value, &number) && number > 0 && number < (int64_t)1 << 40)
        c->workspace_kib = number;
    else if (strcmp(word, "judge") == 0 && strcmp(value, "accuracy") == 0)
        c->accuracy = 1;
    else
        return lab_fail(RUNG_INVALID_ARGUMENT, "case: cannot read '%s=%s'", word, value);
    return RUNG_SUCCESS;
}

/* Copies the words behind the sizes. Returns 0 where what follows is none, has a blank, or is too long: part of it
 * would be passed over, and another case verified. */
static int copy_rest(const char *text, int sizes_end, char rest[LAB_CASE_TEXT])
{
    const char *at = text + sizes_end;
    if (*at == ':')
        snprintf(rest, LAB_CASE_TEXT, "%s", at + 1);
    return (!*at || *at == ':') && !text[strcspn(text, " \t\r\n")] && strlen(text) < LAB_CASE_TEXT;
}

rung_status lab_case_parse(const char *text, lab_case *c)
{
    char a, b, rest[LAB_CASE_TEXT] = "";
    int sizes_end = 0;
    lab_case_init(c);
    int fields = sscanf(text, "%c%c:%" SCNd64 "x%" SCNd64 "x%" SCNd64 "%n", &a, &b, &c->m, &c->n, &c->k, &sizes_end);
    if (fields < 5 || !strchr("NT", a) || !strchr("NT", b) || c->m < 0 || c->n < 0 || c->k < 0 ||
        !copy_rest(text, sizes_end, rest))
        return lab_fail(RUNG_INVALID_ARGUMENT, "case '%s': expected such as NN:35x700x2048:col,pad=3", text);
    c->trans_a = a == 'T' ? RUNG_TRANS : RUNG_NO_TRANS;
    c->trans_b = b == 'T' ? RUNG_TRANS : RUNG_NO_TRANS;
    char *save = NULL;
    for (char *word = strtok_r(rest, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
        char *value = strchr(word, '=');
        if (value)
            *value++ = 0;
        LAB_TRY(parse_word(word, value, c));
    }
    const int64_t extra[] = {c->pad, c->offset, c->a_pad, c->a_offset, c->c_pad, c->c_offset};
    int64_t most = 0;
    for (int i = 0; i < 6; i++) {
        if (c->batch < 1 || extra[i] < 0)
            return lab_fail(RUNG_INVALID_ARGUMENT, "case '%s': batch, pads and offsets must not be negative", text);
        if (__builtin_add_overflow(most, extra[i], &most))
            most = INT64_MAX;
    }
    return lab_sizes_check(c->m, c->n, c->k, c->batch, most);
}
