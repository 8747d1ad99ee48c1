/* Has nvcc make a cubin of the learner's file; the rest is the lab's usual measuring. */
#define _GNU_SOURCE /* getdelim */
#include "lab/learn_gpu.h"
#include "lab/check.h"
#include "lab/library.h"
#include "lab/peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHECKED_ROWS = 64, FINISH_THREADS = 256 };

typedef struct run {
    const lab_learn_gpu *what;
    lab_place place;
    lab_monitor monitor;
    rung_context *context;
    lab_buffer a, b, c, workspace, c64, size, chain;
    void *module, *function, *finish;
    rung_plan *plan;
    rung_gemm gemm;
    lab_peer peer;
    char *image;
} run;

static rung_status compile(const lab_learn_gpu *what, int arch, char **image)
{
    char folder[] = "/tmp/rung-learn-XXXXXX", cubin[64], command[3000];
    const char *nvcc = lab_named("RUNG_NVCC");
    size_t bytes = 0;
    if (!nvcc)
        nvcc = access("/usr/local/cuda/bin/nvcc", X_OK) == 0 ? "/usr/local/cuda/bin/nvcc" : "nvcc";
    if (strchr(what->file, '\'') || strchr(nvcc, '\'') || !mkdtemp(folder))
        return lab_fail(RUNG_INTERNAL, "cannot compile %s: a name with a quote, or no folder under /tmp", what->file);
    snprintf(cubin, sizeof cubin, "%s/own.cubin", folder);
    snprintf(command, sizeof command, "command -v '%s' >/dev/null && '%s' -cubin -arch=sm_%d%s -O3 -I'%s' -o '%s' '%s'",
             nvcc, nvcc, arch, arch >= 90 ? "a" : "", what->includes, cubin, what->file);
    int code = system(command);
    FILE *from = code == 0 ? fopen(cubin, "rb") : NULL;
    long length = from && fseek(from, 0, SEEK_END) == 0 ? ftell(from) : 0;
    *image = length > 0 ? malloc((size_t)length) : NULL;
    if (*image) {
        rewind(from);
        bytes = fread(*image, 1, (size_t)length, from);
    }
    if (from)
        fclose(from);
    unlink(cubin);
    rmdir(folder);
    if (*image && bytes == (size_t)length)
        return RUNG_SUCCESS;
    return lab_fail(RUNG_MISSING_LIBRARY, "%s makes no GPU code of %s (RUNG_NVCC names another nvcc)", nvcc,
                    what->file);
}

static rung_status fill(run *r, lab_buffer *buffer, int64_t elements, uint64_t seed)
{
    LAB_TRY(lab_buffer_reserve(&r->place, buffer, elements * 4));
    lab_fill_args args = {{buffer->at, elements, 1}, 1, elements, seed, LAB_SIGNED};
    return lab_fill(&r->place, &args);
}

static rung_status prepare(run *r, lab_learn_times *times)
{
    const lab_learn_gpu *w = r->what;
    int64_t parts = w->parts > 1 ? w->parts : 1;
    LAB_TRY(lab_place_open(&r->place, 0, 0));
    const rung_tools_machine *machine = rung_tools_describe(r->place.tools);
    snprintf(times->device, sizeof times->device, "%s", machine->name);
    lab_monitor_open(&r->monitor, &r->place);
    LAB_TRY(compile(w, machine->arch, &r->image));
    LAB_TRY(rung_tools_load_image(r->place.tools, r->image, &r->module));
    LAB_TRY(rung_tools_function(r->place.tools, r->module, w->symbol, &r->function));
    if (w->finish)
        LAB_TRY(rung_tools_function(r->place.tools, r->module, w->finish, &r->finish));
    LAB_TRY(fill(r, &r->a, w->m * w->k, 11));
    LAB_TRY(fill(r, &r->b, w->k * w->n, 22));
    LAB_TRY(lab_buffer_reserve(&r->place, &r->c, w->m * w->n * 4));
    LAB_TRY(lab_buffer_reserve(&r->place, &r->workspace, parts * w->m * w->n * 4));
    rung_gemm_init(&r->gemm);
    r->gemm.layout = RUNG_ROW_MAJOR;
    r->gemm.m = w->m, r->gemm.n = w->n, r->gemm.k = w->k;
    r->gemm.a = r->a.at, r->gemm.b = r->b.at, r->gemm.c = r->c.at;
    r->gemm.lda = w->k, r->gemm.ldb = r->gemm.ldc = w->n;
    r->gemm.alpha = 1.0f;
    return lab_place_context(&r->place, RUNG_STRICT, &r->context);
}

