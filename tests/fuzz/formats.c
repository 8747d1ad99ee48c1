/* Reads what people and programs write for Rung to read: cases, shapes, files of shapes, of results, of counters, of
 * tuned shapes, and what comes over a control connection, read from any bytes. The first byte says which. Built with
 * -fsanitize=fuzzer it is libFuzzer's (target fuzz_formats, needs clang); else it reads each file named or in a folder
 * named, as the suite does with the corpus beside it.
 */
#define _GNU_SOURCE
#include "core/tuned.h"
#include "lab/case.h"
#include "lab/profile.h"
#include "lab/report.h"
#include "lab/shape.h"
#include "multi/control.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

enum { LONGEST_FRAME = 1 << 16 }; /* control.c's */

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
    c.alpha = again.alpha, c.beta = again.beta; /* not all digits are printed */
    require(memcmp(&c, &again, sizeof c) == 0, "a case is printed as another one", line);
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

static void read_counters(const uint8_t *data, size_t bytes)
{
    char path[64];
    int found, fd = memfd_create("input", 0);
    lab_profile profiles[2] = {{.kernel = "l01_naive"}, {.kernel = "l02_coalesced"}};
    if (fd < 0 || write(fd, data, bytes) != (ssize_t)bytes)
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    lab_counters_read(path, 1024, 1024, 1024, profiles, 2, &found);
    close(fd);
}

/* A table that is read is written as one that reads the same. `whole`: below the right first line. */
static void read_tuned(const uint8_t *data, size_t bytes, int whole)
{
    char folder[] = "/tmp/rung-fuzz-XXXXXX";
    rung_tuned first, second;
    if (!mkdtemp(folder))
        abort();
    setenv("RUNG_CACHE_DIR", folder, 1);
    rung_tuned_load(&first, "fuzz"); /* where it lies */
    FILE *file = fopen(first.path, "w");
    if (!file)
        abort();
    if (whole)
        fprintf(file, "{\"format\": 1, \"rung\": \"%s\", \"device\": \"fuzz\"}\n", rung_version());
    fwrite(data, 1, bytes, file);
    fclose(file);
    rung_tuned_load(&first, "fuzz");
    for (int i = 0; i < first.count; i++) {
        const rung_tuned_row *r = &first.rows[i];
        require(r->m >= 1 && r->n >= 1 && r->k >= 0 && r->batch >= 1 && r->kernel, "a row that cannot be", first.state);
    }
    if (first.count && rung_tuned_save(&first) == RUNG_SUCCESS) {
        rung_tuned_load(&second, "fuzz");
        require(second.count == first.count, "a table was written that reads as another", second.state);
        for (int i = 0; i < first.count; i++)
            require(first.rows[i].m == second.rows[i].m && first.rows[i].n == second.rows[i].n &&
                        first.rows[i].k == second.rows[i].k && first.rows[i].batch == second.rows[i].batch &&
                        first.rows[i].kernel == second.rows[i].kernel,
                    "a row was written that reads as another", second.state);
        rung_tuned_free(&second);
    }
    unlink(first.path);
    rmdir(folder);
    rung_tuned_free(&first);
}

/* Rank 0 of two, and one who connects and says these bytes; `known`: after a right greeting. Then rank 0 waits for a
 * message, which it gets or not, and ends. */
static void hear(const uint8_t *data, size_t bytes, int known)
{
    struct {
        uint32_t type, bytes;
        int32_t magic, rank, size;
        char secret[CONTROL_SECRET_BYTES];
    } hello = {1, 12 + CONTROL_SECRET_BYTES, 0x72756e67, 1, 2, "of this run"};
    char actual[CONTROL_ADDRESS_BYTES], all[2][16], mine[16] = "";
    struct sockaddr_in there = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    multi_control *control;
    if (multi_control_listen(&control, 2, "127.0.0.1:0", hello.secret, actual) != RUNG_SUCCESS)
        abort();
    there.sin_port = htons((uint16_t)atoi(strrchr(actual, ':') + 1));
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, (struct sockaddr *)&there, sizeof there))
        abort();
    if (known && send(fd, &hello, sizeof hello, MSG_NOSIGNAL) != sizeof hello)
        abort();
    if (bytes && send(fd, data, bytes, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        abort();
    shutdown(fd, SHUT_WR);
    uint32_t head[2] = {0, 0};
    if (bytes >= sizeof head)
        memcpy(head, data, sizeof head);
    int too_long = known && head[1] > LONGEST_FRAME;
    if (multi_control_accept(control, known ? 5.0 : 0.001) == RUNG_SUCCESS) {
        if (too_long)
            require(multi_control_gather(control, mine, all, sizeof mine, "said so", 5.0) != RUNG_SUCCESS &&
                        strstr(rung_last_error(), "no frame"),
                    "a frame that is too long is not refused", rung_last_error());
        while (multi_control_gather(control, mine, all, sizeof mine, "said so", 0.001) == RUNG_SUCCESS)
            ;
        multi_control_check(control);
    } else {
        require(!known, "a rank is not let in", rung_last_error());
    }
    multi_control_close(control);
    struct linger at_once = {1, 0}; /* ports of closed connections would run short */
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
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
    switch (data[0] % 9) {
    case 0: read_case(text); break;
    case 1: read_shape(text); break;
    case 2: read_file(data + 1, bytes - 1, 0); break;
    case 3: read_file(data + 1, bytes - 1, 1); break;
    case 4: read_counters(data + 1, bytes - 1); break;
    case 5: read_tuned(data + 1, bytes - 1, 1); break;
    case 6: read_tuned(data + 1, bytes - 1, 0); break;
    case 7: hear(data + 1, bytes - 1, 1); break;
    default: hear(data + 1, bytes - 1, 0);
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
