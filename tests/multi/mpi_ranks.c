/* One rank of the tests over MPI: mpirun -n N mpi_ranks MODE. Modes: layouts (against FP64 and, where it is linked,
 * ScaLAPACK's psgemm on the same layouts), bits (rank 0 prints a hash of the result), mismatch, killed, stopped,
 * threads (a rank's share of the cores). */
#define _GNU_SOURCE
#include "ranks.h"

#include <dlfcn.h>
#include <mpi.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef WITH_SCALAPACK
extern void Cblacs_get(int context, int what, int *value);
extern void Cblacs_gridinit(int *context, const char *order, int rows, int cols);
extern void Cblacs_gridexit(int context);
extern void psgemm_(const char *trans_a, const char *trans_b, const int *m, const int *n, const int *k,
                    const float *alpha, const float *a, const int *ia, const int *ja, const int *desc_a, const float *b,
                    const int *ib, const int *jb, const int *desc_b, const float *beta, float *c, const int *ic,
                    const int *jc, const int *desc_c);

static void scalapack(const layout_case *t, const rung_matrix d[3], const float *a, const float *b, float *c)
{
    int context, desc[3][9], m = (int)t->m, n = (int)t->n, k = (int)t->k;
    int ij[6] = {(int)t->ia, (int)t->ja, (int)t->ib, (int)t->jb, (int)t->ic, (int)t->jc};
    Cblacs_get(-1, 0, &context);
    Cblacs_gridinit(&context, "R", t->grids[0].rows, t->grids[0].cols);
    for (int i = 0; i < 3; i++) {
        const int fields[9] = {1,
                               context,
                               (int)d[i].m,
                               (int)d[i].n,
                               (int)d[i].mb,
                               (int)d[i].nb,
                               d[i].row_source,
                               d[i].col_source,
                               (int)d[i].ld};
        memcpy(desc[i], fields, sizeof fields);
    }
    psgemm_(t->trans_a ? "T" : "N", t->trans_b ? "T" : "N", &m, &n, &k, &t->alpha, a, &ij[0], &ij[1], desc[0], b,
            &ij[2], &ij[3], desc[1], &t->beta, c, &ij[4], &ij[5], desc[2]);
    Cblacs_gridexit(context);
}

/* ScaLAPACK's result and ours differ by rounding only. */
static int agrees(const layout_case *t, const rung_matrix d[3], const float *a, const float *b, const float *ours)
{
    float *theirs = part_new(&d[2], me, 2);
    int64_t count = d[2].ld * rung_matrix_cols(&d[2], me);
    scalapack(t, d, a, b, theirs);
    int right = 1;
    for (int64_t i = 0; i < count && right; i++)
        right = fabs((double)ours[i] - theirs[i]) <= ldexp(4.0 * ((double)t->k + 2) * ((double)t->k + 2), -24);
    free(theirs);
    return right;
}
#else
static int agrees(const layout_case *t, const rung_matrix d[3], const float *a, const float *b, const float *ours)
{
    (void)t, (void)d, (void)a, (void)b, (void)ours;
    return 1;
}
#endif

