/* A row begins with a pair that no row has yet. Each further factor, in a random order, takes the value that stands in
 * the most new pairs with those already chosen. */
#include "lab/covering.h"

#include <stdint.h>
#include <string.h>

typedef struct cover {
    const int *levels;
    int factors;
    uint64_t random;
    unsigned char seen[LAB_FACTORS][LAB_LEVELS][LAB_FACTORS][LAB_LEVELS];
} cover;

static int below(cover *c, int count)
{
    c->random = c->random * 6364136223846793005u + 1442695040888963407u;
    return (int)((c->random >> 33) % (uint64_t)count);
}

/* Counts the new pairs that value v of factor f makes with the factors of the row that are set. */
static int gain(const cover *c, const unsigned char *row, const int *set, int f, int v)
{
    int new_pairs = 0;
    for (int g = 0; g < c->factors; g++)
        new_pairs += g != f && set[g] && !c->seen[f][v][g][row[g]];
    return new_pairs;
}

static void complete(cover *c, unsigned char *row, int *set)
{
    int first = below(c, c->factors);
    for (int i = 0; i < c->factors; i++) {
        int f = (first + i) % c->factors, best = -1;
        if (set[f])
            continue;
        int start = below(c, c->levels[f]);
        for (int j = 0; j < c->levels[f]; j++) {
            int v = (start + j) % c->levels[f], new_pairs = gain(c, row, set, f, v);
            if (new_pairs > best) {
                best = new_pairs;
                row[f] = (unsigned char)v;
            }
        }
        set[f] = 1;
    }
}

static void mark(cover *c, const unsigned char *row)
{
    for (int f = 0; f < c->factors; f++)
        for (int g = 0; g < c->factors; g++)
            c->seen[f][row[f]][g][row[g]] = 1;
}

/* Begins a row with the first pair that is missing. It returns 0 where none is. */
static int begin(const cover *c, unsigned char *row, int *set)
{
    memset(set, 0, LAB_FACTORS * sizeof *set);
    for (int f = 0; f < c->factors; f++)
        for (int g = f + 1; g < c->factors; g++)
            for (int v = 0; v < c->levels[f]; v++)
                for (int w = 0; w < c->levels[g]; w++)
                    if (!c->seen[f][v][g][w]) {
                        row[f] = (unsigned char)v, row[g] = (unsigned char)w;
                        set[f] = set[g] = 1;
                        return 1;
                    }
    return 0;
}

void lab_cover_pairs(const int *levels, int factors, lab_covering *out)
{
    cover c = {.levels = levels, .factors = factors, .random = 1};
    int set[LAB_FACTORS];
    memset(out, 0, sizeof *out);
    while (out->count < LAB_ROWS && begin(&c, out->row[out->count], set)) {
        complete(&c, out->row[out->count], set);
        mark(&c, out->row[out->count++]);
    }
}
