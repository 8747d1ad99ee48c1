/* Writes one JSON object as one line. Nested objects open and close in order; keys are the caller's to keep unique. */
#ifndef LAB_JSON_H
#define LAB_JSON_H

#include <stdint.h>
#include <stdio.h>

typedef struct lab_json {
    FILE *to;
    int comma;
} lab_json;

void lab_json_open(lab_json *json, const char *key); /* key NULL: the outermost, or an array's element */
void lab_json_close(lab_json *json);
void lab_json_list(lab_json *json, const char *key); /* ends with lab_json_list_end */
void lab_json_list_end(lab_json *json);
void lab_json_text(lab_json *json, const char *key, const char *text);
void lab_json_number(lab_json *json, const char *key, double value); /* not finite: null */
void lab_json_integer(lab_json *json, const char *key, int64_t value);
void lab_json_end_line(lab_json *json);

#endif
