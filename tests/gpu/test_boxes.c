/* What a tensor map is made of: it is the driver's to read as it was given, within the driver's limits; rows or
 * matrices that lie farther apart are refused with the distance. */
#include "own_driver.h"

#include "cuda/host/boxes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static CUtensorMap *given_map;
static void *given_at;
static cuuint64_t sizes[3], strides[2];
static cuuint32_t box[3];
static CUtensorMapSwizzle swizzle;
static CUtensorMapL2promotion promotion;
static int calls, fails;

static CUresult tensor_map(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *at, const cuuint64_t *of,
                           const cuuint64_t *apart, const cuuint32_t *boxes, const cuuint32_t *steps,
                           CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzled,
                           CUtensorMapL2promotion promoted, CUtensorMapFloatOOBfill fill)
{
    assert_true(type == CU_TENSOR_MAP_DATA_TYPE_FLOAT32 && rank == 3 && interleave == CU_TENSOR_MAP_INTERLEAVE_NONE);
    assert_true(fill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE && steps[0] == 1 && steps[1] == 1 && steps[2] == 1);
    for (int i = 0; i < 2; i++)
        assert_true(apart[i] % 16 == 0 && apart[i] > 0 && apart[i] < (cuuint64_t)1 << 40);
    given_map = map, given_at = at, swizzle = swizzled, promotion = promoted;
    memcpy(sizes, of, sizeof sizes), memcpy(strides, apart, sizeof strides), memcpy(box, boxes, sizeof box);
    calls++;
    return fails ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static const rung_driver driver = {.tensor_map = tensor_map};
static rung_cuda cuda = {.driver = &driver};
static CUtensorMap map;
static const int64_t reach = ((int64_t)1 << 38) - 4; /* floats */

static rung_status describe(int64_t rows, int64_t matrices, int64_t ld, int64_t stride)
{
    const rung_boxes b = {(const float *)4096,
                          {100, rows, matrices},
                          ld,
                          stride,
                          {32, 8},
                          CU_TENSOR_MAP_SWIZZLE_64B,
                          CU_TENSOR_MAP_L2_PROMOTION_L2_256B};
    calls = 0;
    return rung_boxes_describe(&cuda, &b, &map);
}

static void maps_are_what_was_given(void **state)
{
    (void)state;
    static const int64_t apart[] = {100,  104, (int64_t)1 << 29, ((int64_t)1 << 30) + 4, ((int64_t)1 << 32) + 100,
                                    reach};
    for (size_t i = 0; i < sizeof apart / sizeof *apart; i++)
        for (size_t j = 0; j < sizeof apart / sizeof *apart; j++) {
            assert_int_equal(describe(9, 5, apart[i], apart[j]), RUNG_SUCCESS);
            assert_true(calls == 1 && given_map == &map && given_at == (void *)4096);
            assert_true(sizes[0] == 100 && sizes[1] == 9 && sizes[2] == 5);
            assert_true(strides[0] == (cuuint64_t)apart[i] * 4 && strides[1] == (cuuint64_t)apart[j] * 4);
            assert_true(box[0] == 32 && box[1] == 8 && box[2] == 1);
            assert_true(swizzle == CU_TENSOR_MAP_SWIZZLE_64B && promotion == CU_TENSOR_MAP_L2_PROMOTION_L2_256B);
        }
    fails = 1;
    assert_int_equal(describe(9, 5, 100, 900), RUNG_DEVICE_ERROR);
    fails = 0;
}

static void what_is_out_of_reach_is_said(void **state)
{
    (void)state;
    assert_int_equal(describe(2, 1, reach + 4, 0), RUNG_UNSUPPORTED);
    assert_string_equal(rung_last_error(), "rows lie 274877906944 floats apart: the copy engine reaches 274877906940");
    assert_int_equal(describe(2, 2, 100, reach + 4), RUNG_UNSUPPORTED);
    assert_string_equal(rung_last_error(),
                        "matrices of a batch lie 274877906944 floats apart: the copy engine reaches 274877906940");
    assert_int_equal(calls, 0);
}

/* Where there is one row or one matrix, the distance to the next says nothing. */
static void one_row_reaches_nowhere(void **state)
{
    (void)state;
    assert_int_equal(describe(1, 1, reach + 4, 0), RUNG_SUCCESS);
    assert_int_equal(describe(1, 1, (int64_t)1 << 50, (int64_t)1 << 50), RUNG_SUCCESS);
    assert_int_equal(describe(1, 3, (int64_t)1 << 50, 200), RUNG_SUCCESS);
    assert_true(strides[1] == 800);
    assert_int_equal(describe(7, 1, 100, (int64_t)1 << 50), RUNG_SUCCESS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(maps_are_what_was_given),
        cmocka_unit_test(what_is_out_of_reach_is_said),
        cmocka_unit_test(one_row_reaches_nowhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
