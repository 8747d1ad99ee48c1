/* Which module of device code is opened for a chip: Hopper's for Hopper alone, Turing's for Turing, one for all others.
 * No folder holds any here: what was looked for stands in the refusal. */
#include "cuda/driver/images.h"
#include "rung.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void each_chip_has_its_module(void **state)
{
    static const struct {
        int arch;
        const char *module, *capability, *archs;
    } chips[] = {{75, "/librung_sm_75.so", "7.5", "75"},
                 {80, "/librung_sm_80.so", "8.0", "native or all"},
                 {86, "/librung_sm_80.so", "8.6", "native or all"},
                 {89, "/librung_sm_80.so", "8.9", "native or all"},
                 {90, "/librung_sm_90a.so", "9.0", "native or all"},
                 {100, "/librung_sm_80.so", "10.0", "native or all"},
                 {103, "/librung_sm_80.so", "10.3", "native or all"},
                 {120, "/librung_sm_80.so", "12.0", "native or all"}};
    (void)state;
    setenv("RUNG_DEVICE_IMAGES", "/no/such/folder", 1);
    for (size_t i = 0; i < sizeof chips / sizeof *chips; i++) {
        void *images = NULL;
        char text[128];
        assert_int_equal(rung_images_open(chips[i].arch, "A chip", &images), RUNG_NO_DEVICE);
        assert_null(images);
        snprintf(text, sizeof text, "A chip (compute capability %s) is there", chips[i].capability);
        assert_non_null(strstr(rung_last_error(), text));
        snprintf(text, sizeof text, "/no/such/folder%s:", chips[i].module);
        assert_non_null(strstr(rung_last_error(), text));
        snprintf(text, sizeof text, "RUNG_CUDA_ARCHS=%s (", chips[i].archs);
        assert_non_null(strstr(rung_last_error(), text));
    }
}

/* Without a folder, also an empty one, the module is looked for beside the library. */
static void an_empty_folder_is_none(void **state)
{
    (void)state;
    void *images;
    char beside[512];
    unsetenv("RUNG_DEVICE_IMAGES");
    assert_int_equal(rung_images_open(90, "A chip", &images), RUNG_NO_DEVICE);
    snprintf(beside, sizeof beside, "%s", rung_last_error());
    assert_non_null(strstr(beside, "/librung_sm_90a.so"));
    setenv("RUNG_DEVICE_IMAGES", "", 1);
    assert_int_equal(rung_images_open(90, "A chip", &images), RUNG_NO_DEVICE);
    assert_string_equal(rung_last_error(), beside);
}

/* An image is found by its stem, and one that is not there is named. */
static void images_are_found_by_their_stems(void **state)
{
    const void *image = NULL;
    void *own = *state;
    assert_int_equal(rung_images_find(own, "no_kernel", &image), RUNG_INTERNAL);
    assert_non_null(strstr(rung_last_error(), "rung_image_no_kernel"));
    assert_null(image);
    assert_null(rung_images_table(own));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_chip_has_its_module),
                                       cmocka_unit_test(an_empty_folder_is_none),
                                       cmocka_unit_test(images_are_found_by_their_stems)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