static rung_multi *open_multi(double timeout_s)
{
    rung_multi *multi;
    rung_multi_config config;
    rung_multi_config_init(&config);
    config.transport = RUNG_TRANSPORT_MPI;
    config.threads = 1;
    config.timeout_s = timeout_s;
    if (rung_multi_create(&multi, &config) != RUNG_SUCCESS) {
        fprintf(stderr, "rank %d: no context: %s\n", me, rung_last_error());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return multi;
}

static int one_case(rung_multi *multi, const layout_case *t, int one_grid)
{
    rung_matrix d[3];
    case_matrices(t, d);
    float *a = part_new(&d[0], me, 0), *b = part_new(&d[1], me, 1), *c = part_new(&d[2], me, 2);
    rung_status status = case_run(multi, t, d, &a, &b, &c);
    int right = status == RUNG_SUCCESS && part_right(t, &d[2], me, c, 2.0 + (double)t->k);
    if (status != RUNG_SUCCESS)
        fprintf(stderr, "rank %d: %s\n", me, rung_last_error());
    if (right && one_grid && !agrees(t, d, a, b, c)) {
        fprintf(stderr, "rank %d: ScaLAPACK has another result\n", me);
        right = 0;
    }
    if (!right)
        print_case(t);
    free(a);
    free(b);
    free(c);
    return right;
}

static int layouts(int cases)
{
    rung_multi *multi = open_multi(60.0);
    int right = 1;
    for (int i = 0; i < cases; i++) {
        layout_case t = case_at(i, ranks, i % 2 == 0);
        int mine = one_case(multi, &t, i % 2 == 0);
        MPI_Allreduce(&mine, &right, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
        if (!right)
            break;
    }
    rung_multi_destroy(multi);
    return right;
}

/* Several panels, and more than one message segment a panel. */
static layout_case large(int rows, int cols)
{
    layout_case t = whole_case((grid){rows, cols}, 700, 900, 1500);
    memcpy(t.mb, (int64_t[]){96, 200, 96}, sizeof t.mb);
    memcpy(t.nb, (int64_t[]){200, 128, 128}, sizeof t.nb);
    return t;
}

static int bits(int rows, int cols)
{
    rung_multi *multi = open_multi(60.0);
    layout_case t = large(rows, cols);
    rung_matrix d[3];
    case_matrices(&t, d);
    float *a = part_new(&d[0], me, 0), *b = part_new(&d[1], me, 1), *c = part_new(&d[2], me, 2), *whole = NULL;
    if (me == 0)
        whole = malloc((size_t)(d[2].m * d[2].n) * sizeof *whole);
    const float *parts[] = {c};
    int right = case_run(multi, &t, d, &a, &b, &c) == RUNG_SUCCESS &&
                rung_gather(multi, 0, parts, &d[2], whole, d[2].m) == RUNG_SUCCESS;
    uint64_t hash = 1469598103934665603u;
    for (int64_t i = 0; whole && i < d[2].m * d[2].n; i++) {
        uint32_t word;
        memcpy(&word, &whole[i], 4);
        hash = (hash ^ word) * 1099511628211u;
    }
    if (me == 0)
        printf("%016llx\n", (unsigned long long)hash);
    free(a);
    free(b);
    free(c);
    free(whole);
    rung_multi_destroy(multi);
    return right;
}

/* One argument of one call is another one at rank 1: all ranks are told which, whatever it is, and go on. */
static int every_argument_must_agree(rung_multi *multi)
{
    enum { PSGEMM, REDISTRIBUTE, SCATTER, GATHER, CALLS, FIELDS = 40 };
    static const char *const names[] = {"rung_psgemm", "rung_redistribute", "rung_scatter", "rung_gather"};
    int right = 1, seen = 0;
    layout_case good = large(ranks, 1);
    good.pad = 300; /* room for a matrix that begins elsewhere */
    rung_matrix made[3];
    case_matrices(&good, made);
    float *part[3], *whole = malloc((size_t)((made[0].m + 8) * (made[0].n + 8)) * sizeof *whole);
    for (int i = 0; i < 3; i++)
        part[i] = part_new(&made[i], me, i);
    for (int call = 0; call < CALLS; call++)
        for (int field = 0; field < FIELDS; field++) {
            layout_case t = good;
            rung_matrix d[3];
            memcpy(d, made, sizeof d);
            const float *from[] = {part[0]};
            float *to[] = {part[0]};
            int64_t m = 10, n = 10, i[] = {1, 1}, j[] = {1, 1};
            int root = 0, changed = 1;
            if (call == PSGEMM && field < 13) {
                int64_t *const wide[] = {&t.m, &t.n, &t.k, &t.ia, &t.ja, &t.ib, &t.jb, &t.ic, &t.jc};
                int *const narrow[] = {&t.trans_a, &t.trans_b};
                if (field < 9 && me == 1)
                    *wide[field] += field < 3 ? -1 : 1;
                else if (field < 11 && field >= 9 && me == 1)
                    *narrow[field - 9] ^= 1;
                else if (me == 1)
                    *(field == 11 ? &t.alpha : &t.beta) += field >= 11 ? 0.5f : 0.0f;
            } else if (call == REDISTRIBUTE && field < 6) {
                int64_t *const wide[] = {&m, &n, &i[0], &j[0], &i[1], &j[1]};
                *wide[field] += me == 1;
            } else if (call >= SCATTER && field == 0) {
                root = me == 1;
            } else if (field >= 16 && field < 16 + 8 * (call == PSGEMM ? 3 : call == REDISTRIBUTE ? 2 : 1)) {
                rung_matrix *x = &d[(field - 16) / 8];
                int64_t *const wide[] = {&x->m, &x->n, &x->mb, &x->nb};
                int *const narrow[] = {&x->grid_rows, &x->grid_cols, &x->row_source, &x->col_source};
                if ((field - 16) % 8 < 4 && me == 1)
                    *wide[(field - 16) % 8] += 1;
                else if (me == 1)
                    *narrow[(field - 16) % 8 - 4] += 1;
            } else {
                changed = 0;
            }
            rung_status status = RUNG_INVALID_ARGUMENT;
            if (changed && call == PSGEMM)
                status = case_run(multi, &t, d, &part[0], &part[1], &part[2]);
            else if (changed && call == REDISTRIBUTE)
                status = rung_redistribute(multi, m, n, from, i[0], j[0], &d[0], &part[1], i[1], j[1], &d[1]);
            else if (changed && call == SCATTER)
                status = rung_scatter(multi, root, whole, d[0].m + 8, to, &d[0]);
            else if (changed)
                status = rung_gather(multi, root, from, &d[0], whole, d[0].m + 8);
            if (changed && (status != RUNG_INVALID_ARGUMENT || !says("rank 1"))) {
                fprintf(stderr, "rank %d: %s, field %d: %s\n", me, names[call], field, rung_status_name(status));
                right = 0;
            }
            seen += changed;
        }
    for (int x = 0; x < 3; x++)
        free(part[x]);
    free(whole);
    return right && seen == 13 + 24 + 6 + 16 + 2 * 9;
}

/* What decides on messages and on bits is the same for all ranks, or no rank has a context. */
static int settings_must_agree(void)
{
    static const struct {
        const char *of_rank_1;
        int math;
        const char *words;
    } cases[] = {{"65:200:96:4:2", 0, "rank 1 was given RUNG_MULTI_PANEL's first width = 65, rank 0 64"},
                 {"64:201:96:4:2", 0, "rank 1 was given RUNG_MULTI_PANEL's widest = 201, rank 0 200"},
                 {"64:200:97:4:2", 0, "rank 1 was given RUNG_MULTI_PANEL's last width = 97, rank 0 96"},
                 {"64:200:96:3:2", 0, "rank 1 was given RUNG_MULTI_PANEL's bands = 3, rank 0 4"},
                 {"64:200:96:4:2", 2, "rank 1 was given math = 2, rank 0 0"}};
    int right = 1;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rung_multi *multi;
        rung_multi_config config;
        rung_multi_config_init(&config);
        config.transport = RUNG_TRANSPORT_MPI;
        config.threads = 1;
        config.timeout_s = 20.0;
        config.math = me == 1 ? (rung_math)cases[i].math : RUNG_STRICT;
        setenv("RUNG_MULTI_PANEL", me == 1 ? cases[i].of_rank_1 : "64:200:96:4:2", 1);
        right = rung_multi_create(&multi, &config) == RUNG_INVALID_ARGUMENT && says(cases[i].words) && right;
    }
    unsetenv("RUNG_MULTI_PANEL");
    return right;
}

/* Arguments that differ between ranks, and a descriptor that one rank gets wrong: all ranks are told; nothing breaks.
 */
static int mismatch(void)
{
    const int agreed = settings_must_agree();
    rung_multi *multi = open_multi(20.0);
    layout_case t = large(ranks, 1);
    rung_matrix d[3];
    case_matrices(&t, d);
    float *a = part_new(&d[0], me, 0), *b = part_new(&d[1], me, 1), *c = part_new(&d[2], me, 2);
    t.n -= me == 1;
    int right =
        case_run(multi, &t, d, &a, &b, &c) == RUNG_INVALID_ARGUMENT && says("rank 1 was given n = 899, rank 0 900");
    t.n = 900;
    for (int who = 0; who < ranks; who++) { /* the first rank, or another */
        if (rung_matrix_rows(&d[2], who) < 2)
            continue;
        char words[64];
        snprintf(words, sizeof words, "rank %d: descriptor of C: ld is 1", who);
        if (me == who)
            d[2].ld = 1;
        right = case_run(multi, &t, d, &a, &b, &c) == RUNG_INVALID_ARGUMENT && says(words) && right;
        case_matrices(&t, d);
    }
    right = (me == 1 ? rung_multi_barrier(multi) : case_run(multi, &t, d, &a, &b, &c)) == RUNG_INVALID_ARGUMENT &&
            says("rank 1 called rung_multi_barrier, rank 0 rung_psgemm") && right;
    right = every_argument_must_agree(multi) && right;
    right = case_run(multi, &t, d, &a, &b, &c) == RUNG_SUCCESS && right;
    free(a);
    free(b);
    free(c);
    rung_multi_destroy(multi);
    return right && agreed;
}

/* After a while another process sends rank `victim` the signal, by its pid. */
static void arrange(int victim, int number)
{
    int *pids = malloc((size_t)ranks * sizeof *pids), mine = (int)getpid();
    MPI_Allgather(&mine, 1, MPI_INT, pids, 1, MPI_INT, MPI_COMM_WORLD);
    if (me == 0 && fork() == 0) {
        usleep(400000);
        kill(pids[victim], number);
        if (number == SIGSTOP) {
            sleep(6);
            kill(pids[victim], SIGKILL);
        }
        _exit(0);
    }
    free(pids);
}

/* Ends without MPI_Finalize, which would wait for the dead. */
static void victim_test(int number, double timeout_s, const char *words)
{
    rung_multi *multi = open_multi(timeout_s);
    layout_case t = large(ranks / 2, 2);
    rung_matrix d[3];
    case_matrices(&t, d);
    float *parts[3];
    for (int i = 0; i < 3; i++)
        parts[i] = part_new(&d[i], me, i);
    arrange(2, number);
    int right = told_in_time(multi, &t, d, parts, timeout_s, words);
    rung_multi_destroy(multi);
    printf("rank %d %s\n", me, right ? "survived" : "FAILED");
    fflush(stdout);
    if (me == 0)
        while (wait(NULL) > 0)
            ;
    _exit(right ? 0 : 1);
}

/* ---- how many threads a rank takes, on a machine of any size: these stand before the library's and the system's own
 * ----
 */

static long told_cores; /* 0: the machine's */
static int told_threads, asked_threads;

#define EXPORT __attribute__((visibility("default")))
EXPORT long sysconf(int name);
EXPORT int rung_process_threads(void);
EXPORT rung_status rung_context_create(rung_context **context, const rung_config *config);
#define NEXT(name) ((__typeof__(&name))(uintptr_t)dlsym(RTLD_NEXT, #name))

long sysconf(int name)
{
    return told_cores && name == _SC_NPROCESSORS_ONLN ? told_cores : NEXT(sysconf)(name);
}

int rung_process_threads(void)
{
    return told_cores ? told_threads : NEXT(rung_process_threads)();
}

rung_status rung_context_create(rung_context **context, const rung_config *config)
{
    asked_threads = config ? config->threads : 0;
    return NEXT(rung_context_create)(context, config);
}

/* Ranks of one machine share its cores; who is bound to fewer keeps those; who was told a number takes that. */
static int threads(void)
{
    static const struct machine {
        int cores, bound, asked;
        const char *setting, *value;
    } machines[] = {{8, 8, 0, NULL, NULL},
                    {8, 6, 0, NULL, NULL},
                    {8, 1, 0, NULL, NULL},
                    {1, 1, 0, NULL, NULL},
                    {2, 2, 0, NULL, NULL},
                    {3, 3, 0, NULL, NULL},
                    {12, 12, 0, NULL, NULL},
                    {13, 13, 0, NULL, NULL},
                    {8, 8, 5, NULL, NULL},
                    {8, 6, 1, NULL, NULL},
                    {8, 8, 0, "RUNG_NUM_THREADS", "3"},
                    {8, 8, 0, "OPENBLAS_NUM_THREADS", "3"},
                    {8, 8, 0, "MKL_NUM_THREADS", "3"},
                    {8, 8, 0, "BLIS_NUM_THREADS", "3"},
                    {8, 8, 0, "OMP_NUM_THREADS", "3"},
                    {8, 8, 0, "OMP_NUM_THREADS", "3,2"},
                    {8, 8, 0, "OMP_NUM_THREADS", ""}, /* these two say nothing */
                    {8, 8, 0, "BLIS_NUM_THREADS", "many"}};
    int right = 1;
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++)
        if (machines[i].setting)
            unsetenv(machines[i].setting);
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++) {
        const struct machine *m = &machines[i];
        rung_multi *multi = NULL;
        rung_multi_config config;
        rung_multi_config_init(&config);
        config.transport = RUNG_TRANSPORT_MPI;
        config.threads = m->asked;
        if (m->setting)
            setenv(m->setting, m->value, 1);
        told_cores = m->cores, told_threads = m->bound, asked_threads = -1;
        const rung_status status = rung_multi_create(&multi, &config);
        told_cores = 0;
        rung_multi_destroy(multi);
        if (m->setting)
            unsetenv(m->setting);
        int want = m->bound;
        if (m->asked || (m->setting && m->value[0] == '3') || ranks == 1)
            want = m->asked;
        else if (m->bound == m->cores)
            want = m->cores / ranks ? m->cores / ranks : 1;
        if (status != RUNG_SUCCESS || asked_threads != want) {
            fprintf(stderr, "rank %d of %d on %d of %d cores%s%s: %d threads, not %d\n", me, ranks, m->bound, m->cores,
                    m->setting ? ", with " : "", m->setting ? m->setting : "", asked_threads, want);
            right = 0;
        }
    }
    return right;
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    int right = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (strcmp(mode, "layouts") == 0)
        right = layouts(argc > 2 ? atoi(argv[2]) : 100);
    else if (strcmp(mode, "bits") == 0 && argc > 3)
        right = bits(atoi(argv[2]), atoi(argv[3]));
    else if (strcmp(mode, "mismatch") == 0)
        right = mismatch();
    else if (strcmp(mode, "threads") == 0)
        right = threads();
    else if (strcmp(mode, "killed") == 0)
        victim_test(SIGKILL, 20.0, "rank 2");
    else if (strcmp(mode, "stopped") == 0)
        victim_test(SIGSTOP, 2.0, "has not");
    MPI_Finalize();
    return right ? 0 : 1;
}
