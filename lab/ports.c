/* Times loops of FFMAs with chosen registers. The multiprocessor's own clock counts, so neither the clock's frequency
 * nor what else the GPU does changes the figure. */
#include "lab/ports.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 8, TURNS = 2000, PARTITIONS = 4, FROM = PORTS_SUMS + PORTS_SOURCES };

static const ports_pattern patterns[] = {
#define PORTS_PATTERN(symbol, text, row, column, sum, row_stays, column_stays, flags, may_switch)                      \
    {#symbol, text, PORTS_##row, PORTS_##column, PORTS_##sum, row_stays, column_stays, flags, may_switch},
    PORTS_PATTERNS
#undef PORTS_PATTERN
};
enum { PATTERNS = sizeof patterns / sizeof *patterns };
_Static_assert((int)PATTERNS <= (int)LAB_PORTS_PATTERNS, "rows for all patterns");

/* Counts reads. Every FFMA reads its sum; it reads its row or column where the operand cache does not hold it. */
static void count_reads(const ports_pattern *p, double reads[2])
{
    int total[2] = {0, 0};
    for (int i = 0; i < PORTS_FFMAS; i++) {
        total[ports_operand(p, PORTS_SUM, i).bank]++;
        for (int which = PORTS_ROW; which <= PORTS_COLUMN; which++)
            if (i == 0 || !p->flags || !ports_stays(p, which, i - 1))
                total[ports_operand(p, which, i).bank]++;
    }
    reads[0] = (double)total[0] / PORTS_FFMAS;
    reads[1] = (double)total[1] / PORTS_FFMAS;
}

static int by_size(const void *left, const void *right)
{
    int64_t x = *(const int64_t *)left, y = *(const int64_t *)right;
    return (x > y) - (x < y);
}

/* Times a pattern: the median block's cycles for all its FFMAs. `memory` holds FROM floats, the blocks' cycles and
 * their sums. */
static rung_status time_pattern(lab_place *place, void *module, const char *symbol, char *memory, double *measured)
{
    void *function;
    int64_t cycles[BLOCKS];
    ports_args args = {.from = (const float *)memory,
                       .cycles = (int64_t *)(memory + FROM * sizeof(float)),
                       .to = (float *)(memory + FROM * sizeof(float) + sizeof cycles),
                       .turns = TURNS};
    void *parameters[] = {&args};
    const unsigned grid[3] = {BLOCKS, 1, 1};
    LAB_TRY(rung_tools_function(place->tools, module, symbol, &function));
    for (int run = 0; run < 3; run++) /* the last one counts: the code is in the caches then */
        LAB_TRY(rung_tools_launch(place->tools, function, grid, PORTS_THREADS, 0, parameters));
    LAB_TRY(lab_download(place, cycles, args.cycles, sizeof cycles));
    qsort(cycles, BLOCKS, sizeof *cycles, by_size);
    double ffmas = (double)TURNS * PORTS_FFMAS * (PORTS_THREADS / 32) / PARTITIONS;
    *measured = ffmas / (double)cycles[BLOCKS / 2];
    return RUNG_SUCCESS;
}

rung_status lab_ports_time(lab_place *place, lab_ports_row *rows, int *count)
{
    float from[FROM];
    void *module = NULL;
    lab_buffer memory = {0};
    *count = 0;
    if (!place->tools)
        return lab_fail(RUNG_NO_DEVICE, "the loops run on a GPU, and there is none");
    if (rung_tools_describe(place->tools)->arch != 90)
        return lab_fail(RUNG_UNSUPPORTED, "the loops are machine code for compute capability 9.0; this GPU has %d.%d",
                        rung_tools_describe(place->tools)->arch / 10, rung_tools_describe(place->tools)->arch % 10);
    for (int i = 0; i < FROM; i++)
        from[i] = 1.0f + 0.001f * (float)i;
    LAB_TRY(rung_tools_load(place->tools, "lab_ports", &module));
    rung_status status = lab_buffer_reserve(
        place, &memory, (FROM + BLOCKS * PORTS_THREADS) * (int64_t)sizeof(float) + BLOCKS * (int64_t)sizeof(int64_t));
    if (status == RUNG_SUCCESS)
        status = lab_upload(place, memory.at, from, sizeof from);
    for (int i = 0; status == RUNG_SUCCESS && i < PATTERNS; i++) {
        lab_ports_row *row = &rows[(*count)++];
        row->pattern = &patterns[i];
        count_reads(row->pattern, row->reads);
        double busier = row->reads[0] > row->reads[1] ? row->reads[0] : row->reads[1];
        row->predicted = busier > 1.0 ? 1.0 / busier : 1.0;
        status = time_pattern(place, module, row->pattern->symbol, memory.at, &row->measured);
    }
    lab_buffer_free(place, &memory);
    rung_tools_unload(place->tools, module);
    return status;
}
