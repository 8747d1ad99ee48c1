/* Gives the names of enums, and the nearest name to a misspelt one. */
#include "lab/names.h"

#include <string.h>

const char *const lab_data_names[] = {"signed",  "positive", "normal",   "span10",   "span24",   "span40",
                                      "span100", "sparse",   "integers", "scaled",   "spike",    "across",
                                      "trap",    "unit",     "halves",   "constant", "outliers", "subnormal",
                                      "large",   "softmax",  "fixed",    "fuzz",     "special",  NULL};
const char *const lab_math_names[] = {"strict", "accurate", "fast", NULL};
const char *const lab_layout_names[] = {"col", "row", NULL};
const char *const lab_arith_names[] = {"f32",   "tf32",        "tf32x3",      "bf16x6", "bf16x9",
                                       "f16x3", "f16x3_chain", "f16x3_alone", NULL};
const char *const lab_role_names[] = {"ladder", "production", "reduce", NULL};
const char *const lab_via_names[] = {"direct", "host", "graph", "blas", "cublas", "ranks", NULL};

int lab_name_find(const char *const *names, const char *word)
{
    for (int i = 0; names[i]; i++)
        if (strcmp(names[i], word) == 0)
            return i;
    return -1;
}

enum { LONGEST = 63 };

static int smaller(int x, int y)
{
    return x < y ? x : y;
}

/* Returns Levenshtein's distance, computed one row at a time. Words longer than LONGEST are cut. */
static int distance(const char *x, const char *y)
{
    int row[LONGEST + 1];
    int length_x = smaller((int)strlen(x), LONGEST), length_y = smaller((int)strlen(y), LONGEST);
    for (int j = 0; j <= length_y; j++)
        row[j] = j;
    for (int i = 1; i <= length_x; i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= length_y; j++) {
            int substitute = diagonal + (x[i - 1] != y[j - 1]);
            diagonal = row[j];
            row[j] = smaller(substitute, smaller(row[j], row[j - 1]) + 1);
        }
    }
    return row[length_y];
}

typedef struct nearest {
    const char *name;
    int distance;
} nearest;

static void consider(nearest *best, const char *name, const char *word)
{
    int d = strstr(name, word) && word[0] ? 1 : distance(name, word);
    if (!best->name || d < best->distance)
        *best = (nearest){name, d};
}

static const char *accept(const nearest *best, const char *word)
{
    int limit = (int)strlen(word) / 2;
    return best->name && best->distance <= (limit > 2 ? limit : 2) ? best->name : NULL;
}

const char *lab_name_nearest(const char *const *names, const char *word)
{
    nearest best = {NULL, 0};
    for (int i = 0; names[i]; i++)
        consider(&best, names[i], word);
    return accept(&best, word);
}

const char *lab_kernel_nearest(const char *word)
{
    nearest best = {NULL, 0};
    for (int i = 0; i < rung_kernel_count(); i++)
        consider(&best, rung_kernel_at(i)->name, word);
    return accept(&best, word);
}
