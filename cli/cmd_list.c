/* rung list: the catalog as a table. */
#include "cli/commands.h"
#include "lab/names.h"

#include <math.h>
#include <string.h>

static const char *const list_devices[] = {"cpu", "gpu", NULL};

static void tile_text(const rung_kernel *k, char *text, size_t bytes)
{
    text[0] = 0;
    if (k->bm && k->bk)
        snprintf(text, bytes, "%dx%dx%d", k->bm, k->bn, k->bk);
    else if (k->tm)
        snprintf(text, bytes, "%dx%d", k->tm, k->tn);
}

static void accepts_text(const rung_kernel *k, char *text, size_t bytes)
{
    static const char *const words[] = {"NN", "NT", "TN", "TT", "batch", "arrays", "epilogue", "scalars"};
    text[0] = 0;
    for (int i = 0; i < 8; i++)
        if (k->accepts >> i & 1) {
            size_t used = strlen(text);
            snprintf(text + used, bytes - used, "%s%s", used ? " " : "", words[i]);
        }
}

static void print_row(cli_table *table, const rung_kernel *k)
{
    char tile[32], accepts[64];
    tile_text(k, tile, sizeof tile);
    accepts_text(k, accepts, sizeof accepts);
    cli_text(table, k->name);
    cli_text(table, k->backend == RUNG_BACKEND_CPU ? "cpu" : "gpu");
    cli_text(table, lab_role_names[k->role]);
    cli_text(table, lab_arith_names[k->arith]);
    cli_text(table, tile);
    cli_number(table, k->threads ? (double)k->threads : NAN);
    cli_number(table, k->arch ? (double)k->arch : NAN);
    if (table->format != CLI_TABLE) {
        cli_text(table, accepts);
        cli_text(table, k->file);
        cli_text(table, k->previous ? k->previous : "");
        cli_text(table, k->seeds ? k->seeds : "");
    }
    cli_text(table, k->idea ? k->idea : "");
}

static int wanted(const rung_kernel *k, int device, int role, const char **words, int count)
{
    if ((device >= 0 && (int)k->backend != device) || (role >= 0 && (int)k->role != role))
        return 0;
    for (int i = 0; i < count; i++)
        if (strstr(k->name, words[i]))
            return 1;
    return count == 0;
}

int cmd_list(int argc, char **argv)
{
    static const cli_column brief[] = {
        {"name", "kernel", 36, -1}, {"device", "on", 3, -1},  {"role", "role", 10, -1},
        {"math", "math", 11, -1},   {"tile", "tile", 13, -1}, {"threads", "threads", 7, 0},
        {"arch", "arch", 4, 0},     {"idea", "idea", 40, -1}, {0}};
    static const cli_column full[] = {{"name", "", 0, -1},
                                      {"device", "", 0, -1},
                                      {"role", "", 0, -1},
                                      {"math", "", 0, -1},
                                      {"tile", "", 0, -1},
                                      {"threads", "", 0, 0},
                                      {"arch", "", 0, 0},
                                      {"accepts", "", 0, -1},
                                      {"file", "", 0, -1},
                                      {"previous", "", 0, -1},
                                      {"seeds", "", 0, -1},
                                      {"idea", "", 0, -1},
                                      {0}};
    int format = CLI_TABLE, device = -1, role = -1, count;
    const char *words[16];
    const cli_option options[] = {{"device", CLI_CHOICE, &device, list_devices, "only the kernels of cpu or gpu"},
                                  {"role", CLI_CHOICE, &role, lab_role_names, "ladder, production or reduce"},
                                  CLI_FORMAT(format),
                                  {0}};
    int code = cli_parse("list", options, argc, argv, words, &count, 16);
    if (code)
        return code < 0 ? CLI_PASS : code;
    for (int word = 0; word < count; word++) {
        int found = 0;
        for (int i = 0; i < rung_kernel_count(); i++)
            found += wanted(rung_kernel_at(i), device, role, &words[word], 1);
        if (!found)
            return cli_unknown_kernel(words[word]);
    }
    cli_table table;
    if (format == CLI_TABLE)
        cli_table_begin(&table, CLI_TABLE, brief);
    else
        cli_table_begin(&table, (cli_format)format, full);
    for (int i = 0; i < rung_kernel_count(); i++)
        if (wanted(rung_kernel_at(i), device, role, words, count))
            print_row(&table, rung_kernel_at(i));
    return CLI_PASS;
}
