/* A product with Rung, start to end: a context on the best device, C = A*B, a plan that says what was decided.
 * cc product.c $(pkg-config --cflags --libs rung) */
#include <rung.h>
#include <stdio.h>
#include <stdlib.h>

static int report(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, rung_last_error());
    return 1;
}

int main(void)
{
    enum { SIZE = 512 };
    float *a = malloc(sizeof(float[SIZE][SIZE])), *b = malloc(sizeof(float[SIZE][SIZE]));
    float *c = malloc(sizeof(float[SIZE][SIZE]));
    if (!a || !b || !c)
        return 1;
    for (int i = 0; i < SIZE * SIZE; i++) {
        a[i] = 1.0f;
        b[i] = 2.0f;
    }

    rung_context *context;
    if (rung_context_create(&context, NULL) != RUNG_SUCCESS) /* NULL: a GPU if there is one, else the CPU */
        return report("rung_context_create");
    if (rung_sgemm(context, RUNG_ROW_MAJOR, RUNG_NO_TRANS, RUNG_NO_TRANS, SIZE, SIZE, SIZE, 1.0f, a, SIZE, b, SIZE,
                   0.0f, c, SIZE) != RUNG_SUCCESS)
        return report("rung_sgemm");

    rung_gemm gemm;
    rung_gemm_init(&gemm);
    gemm.layout = RUNG_ROW_MAJOR;
    gemm.m = gemm.n = gemm.k = gemm.lda = gemm.ldb = gemm.ldc = SIZE;
    gemm.a = a, gemm.b = b, gemm.c = c;
    rung_plan *plan;
    if (rung_plan_create(&plan, context, &gemm) != RUNG_SUCCESS)
        return report("rung_plan_create");
    char text[8192];
    rung_plan_print(plan, text, sizeof text);
    const char *device = rung_context_device(context) == RUNG_DEVICE_CPU ? "the CPU" : "a GPU";
    printf("rung %s on %s\n%sC[0] = %g, and should be %d\n", rung_version(), device, text, c[0], 2 * SIZE);

    rung_plan_destroy(plan);
    rung_context_destroy(context);
    int right = c[0] == 2.0f * SIZE && c[SIZE * SIZE - 1] == 2.0f * SIZE;
    free(a);
    free(b);
    free(c);
    return right ? 0 : 1;
}
