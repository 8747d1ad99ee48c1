/* Which cuBLAS the drop-in finds: prints what the function of this name says, or "none". Libraries that are named after
 * it are loaded first, as PyTorch loads its own, where nobody else sees them. usage: program_real FUNCTION [LIBRARY...]
 */
#include "cublas_real.h"

#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int (*function)(void);
    for (int i = 2; i < argc; i++)
        if (!dlopen(argv[i], RTLD_LAZY | RTLD_LOCAL)) {
            puts(dlerror());
            return 2;
        }
    *(void **)&function = argc > 1 ? rung_real(argv[1]) : NULL;
    if (function)
        printf("%d\n", function());
    else
        puts("none");
    return 0;
}
