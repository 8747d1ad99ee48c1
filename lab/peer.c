/* Picks the file that knows a peer. */
#include "lab/peer.h"
#include "lab/names.h"

#include <stdio.h>
#include <string.h>

const char *const lab_cpu_peers[] = {"openblas", "openblas_pypi", "mkl", "aocl", "blis", NULL};
const char *const lab_gpu_peers[] = {"cublas", "cublaslt", "cublas_tf32", NULL};

rung_status lab_peer_open(lab_place *place, const char *name, lab_peer *peer)
{
    const char *const *names = place->tools ? lab_gpu_peers : lab_cpu_peers;
    memset(peer, 0, sizeof *peer);
    peer->place = place;
    char plain[64];
    snprintf(plain, sizeof plain, "%s", name);
    if (!place->tools)
        plain[strcspn(plain, "@")] = 0;
    int index = lab_name_find(names, plain);
    if (index < 0)
        return lab_fail(RUNG_INVALID_ARGUMENT, "no peer on the %s is called '%s': there are %s",
                        place->tools ? "GPU" : "CPU", name,
                        place->tools ? "cublas, cublaslt, cublas_tf32" : "openblas, openblas_pypi, mkl, aocl, blis");
    peer->name = names[index];
    rung_status status = place->tools ? lab_peer_open_gpu(place, name, peer) : lab_peer_open_cpu(place, name, peer);
    if (status != RUNG_SUCCESS) {
        int absent = peer->absent;
        lab_peer_close(peer);
        peer->absent = absent;
    }
    return status;
}

void lab_peer_close(lab_peer *peer)
{
    if (peer->close)
        peer->close(peer);
    memset(peer, 0, sizeof *peer);
}
