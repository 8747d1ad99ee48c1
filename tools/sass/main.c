/* Rewrites the machine code of a compiled kernel, in place: README.md tells how, and what is proved first. Nothing is
 * written unless all of it is right.
 */
#include "check.h"
#include "loop.h"
#include "order.h"
#include "pattern.h"
#include "ports_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FAILED = 1, USAGE = 2, LISTED = 24 };

static int usage(void)
{
    fputs("usage: sass loop --tile ROWSxCOLUMNS --stages N [--gather copies|moves] [--strict] CUBIN\n"
          "           writes the main loop of the large FP32 kernels anew; strict: or fails\n"
          "       sass order CUBIN\n"
          "           puts FFMAs and shared loads into an order that the register ports like better\n"
          "       sass turns CUBIN\n"
          "           does so for a kernel whose blocks share a multiprocessor: after eight instructions another warp\n"
          "           may go on; turns_tt: only functions whose names end in _tt\n"
          "       sass pattern CUBIN\n"
          "           gives the timing loops of lab/device/lab_ports.cu the registers of their patterns\n"
          "       sass check CUBIN\n"
          "           does the code wait for every load, copy and barrier before it?\n"
          "       sass ports CUBIN\n"
          "           cycles of each function's main loop, by the model of the register ports\n"
          "       sass list CUBIN\n"
          "           the beginning of each function's main loop: registers, stalls, reads of each bank\n",
          stderr);
    return USAGE;
}

struct loop_options {
    struct tile tile;
    enum gather gather;
    bool strict;
};

static int run_check(const struct cubin *cubin, const char *path, const struct loop_options *options)
{
    (void)path, (void)options;
    struct function f;
    int found = 0;
    for (int i = 0; i < cubin_sections(cubin); i++)
        if (cubin_function(cubin, i, &f))
            found += check_function(f.code, f.n, f.name);
    return found ? FAILED : 0;
}

static int run_ports(const struct cubin *cubin, const char *path, const struct loop_options *options)
{
    (void)path, (void)options;
    struct function f;
    for (int i = 0; i < cubin_sections(cubin); i++)
        if (cubin_function(cubin, i, &f))
            ports_report(&f);
    return 0;
}

static int run_list(const struct cubin *cubin, const char *path, const struct loop_options *options)
{
    (void)path, (void)options;
    struct function f;
    for (int i = 0; i < cubin_sections(cubin); i++)
        if (cubin_function(cubin, i, &f))
            ports_list(&f, LISTED);
    return 0;
}

/* Orders the functions whose names end so. */
static int order_functions(const struct cubin *cubin, const char *path, bool turns, const char *end)
{
    struct function f;
    struct dice dice = {1};
    for (int i = 0; i < cubin_sections(cubin); i++)
        if (cubin_function(cubin, i, &f) && strlen(f.name) >= strlen(end) &&
            !strcmp(f.name + strlen(f.name) - strlen(end), end))
            order_function(&f, turns, &dice);
    return cubin_write(cubin, path) ? 0 : FAILED;
}

static int run_order(const struct cubin *cubin, const char *path, const struct loop_options *options)
{
    (void)options;
    return order_functions(cubin, path, false, "");
}

static int run_turns(const struct cubin *cubin, const char *path, const struct loop_options *options)
{
    (void)options;
    return order_functions(cubin, path, true, "");
}

static int run_turns_tt(const struct cubin *cubin, const char *path, const struct loop_options *options)
{
    (void)options;
    return order_functions(cubin, path, true, "_tt");
}

static int run_pattern(const struct cubin *cubin, const char *path, const struct loop_options *options)
{
    (void)options;
    struct function f;
    for (int i = 0; i < cubin_sections(cubin); i++)
        if (cubin_function(cubin, i, &f) && !pattern_function(&f))
            return FAILED;
    return cubin_write(cubin, path) ? 0 : FAILED;
}

static int run_loop(const struct cubin *cubin, const char *path, const struct loop_options *options)
{
    struct function f;
    bool all = true;
    int written = 0;
    for (int i = 0; i < cubin_sections(cubin); i++)
        if (cubin_function(cubin, i, &f))
            all &= loop_function(&f, &options->tile, options->gather, &written);
    if (!written)
        fprintf(stderr, "sass loop: %s has no main loop that was written anew\n", path);
    if (options->strict && (!all || !written))
        return FAILED;
    return cubin_write(cubin, path) ? 0 : FAILED;
}

/* Returns the number of arguments that the option at argv[0] takes up; 0: there is none of that name, or its value is
 * wrong. */
static int read_option(char **argv, struct loop_options *options)
{
    const char *value = argv[1] ? argv[1] : "";
    struct tile *tile = &options->tile;
    int end = 0;
    if (!strcmp(argv[0], "--strict")) {
        options->strict = true;
        return 1;
    }
    if (!strcmp(argv[0], "--tile") && sscanf(value, "%dx%d%n", &tile->rows, &tile->columns, &end) == 2 && !value[end])
        return 2;
    if (!strcmp(argv[0], "--stages") && sscanf(value, "%d%n", &tile->stages, &end) == 1 && !value[end])
        return 2;
    if (strcmp(argv[0], "--gather"))
        return 0;
    options->gather = !strcmp(value, "copies") ? GATHER_COPIES : !strcmp(value, "moves") ? GATHER_MOVES : GATHER_NONE;
    return options->gather == GATHER_NONE ? 0 : 2;
}

/* Returns whether the tool knows such tiles: the lanes' places in a tile ask for multiples of 64, and the ring's place
 * is taken from a step's number with a mask. */
static bool tile_is_known(const struct tile *t)
{
    bool power_of_two = t->stages > 0 && (t->stages & (t->stages - 1)) == 0;
    if (t->rows > 0 && t->rows % 64 == 0 && t->columns > 0 && t->columns % 64 == 0 && power_of_two &&
        t->stages <= STAGES_MAX)
        return true;
    fprintf(
        stderr,
        "sass loop: a tile of %dx%d with %d stages: rows and columns must be multiples of 64, stages 1, 2, 4 or 8\n",
        t->rows, t->columns, t->stages);
    return false;
}

typedef int verb_function(const struct cubin *cubin, const char *path, const struct loop_options *options);

static const struct verb {
    const char *name;
    verb_function *run;
    bool has_options;
} verbs[] = {
    {"loop", run_loop, true},          {"order", run_order, false},     {"turns", run_turns, false},
    {"turns_tt", run_turns_tt, false}, {"pattern", run_pattern, false}, {"check", run_check, false},
    {"ports", run_ports, false},       {"list", run_list, false},
};

static const struct verb *find_verb(const char *name)
{
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        if (!strcmp(verbs[i].name, name))
            return &verbs[i];
    return NULL;
}

int main(int argc, char **argv)
{
    struct loop_options options = {.strict = false};
    struct cubin cubin;
    const struct verb *verb = argc < 3 ? NULL : find_verb(argv[1]);
    if (!verb || (!verb->has_options && argc != 3))
        return usage();
    const char *path = argv[argc - 1];
    for (int i = 2, taken; i < argc - 1; i += taken) {
        taken = read_option(argv + i, &options);
        if (!taken || i + taken > argc - 1)
            return usage();
    }
    if (verb->has_options && !tile_is_known(&options.tile))
        return USAGE;
    if (!cubin_read(&cubin, path))
        return USAGE;
    int code = verb->run(&cubin, path, &options);
    cubin_free(&cubin);
    return code;
}
