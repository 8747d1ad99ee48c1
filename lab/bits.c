/* Kept bits: each line of a list is run, hashed, and compared with the hash that stands beside it. */
#define _GNU_SOURCE /* getline */
#include "lab/bits.h"

#include <ctype.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HASH_TEXT = 24, KERNEL_TEXT = 64 };

typedef struct bits_line {
    char kernel[KERNEL_TEXT], text[LAB_CASE_TEXT], kept[HASH_TEXT]; /* kept is empty where there was none */
} bits_line;

/* Returns 1 where a line was read, 0 where it holds a comment or nothing. */
static int read_line(char *text, bits_line *line)
{
    char *comment = strchr(text, '#');
    if (comment)
        *comment = 0;
    memset(line, 0, sizeof *line);
    return sscanf(text, "%63s %207s %23s", line->kernel, line->text, line->kept) > 0;
}

static void count(lab_bits_counts *counts, const bits_line *line, const char *hash)
{
    if (!line->kept[0])
        counts->new_ones++;
    else if (strcmp(line->kept, hash) == 0)
        counts->same++;
    else {
        counts->differ++;
        fprintf(stderr, "FAIL %s %s: the bits were %s and are %s\n", line->kernel, line->text, line->kept, hash);
    }
}

/* Reads one size: a number, or a sum of such terms as 2m, k and n/2 of the kernel's tile. *text is moved behind it. */
static int64_t read_size(const char **text, const rung_kernel *kernel)
{
    int64_t sum = 0;
    for (int sign = 1;; sign = *(*text)++ == '-' ? -1 : 1) {
        char *end, *after;
        int64_t term = strtoll(*text, &end, 10);
        if (*end && strchr("mnk", *end)) {
            const int m = kernel->bm ? kernel->bm : kernel->tm, n = kernel->bn ? kernel->bn : kernel->tn;
            term = (end == *text ? 1 : term) * (*end == 'm' ? m : *end == 'n' ? n : kernel->bk);
            end++;
            const int64_t parts = *end == '/' && isdigit((unsigned char)end[1]) ? strtoll(end + 1, &after, 10) : 0;
            if (parts) {
                term /= parts;
                end = after;
            }
        }
        sum += sign * term;
        *text = end;
        if (*end != '+' && *end != '-')
            return sum;
    }
}

/* Makes the case of a pattern's line for one kernel: the letters in its three sizes stand for the tile's. */
static void sizes_of_tile(const char *text, const rung_kernel *kernel, char out[LAB_CASE_TEXT])
{
    const char *sizes = strchr(text, ':'), *rest = sizes ? sizes + 1 : text;
    if (!sizes) {
        snprintf(out, LAB_CASE_TEXT, "%s", text);
        return;
    }
    const int64_t m = read_size(&rest, kernel);
    rest += *rest == 'x';
    const int64_t n = read_size(&rest, kernel);
    rest += *rest == 'x';
    const int64_t k = read_size(&rest, kernel);
    snprintf(out, LAB_CASE_TEXT, "%.*s:%" PRId64 "x%" PRId64 "x%" PRId64 "%s", (int)(sizes - text), text, m, n, k,
             rest);
}

static rung_status run_case(lab_verifier *v, const rung_kernel *kernel, const bits_line *line, FILE *out,
                            lab_bits_counts *counts)
{
    lab_case c;
    lab_verdict verdict;
    char hash[HASH_TEXT] = "-";
    LAB_TRY(lab_case_parse(line->text, &c));
    LAB_TRY(lab_verify(v, kernel, &c, &verdict));
    if (verdict.outcome == LAB_FAIL)
        return lab_fail(RUNG_INTERNAL, "%s %s: %s", line->kernel, line->text, verdict.why);
    if (verdict.outcome == LAB_SKIP)
        counts->refused++;
    else
        snprintf(hash, sizeof hash, "%016" PRIx64, verdict.bits);
    if (verdict.outcome != LAB_SKIP || line->kept[0])
        count(counts, line, hash);
    fprintf(out, "%s %s %s\n", line->kernel, line->text, hash);
    return RUNG_SUCCESS;
}

static rung_status run_line(lab_verifier *v, const bits_line *line, FILE *out, lab_bits_counts *counts)
{
    const int pattern = strpbrk(line->kernel, "*?[") != NULL;
    int found = 0;
    for (int i = 0; i < rung_kernel_count(); i++) {
        const rung_kernel *kernel = rung_kernel_at(i);
        if (fnmatch(line->kernel, kernel->name, 0) != 0 || rung_kernel_unusable(v->context, kernel))
            continue;
        bits_line one = *line;
        snprintf(one.kernel, sizeof one.kernel, "%s", kernel->name);
        if (pattern)
            sizes_of_tile(line->text, kernel, one.text);
        LAB_TRY(run_case(v, kernel, &one, out, counts));
        found = 1;
    }
    counts->unknown += !found;
    return RUNG_SUCCESS;
}

rung_status lab_bits(lab_verifier *v, FILE *list, FILE *out, lab_bits_counts *counts)
{
    char *text = NULL;
    size_t room = 0;
    bits_line line;
    rung_status status = RUNG_SUCCESS;
    memset(counts, 0, sizeof *counts);
    v->bits_alone = 1;
    while (status == RUNG_SUCCESS && getline(&text, &room, list) >= 0)
        if (read_line(text, &line))
            status = run_line(v, &line, out, counts);
    free(text);
    if (status != RUNG_SUCCESS)
        return status;
    return ferror(list) ? lab_fail(RUNG_INTERNAL, "the list of products cannot be read to its end") : RUNG_SUCCESS;
}
