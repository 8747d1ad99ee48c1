/* rung explain KERNEL: floors, occupancy, accesses by formula and as the lens saw them, and what the next rung changes.
 */
#include "cli/commands.h"
#include "cli/explain.h"
#include "lab/explain.h"

#include <math.h>
#include <string.h>

typedef struct view {
    const rung_kernel *kernel;
    lab_resources resources;
    int has_resources, has_lens;
    /* the record that the resources come from, which this compiler made; empty: they are of this build */
    char recorded[32];
    lab_occupancy occupancy;
    lab_lens_totals totals;
    double seen_m, seen_n, seen_k;
    lab_model model;
} view;

static const rung_kernel *next_of(const rung_kernel *kernel)
{
    for (int i = 0; i < rung_kernel_count(); i++) {
        const rung_kernel *other = rung_kernel_at(i);
        if (other->previous && strcmp(other->previous, kernel->name) == 0)
            return other;
    }
    return NULL;
}

static double tiles_of(const rung_kernel *k, double m, double n)
{
    return ceil(m / (k->bm > 0 ? k->bm : 1)) * ceil(n / (k->bn > 0 ? k->bn : 1));
}

static double at_most(double x, double limit)
{
    return x < limit ? x : limit;
}

/* Takes resources from this build's device code, or from the record of the ladder. */
static void find_resources(view *v, const lab_chip *chip)
{
    v->has_resources = lab_resources_of(v->kernel->name, chip->arch, &v->resources);
    if (!v->has_resources)
        v->has_resources = lab_resources_recorded(v->kernel, &v->resources, v->recorded, sizeof v->recorded);
    if (v->has_resources)
        lab_occupancy_of(chip, &v->resources, v->kernel->threads, v->kernel->shared_bytes, &v->occupancy);
}

/* Runs the kernel under the lens, with a smaller product where this one is large: what it counts grows as m*n*k. */
static void look(view *v, const lab_chip *chip, double m, double n, double k)
{
    lab_lens_result result;
    v->seen_m = at_most(m, 1024), v->seen_n = at_most(n, 1024), v->seen_k = at_most(k, 1024);
    lab_lens_case c = {.kernel = v->kernel,
                       .m = (int64_t)v->seen_m,
                       .n = (int64_t)v->seen_n,
                       .k = (int64_t)v->seen_k,
                       .alpha = 1.0f,
                       .max_blocks = 1,
                       .sms = chip->sms};
    find_resources(v, chip);
    if (lab_lens_open() != RUNG_SUCCESS || lab_lens_missing(v->kernel) || lab_lens_run(&c, &result) != RUNG_SUCCESS)
        return;
    v->has_lens = 1;
    lab_lens_sum(&v->totals);
    lab_model_of(chip, v->kernel->arith, &v->totals, m * n * k / (v->seen_m * v->seen_n * v->seen_k), m, n, k,
                 tiles_of(v->kernel, m, n), &v->occupancy, &v->model);
}

void explain_floors(FILE *to, const lab_chip *chip, rung_arith arith, double m, double n, double k)
{
    lab_floors f;
    lab_floors_of(chip, arith, m, n, k, &f);
    char unit[48] = "";
    if (f.products)
        snprintf(unit, sizeof unit, " (%s)", f.unit);
    fprintf(to,
            "floors    %s: %.4g GFLOP%s at %.1f TFLOP/s take %.1f us; %.4g MB at %.2f TB/s take %.1f us: %s rules\n",
            chip->title, f.flops * 1e-9, unit, f.flops / f.fma_us * 1e-6, f.fma_us, f.bytes * 1e-6, chip->memory_tb_s,
            f.memory_us, f.fma_us >= f.memory_us ? "arithmetic" : "memory");
    fprintf(to, "roofline  %.1f FLOP a byte, the ridge lies at %.1f: %s\n", f.intensity, f.ridge,
            f.intensity >= f.ridge ? "right of it, under the flat roof"
                                   : "left of it, under the slope: no kernel goes faster than memory brings operands");
}

