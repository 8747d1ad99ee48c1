/* What is known of chips: occupancy, floors and the model of limits. */
#include "lab/explain.h"

#include "rung_tools.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Multiprocessors, bandwidth, cache and clock (the boost that is advertised; of H100 and H200 the highest) are those of
 * NVIDIA's data sheets and architecture white papers; what a multiprocessor has room for is the CUDA C++ Programming
 * Guide's table of technical specifications for each compute capability. docs/measuring.md says more. */
const lab_chip lab_chips[] = {
    {"h200", "NVIDIA H200", 90, 132, 128, 2048, 1.98, 4.8, 60, 233472, 232448, 2048, 32},
    {"h100", "NVIDIA H100 SXM", 90, 132, 128, 2048, 1.98, 3.35, 50, 233472, 232448, 2048, 32},
    {"a100", "NVIDIA A100 SXM 80 GB", 80, 108, 64, 1024, 1.41, 2.039, 40, 167936, 166912, 2048, 32},
    {"v100", "NVIDIA V100 SXM", 70, 80, 64, 512, 1.53, 0.9, 6, 98304, 98304, 2048, 32},
    {"t4", "NVIDIA T4", 75, 40, 64, 512, 1.59, 0.32, 4, 65536, 65536, 1024, 16},
    {"rtx2080ti", "NVIDIA GeForce RTX 2080 Ti", 75, 68, 64, 256, 1.545, 0.616, 5.5, 65536, 65536, 1024, 16},
    {"rtx3080", "NVIDIA GeForce RTX 3080", 86, 68, 128, 256, 1.71, 0.76, 5, 102400, 101376, 1536, 16},
    {"rtx3090", "NVIDIA GeForce RTX 3090", 86, 82, 128, 256, 1.695, 0.936, 6, 102400, 101376, 1536, 16},
    {"rtx4090", "NVIDIA GeForce RTX 4090", 89, 128, 128, 256, 2.52, 1.008, 72, 102400, 101376, 1536, 24},
    {"rtx5090", "NVIDIA GeForce RTX 5090", 120, 170, 128, 256, 2.407, 1.792, 96, 102400, 101376, 1536, 24},
    {"b200", "NVIDIA B200", 100, 148, 128, 4096, 1.965, 8.0, 126, 233472, 232448, 2048, 32},
    {"l40s", "NVIDIA L40S", 89, 142, 128, 512, 2.52, 0.864, 96, 102400, 101376, 1536, 24},
    {NULL, NULL, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
};

const char *const *lab_chip_names(void)
{
    static const char *names[sizeof lab_chips / sizeof *lab_chips];
    for (size_t i = 0; lab_chips[i].name; i++)
        names[i] = lab_chips[i].name;
    return names;
}

int lab_resources_of(const char *symbol, int arch, lab_resources *resources)
{
    const char *line = rung_tools_resources(arch);
    size_t length = strlen(symbol);
    for (; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
        if (strncmp(line, symbol, length) == 0 && line[length] == ' ')
            return sscanf(line + length, "%d %d %d %d", &resources->registers, &resources->stack_bytes,
                          &resources->spill_bytes, &resources->static_shared_bytes) == 4;
    return 0;
}

/* results/ladder-build.jsonl, as text (lab/CMakeLists.txt). */
extern const char rung_recorded_build[];

int lab_resources_recorded(const rung_kernel *kernel, lab_resources *resources, char *compiler, size_t bytes)
{
    char name[128], nvcc[32];
    int registers, spill, shared;
    for (const char *line = rung_recorded_build; line && *line;
         line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
        if (sscanf(
                line,
                "{\"kernel\": \"%127[^\"]\", \"arch\": 90, \"registers\": %d, \"spill_bytes\": %d, \"shared_bytes\": "
                "%d, \"threads\": %*d, \"nvcc\": \"%31[^\"]\"",
                name, &registers, &spill, &shared, nvcc) == 5 &&
            strcmp(name, kernel->name) == 0) {
            *resources = (lab_resources){registers, 0, spill, shared - kernel->shared_bytes};
            snprintf(compiler, bytes, "%s", nvcc);
            return 1;
        }
    return 0;
}

static int up_to(int value, int unit)
{
    return (value + unit - 1) / unit * unit;
}

void lab_occupancy_of(const lab_chip *chip, const lab_resources *r, int threads, int shared_bytes, lab_occupancy *o)
{
    int warps = (threads + 31) / 32, registers_per_warp = up_to(r->registers * 32, 256);
    int warps_by_registers = registers_per_warp ? 65536 / 4 / registers_per_warp * 4 : 64;
    memset(o, 0, sizeof *o);
    o->system_bytes = chip->arch >= 80 ? 1024 : 0;
    o->shared_unit_bytes = chip->arch >= 80 ? 128 : 256;
    int shared = up_to(r->static_shared_bytes + shared_bytes + o->system_bytes, o->shared_unit_bytes);
    o->by_registers = warps_by_registers / warps;
    o->by_shared = shared ? chip->shared_per_sm_bytes / shared : chip->blocks_per_sm;
    o->by_threads = chip->threads_per_sm / (warps * 32);
    o->by_blocks = chip->blocks_per_sm;
    o->blocks = o->by_registers;
    o->limiter = "registers";
    if (o->by_threads < o->blocks || (o->by_threads == o->blocks && o->by_registers > o->by_threads)) {
        o->blocks = o->by_threads;
        o->limiter = "threads";
    }
    if (o->by_shared < o->blocks) {
        o->blocks = o->by_shared;
        o->limiter = "shared memory";
    }
    if (o->by_blocks < o->blocks) {
        o->blocks = o->by_blocks;
        o->limiter = "blocks";
    }
    o->warps = o->blocks * warps;
    o->percent = 100 * o->warps * 32 / chip->threads_per_sm;
}

/* How a mode multiplies: the products of its pieces, their type, and TF32's share of the rate of halves. A mode without
 * pieces uses FFMAs. */
static const struct {
    int products;
    const char *unit;
    double rate;
} units[] = {
    [RUNG_F32] = {0, "FMA pipe", 0},
    [RUNG_TF32] = {1, "tensor cores in TF32", 0.5},
    [RUNG_TF32X3] = {3, "tensor cores in TF32", 0.5},
    [RUNG_BF16X6] = {6, "tensor cores in bf16", 1},
    [RUNG_BF16X9] = {9, "tensor cores in bf16", 1},
    [RUNG_F16X3] = {3, "tensor cores in fp16", 1},
    [RUNG_F16X3_CHAIN] = {3, "tensor cores in fp16", 1},
    [RUNG_F16X3_ALONE] = {3, "tensor cores in fp16", 1},
};

void lab_floors_of(const lab_chip *chip, rung_arith arith, double m, double n, double k, lab_floors *f)
{
    f->products = units[arith].products;
    f->unit = units[arith].unit;
    f->flops = 2 * m * n * k * (f->products ? f->products : 1);
    f->bytes = 4 * (m * k + k * n + m * n);
    double lanes = f->products ? chip->half_fmas * units[arith].rate : chip->fma_lanes;
    double flops_per_us = 2.0 * lanes * chip->sms * chip->clock_ghz * 1e3, bytes_per_us = chip->memory_tb_s * 1e6;
    f->fma_us = f->flops / flops_per_us;
    f->memory_us = f->bytes / bytes_per_us;
    f->intensity = f->flops / f->bytes;
    f->ridge = flops_per_us / bytes_per_us;
}

void lab_model_of(const lab_chip *chip, rung_arith arith, const lab_lens_totals *t, double scale, double m, double n,
                  double k, double blocks, const lab_occupancy *occupancy, lab_model *out)
{
    lab_floors floors;
    lab_floors_of(chip, arith, m, n, k, &floors);
    /* `slots` counts all multiprocessors, `busy` those that have work; some are idle in the last round. */
    double slots = (double)chip->sms * (occupancy->blocks > 0 ? occupancy->blocks : 1);
    double busy = blocks < chip->sms ? blocks : chip->sms;
    out->waves = blocks / slots;
    double full = blocks > slots ? ceil(out->waves) / out->waves : 1;
    double cycles_per_us = busy * chip->clock_ghz * 1e3;
    double fma_warps = floors.products ? 0 : m * n * k / 32; /* a tensor core's instruction holds thousands */
    double requests = (t->global_load_requests + t->global_store_requests + t->async_requests +
                       t->shared_load_requests + t->shared_store_requests) *
                      scale;
    double passes = (t->shared_load_wavefronts + t->shared_store_wavefronts + t->async_wavefronts) * scale;
    double sectors = (t->global_load_sectors + t->global_store_sectors + t->async_sectors) * scale;
    out->fma_us = floors.fma_us * chip->sms / busy * full;
    out->issue_us = (fma_warps + requests) / 4 / cycles_per_us * full;
    out->shared_us = passes / cycles_per_us * full;
    /* The L1 looks up one 128-byte line a clock and moves four sectors of it. */
    out->l1_us = fmax(t->global_lines * scale, sectors / 4) / cycles_per_us * full;
    out->l1_us += passes / cycles_per_us * full; /* the same pipe serves shared memory */
    out->memory_us = floors.memory_us;
    const double times[] = {out->fma_us, out->issue_us, out->shared_us, out->l1_us, out->memory_us};
    const char *const names[] = {floors.unit, "issue slots", "shared memory", "L1 and shared memory's pipe",
                                 "device memory"};
    int most = 0;
    for (int i = 1; i < 5; i++)
        most = times[i] > times[most] * 1.0001 ? i : most;
    out->us = times[most];
    out->unit = floors.unit;
    out->limit = names[most];
}
