/* rung profile --ports: how fast FFMAs issue with chosen registers, beside what counting the register reads says. */
#include "cli/commands.h"
#include "cli/profile.h"
#include "lab/ports.h"
#include "lab/record.h"

static const cli_column columns[] = {{"pattern", "FFMAs with", 52, -1},
                                     {"reads_even", "even reads", 10, 2},
                                     {"reads_odd", "odd reads", 9, 2},
                                     {"predicted", "predicted", 9, 3},
                                     {"measured", "measured", 9, 3},
                                     {"tflops", "TFLOP/s", 8, 1},
                                     {0}};

static void write_rows(FILE *to, const lab_place *place, const lab_ports_row *rows, int count, double peak)
{
    lab_monitor monitor;
    lab_monitor_open(&monitor, place);
    for (int i = 0; i < count; i++) {
        lab_json json = {.to = to};
        lab_record_begin(&json, "ports", "rung profile --ports", place, &monitor);
        lab_json_text(&json, "symbol", rows[i].pattern->symbol);
        lab_json_text(&json, "pattern", rows[i].pattern->text);
        lab_json_number(&json, "reads_even", rows[i].reads[0]);
        lab_json_number(&json, "reads_odd", rows[i].reads[1]);
        lab_json_number(&json, "predicted", rows[i].predicted);
        lab_json_number(&json, "measured", rows[i].measured);
        lab_json_number(&json, "tflops", rows[i].measured * peak);
        lab_json_close(&json);
        lab_json_end_line(&json);
    }
    lab_monitor_close(&monitor);
}

int cli_profile_ports(int format, const char *file)
{
    lab_place place;
    lab_ports_row rows[LAB_PORTS_PATTERNS];
    cli_table table;
    int count = 0;
    FILE *to = NULL;
    if (file && !(to = cli_open_record(file)))
        return cli_usage("%s", lab_error());
    rung_status status = lab_place_open(&place, RUNG_DEVICE_BEST, 0);
    if (status != RUNG_SUCCESS)
        return cli_close_record(to, file, cli_fail_status(status, "profile --ports"));
    status = lab_ports_time(&place, rows, &count);
    double peak = place.tools ? rung_tools_describe(place.tools)->fma_gflops / 1000 : 0.0;
    if (status == RUNG_SUCCESS) {
        cli_table_begin(&table, (cli_format)format, columns);
        for (int i = 0; i < count; i++) {
            cli_text(&table, rows[i].pattern->text);
            cli_number(&table, rows[i].reads[0]);
            cli_number(&table, rows[i].reads[1]);
            cli_number(&table, rows[i].predicted);
            cli_number(&table, rows[i].measured);
            cli_number(&table, rows[i].measured * peak);
        }
        cli_note(&table,
                 "reads of even and odd registers an FFMA; FFMAs a cycle of a partition (TFLOP/s: of the whole GPU)");
    }
    int code = status == RUNG_SUCCESS ? CLI_PASS : cli_fail_status(status, "profile --ports");
    if (code == CLI_PASS && to)
        write_rows(to, &place, rows, count, peak);
    lab_place_close(&place);
    return cli_close_record(to, file, code);
}