static void print_occupancy(FILE *to, const lab_chip *chip, const view *v)
{
    const lab_occupancy *o = &v->occupancy;
    if (!v->has_resources) {
        fprintf(to, "occupancy not known: this build compiled no GPU code for %s\n", chip->name);
        return;
    }
    if (v->recorded[0])
        fprintf(to, "recorded  this build has no GPU code for %s; what follows is what nvcc %s used on Hopper\n",
                chip->name, v->recorded);
    fprintf(to,
            "uses      %d registers a thread, %d B shared a block (%d static, %d dynamic), %d threads; "
            "%d B stack, %d B spilled\n",
            v->resources.registers, v->resources.static_shared_bytes + v->kernel->shared_bytes,
            v->resources.static_shared_bytes, v->kernel->shared_bytes, v->kernel->threads, v->resources.stack_bytes,
            v->resources.spill_bytes);
    fprintf(to,
            "occupancy %d block%s an SM, %d warps, %d%%: limited by %s (registers allow %d, shared memory %d, threads "
            "%d, blocks %d)\n",
            o->blocks, o->blocks == 1 ? "" : "s", o->warps, o->percent, o->limiter, o->by_registers, o->by_shared,
            o->by_threads, o->by_blocks);
    int warps = (v->kernel->threads + 31) / 32, of_a_warp = (v->resources.registers * 32 + 255) / 256 * 256;
    int shared = v->resources.static_shared_bytes + v->kernel->shared_bytes;
    fprintf(to,
            "          by hand: a warp's %d x 32 registers, in units of 256, are %d; a quarter of the SM has 16384: %d "
            "warps,\n"
            "          so %d on the SM; blocks of %d warps: %d\n",
            v->resources.registers, of_a_warp, 16384 / of_a_warp, 16384 / of_a_warp * 4, warps, o->by_registers);
    fprintf(to, "          shared memory: %d B / (%d + %d of the system, in units of %d); blocks: %d\n",
            chip->shared_per_sm_bytes, shared, o->system_bytes, o->shared_unit_bytes, o->by_shared);
    fprintf(to, "          threads: %d / %d; blocks: %d; the SM keeps %d blocks at most; the least of the four: %d\n",
            chip->threads_per_sm, warps * 32, o->by_threads, o->by_blocks, o->blocks);
}

/* Prints how many floats a result needs, from the tiles: k/BN + k/BM from global memory, k/TN + k/TM from shared
 * memory. */
static void print_accesses(FILE *to, const view *v, double m, double n, double k)
{
    const rung_kernel *r = v->kernel;
    double seen = v->seen_m * v->seen_n, scale = k / v->seen_k;
    double global = r->bk > 1 ? k / r->bn + k / r->bm : 2 * k, shared = r->bk > 1 && r->tm ? k / r->tm + k / r->tn : 0;
    fprintf(to, "accesses  a result, in floats    by formula    under the lens\n");
    if (!v->has_lens) {
        fprintf(to, "            global loads         %10.4g    (no lens: %s)\n", global, lab_error());
        fprintf(to, "            shared loads         %10.4g\n", shared);
        return;
    }
    fprintf(to, "            global loads         %10.4g    %10.4g\n", global,
            v->totals.global_load_bytes / 4 / seen * scale);
    fprintf(to, "            shared loads         %10.4g    %10.4g\n", shared,
            v->totals.shared_load_bytes / 4 / seen * scale);
    if (scale != 1 || seen != m * n)
        fprintf(to, "          (counted at %.0f x %.0f x %.0f, scaled to this k)\n", v->seen_m, v->seen_n, v->seen_k);
    double lookups = v->totals.global_load_requests + v->totals.async_requests;
    if (lookups > 0)
        fprintf(to, "          %.2f sectors a global load request; ",
                (v->totals.global_load_sectors + v->totals.async_sectors) / lookups);
    else
        fprintf(to, "          global loads by bulk copies; ");
    fprintf(to, "%.0f%% of the bytes moved are used\n", 100 * v->totals.global_load_used / v->totals.global_load_moved);
    if (v->totals.shared_load_wavefronts > 0)
        fprintf(to, "          %.3f shared passes for an FMA of a warp, %.0f%% of them lost to bank conflicts\n",
                v->totals.shared_load_wavefronts / (v->seen_m * v->seen_n * v->seen_k / 32),
                100 * (1 - v->totals.shared_load_ideal / v->totals.shared_load_wavefronts));
}

static void print_model(FILE *to, const view *v)
{
    const lab_model *t = &v->model;
    if (!v->has_lens || !v->has_resources)
        return;
    fprintf(to,
            "model     each unit alone, us: %s %.0f, issue slots %.0f, shared memory %.0f, L1's pipe in all %.0f, "
            "memory %.0f\n",
            t->unit, t->fma_us, t->issue_us, t->shared_us, t->l1_us, t->memory_us);
    fprintf(to, "          no faster than %.0f us, set by the %s; %.2f waves of blocks\n", t->us, t->limit, t->waves);
}

