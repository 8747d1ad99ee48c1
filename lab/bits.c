/* Kept bits: each line of a list is run, hashed, and compared with the hash that stands beside it. */
#include "lab/bits.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { HASH_TEXT = 24, LINE_TEXT = 512, KERNEL_TEXT = 64 };

typedef struct bits_line {
    char kernel[KERNEL_TEXT], text[LAB_CASE_TEXT], kept[HASH_TEXT]; /* kept: empty where there was none */
} bits_line;

/* Returns 1 where a line was read, 0 where it holds a comment or nothing. */
static int read_line(char *text, bits_line *line)
{
    char *comment = strchr(text, '#');
    if (comment)
        *comment = 0;
    memset(line, 0, sizeof *line);
    return sscanf(text, "%63s %159s %23s", line->kernel, line->text, line->kept) > 0;
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

static rung_status run_line(lab_verifier *v, const bits_line *line, FILE *out, lab_bits_counts *counts)
{
    lab_case c;
    lab_verdict verdict;
    char hash[HASH_TEXT] = "-";
    const rung_kernel *kernel = rung_kernel_find(line->kernel);
    LAB_TRY(lab_case_parse(line->text, &c));
    if (!kernel || rung_kernel_unusable(v->context, kernel)) {
        counts->unknown++;
        return RUNG_SUCCESS;
    }
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

rung_status lab_bits(lab_verifier *v, FILE *list, FILE *out, lab_bits_counts *counts)
{
    char text[LINE_TEXT];
    bits_line line;
    memset(counts, 0, sizeof *counts);
    v->bits_alone = 1;
    while (fgets(text, sizeof text, list))
        if (read_line(text, &line))
            LAB_TRY(run_line(v, &line, out, counts));
    return RUNG_SUCCESS;
}
