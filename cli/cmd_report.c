/* rung report: makes one self-contained page from result files. */
#include "cli/commands.h"
#include "lab/report.h"

int cmd_report(int argc, char **argv)
{
    const char *output = "report.html", *files[256];
    int count = 0;
    const cli_option list[] = {{"o", CLI_TEXT, &output, NULL, "the page; default: report.html"}, {0}};
    int code = cli_parse("report", list, argc, argv, files, &count, 256);
    if (code)
        return code < 0 ? CLI_PASS : code;
    if (count == 0)
        return cli_usage("report takes result files, such as those of rung climb -o or in results/");
    rung_status status = lab_report(files, count, output);
    if (status == RUNG_INVALID_ARGUMENT)
        return cli_usage("report: %s", lab_error());
    if (status != RUNG_SUCCESS)
        return cli_fail_status(status, "report");
    fprintf(stderr, "wrote %s\n", output);
    return CLI_PASS;
}