static void print_next(FILE *to, const lab_chip *chip, const view *v, double m, double n, double k)
{
    const rung_kernel *next = next_of(v->kernel);
    view then = {.kernel = next};
    if (!next)
        return;
    fprintf(to, "next      %s: %s\n", next->name, next->idea);
    if (!v->has_lens || !v->has_resources)
        return;
    look(&then, chip, m, n, k);
    if (then.has_lens && then.has_resources)
        fprintf(
            to,
            "          predicted: %.0f us set by the %s, instead of %.0f: %.2f times as fast by these limits alone; "
            "occupancy %d%% instead "
            "of %d%%\n",
            then.model.us, then.model.limit, v->model.us, v->model.us / then.model.us, then.occupancy.percent,
            v->occupancy.percent);
}

/* Explains a sum. It adds as many floats as the shape's C has results, and each is read once. */
static int explain_sum(FILE *to, const rung_kernel *kernel, const lab_chip *chip, double floats)
{
    view v = {.kernel = kernel};
    double bytes = 4 * floats, ridge = 2.0 * chip->fma_lanes * chip->sms * chip->clock_ghz * 1e-3 / chip->memory_tb_s;
    fprintf(to, "%s: %s\n          %s; a block of %d threads adds %d floats at a time\n", kernel->name, kernel->idea,
            kernel->file, kernel->threads, kernel->bm);
    fprintf(to, "at        %.0f floats\n", floats);
    fprintf(to, "floors    %s: %.4g MB at %.2f TB/s take %.1f us: memory rules\n", chip->title, bytes * 1e-6,
            chip->memory_tb_s, bytes * 1e-6 / chip->memory_tb_s);
    fprintf(
        to,
        "roofline  one addition for 4 bytes is 0.25 FLOP a byte, the ridge lies at %.1f: left of it, under the slope\n",
        ridge);
    find_resources(&v, chip);
    print_occupancy(to, chip, &v);
    return CLI_PASS;
}

/* Explains a CPU rung: what its register tile asks of the caches. */
static int explain_on_cpu(FILE *to, const rung_kernel *kernel, double m, double n, double k)
{
    const rung_kernel *next = next_of(kernel);
    double loads = 1.0 / (kernel->tm > 0 ? kernel->tm : 1) + 1.0 / (kernel->tn > 0 ? kernel->tn : 1);
    fprintf(to, "%s: %s\n          %s; %d x %d results in registers", kernel->name, kernel->idea, kernel->file,
            kernel->tm, kernel->tn);
    if (kernel->bk)
        fprintf(to, ", blocks of %d along k, %d columns", kernel->bk, kernel->bn);
    fprintf(to, "\nat        %.0f x %.0f x %.0f: %.4g GFLOP, %.4g MB of operands and results\n", m, n, k,
            2e-9 * m * n * k, 4e-6 * (m * k + k * n + m * n));
    fprintf(to, "accesses  %.3g floats loaded for a multiply-add, 1/%d + 1/%d: %.3g FLOP for each float\n", loads,
            kernel->tn > 0 ? kernel->tn : 1, kernel->tm > 0 ? kernel->tm : 1, 2 / loads);
    if (next)
        fprintf(to, "next      %s: %s\n", next->name, next->idea);
    return CLI_PASS;
}

int explain_kernel(FILE *to, const rung_kernel *kernel, int chip_index, double m, double n, double k)
{
    const lab_chip *chip = &lab_chips[chip_index];
    view v = {.kernel = kernel};
    if (kernel->backend != RUNG_BACKEND_CUDA)
        return explain_on_cpu(to, kernel, m, n, k);
    if (kernel->role == RUNG_REDUCE)
        return explain_sum(to, kernel, chip, m * n);
    fprintf(to, "%s: %s\n", kernel->name, kernel->idea);
    fprintf(to, "          %s; tile %d x %d x %d", kernel->file, kernel->bm, kernel->bn, kernel->bk);
    if (kernel->wm)
        fprintf(to, ", warp %d x %d", kernel->wm, kernel->wn);
    if (kernel->tm)
        fprintf(to, ", thread %d x %d", kernel->tm, kernel->tn);
    fprintf(to, ", %d stage%s\n", kernel->stages, kernel->stages == 1 ? "" : "s");
    if (kernel->arch > chip->arch || (kernel->arch == 90 && chip->arch != 90))
        fprintf(to, "          does not run on %s: it needs compute capability %d.%d\n", chip->title, kernel->arch / 10,
                kernel->arch % 10);
    fprintf(to, "at        %.0f x %.0f x %.0f\n", m, n, k);
    explain_floors(to, chip, kernel->arith, m, n, k);
    look(&v, chip, m, n, k);
    print_occupancy(to, chip, &v);
    print_accesses(to, &v, m, n, k);
    print_model(to, &v);
    print_next(to, chip, &v, m, n, k);
    lab_lens_close();
    return CLI_PASS;
}
