/* Writes JSON in the few forms that result lines need. */
#include "lab/json.h"

#include <inttypes.h>
#include <math.h>

static void quote(FILE *to, const char *text)
{
    fputc('"', to);
    for (const char *at = text; *at; at++) {
        if (*at == '"' || *at == '\\')
            fprintf(to, "\\%c", *at);
        else if ((unsigned char)*at < 0x20)
            fprintf(to, "\\u%04x", (unsigned char)*at);
        else
            fputc(*at, to);
    }
    fputc('"', to);
}

static void begin(lab_json *json, const char *key)
{
    if (json->comma)
        fputs(", ", json->to);
    if (key) {
        quote(json->to, key);
        fputs(": ", json->to);
    }
    json->comma = 1;
}

void lab_json_open(lab_json *json, const char *key)
{
    begin(json, key);
    fputc('{', json->to);
    json->comma = 0;
}

void lab_json_close(lab_json *json)
{
    fputc('}', json->to);
    json->comma = 1;
}

void lab_json_list(lab_json *json, const char *key)
{
    begin(json, key);
    fputc('[', json->to);
    json->comma = 0;
}

void lab_json_list_end(lab_json *json)
{
    fputc(']', json->to);
    json->comma = 1;
}

void lab_json_text(lab_json *json, const char *key, const char *text)
{
    begin(json, key);
    quote(json->to, text);
}

void lab_json_number(lab_json *json, const char *key, double value)
{
    begin(json, key);
    if (isfinite(value))
        fprintf(json->to, "%.7g", value);
    else
        fputs("null", json->to);
}

void lab_json_integer(lab_json *json, const char *key, int64_t value)
{
    begin(json, key);
    fprintf(json->to, "%" PRId64, value);
}

void lab_json_end_line(lab_json *json)
{
    fputc('\n', json->to);
    fflush(json->to);
    json->comma = 0;
}