static rung_status run_own(void *state, int set)
{
    const run *r = state;
    const lab_learn_gpu *w = r->what;
    int parts = w->parts > 1 ? w->parts : 1;
    rung_tools_own own = {.bm = w->bm,
                          .bn = w->bn,
                          .threads = w->threads,
                          .shared_bytes = w->shared_bytes,
                          .m = w->m,
                          .n = w->n,
                          .k = w->k,
                          .lda = w->k,
                          .ldb = w->n,
                          .ldc = w->n,
                          .a = r->a.at,
                          .b = r->b.at,
                          .c = r->c.at,
                          .alpha = 1.0f,
                          .parts = parts,
                          .split_k = parts,
                          .workspace = r->workspace.at};
    (void)set;
    LAB_TRY(rung_tools_own_gemm(r->place.tools, r->function, &own));
    if (!r->finish)
        return RUNG_SUCCESS;
    own.bm = own.parts = 1;
    own.bn = own.threads = FINISH_THREADS;
    own.shared_bytes = 0;
    return rung_tools_own_gemm(r->place.tools, r->finish, &own);
}

static rung_status run_rung(void *state, int set)
{
    run *r = state;
    (void)set;
    return rung_plan_run(r->plan, &r->gemm);
}

static rung_status run_peer(void *state, int set)
{
    run *r = state;
    (void)set;
    return r->peer.run(&r->peer, &r->gemm);
}

/* Compares the first rows with FP64. */
static rung_status check(run *r, lab_learn_times *times)
{
    const lab_learn_gpu *w = r->what;
    int64_t rows = w->m < CHECKED_ROWS ? w->m : CHECKED_ROWS;
    LAB_TRY(lab_pattern(&r->place, r->c.at, LAB_POISON, (size_t)(w->m * w->n)));
    LAB_TRY(run_own(r, 0));
    LAB_TRY(lab_buffer_reserve(&r->place, &r->c64, rows * w->n * 8));
    LAB_TRY(lab_buffer_reserve(&r->place, &r->size, rows * w->n * 8));
    LAB_TRY(lab_buffer_reserve(&r->place, &r->chain, rows * w->n * 4));
    lab_reference_args reference = {.a = {r->a.at, w->k, 1},
                                    .b = {r->b.at, w->n, 1},
                                    .m = rows,
                                    .n = w->n,
                                    .k = w->k,
                                    .alpha = 1.0f,
                                    .c64 = r->c64.at,
                                    .size = r->size.at,
                                    .chain = r->chain.at};
    LAB_TRY(lab_reference(&r->place, &reference));
    lab_compare_args compare = {.c = {r->c.at, w->n, 1}, .m = rows, .n = w->n, .c64 = r->c64.at, .size = r->size.at};
    lab_tally tally;
    LAB_TRY(lab_tally_begin(&r->place));
    LAB_TRY(lab_compare(&r->place, &compare));
    LAB_TRY(lab_tally_end(&r->place, &tally));
    times->error_u = lab_packed(tally.worst);
    if (tally.wrong)
        return lab_fail(
            RUNG_DEVICE_ERROR,
            "wrong on the GPU: C[%lld][%lld] was never written, or is not a number, where the lens found it "
            "right",
            (long long)tally.wrong_at / (long long)w->n, (long long)tally.wrong_at % (long long)w->n);
    if (!(times->error_u <= (double)w->k + 8))
        return lab_fail(RUNG_DEVICE_ERROR, "wrong on the GPU: off by %.3g u, where the lens found it right",
                        times->error_u);
    return RUNG_SUCCESS;
}

static rung_status time_all(run *r, lab_learn_times *times)
{
    lab_contender contenders[3] = {{run_own, r}};
    times->names[times->count++] = "yours";
    if (r->what->rung) {
        LAB_TRY(rung_plan_create_kernel(&r->plan, r->context, &r->gemm, r->what->rung));
        contenders[times->count] = (lab_contender){run_rung, r};
        times->names[times->count++] = r->what->rung;
    }
    if (lab_peer_open(&r->place, "cublas", &r->peer) == RUNG_SUCCESS) {
        if (r->peer.prepare)
            LAB_TRY(r->peer.prepare(&r->peer, &r->gemm));
        contenders[times->count] = (lab_contender){run_peer, r};
        times->names[times->count++] = "cublas";
    } else {
        snprintf(times->without, sizeof times->without, "%s", lab_error());
    }
    lab_measure_options options = lab_measure_defaults(&r->place);
    return lab_measure(&r->place, &r->monitor, contenders, times->count, &options, &times->time);
}

rung_status lab_learn_time(const lab_learn_gpu *what, lab_learn_times *times)
{
    run r = {.what = what};
    memset(times, 0, sizeof *times);
    rung_status status = prepare(&r, times);
    if (status == RUNG_SUCCESS)
        status = check(&r, times);
    if (status == RUNG_SUCCESS)
        status = time_all(&r, times);
    lab_buffer *buffers[] = {&r.a, &r.b, &r.c, &r.workspace, &r.c64, &r.size, &r.chain};
    for (size_t i = 0; r.place.tools && i < sizeof buffers / sizeof buffers[0]; i++)
        lab_buffer_free(&r.place, buffers[i]);
    rung_plan_destroy(r.plan);
    if (r.peer.close)
        lab_peer_close(&r.peer);
    rung_context_destroy(r.context);
    if (r.place.tools) {
        rung_tools_unload(r.place.tools, r.module);
        lab_monitor_close(&r.monitor);
        lab_place_close(&r.place);
    }
    free(r.image);
    return status;
}
