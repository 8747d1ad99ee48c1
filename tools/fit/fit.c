/* Fits the costs of tiles to stored timings (rung tune --times), and says how well they predict.
 * usage: rung_fit TIMES.jsonl... [--each | --tiles] [--fit] [--only TEXT,...] [--write SOURCE_DIR]
 * Without --fit the costs are judged as they are, with --each shape by shape: measured and predicted microseconds; with
 * --tiles alone tile by tile, as results/predictions-h200.txt keeps them.
 * --only: no other tiles' costs change than those whose names contain one of the texts.
 * Every fifth shape is kept out of the fit and judged apart. --write puts the fitted costs into the families'
 * tiles.inc. The planner's own code predicts: nothing of the model is stated here.
 */
#include "core/plan.h"
#include "core/validate.h"
#include "cuda/driver/device.h"
#include "cuda/families/tile.h"
#include "lab/shape.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KERNELS = 128, LINE_BYTES = 1 << 16, ROUNDS = 3, TRIES = 3 };
static const double ERROR_WEIGHT = 0.5; /* of a prediction's squared error beside what a choice loses */
static const double STREAM_US = 0.6;    /* what a call in a stream takes longer than one that a graph replays */
static const double BEHIND = 0.5;       /* what a choice takes over cuBLAS's time counts so often again */

#define RUNG_FAMILY(family) extern const rung_costs rung_costs_##family __attribute__((weak));
#include "cuda/families/list.inc"
#undef RUNG_FAMILY
/* It returns NULL where the rows of that family have no costs. */
static const rung_costs *const families[] = {
#define RUNG_FAMILY(family) &rung_costs_##family,
#include "cuda/families/list.inc"
#undef RUNG_FAMILY
};

typedef struct sample {
    const rung_kernel *kernel;
    double measured_us, weight, predicted_us;
    double lost; /* what its choice costs: lost_by_choice() */
} sample;

typedef struct product {
    const rung_machine *machine;
    rung_problem problem;
    const char *file;
    char shape[LAB_SHAPE_TEXT];
    sample samples[KERNELS];
    int count, kept_out, graph;
    double best_us, cublas_us;
} product;

static product *products;
static int product_count;
/* The chips that timings were taken on. */
static const rung_machine machines[] = {{.name = "NVIDIA H200",
                                         .arch = 90,
                                         .sms = 132,
                                         .shared_per_block_bytes = 232448,
                                         .l2_bytes = 60ll << 20,
                                         .memory_bytes = 141ll << 30,
                                         .clock_ghz = RUNG_COSTS_GHZ,
                                         .memory_speed = 1.0,
                                         .driver_version = 13000},
                                        {.name = "NVIDIA H100 80GB HBM3",
                                         .arch = 90,
                                         .sms = 132,
                                         .shared_per_block_bytes = 232448,
                                         .l2_bytes = 50ll << 20,
                                         .memory_bytes = 80ll << 30,
                                         .clock_ghz = RUNG_COSTS_GHZ,
                                         .memory_speed = 0.682,
                                         .driver_version = 13000}};
static const rung_config config;

/* ---- reading ---- */

static rung_status problem_of(const lab_shape *s, rung_math math, float beta, rung_problem *problem)
{
    int nothing;
    rung_gemm g;
    lab_shape_gemm(s, RUNG_COL_MAJOR, s->pad, &g);
    g.a = (const float *)(uintptr_t)(1ll << 40); /* only the addresses' alignment counts */
    g.b = (const float *)(uintptr_t)(2ll << 40);
    g.c = (float *)(uintptr_t)(3ll << 40);
    g.beta = beta;
    memset(problem, 0, sizeof *problem);
    return rung_validate(&g, math, problem, &nothing);
}

/* Finds the text behind "key": in a line. It returns NULL where there is none. */
static const char *behind(const char *line, const char *key)
{
    char quoted[64];
    snprintf(quoted, sizeof quoted, "\"%s\": ", key);
    const char *at = strstr(line, quoted);
    return at ? at + strlen(quoted) : NULL;
}

static void read_samples(const char *at, product *p)
{
    char name[64];
    double us;
    int used;
    while (p->count < KERNELS && sscanf(at, "%*[{, ]\"%63[^\"]\": %lf%n", name, &us, &used) == 2) {
        const rung_kernel *kernel = rung_kernel_find(name);
        at += used;
        if (!kernel || !(us > 0.0))
            continue;
        p->samples[p->count++] = (sample){.kernel = kernel, .measured_us = us, .weight = 1.0};
        if (p->best_us == 0.0 || us < p->best_us)
            p->best_us = us;
    }
    /* What is far from the best need not be predicted well. */
    for (int i = 0; i < p->count; i++) {
        sample *s = &p->samples[i];
        s->weight = s->measured_us <= 1.5 * p->best_us ? 1.0 : 0.1;
        s->lost = log(s->measured_us / p->best_us);
        if (p->cublas_us > 0.0 && s->measured_us > p->cublas_us)
            s->lost += BEHIND * log(s->measured_us / p->cublas_us);
    }
}

