/* Products and copies between ranks that are threads, over a transport that lets messages come late: results are right
 * whatever comes first, each operation has a tag of its own, nothing is sent that nobody takes, and what is sent stays
 * as it is until it was taken. usage: messages TRANSPORT */
#include "layouts.h"
#include "own_transport.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MOST = 6, CASES = 10 };

static struct {
    int ranks, first_case;
    own_seat seats[MOST];
    int right[MOST];
} run;

static int product(rung_multi *multi, int me, int index)
{
    layout_case t = index == CASES - 1 ? large_case(2, run.ranks / 2) : case_at(run.first_case + index, run.ranks, 0);
    rung_matrix d[3];
    case_matrices(&t, d);
    float *a = part_new(&d[0], me, 0), *b = part_new(&d[1], me, 1), *c = part_new(&d[2], me, 2);
    rung_status status = case_run(multi, &t, d, &a, &b, &c);
    int right = status == RUNG_SUCCESS && part_right(&t, &d[2], me, c, 2.0 + (double)t.k);
    if (!right) {
        fprintf(stderr, "rank %d: %s\n", me, status == RUNG_SUCCESS ? "a wrong result" : rung_last_error());
        print_case(&t);
    }
    free(a);
    free(b);
    free(c);
    return right;
}

/* A matrix on one grid becomes one on another. */
static int move(rung_multi *multi, int me, int index)
{
    rung_matrix from, to;
    rung_matrix_init(&from, 61, 47, 5 + index, 4, 1, run.ranks);
    rung_matrix_init(&to, 61, 47, 7, 3 + index, run.ranks, 1);
    float *x = part_new(&from, me, 0), *y = part_new(&to, me, 1), *wanted = part_new(&to, me, 0);
    rung_status status = rung_redistribute(multi, 61, 47, (const float *const[]){x}, 1, 1, &from, &y, 1, 1, &to);
    int right = status == RUNG_SUCCESS;
    for (int64_t j = 0; j < rung_matrix_cols(&to, me) && right; j++)
        right = memcmp(y + j * to.ld, wanted + j * to.ld, (size_t)rung_matrix_rows(&to, me) * sizeof *y) == 0;
    if (!right)
        fprintf(stderr, "rank %d: move %d: %s\n", me, index, status == RUNG_SUCCESS ? "wrong" : rung_last_error());
    free(x);
    free(y);
    free(wanted);
    return right;
}

static rung_status open_seat(own_seat *seat, rung_multi **multi)
{
    rung_multi_config config;
    rung_multi_config_init(&config);
    config.transport = RUNG_TRANSPORT_MPI;
    config.communicator = seat;
    config.threads = 1;
    return rung_multi_create(multi, &config);
}

static void *live(void *of)
{
    own_seat *seat = of;
    rung_multi *multi;
    if (open_seat(seat, &multi) != RUNG_SUCCESS) {
        fprintf(stderr, "rank %d: %s\n", seat->rank, rung_last_error());
        exit(1);
    }
    int right = rung_multi_ranks(multi) == run.ranks && rung_multi_first_rank(multi) == seat->rank;
    for (int i = 0; i < CASES && right; i++)
        right = product(multi, seat->rank, i) && move(multi, seat->rank, i);
    run.right[seat->rank] = right;
    rung_multi_destroy(multi);
    return NULL;
}

/* ---- a rank 0 that fails before the ranks meet ---- */

static int has_random = 1;

#pragma GCC visibility push(default)
/* The library's calls come here first. */
ssize_t getrandom(void *to, size_t bytes, unsigned flags)
{
    if (!has_random)
        return -1;
    return syscall(SYS_getrandom, to, bytes, flags);
}
#pragma GCC visibility pop

static void *fail_to_meet(void *of)
{
    own_seat *seat = of;
    rung_multi *multi;
    const rung_status status = open_seat(seat, &multi);
    run.right[seat->rank] = status == (seat->rank ? RUNG_DEVICE_ERROR : RUNG_INTERNAL) &&
                            strcmp(rung_last_error(), seat->rank ? "rank 0 cannot listen for the other ranks"
                                                                 : "no random numbers for the ranks' secret") == 0;
    if (!run.right[seat->rank])
        fprintf(stderr, "rank %d: %s: %s\n", seat->rank, rung_status_name(status), rung_last_error());
    return NULL;
}

/* The others wait for what rank 0 shares with them: it tells them that it has failed. */
static int all_hear_of_rank_0(own_world_new_function *world_new, own_world_end_function *world_end)
{
    enum { RANKS = 3 };
    pthread_t threads[RANKS];
    int64_t operations;
    char why[256];
    int right = 1;
    own_world *world = world_new(RANKS, 1);
    has_random = 0;
    unsetenv("RUNG_SECRET");
    for (int r = 0; r < RANKS; r++) {
        run.seats[r] = (own_seat){world, r};
        if (pthread_create(&threads[r], NULL, fail_to_meet, &run.seats[r]))
            return 0;
    }
    for (int r = 0; r < RANKS; r++) {
        pthread_join(threads[r], NULL);
        right &= run.right[r];
    }
    has_random = 1;
    return !world_end(world, &operations, why) && right;
}

static void *find(void *library, const char *name)
{
    void *found = dlsym(library, name);
    if (!found)
        exit(2);
    return found;
}

int main(int argc, char **argv)
{
    static const char *const panels[] = {"64:200:96", "24", "32:64:48", "1000"};
    static const int sizes[] = {4, 6, 2, 4};
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) : NULL;
    own_world_new_function *world_new;
    own_world_end_function *world_end;
    if (!library)
        return 2;
    *(void **)&world_new = find(library, "own_world_new");
    *(void **)&world_end = find(library, "own_world_end");
    setenv("RUNG_MPI", argv[1], 1);
    if (!all_hear_of_rank_0(world_new, world_end))
        return 1;
    setenv("RUNG_CONTROL", "0", 1);
    setenv("RUNG_TIMEOUT_S", "300", 1);
    for (int i = 0; i < 4; i++) {
        pthread_t threads[MOST];
        int64_t operations;
        char why[256];
        own_world *world = world_new(sizes[i], (uint64_t)i + 1);
        run.ranks = sizes[i];
        run.first_case = CASES * i;
        setenv("RUNG_MULTI_PANEL", panels[i], 1);
        for (int r = 0; r < run.ranks; r++) {
            run.seats[r] = (own_seat){world, r};
            if (pthread_create(&threads[r], NULL, live, &run.seats[r]))
                return 2;
        }
        int right = 1;
        for (int r = 0; r < run.ranks; r++) {
            pthread_join(threads[r], NULL);
            right &= run.right[r];
        }
        if (world_end(world, &operations, why) || !right) {
            printf("FAILED: %d ranks, panels %s: %s\n", run.ranks, panels[i], why[0] ? why : "a rank failed");
            return 1;
        }
        printf("%d ranks, panels %s: %lld operations\n", run.ranks, panels[i], (long long)operations);
        if (operations < 50)
            return 1;
    }
    return 0;
}
