/* The communication of a distributed product under SimGrid's SMPI: the real MPI transport broadcasts panels along the
 * rows and columns of a grid of simulated ranks, two panels ahead, and products are simulated by their operations.
 * usage: summa <grid rows> <grid cols> <n> <panel> <flops a second of a rank>. Rank 0 prints the simulated seconds. */
#include "multi/transport.h"
#include "rung.h"

#include <mpi.h>
#include <smpi/smpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { AHEAD = 2 };

int rung_mpi_transport_open(multi_transport *t, void *communicator, char *why);

static multi_transport t;
static char why[MULTI_WHY_BYTES];
static int rows, cols, row, col;

static void check(int result)
{
    if (result) {
        fprintf(stderr, "%s\n", why);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

/* The owners of a panel of A stand in one column of the grid, those of B in one row. */
static void *begin(int side, int panel, void *data, int64_t bytes)
{
    int members = side ? rows : cols, ranks[1024];
    void *pending = NULL;
    for (int i = 0; i < members; i++)
        ranks[i] = side ? i * cols + col : row * cols + i;
    if (members > 1)
        check(t.broadcast(t.state, ranks, members, panel % members, data, bytes, 2 * panel + side, &pending, why));
    return pending;
}

static int poll(void **pending)
{
    int done = 1, waiting;
    if (*pending)
        check(t.poll(t.state, *pending, &done, &waiting, why));
    if (done)
        *pending = NULL;
    return done;
}

int main(int argc, char **argv)
{
    void *pending[AHEAD + 1][2] = {{0}};
    MPI_Init(&argc, &argv);
    if (argc < 6)
        return 2;
    rows = atoi(argv[1]), cols = atoi(argv[2]);
    int64_t n = atoll(argv[3]), panel = atoll(argv[4]), panels = n / panel, m_local = n / rows, n_local = n / cols;
    double rate = atof(argv[5]), flops = 2.0 * (double)m_local * (double)n_local * (double)panel;
    int64_t bytes[2] = {m_local * panel * 4, n_local * panel * 4}, largest = bytes[0] > bytes[1] ? bytes[0] : bytes[1];
    check(rung_mpi_transport_open(&t, NULL, why));
    row = t.rank / cols, col = t.rank % cols;
    char *data = SMPI_SHARED_MALLOC((size_t)largest);
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    int64_t begun = 0;
    for (int64_t p = 0; p < panels; p++) {
        for (; begun < panels && begun <= p + AHEAD; begun++)
            for (int side = 0; side < 2; side++)
                pending[begun % (AHEAD + 1)][side] = begin(side, (int)begun, data, bytes[side]);
        void **now = pending[p % (AHEAD + 1)];
        while (!(poll(&now[0]) & poll(&now[1])))
            for (int i = 0; i <= AHEAD; i++) /* relays of later panels too */
                poll(&pending[i][0]), poll(&pending[i][1]);
        for (int part = 0; part < 8; part++) { /* as the library does: messages get their turn between parts */
            smpi_execute_flops(flops / 8 / rate * 1e9);
            for (int i = 0; i <= AHEAD; i++)
                poll(&pending[i][0]), poll(&pending[i][1]);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (t.rank == 0)
        printf("%d %lld %.6f\n", rows * cols, (long long)n, MPI_Wtime() - start);
    SMPI_SHARED_FREE(data);
    t.close(t.state, 0);
    MPI_Finalize();
    return 0;
}