/* Returns the chip that a line names; the first one where it names none. */
static const rung_machine *machine_of(const char *line)
{
    const char *device = behind(line, "device");
    for (size_t i = 1; device && i < sizeof machines / sizeof *machines; i++)
        if (strncmp(device + 1, machines[i].name, strlen(machines[i].name)) == 0)
            return &machines[i];
    return machines;
}

static int read_line(const char *line, product *p)
{
    char word[LAB_SHAPE_TEXT];
    lab_shape shape;
    const char *at = behind(line, "shape"), *math = behind(line, "math"), *kernels = behind(line, "kernels"),
               *beta = behind(line, "beta");
    memset(p, 0, sizeof *p);
    p->machine = machine_of(line);
    const rung_math mode = math && strncmp(math, "\"accurate\"", 10) == 0 ? RUNG_ACCURATE : RUNG_STRICT;
    if (!at || !kernels || !math || sscanf(at, "\"%95[^\"]\"", word) != 1 ||
        lab_shape_parse(word, &shape) != RUNG_SUCCESS ||
        problem_of(&shape, mode, beta ? strtof(beta, NULL) : 0.0f, &p->problem) != RUNG_SUCCESS)
        return 0;
    snprintf(p->shape, sizeof p->shape, "%s", word);
    unsigned hash = 0;
    for (const char *c = word; *c; c++)
        hash = hash * 31 + (unsigned char)*c;
    p->kept_out = hash % 5 == 0;
    const char *cublas = behind(line, "cublas");
    p->cublas_us = cublas ? strtod(cublas, NULL) : 0.0;
    p->graph = strstr(line, " --graph ") != NULL;
    read_samples(kernels, p);
    return p->count > 1;
}

static int read_file(const char *name)
{
    static char line[LINE_BYTES];
    FILE *file = fopen(name, "r");
    if (!file) {
        fprintf(stderr, "rung_fit: cannot read %s\n", name);
        return 0;
    }
    while (fgets(line, sizeof line, file)) {
        product *grown = realloc(products, (size_t)(product_count + 1) * sizeof *products);
        if (!grown)
            break;
        products = grown;
        if (read_line(line, &products[product_count]))
            products[product_count++].file = name;
    }
    fclose(file);
    return product_count > 0;
}

/* ---- judging ---- */

/* Plans a problem by one kernel. Returns the microseconds that are predicted; 0: it refuses. */
static double plan(const rung_machine *on, const rung_problem *problem, const rung_kernel *kernel, rung_choice *choice)
{
    *choice = (rung_choice){.kernel = kernel, .parts = 1, .limit_us = INFINITY};
    const rung_launcher *launcher = rung_launcher_of(kernel);
    return launcher && !launcher->estimate(on, &config, kernel, problem, choice) ? choice->cost_us : 0.0;
}

static double predicted(const product *p, const sample *s)
{
    rung_choice choice;
    return plan(p->machine, &p->problem, s->kernel, &choice);
}

/* Returns the logarithm of predicted over measured time. Costs are those of streams. */
static double off_by(const product *p, const sample *s, double predicted_us)
{
    return log(predicted_us / (s->measured_us + (p->graph ? STREAM_US : 0.0)));
}

typedef struct verdict {
    double error, lost, worst; /* sums of squared logarithms; of logarithms of what the choice takes over the best */
    int samples, products;
    const char *worst_shape;
} verdict;

/* Judges the products of one file; NULL: of all. */
static verdict judge(const char *file, int kept_out)
{
    verdict v = {.worst_shape = "none"};
    for (int i = 0; i < product_count; i++) {
        const product *p = &products[i];
        const sample *chosen = NULL;
        double least = INFINITY;
        if (p->kept_out != kept_out || (file && p->file != file))
            continue;
        for (int j = 0; j < p->count; j++) {
            const sample *s = &p->samples[j];
            double us = predicted(p, s);
            if (us > 0.0 && us < least) {
                least = us;
                chosen = s;
            }
            if (us > 0.0 && s->weight == 1.0) {
                v.error += pow(off_by(p, s, us), 2.0);
                v.samples++;
            }
        }
        if (!chosen)
            continue;
        double lost = log(chosen->measured_us / p->best_us);
        v.lost += lost;
        v.products++;
        if (lost > v.worst) {
            v.worst = lost;
            v.worst_shape = p->shape;
        }
    }
    return v;
}

