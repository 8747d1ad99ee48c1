/* Draws a traced context's spans as SVG, or writes them as the JSON that chrome://tracing and Perfetto read. */
#include "lab/error.h"
#include "lab/json.h"
#include "lab/multi.h"
#include "lab/output.h"

#include <stdlib.h>
#include <string.h>

enum { WIDTH = 1200, LEFT = 170, ROW = 16, TOP = 22 };

/* The picture has a row for each lane that did something, in order of rank, then of lane. */
typedef struct row {
    int rank;
    const char *lane;
} row;

static int lane_order(const char *lane)
{
    static const char *const order[] = {"copy in",   "copy between GPUs", "product", "product 2",
                                        "product 3", "product 4",         "copy out"};
    int i = 0;
    while (i < 7 && strcmp(order[i], lane) != 0)
        i++;
    return i;
}

static int by_place(const void *left, const void *right)
{
    const row *x = left, *y = right;
    return x->rank != y->rank ? x->rank - y->rank : lane_order(x->lane) - lane_order(y->lane);
}

static int find_rows(const rung_span *spans, int count, row *rows)
{
    int found = 0;
    for (int i = 0; i < count; i++) {
        int j = 0;
        while (j < found && (rows[j].rank != spans[i].rank || strcmp(rows[j].lane, spans[i].lane) != 0))
            j++;
        if (j == found)
            rows[found++] = (row){spans[i].rank, spans[i].lane};
    }
    qsort(rows, (size_t)found, sizeof *rows, by_place);
    return found;
}

static const char *colour(const rung_span *s)
{
    if (strncmp(s->lane, "product", 7) == 0)
        return "#3b7dd8";
    return strcmp(s->lane, "copy out") == 0 ? "#7a9e3f" : s->what[0] == 'A' ? "#d8843b" : "#c94f4f";
}

/* The words beside the colours, in one line above the rows. */
static void write_legend(FILE *to)
{
    static const struct {
        const char *colour, *means;
    } entries[] = {{"#3b7dd8", "product"},
                   {"#d8843b", "copy of a panel of A"},
                   {"#c94f4f", "copy of a panel of B"},
                   {"#7a9e3f", "copy of C out"}};
    for (int i = 0; i < 4; i++)
        fprintf(to,
                "<rect x=\"%d\" y=\"5\" width=\"10\" height=\"10\" fill=\"%s\"/><text x=\"%d\" y=\"14\">%s</text>\n",
                LEFT + 160 * i, entries[i].colour, LEFT + 160 * i + 15, entries[i].means);
}

/* `rows` has room for a row a span. */
static void write_svg(FILE *to, const rung_span *spans, int count, row *rows)
{
    int found = find_rows(spans, count, rows);
    double start = 1e300, stop = 0.0;
    for (int i = 0; i < count; i++) {
        start = spans[i].start_us < start ? spans[i].start_us : start;
        stop = spans[i].stop_us > stop ? spans[i].stop_us : stop;
    }
    double scale = (WIDTH - LEFT - 10) / (stop > start ? stop - start : 1.0);
    fprintf(to,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\" "
            "font-family=\"DejaVu Sans,Verdana,sans-serif\" font-size=\"11\">\n"
            "<title>What each rank's GPU did, and when: %.3f ms in all</title>\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
            WIDTH, TOP + ROW * (found + 2), WIDTH, TOP + ROW * (found + 2), (stop - start) * 1e-3);
    write_legend(to);
    for (int j = 0; j < found; j++)
        fprintf(to, "<text x=\"4\" y=\"%d\">rank %d %s</text>\n", TOP + ROW * j + 12, rows[j].rank, rows[j].lane);
    for (int i = 0; i < count; i++) {
        int j = 0;
        while (j + 1 < found && (rows[j].rank != spans[i].rank || strcmp(rows[j].lane, spans[i].lane) != 0))
            j++;
        double wide = (spans[i].stop_us - spans[i].start_us) * scale;
        fprintf(to,
                "<rect x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\" fill=\"%s\" stroke=\"white\" "
                "stroke-width=\"0.3\"><title>%s: %.1f us</title></rect>\n",
                LEFT + (spans[i].start_us - start) * scale, TOP + ROW * j + 2, wide > 0.3 ? wide : 0.3, ROW - 4,
                colour(&spans[i]), spans[i].what, spans[i].stop_us - spans[i].start_us);
    }
    fprintf(to, "<text x=\"%d\" y=\"%d\">0</text><text x=\"%d\" y=\"%d\" text-anchor=\"end\">%.3f ms</text>\n</svg>\n",
            LEFT, TOP + ROW * found + 14, WIDTH - 10, TOP + ROW * found + 14, (stop - start) * 1e-3);
}

static void write_trace(FILE *to, const rung_span *spans, int count)
{
    lab_json json = {.to = to};
    lab_json_open(&json, NULL);
    lab_json_list(&json, "traceEvents");
    for (int i = 0; i < count; i++) {
        lab_json_open(&json, NULL);
        lab_json_text(&json, "name", spans[i].what);
        lab_json_text(&json, "ph", "X");
        lab_json_integer(&json, "pid", spans[i].rank);
        lab_json_text(&json, "tid", spans[i].lane);
        lab_json_number(&json, "ts", spans[i].start_us);
        lab_json_number(&json, "dur", spans[i].stop_us - spans[i].start_us);
        lab_json_close(&json);
    }
    lab_json_list_end(&json);
    lab_json_close(&json);
    lab_json_end_line(&json);
}

rung_status lab_timeline_write(const char *file, const rung_span *spans, int count)
{
    size_t length = strlen(file);
    row *rows = malloc((size_t)(count + 1) * sizeof *rows);
    if (!rows)
        return lab_fail(RUNG_OUT_OF_MEMORY, "no memory for a picture of %d spans", count);
    FILE *to = fopen(file, "w");
    if (to && length > 4 && strcmp(file + length - 4, ".svg") == 0)
        write_svg(to, spans, count, rows);
    else if (to)
        write_trace(to, spans, count);
    free(rows);
    if (!to)
        return lab_cannot_write(file);
    return lab_close(to, file);
}
