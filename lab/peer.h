/* The libraries Rung is measured against, opened at run time. Each gets its best: all the threads that Rung gets,
 * cuBLAS by its heuristic, cuBLASLt the fastest of its candidates, and an OpenBLAS that does not know the processor the
 * kernels of one that it knows. A CPU library may be opened several times, once told nothing and once a setting:
 * "openblas,openblas@Haswell". RUNG_OPENBLAS, RUNG_MKL, RUNG_CUBLAS and so on name files. */
#ifndef LAB_PEER_H
#define LAB_PEER_H

#include "lab/place.h"

typedef struct lab_peer lab_peer;
struct lab_peer {
    const char *name;
    char version[64], path[256];
    const char *told; /* the setting that it was told, since it is older than this processor; NULL: none */
    int absent;       /* it could not be opened, because it is simply not installed */
    /* Called before the first run of a shape; NULL: nothing to do. */
    rung_status (*prepare)(lab_peer *peer, const rung_gemm *gemm);
    /* Runs a product, which has no pointer arrays, bias or activation. */
    rung_status (*run)(lab_peer *peer, const rung_gemm *gemm);
    void (*close)(lab_peer *peer);
    void *state;
    lab_place *place;
};

extern const char *const lab_cpu_peers[]; /* names, best first, ending with NULL */
extern const char *const lab_gpu_peers[];

/* Opens a peer. The status is RUNG_MISSING_LIBRARY, with what was looked for and how to get it, when it is not there.
 */
rung_status lab_peer_open(lab_place *place, const char *name, lab_peer *peer);
void lab_peer_close(lab_peer *peer);
/* The peers' own files. */
rung_status lab_peer_open_cpu(lab_place *place, const char *name, lab_peer *peer);
rung_status lab_peer_open_gpu(lab_place *place, const char *name, lab_peer *peer);

#endif