static void report_file(const char *when, const char *file)
{
    static const char *const which[] = {"fitted to", "kept out"};
    for (int i = 0; i < 2; i++) {
        verdict v = judge(file, i);
        if (v.products)
            printf("%s, %s%s%s: %4d shapes, %5d times within half of the best: error %.1f%%; the choice takes %.2f%% "
                   "more than the fastest candidate, at worst %.0f%% (%s)\n",
                   when, file ? file : "", file ? ", " : "", which[i], v.products, v.samples,
                   100.0 * (exp(sqrt(v.error / v.samples)) - 1.0), 100.0 * (exp(v.lost / v.products) - 1.0),
                   100.0 * (exp(v.worst) - 1.0), v.worst_shape);
    }
}

/* Each file apart, where there are several: what makes one chip's choices better must not make another's worse. */
static void report(const char *when)
{
    for (int i = 0; i < product_count; i++)
        if (products[i].file != products[0].file && products[i].file != products[i - 1].file) {
            for (int j = 0; j < product_count; j++)
                if (j == 0 || products[j].file != products[j - 1].file)
                    report_file(when, products[j].file);
            break;
        }
    report_file(when, NULL);
}

/* Prints a line a shape: cuBLAS's time, and the candidates with measured and predicted time, the fastest first. */
static void report_each(void)
{
    for (int i = 0; i < product_count; i++) {
        const product *p = &products[i];
        int said[KERNELS] = {0};
        printf("%-24s cublas %.1f", p->shape, p->cublas_us);
        for (int rank = 0; rank < p->count; rank++) {
            int next = -1;
            for (int j = 0; j < p->count; j++)
                if (!said[j] && (next < 0 || p->samples[j].measured_us < p->samples[next].measured_us))
                    next = j;
            said[next] = 1;
            const sample *s = &p->samples[next];
            printf(", %s %.1f (%.1f)", s->kernel->name, s->measured_us, predicted(p, s));
        }
        printf("\n");
    }
}

enum { PLAIN, OLD_VALUES, BIAS, IN_ORDER, BATCH, FEW, FORMS };
static const char *const form_names[FORMS] = {"plain",    "old values", "bias",
                                              "in order", "batch of 3", "20 multiprocessors"};

/* The same product with something more to do. */
static rung_problem in_form(const rung_problem *plain, int form)
{
    rung_problem p = *plain;
    if (form == OLD_VALUES) {
        p.beta = 1.0f;
        p.beta_zero = 0;
    } else if (form == BIAS) {
        p.bias = (const float *)(uintptr_t)(4ll << 40);
        p.bias_kind = RUNG_BIAS_PER_ROW;
    } else if (form == IN_ORDER) {
        p.in_order = 1;
    } else if (form == BATCH && p.batch == 1) {
        p.batch = 3;
        p.stride_a = p.lda * (p.trans_a ? p.k : p.m);
        p.stride_b = p.ldb * (p.trans_b ? p.n : p.k);
        p.stride_c = p.ldc * p.m;
    }
    return p;
}

/* Prints a line a tile: how many times are stored, what it predicts of them, in how many parts and with how much
 * workspace; and how many times as long each further form takes by prediction, with the number of those it refuses. */
static void report_tile(const rung_kernel *kernel)
{
    double ratio = 0.0, error = 0.0, parts = 0.0, workspace = 0.0, more[FORMS] = {0.0};
    int count = 0, refused[FORMS] = {0};
    for (int i = 0; i < product_count; i++) {
        rung_machine small = *products[i].machine;
        small.sms = 20;
        for (int j = 0; j < products[i].count; j++) {
            const sample *s = &products[i].samples[j];
            rung_choice choice;
            if (s->kernel != kernel)
                continue;
            const double us = plan(products[i].machine, &products[i].problem, kernel, &choice),
                         off = off_by(&products[i], s, us);
            refused[PLAIN] += us == 0.0;
            if (us == 0.0)
                continue;
            count++;
            ratio += off;
            error += off * off;
            parts += choice.parts;
            workspace += (double)choice.workspace_bytes * 1e-6;
            for (int form = PLAIN + 1; form < FORMS; form++) {
                const rung_problem problem = in_form(&products[i].problem, form);
                const double with = plan(form == FEW ? &small : products[i].machine, &problem, kernel, &choice);
                refused[form] += with == 0.0;
                more[form] += with > 0.0 ? log(with / us) : 0.0;
            }
        }
    }
    if (count + refused[PLAIN] == 0)
        return;
    printf("%s: %d times, refused %d, predicted %.5f of them, error %.5f, parts %.4f, workspace %.4f MB", kernel->name,
           count, refused[PLAIN], exp(ratio / count), sqrt(error / count), parts / count, workspace / count);
    for (int form = PLAIN + 1; form < FORMS; form++)
        printf(", %s %.5f refused %d", form_names[form], exp(more[form] / (count - refused[form])), refused[form]);
    printf("\n");
}

