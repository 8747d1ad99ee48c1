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

/* Writes a text in quotes. Bytes that are no UTF-8, such as a file's name may have, become U+FFFD: readers refuse them.
 */
void lab_json_quote(FILE *to, const char *text);
/* Writes a finite number: all digits of an integer, so that a count or a seed stays what it is, else so many. */
void lab_json_digits(char *text, size_t bytes, double value, int digits);

#endif
