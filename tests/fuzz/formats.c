/* What people and programs write for Rung to read: cases, shapes, files of shapes, files of results, read from any
 * bytes. The first byte says which. Built with -fsanitize=fuzzer it is libFuzzer's (target fuzz_formats, needs clang);
 * else it reads each file named or in a folder named, as the suite does with the corpus beside it.
 */
#define _GNU_SOURCE
#include "lab/case.h"
#include "lab/report.h"
#include "lab/shape.h"

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void require(int holds, const char *what, const char *text)
{
    if (holds)
        return;
    fprintf(stderr, "%s: '%s'\n", what, text);
    abort();
}

/* A case that is read is printed as a line that reads as the same case. */
static void read_case(const char *text)
{
    lab_case c, again;
    char line[LAB_CASE_TEXT], second[LAB_CASE_TEXT];
    if (lab_case_parse(text, &c) != RUNG_SUCCESS)
        return;
    lab_case_print(&c, line);
    require(lab_case_parse(line, &again) == RUNG_SUCCESS, "a printed case cannot be read", line);
    lab_case_print(&again, second);
    require(strcmp(line, second) == 0, "a case reads as another one", line);
}

static void read_shape(const char *text)
{
    lab_shape shape, again;
    char line[LAB_SHAPE_TEXT];
    if (lab_shape_parse(text, &shape) != RUNG_SUCCESS)
        return;
    lab_shape_print(&shape, line);
    require(lab_shape_parse(line, &again) == RUNG_SUCCESS && again.m == shape.m && again.n == shape.n &&
                again.k == shape.k && again.batch == shape.batch,
            "a printed shape reads as another one", line);
}

/* Hands the bytes over as a file. */
static void read_file(const uint8_t *data, size_t bytes, int results)
{
    char path[64];
    const char *const files[] = {path};
    lab_shapes shapes = {0};
    int fd = memfd_create("input", 0);
    if (fd < 0 || write(fd, data, bytes) != (ssize_t)bytes)
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (results)
        lab_report(files, 1, "/dev/null");
    else
        lab_shapes_read(path, &shapes);
    free(shapes.list);
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (bytes < 1)
        return 0;
    char *text = calloc(1, bytes);
    if (!text)
        return 0;
    memcpy(text, data + 1, bytes - 1);
    switch (data[0] % 4) {
    case 0: read_case(text); break;
    case 1: read_shape(text); break;
    case 2: read_file(data + 1, bytes - 1, 0); break;
    default: read_file(data + 1, bytes - 1, 1);
    }
    lab_error();
    free(text);
    return 0;
}

#ifndef RUNG_LIBFUZZER
static int replay(const char *path)
{
    static uint8_t data[1 << 20];
    FILE *file = fopen(path, "rb");
    size_t bytes = file ? fread(data, 1, sizeof data, file) : 0;
    if (!file)
        return 0;
    fclose(file);
    LLVMFuzzerTestOneInput(data, bytes);
    return 1;
}

int main(int argc, char **argv)
{
    int count = 0;
    for (int i = 1; i < argc; i++) {
        DIR *folder = opendir(argv[i]);
        count += folder ? 0 : replay(argv[i]);
        for (struct dirent *entry = folder ? readdir(folder) : NULL; entry; entry = readdir(folder)) {
            char path[4096];
            if (entry->d_name[0] != '.' &&
                snprintf(path, sizeof path, "%s/%s", argv[i], entry->d_name) < (int)sizeof path)
                count += replay(path);
        }
        if (folder)
            closedir(folder);
    }
    printf("%d inputs\n", count);
    return count == 0;
}
#endif
