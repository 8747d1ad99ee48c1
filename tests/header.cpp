// The public headers in a C++ program, warnings as errors.
#include "rung.h"
#include "rung_catalog.h"
#include "rung_multi.h"

int main()
{
    rung_gemm gemm;
    rung_gemm_init(&gemm);
    return rung_kernel_count() > 0 && gemm.batch == 1 ? 0 : 1;
}
