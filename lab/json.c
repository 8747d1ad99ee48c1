/* Writes JSON in the few forms that result lines need. */
#include "lab/json.h"

#include <inttypes.h>
#include <math.h>

/* Returns how many bytes the character at `text` has in UTF-8; 0: it is none. */
static int character_bytes(const char *text)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *at = (const unsigned char *)text;
    const int bytes = at[0] < 0x80 ? 1 : at[0] < 0xc0 ? 0 : at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : at[0] < 0xf8 ? 4 : 0;
    uint32_t code = at[0] & (0xffu >> (bytes + 1));
    for (int i = 1; i < bytes; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (at[i] & 0x3f);
    }
    const int surrogate = code >= 0xd800 && code < 0xe000;
    return bytes < 2 || (code >= least[bytes] && code < 0x110000 && !surrogate) ? bytes : 0;
}

void lab_json_quote(FILE *to, const char *text)
{
    int bytes;
    fputc('"', to);
    for (const char *at = text; *at; at += bytes ? bytes : 1) {
        bytes = character_bytes(at);
        if (!bytes)
            fputs("\\ufffd", to);
        else if (*at == '"' || *at == '\\')
            fprintf(to, "\\%c", *at);
        else if ((unsigned char)*at < 0x20)
            fprintf(to, "\\u%04x", (unsigned char)*at);
        else
            fwrite(at, 1, (size_t)bytes, to);
    }
    fputc('"', to);
}

void lab_json_digits(char *text, size_t bytes, double value, int digits)
{
    if (value == floor(value) && fabs(value) < 0x1p53)
        snprintf(text, bytes, "%.0f", value);
    else
        snprintf(text, bytes, "%.*g", digits, value);
}

static void begin(lab_json *json, const char *key)
{
    if (json->comma)
        fputs(", ", json->to);
    if (key) {
        lab_json_quote(json->to, key);
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
    lab_json_quote(json->to, text);
}

void lab_json_number(lab_json *json, const char *key, double value)
{
    begin(json, key);
    char text[40] = "null";
    if (isfinite(value))
        lab_json_digits(text, sizeof text, value, 7);
    fputs(text, json->to);
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
