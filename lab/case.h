/* One product to verify, as a line of text that can be run again: "TN:35x700x2048:row,pad=3,alpha=-0.5,data=spike". */
#ifndef LAB_CASE_H
#define LAB_CASE_H

#include "lab/device/lab_shared.h"
#include "lab/error.h"
#include "rung_catalog.h"

typedef enum lab_form { LAB_SINGLE, LAB_STRIDED, LAB_SHARED_B, LAB_ARRAYS } lab_form;

/* Which of alpha and beta lie in device memory. */
typedef enum lab_scalars { LAB_SCALARS_HERE, LAB_SCALARS_THERE, LAB_ALPHA_THERE, LAB_BETA_THERE } lab_scalars;

typedef struct lab_case {
    rung_layout layout;
    rung_transpose trans_a, trans_b;
    int64_t m, n, k, batch;
    int64_t pad;             /* elements added to every leading dimension */
    int64_t offset;          /* elements by which every operand misses 256-byte alignment */
    int64_t a_pad, a_offset; /* what A alone has beyond these: its rows need not lie as B's do */
    int64_t c_pad, c_offset; /* what C alone has: its rows need not lie as the operands' do */
    float alpha, beta;
    lab_data data;
    int added_special; /* the bias and what C holds before have NaN and Inf among them */
    lab_form form;
    rung_bias bias;
    rung_activation activation;
    lab_scalars device_scalars;
    int64_t workspace_kib; /* what the product may borrow at most; 0: as the context says */
    int accuracy;          /* judged by the acceptance rule on a large sample, not only by the contract */
    uint32_t seed;
} lab_case;

enum { LAB_CASE_TEXT = 208 };

void lab_case_init(lab_case *c); /* column-major NN, alpha 1, beta 0, U(-1,1), single */
void lab_case_print(const lab_case *c, char text[LAB_CASE_TEXT]);
rung_status lab_case_parse(const char *text, lab_case *c);

typedef enum lab_depth { LAB_QUICK, LAB_FULL, LAB_HUGE, LAB_PAIRS } lab_depth;

typedef struct lab_cases {
    lab_case *list;
    int count, capacity;
} lab_cases;

/* Lists what the contract asks of one kernel, by its row; with kernel NULL, of the library's own choice in that backend
 * under `math`. The caller frees list. QUICK is a small set, HUGE adds operands beyond 2^31 elements. PAIRS alone has
 * every pair of choices (sizes at edges of the tile, padding, offsets, transposes ...) in some case; it is part of
 * FULL. */
rung_status lab_cases_for(const rung_kernel *kernel, rung_math math, rung_backend_id backend, lab_depth depth,
                          lab_cases *cases);

#endif
