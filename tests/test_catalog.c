/* Every row of the catalog: fields that make sense, a linear chain of rungs, a file and a page behind it, names by the
 * grammar. And what ptxas said of the kernels that were compiled, against the limits in their rows. */
#include "support.h"
#include "rung_catalog.h"

#include <ctype.h>
#include <dirent.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *source_dir, *device_dir;

static int exists(const char *folder, const char *file)
{
    char path[4096];
    struct stat info;
    snprintf(path, sizeof path, "%s/%s", folder, file);
    return stat(path, &info) == 0;
}

static const char *stem_of(const char *file)
{
    static char stem[256];
    const char *slash = strrchr(file, '/');
    snprintf(stem, sizeof stem, "%s", slash ? slash + 1 : file);
    *strrchr(stem, '.') = 0;
    return stem;
}

static void check_row(const rung_kernel *k)
{
#define expect(condition)                                                                                              \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            fail_msg("row %s: not so: %s", k->name, #condition);                                                       \
    } while (0)
    int gpu = k->backend == RUNG_BACKEND_CUDA;
    for (const char *c = k->name; *c; c++)
        expect(islower(*c) || isdigit(*c) || *c == '_');
    if (gpu && k->role == RUNG_PRODUCTION) /* a tile of a family, all of which are one file */
        expect(strcmp(stem_of(k->file), "kernel") == 0);
    else
        expect(strcmp(stem_of(k->file), k->name) == 0);
    expect(exists(source_dir, k->file));
    expect(k->idea && strlen(k->idea) >= 10 && strlen(k->idea) <= 160 && !strchr(k->idea, '\n'));
    expect(k->backend == RUNG_BACKEND_CPU || k->backend == RUNG_BACKEND_CUDA);
    expect(k->role >= RUNG_LADDER && k->role <= RUNG_REDUCE);
    expect(k->arith >= RUNG_F32 && k->arith <= RUNG_F16X3_ALONE);
    expect(k->role == RUNG_REDUCE || (k->accepts & RUNG_ACCEPTS_ANY_TRANS));
    expect(k->align_bytes == 0 || k->align_bytes == 4 || k->align_bytes == 8 || k->align_bytes == 16);
    expect(k->bm >= 0 && k->bn >= 0 && k->bk >= 0 && k->stages >= 0 && k->tm >= 0 && k->tn >= 0);
    expect(gpu ? k->arch == 75 || k->arch == 80 || k->arch == 90 : k->arch == 0);
    expect(gpu ? k->threads >= 32 && k->threads <= 1024 && k->threads % 32 == 0 : 1);
    expect(gpu ? k->shared_bytes >= 0 && k->shared_bytes <= 227 * 1024 : k->shared_bytes == 0);
    expect(gpu ? !k->cpu_entry : k->cpu_entry != NULL);
    expect(!gpu || k->role == RUNG_REDUCE || (k->launch && k->launch[0]));
    expect(k->max_registers >= 0 && k->max_registers <= 255 && k->max_spill_bytes >= 0);
    expect(k->min_ffma_percent >= 0 && k->min_ffma_percent <= 100);
    expect(!(k->role == RUNG_PRODUCTION && k->previous));
#undef expect
}

/* The name of a production kernel says what its row says: arithmetic, tile, stages. */
static void check_name(const rung_kernel *k)
{
    static const char *const ariths[] = {"f32", "tf32", "tf32x3", "bf16x6", "bf16x9", "f16x3"};
    char says[128];
    if (k->backend == RUNG_BACKEND_CPU) {
        snprintf(says, sizeof says, "_%s_%dx%d", ariths[k->arith], k->tm, k->tn);
    } else {
        snprintf(says, sizeof says, "_%s_%dx%dx%d_s%d", ariths[k->arith], k->bm, k->bn, k->bk, k->stages);
        int arch = (int)strtol(k->name + 2, NULL, 10);
        if (arch != k->arch)
            fail_msg("%s: the row says architecture %d", k->name, k->arch);
    }
    size_t length = strlen(says), whole = strlen(k->name);
    if (whole < length || strcmp(k->name + whole - length, says) != 0)
        fail_msg("%s: by its row the name would end in %s: change the name, or the row", k->name, says);
}

/* Counts the lines of files that begin a row of a GPU's kernel. */
static int rows_in(const char *pattern)
{
    char where[4096], line[4096];
    glob_t files;
    int rows = 0;
    snprintf(where, sizeof where, "%s/%s", source_dir, pattern);
    assert_int_equal(glob(where, 0, NULL, &files), 0);
    for (size_t i = 0; i < files.gl_pathc; i++) {
        FILE *file = fopen(files.gl_pathv[i], "r");
        assert_non_null(file);
        while (fgets(line, sizeof line, file))
            rows += strncmp(line, "RUNG_TILE(", 10) == 0 || strncmp(line, "RUNG_CUDA(", 10) == 0;
        fclose(file);
    }
    globfree(&files);
    return rows;
}

static void every_row_of_a_gpu_is_in_the_catalog(void **state)
{
    (void)state;
    int rows = 0;
    for (int i = 0; i < rung_kernel_count(); i++)
        rows += rung_kernel_at(i)->backend == RUNG_BACKEND_CUDA;
    assert_int_equal(rows, rows_in("src/cuda/families/*/tiles.inc") + rows_in("src/ladder/*/rows.inc"));
}

