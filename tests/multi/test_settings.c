/* What a multi context is opened with: what the caller says comes first, then the environment, then the default. A
 * value that means nothing is refused. */
#include "../gpu/fake_libcuda.h"
#include "multi/multi.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { GPUS = 3 };

static void set(const char *name, const char *value)
{
    if (value)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

static rung_multi *opened(double timeout_s)
{
    rung_multi *multi = NULL;
    const int cpu = RUNG_DEVICE_CPU;
    rung_multi_config config;
    rung_multi_config_init(&config);
    config.ranks = 1;
    config.devices = &cpu;
    config.timeout_s = timeout_s;
    assert_int_equal(rung_multi_create(&multi, &config), RUNG_SUCCESS);
    return multi;
}

static void the_longest_wait(void **state)
{
    (void)state;
    static const struct {
        double said;
        const char *environment;
        double is;
    } rows[] = {{0.0, NULL, 60.0}, {0.0, "", 60.0}, {0.0, "2.5", 2.5}, {7.0, NULL, 7.0}, {7.0, "2.5", 7.0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        set("RUNG_TIMEOUT_S", rows[i].environment);
        rung_multi *multi = opened(rows[i].said);
        if (multi->timeout_s != rows[i].is)
            fail_msg("the caller says %g, the environment '%s': %g", rows[i].said,
                     rows[i].environment ? rows[i].environment : "nothing", multi->timeout_s);
        rung_multi_destroy(multi);
    }
    unsetenv("RUNG_TIMEOUT_S");
}

static void panels_and_waves(void **state)
{
    (void)state;
    static const struct {
        const char *panels;
        multi_panels are;
    } rows[] = {{NULL, {512, 512, 512, 1, 1}},
                {"", {512, 512, 512, 1, 1}},
                {"96", {96, 96, 96, 1, 1}},
                {"64:200:96", {64, 200, 96, 1, 1}},
                {"64:200:96:4:2", {64, 200, 96, 4, 2}}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        set("RUNG_MULTI_PANEL", rows[i].panels);
        rung_multi *multi = opened(0.0);
        const multi_panels *now = &multi->panels, *are = &rows[i].are;
        if (now->first != are->first || now->widest != are->widest || now->last != are->last ||
            now->bands != are->bands || now->chunks != are->chunks)
            fail_msg("'%s': %lld:%lld:%lld:%d:%d", rows[i].panels ? rows[i].panels : "nothing", (long long)now->first,
                     (long long)now->widest, (long long)now->last, now->bands, now->chunks);
        rung_multi_destroy(multi);
    }
    unsetenv("RUNG_MULTI_PANEL");
    static const struct {
        const char *wave;
        int64_t is;
    } waves[] = {{NULL, 1 << 22}, {"", 1 << 22}, {"5000", 5000}, {"1", 1}, {"0.5", 1}, {"1e-9", 1}};
    for (size_t i = 0; i < sizeof waves / sizeof *waves; i++) {
        set("RUNG_MULTI_WAVE", waves[i].wave);
        rung_multi *multi = opened(0.0);
        assert_int_equal(multi->wave_elements, waves[i].is);
        rung_multi_destroy(multi);
    }
    unsetenv("RUNG_MULTI_WAVE");
}

/* Nothing of these is passed over: who sets a variable would believe that it counts. */
static void what_means_nothing(void **state)
{
    (void)state;
    static const char *const names[] = {"RUNG_TIMEOUT_S", "RUNG_MULTI_WAVE", "RUNG_MULTI_PANEL"},
                             *const wrong[] = {"0", "-3", "x", "5x", "nan", "1e10", "99999999999999999999"},
                             *const panels[] = {"64:200",
                                                "64:200:96:4",
                                                "64:0:96",
                                                "64:200:96:0:2",
                                                "64:200:96:4:-1",
                                                "64:200:96:4:2:1",
                                                "8x",
                                                "8:",
                                                " 8",
                                                "+8",
                                                "8:16:8:2:x",
                                                "1073741825",
                                                "wide",
                                                "8:4294967304:8",
                                                "8:16:8:1:4294967297"};
    static const char *const why[] = {"': set it to a number above 0 and below 1e9, or unset it",
                                      "': expected a width, first:widest:last or first:widest:last:bands:chunks, "
                                      "numbers from 1 to 1073741824"};
    for (size_t name = 0; name < 3; name++) {
        size_t count = name < 2 ? sizeof wrong / sizeof *wrong : sizeof panels / sizeof *panels;
        for (size_t i = 0; i < count; i++) {
            const char *text = name < 2 ? wrong[i] : panels[i];
            char sentence[256];
            rung_multi *multi;
            rung_multi_config config;
            rung_multi_config_init(&config);
            set(names[name], text);
            assert_int_equal(rung_multi_create(&multi, &config), RUNG_INVALID_ARGUMENT);
            assert_null(multi);
            snprintf(sentence, sizeof sentence, "%s is '%s%s", names[name], text, why[name / 2]);
            assert_string_equal(rung_last_error(), sentence);
        }
        unsetenv(names[name]);
    }
}

/* The connection to rank 0 is on or off, and by no other word. */
static void control_is_a_flag(void **state)
{
    (void)state;
    static const char *const right[] = {NULL, "", "0", "1"}, *const wrong[] = {"no", "off", "00", "2", " 1"};
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        set("RUNG_CONTROL", right[i]);
        rung_multi_destroy(opened(0.0));
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char sentence[128];
        rung_multi *multi;
        rung_multi_config config;
        rung_multi_config_init(&config);
        setenv("RUNG_CONTROL", wrong[i], 1);
        assert_int_equal(rung_multi_create(&multi, &config), RUNG_INVALID_ARGUMENT);
        snprintf(sentence, sizeof sentence,
                 "RUNG_CONTROL is '%s': set it to 0, for no connection to rank 0, or to 1, or unset it", wrong[i]);
        assert_string_equal(rung_last_error(), sentence);
    }
    unsetenv("RUNG_CONTROL");
}

/* Each arithmetic of a GPU has panels of its own: the bits of C depend on them. */
static void panels_of_a_gpu(void **state)
{
    (void)state;
    static const multi_panels of[] = {{2048, 8192, 4096, 4, 2}, {8192, 8192, 8192, 2, 1}, {8192, 8192, 8192, 2, 1}};
    const int gpu = 0;
    for (int math = RUNG_STRICT; math <= RUNG_FAST; math++) {
        rung_multi *multi;
        rung_multi_config config;
        rung_multi_config_init(&config);
        config.ranks = 1;
        config.devices = &gpu;
        config.math = (rung_math)math;
        assert_int_equal(rung_multi_create(&multi, &config), RUNG_SUCCESS);
        const multi_panels *now = &multi->panels, *is = &of[math];
        assert_true(now->first == is->first && now->widest == is->widest && now->last == is->last);
        assert_true(now->bands == is->bands && now->chunks == is->chunks);
        rung_multi_destroy(multi);
    }
}

/* As many ranks as are asked for, on the first GPUs; where nobody asks, all GPUs. */
static void ranks_on_gpus(void **state)
{
    (void)state;
    for (int ranks = 0; ranks <= GPUS + 1; ranks++) {
        rung_multi *multi;
        rung_multi_config config;
        rung_multi_config_init(&config);
        config.ranks = ranks;
        assert_int_equal(rung_multi_create(&multi, &config), ranks > GPUS ? RUNG_NO_DEVICE : RUNG_SUCCESS);
        assert_int_equal(multi ? rung_multi_ranks(multi) : GPUS + 1, ranks ? ranks : GPUS);
        for (int i = 0; multi && i < rung_multi_ranks(multi); i++)
            assert_int_equal(multi->engines[i].device, i);
        rung_multi_destroy(multi);
    }
}

static const char *refused(void)
{
    rung_multi *multi;
    rung_multi_config config;
    rung_multi_config_init(&config);
    config.transport = RUNG_TRANSPORT_NCCL;
    assert_int_equal(rung_multi_create(&multi, &config), RUNG_MISSING_LIBRARY);
    assert_null(multi);
    return rung_last_error();
}

/* The library that is named is the one that is taken, or none. */
static void a_named_library(void **state)
{
    (void)state;
    assert_non_null(strstr(refused(), "/nowhere/libnccl.so"));
}

/* NVLink multicast is off unless somebody asks for it. */
static void multicast_is_for_who_asks(void **state)
{
    (void)state;
    unsetenv("NCCL_NVLS_ENABLE");
    refused();
    assert_string_equal(getenv("NCCL_NVLS_ENABLE"), "0");
    set("NCCL_NVLS_ENABLE", "2");
    refused();
    assert_string_equal(getenv("NCCL_NVLS_ENABLE"), "2");
}

int main(int argc, char **argv)
{
    set("RUNG_LIBCUDA", argc > 1 ? argv[1] : NULL);
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
    fake_state_function *state;
    *(void **)&state = library ? dlsym(library, "fake_state") : NULL;
    if (state)
        state()->devices = GPUS;
    set("RUNG_RANK", "0");
    set("RUNG_SIZE", "1");
    set("RUNG_NCCL", "/nowhere/libnccl.so");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_longest_wait),   cmocka_unit_test(panels_and_waves),
        cmocka_unit_test(what_means_nothing), cmocka_unit_test(control_is_a_flag),
        cmocka_unit_test(panels_of_a_gpu),    cmocka_unit_test(ranks_on_gpus),
        cmocka_unit_test(a_named_library),    cmocka_unit_test(multicast_is_for_who_asks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
