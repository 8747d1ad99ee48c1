/* rung profile of the CPU's rungs: what valgrind's cachegrind counted of each, from a file that
 * tools/pages/cpu_counts.py made; a CPU's own counters are kept to administrators on most machines, and these are the
 * same on all. */
#include "cli/commands.h"
#include "cli/profile.h"
#include "lab/profile.h"

#include <math.h>

static const cli_column columns[] = {{"kernel", "kernel", 18, -1}, {"metric", "metric", 24, -1},
                                     {"count", "count", 14, 0},    {"per_multiply_add", "a multiply-add", 14, 4},
                                     {"meaning", "", 40, -1},      {0}};

typedef struct metric {
    const char *key, *what, *meaning;
} metric;

static const metric metrics[] = {
    {"instructions", "instructions", "all that the rung's own file executes; one may do several multiply-adds"},
    {"reads", "loads", "instructions that read memory, however wide"},
    {"writes", "stores", "instructions that write memory"},
    {"l1_misses", "misses of L1",
     "loads and stores whose line of 64 bytes was not in 32 KB; no prefetcher is modelled"},
    {"l2_misses", "misses of L2", "of them, those not in 1 MB either: they go to L3 or memory"},
};
enum { METRICS = sizeof metrics / sizeof metrics[0] };

int cli_profile_cpu(const char **words, int count, const profile_size *size, const char *file, int format)
{
    const char *keys[METRICS];
    cli_table table;
    if (profile_is_sum(size))
        return cli_usage("%s is a product: its size is MxNxK", words[0]);
    if (!file)
        return cli_usage("%s is a CPU kernel: its counts are read from a file, --counters "
                         "results/ladder-cpu-counts.jsonl (tools/pages/cpu_counts.py makes one, with valgrind)",
                         words[0]);
    for (int i = 0; i < METRICS; i++)
        keys[i] = metrics[i].key;
    cli_table_begin(&table, (cli_format)format, columns);
    for (int i = 0; i < count; i++) {
        double values[METRICS];
        rung_status status = lab_counts_read(file, words[i], size->m, size->n, size->k, keys, METRICS, values);
        if (status != RUNG_SUCCESS)
            return cli_fail_file(status);
        for (int j = 0; j < METRICS; j++) {
            cli_text(&table, words[i]);
            cli_text(&table, metrics[j].what);
            cli_number(&table, values[j]);
            cli_number(&table, values[j] / ((double)size->m * (double)size->n * (double)size->k));
            cli_text(&table, metrics[j].meaning);
        }
    }
    return CLI_PASS;
}