static void rows_make_sense(void **state)
{
    (void)state;
    assert_true(rung_kernel_count() > 0);
    assert_null(rung_kernel_at(-1));
    assert_null(rung_kernel_at(rung_kernel_count()));
    assert_null(rung_kernel_find("no_such_kernel"));
    for (int i = 0; i < rung_kernel_count(); i++) {
        const rung_kernel *k = rung_kernel_at(i);
        check_row(k);
        if (k->role == RUNG_PRODUCTION)
            check_name(k);
        if (rung_kernel_find(k->name) != k)
            fail_msg("two rows are called %s", k->name);
    }
}

/* Each ladder (a backend's, and the sums') starts with one rung and every later rung follows one that is there. A rung
 * may have several followers only where its page says so: the main chain stays a single line. */
static void rungs_follow_one_another(void **state)
{
    (void)state;
    for (int ladder = 0; ladder < 3; ladder++) {
        int firsts = 0, rungs = 0;
        for (int i = 0; i < rung_kernel_count(); i++) {
            const rung_kernel *k = rung_kernel_at(i);
            if (k->role == RUNG_PRODUCTION || (ladder == 2) != (k->role == RUNG_REDUCE) ||
                (ladder < 2 && (int)k->backend != ladder))
                continue;
            rungs++;
            if (!k->previous) {
                firsts++;
                continue;
            }
            const rung_kernel *before = rung_kernel_find(k->previous);
            if (!before)
                fail_msg("%s follows %s, which is not in the catalog", k->name, k->previous);
            if (before >= k || before->backend != k->backend)
                fail_msg("%s follows %s, which must stand before it on the same backend", k->name, k->previous);
        }
        if (rungs && firsts != 1)
            fail_msg("ladder %d has %d first rungs", ladder, firsts);
    }
}

/* One rung without a page is a rung in the making; more than one were forgotten. */
static void every_rung_has_its_page(void **state)
{
    (void)state;
    if (!exists(source_dir, "docs/ladder"))
        skip();
    int lacking = 0;
    for (int i = 0; i < rung_kernel_count(); i++) {
        const rung_kernel *k = rung_kernel_at(i);
        char page[512];
        snprintf(page, sizeof page, "docs/ladder/%s.md", k->name);
        if (k->role == RUNG_LADDER && !exists(source_dir, page)) {
            print_error("no page %s\n", page);
            lacking++;
        }
    }
    assert_true(lacking <= 1);
}

typedef struct usage {
    int registers, spill_bytes;
} usage;

/* Reads the most that any entry function of the file took, by ptxas's own report. */
static usage read_report(const char *path)
{
    usage most = {0, 0};
    char line[1024];
    FILE *file = fopen(path, "r");
    if (!file)
        fail_msg("cannot read %s", path);
    while (fgets(line, sizeof line, file)) {
        int registers, stores, loads;
        const char *at = strstr(line, "Used ");
        if (at && sscanf(at, "Used %d registers", &registers) == 1 && registers > most.registers)
            most.registers = registers;
        at = strstr(line, "stack frame, ");
        if (at && sscanf(at, "stack frame, %d bytes spill stores, %d bytes spill loads", &stores, &loads) == 2) {
            most.spill_bytes = stores > most.spill_bytes ? stores : most.spill_bytes;
            most.spill_bytes = loads > most.spill_bytes ? loads : most.spill_bytes;
        }
    }
    fclose(file);
    return most;
}

static int over_its_limits(const rung_kernel *k, const char *module)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s/%s.ptxas", device_dir, module, k->name);
    usage used = read_report(path);
    assert_true(used.registers > 0);
    if (used.spill_bytes <= k->max_spill_bytes && (!k->max_registers || used.registers <= k->max_registers))
        return 0;
    print_error("%s on %s: %d registers (its row allows %d), %d bytes of spills (%d)\n", k->name, module,
                used.registers, k->max_registers, used.spill_bytes, k->max_spill_bytes);
    return 1;
}

static void kernels_keep_to_their_limits(void **state)
{
    (void)state;
    int over = 0;
    for (int i = 0; i < rung_kernel_count(); i++) {
        const rung_kernel *k = rung_kernel_at(i);
        if (k->backend != RUNG_BACKEND_CUDA)
            continue;
        over += over_its_limits(k, "sm_90a");
        if (k->arch < 90 && exists(device_dir, "sm_80/resources.txt"))
            over += over_its_limits(k, "sm_80");
    }
    assert_int_equal(over, 0);
}

/* test_catalog SOURCES: the rows. test_catalog SOURCES DEVICE_CODE: what ptxas said of the kernels, where they were
 * compiled. */
int main(int count, char **arguments)
{
    source_dir = count > 1 ? arguments[1] : ".";
    device_dir = count > 2 ? arguments[2] : NULL;
    const struct CMUnitTest rows[] = {
        cmocka_unit_test(rows_make_sense),
        cmocka_unit_test(every_row_of_a_gpu_is_in_the_catalog),
        cmocka_unit_test(rungs_follow_one_another),
        cmocka_unit_test(every_rung_has_its_page),
    };
    const struct CMUnitTest limits[] = {
        cmocka_unit_test(kernels_keep_to_their_limits),
    };
    if (!device_dir)
        return cmocka_run_group_tests(rows, NULL, NULL);
    if (!exists(device_dir, "sm_90a/resources.txt")) { /* sm_80's are asked where they were built */
        printf("left out: the device code was not built (RUNG_CUDA_ARCHS=all, or ./dev test with nvcc)\n");
        return 77;
    }
    return cmocka_run_group_tests(limits, NULL, NULL);
}