static void report_tiles(void)
{
    for (int i = 0; i < rung_kernel_count(); i++)
        if (rung_kernel_at(i)->backend == RUNG_BACKEND_CUDA && rung_kernel_at(i)->role == RUNG_PRODUCTION)
            report_tile(rung_kernel_at(i));
}

/* ---- fitting ---- */

static void predict_all(void)
{
    for (int i = 0; i < product_count; i++)
        for (int j = 0; j < products[i].count; j++)
            products[i].samples[j].predicted_us = predicted(&products[i], &products[i].samples[j]);
}

/* Returns what the choice among a product's candidates loses: the logarithm of its time over the best, and BEHIND times
 * that of its time over cuBLAS's. Predictions err, and those of a product much like this one would err otherwise. So
 * each candidate counts as often as it would be the choice there: by the 32nd power of the first's predicted time over
 * its own, a third where it is 3.5 % above. A fit to the choices themselves would fit their errors. */
static double lost_by_choice(const product *p)
{
    double least = INFINITY, sum = 0.0, lost = 0.0;
    for (int j = 0; j < p->count; j++)
        if (p->samples[j].predicted_us > 0.0 && p->samples[j].predicted_us < least)
            least = p->samples[j].predicted_us;
    for (int j = 0; j < p->count; j++) {
        const sample *s = &p->samples[j];
        if (!(s->predicted_us > 0.0) || s->predicted_us > 1.3 * least)
            continue;
        double often = least / s->predicted_us;
        for (int squared = 0; squared < 5; squared++)
            often *= often;
        sum += often;
        lost += often * s->lost;
    }
    return sum > 0.0 ? lost / sum : 0.0;
}

/* Judges the products that this tile takes: by what choices lose and, with little weight, by how wrong predictions are.
 */
static double loss_of(const char *name)
{
    const rung_kernel *kernel = rung_kernel_find(name);
    double loss = 0.0;
    for (int i = 0; i < product_count; i++) {
        product *p = &products[i];
        sample *mine = NULL;
        for (int j = 0; j < p->count && !p->kept_out && !mine; j++)
            if (p->samples[j].kernel == kernel)
                mine = &p->samples[j];
        if (!mine)
            continue;
        mine->predicted_us = predicted(p, mine);
        if (mine->predicted_us > 0.0)
            loss += lost_by_choice(p) + ERROR_WEIGHT * mine->weight * pow(off_by(p, mine, mine->predicted_us), 2.0);
    }
    return loss;
}

/* A share of the peak lies below 1; nothing else is bounded above. */
static int allowed(double value, double was, const char *field)
{
    if (strncmp(field, "share ", 6) == 0)
        return value > 0.05 && value <= 0.98;
    return strstr(field, "innermost") == field + 2 || strstr(field, "innermost") == field + 5 ? fabs(value) < 1.0
           : was == 0.0                                                                       ? value >= 0.0
                                                                                              : value > 0.0;
}

/* Returns whether the name contains one of the texts between commas. */
static int contains_one(const char *name, const char *texts)
{
    for (size_t length; *texts; texts += length, texts += *texts == ',') {
        char text[64];
        length = strcspn(texts, ",");
        snprintf(text, sizeof text, "%.*s", (int)length, texts);
        if (strstr(name, text))
            return 1;
    }
    return 0;
}

/* Fits the costs of one tile by coordinate descent, where `only` is NULL or its name contains one of those texts. */
static void fit_tile(const rung_costs *family, int tile, const char *only)
{
    char *row = (char *)family->tiles + (size_t)tile * family->tile_bytes;
    const char *name = *(const char *const *)(const void *)row;
    double *cost = (double *)(void *)(row + family->cost_offset), best = loss_of(name);
    double step = 0.1;
    if (best == 0.0 || (only && !contains_one(name, only))) /* this tile was never timed */
        return;
    for (int round = 0; round < TRIES; round++, step *= 0.6) {
        const char *field = family->fields;
        for (int i = 0; *field; i++, field += strcspn(field, " "), field += *field == ' ') {
            double was = cost[i], tries[] = {was * (1 + step), was * (1 - step), was + 0.2 * step, was - 0.2 * step};
            for (int t = 0; t < 4; t++) {
                double kept = cost[i];
                if (!allowed(tries[t], was, field))
                    continue;
                cost[i] = tries[t];
                double loss = loss_of(name);
                if (loss < best)
                    best = loss;
                else
                    cost[i] = kept, loss_of(name);
            }
        }
    }
}

