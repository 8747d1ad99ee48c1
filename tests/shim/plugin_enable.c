/* What a plugin that is linked against cuBLAS does with its functions: it calls one, which goes through the table of
 * calls, and takes the addresses of others, which lie in the table of data. */
#include "fake_cublas.h"

typedef int any(void);
int cublasSgemm_v2(fake_handle *, int, int, int, int, int, const float *, const float *, int, const float *, int,
                   const float *, float *, int);
any cublasSgemmStridedBatched, cublasDgemm_v2;

#define EXPORT __attribute__((visibility("default")))
EXPORT int plugin_call(fake_handle *handle);
EXPORT any *plugin_address(void);
EXPORT any *plugin_other(void);

int plugin_call(fake_handle *handle)
{
    const float one = 1.0f;
    float c = 0.0f;
    return cublasSgemm_v2(handle, 0, 0, 1, 1, 1, &one, &one, 1, &one, 1, &one, &c, 1);
}

any *plugin_address(void)
{
    return cublasSgemmStridedBatched;
}

any *plugin_other(void)
{
    return cublasDgemm_v2;
}
