/* Writes result lines. */
#include "lab/record.h"
#include "lab/names.h"
#include "lab/output.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#ifndef RUNG_COMMIT
#define RUNG_COMMIT "unknown"
#endif

const char *lab_commit(void)
{
    return RUNG_COMMIT;
}

static void record_device(lab_json *json, const lab_place *place, const lab_monitor *monitor)
{
    lab_json_text(json, "device", place->name);
    if (!place->tools) {
        lab_json_integer(json, "threads", place->threads);
        return;
    }
    char toolkit[32];
    const rung_tools_machine *machine = rung_tools_describe(place->tools);
    snprintf(toolkit, sizeof toolkit, "%d.%d", machine->driver_version / 1000, machine->driver_version % 1000 / 10);
    lab_json_text(json, "driver", monitor->driver);
    lab_json_text(json, "cuda", toolkit);
    lab_json_integer(json, "sms", machine->sms);
}

void lab_record_begin(lab_json *json, const char *kind, const char *command, const lab_place *place,
                      const lab_monitor *monitor)
{
    char stamp[32];
    time_t now = time(NULL);
    struct tm utc;
    strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    lab_json_open(json, NULL);
    lab_json_text(json, "kind", kind);
    lab_json_text(json, "time", stamp);
    lab_json_text(json, "command", command);
    lab_json_text(json, "rung", rung_version());
    lab_json_text(json, "commit", lab_commit());
    record_device(json, place, monitor);
}

static void record_stats(lab_json *json, const char *key, const lab_stats *s)
{
    lab_json_open(json, key);
    lab_json_number(json, "median", s->median);
    lab_json_number(json, "min", s->min);
    lab_json_number(json, "max", s->max);
    lab_json_number(json, "noise", s->noise);
    lab_json_integer(json, "samples", s->samples);
    lab_json_close(json);
}

static void record_shape(lab_json *json, const lab_bench *bench, const lab_shape *s)
{
    char text[LAB_SHAPE_TEXT];
    lab_shape_print(s, text);
    lab_json_text(json, "shape", text);
    lab_json_integer(json, "m", s->m);
    lab_json_integer(json, "n", s->n);
    lab_json_integer(json, "k", s->k);
    lab_json_integer(json, "batch", s->batch);
    lab_json_text(json, "layout", bench->options.layout == RUNG_ROW_MAJOR ? "row" : "col");
    lab_json_text(json, "math", lab_math_names[bench->options.math]);
    lab_json_text(json, "data", lab_data_names[bench->options.data]);
    lab_json_number(json, "beta", bench->options.beta);
}

static void record_peers(lab_json *json, const lab_bench *bench, const lab_bench_row *row)
{
    int contender = 1;
    lab_json_list(json, "peers");
    for (int i = 0; i < bench->peer_count; i++) {
        if (row->peer_refused[i])
            continue;
        lab_json_open(json, NULL);
        lab_json_text(json, "name", bench->peers[i].name);
        lab_json_text(json, "version", bench->peers[i].version);
        record_stats(json, "us", &row->time.us[contender]);
        record_stats(json, "ratio", &row->time.ratio[contender]);
        lab_json_number(json, "host_us", row->time.host_us[contender]);
        lab_json_number(json, "error_u", row->peer_error_u[i]);
        lab_json_close(json);
        contender++;
    }
    lab_json_list_end(json);
}

void lab_record_bench(FILE *to, const char *kind, const char *command, const lab_bench *bench, const lab_bench_row *row)
{
    lab_json json = {.to = to};
    lab_record_begin(&json, kind, command, bench->place, &bench->monitor);
    record_shape(&json, bench, &row->shape);
    lab_json_text(&json, "kernel", row->kernel);
    record_stats(&json, "us", &row->time.us[0]);
    lab_json_number(&json, "gflops", row->gflops);
    lab_json_number(&json, "error_u", row->error_u);
    lab_json_number(&json, "bound_u", row->bound_u);
    lab_json_number(&json, "chain_u", row->chain_u);
    lab_json_number(&json, "floor_us", row->floor_us);
    if (!bench->place->tools) {
        lab_json_number(&json, "fma_peak_gflops", bench->peak_gflops);
        lab_json_integer(&json, "samples_disturbed", row->time.disturbed);
    }
    lab_json_integer(&json, "operand_sets", row->sets);
    lab_json_integer(&json, "graph", bench->options.graph);
    if (bench->place->tools)
        lab_json_number(&json, "host_us", row->time.host_us[0]);
    if (row->time.sm_mhz) {
        lab_json_integer(&json, "sm_mhz", row->time.sm_mhz);
        lab_json_number(&json, "power_w", row->time.power_w);
        lab_json_integer(&json, "rounds_discarded", row->time.discarded);
        lab_json_integer(&json, "rounds_power_capped", row->time.power_capped);
    }
    record_peers(&json, bench, row);
    lab_json_close(&json);
    lab_json_end_line(&json);
}

/* Returns whether a file ends in the middle of a line, as one whose disk was full does. */
static int ends_within_line(FILE *to, const char *file)
{
    struct stat there;
    char last = '\n';
    if (fstat(fileno(to), &there) != 0 || !S_ISREG(there.st_mode) || there.st_size == 0)
        return 0;
    int from = open(file, O_RDONLY | O_CLOEXEC);
    if (from < 0)
        return 0;
    const ssize_t got = pread(from, &last, 1, there.st_size - 1);
    close(from);
    return got == 1 && last != '\n';
}

FILE *lab_record_open(const char *file)
{
    enum { LONGEST_LINE = 1 << 16 }; /* goes out as one: two runs may append to a file */
    FILE *to = fopen(file, "a");
    if (!to) {
        lab_cannot_write(file);
        return NULL;
    }
    setvbuf(to, NULL, _IOFBF, LONGEST_LINE);
    if (ends_within_line(to, file))
        fputc('\n', to);
    return to;
}