/* ---- writing ---- */

static const double *costs_of(const rung_costs *family, const char *name)
{
    for (size_t i = 0; i < family->count; i++) {
        const char *row = (const char *)family->tiles + i * family->tile_bytes;
        if (strcmp(*(const char *const *)(const void *)row, name) == 0)
            return (const double *)(const void *)(row + family->cost_offset);
    }
    return NULL;
}

static int index_of(const rung_costs *family, const char *field)
{
    int i = 0;
    size_t length = strlen(field);
    for (const char *at = family->fields; *at; i++, at += strcspn(at, " "), at += *at == ' ')
        if (strncmp(at, field, length) == 0 && (at[length] == ' ' || !at[length]))
            return i;
    return -1;
}

/* Writes a row's .cost anew, the fields that it has, three decimals below one and four digits above. */
static void write_costs(FILE *to, const char *text, const rung_costs *family, const double *cost)
{
    char field[64];
    double value;
    int used;
    const char *separator = "";
    fprintf(to, ".cost = {");
    for (text += strlen(".cost = {"); sscanf(text, "%*[, .]%63[a-z_0-9] = %lf%n", field, &value, &used) == 2 ||
                                      sscanf(text, ".%63[a-z_0-9] = %lf%n", field, &value, &used) == 2;
         text += used, separator = ", ") {
        int i = index_of(family, field);
        value = i >= 0 ? cost[i] : value;
        fprintf(to,
                fabs(value) < 1.0   ? "%s.%s = %.3f"
                : fabs(value) < 1e6 ? "%s.%s = %.4g"
                                    : "%s.%s = %.3e",
                separator, field, value);
    }
    fputs(strchr(text, '}'), to);
}

static int write_family(const rung_costs *family, const char *source)
{
    char path[600], temporary[620], line[1024], name[64] = "";
    snprintf(path, sizeof path, "%s/src/cuda/families/%s/tiles.inc", source, family->family);
    snprintf(temporary, sizeof temporary, "%s.new", path);
    FILE *from = fopen(path, "r"), *to = fopen(temporary, "w");
    if (!from || !to) {
        fprintf(stderr, "rung_fit: cannot rewrite %s\n", path);
        if (from)
            fclose(from);
        if (to)
            fclose(to);
        return 0;
    }
    while (fgets(line, sizeof line, from)) {
        sscanf(line, "RUNG_TILE(%63[a-z0-9_]", name);
        char *cost = strstr(line, ".cost = {");
        const double *values = costs_of(family, name);
        if (!cost || !values) {
            fputs(line, to);
            continue;
        }
        fprintf(to, "%.*s", (int)(cost - line), line);
        write_costs(to, cost, family, values);
    }
    fclose(from);
    return fclose(to) == 0 && rename(temporary, path) == 0;
}

int main(int argc, char **argv)
{
    int fit = 0, each = 0, tiles = 0;
    const char *source = NULL, *only = NULL;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--fit") == 0)
            fit = 1;
        else if (strcmp(argv[i], "--each") == 0)
            each = 1;
        else if (strcmp(argv[i], "--tiles") == 0)
            tiles = 1;
        else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc)
            only = argv[++i];
        else if (strcmp(argv[i], "--write") == 0 && i + 1 < argc)
            source = argv[++i];
        else if (!read_file(argv[i]))
            return 2;
    }
    if (product_count == 0) {
        fprintf(stderr, "usage: rung_fit TIMES.jsonl... [--each | --tiles] [--fit] [--only TEXT,...] [--write "
                        "SOURCE_DIR]\n");
        return 2;
    }
    if (tiles) {
        report_tiles();
        free(products);
        return 0;
    }
    report("as they are");
    if (each)
        report_each();
    predict_all();
    for (int round = 0; fit && round < ROUNDS; round++)
        for (size_t f = 0; f < sizeof families / sizeof families[0]; f++)
            for (size_t i = 0; families[f] && i < families[f]->count; i++)
                fit_tile(families[f], (int)i, only);
    if (fit)
        report("fitted anew");
    for (size_t f = 0; source && f < sizeof families / sizeof families[0]; f++)
        if (families[f] && !write_family(families[f], source))
            return 1;
    free(products);
    return 0;
}
