/* Runs a test and ends it where it does not come to an end by itself, however busy the machine is: limit SECONDS
 * COMMAND... It may take so many seconds of CPU time, it and all that it starts, or RUNG_LIMIT_SECONDS, if that is
 * less. And where for a minute hardly anything of it has run or wanted to run, it waits for what does not come. Else
 * the test's exit code is the command's, or 128 and the number of the signal that ended it.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_PROCESSES = 8192, MINUTE = 60, MOST_AWAKE = 6, ENDED = 1 };
static const double most_awake_seconds = 6.0; /* of CPU time in a minute of waiting: who waits may look now and then */

typedef struct process {
    pid_t pid, parent;
    char state, name[20];
    double seconds; /* of it, and of its children that it has waited for */
    int ours;
} process;

static process all[MOST_PROCESSES];
static int count;

/* Reads one line of /proc; returns whether the process is still there. */
static int read_process(const char *path, process *p)
{
    char line[1024], *at;
    unsigned long user, system;
    long waited_user, waited_system;
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    const int there = fgets(line, sizeof line, file) != NULL;
    fclose(file);
    at = there ? strrchr(line, ')') : NULL; /* a name may hold anything */
    if (!at || sscanf(at + 1, " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %ld %ld", &p->state, &p->parent,
                      &user, &system, &waited_user, &waited_system) != 6)
        return 0;
    *at = '\0';
    const char *name = strchr(line, '(');
    snprintf(p->name, sizeof p->name, "%s", name ? name + 1 : "");
    p->seconds =
        ((double)user + (double)system + (double)waited_user + (double)waited_system) / (double)sysconf(_SC_CLK_TCK);
    return 1;
}

static int is_awake(char state)
{
    return state == 'R' || state == 'D';
}

/* Returns whether any thread of a process runs, wants to run, or waits for a disk. */
static int has_awake_thread(pid_t pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *folder = opendir(path);
    int awake = 0;
    for (struct dirent *entry; folder && !awake && (entry = readdir(folder));) {
        char thread[sizeof path + sizeof entry->d_name + 8];
        process p;
        snprintf(thread, sizeof thread, "%s/%s/stat", path, entry->d_name);
        awake = isdigit((unsigned char)entry->d_name[0]) && read_process(thread, &p) && is_awake(p.state);
    }
    if (folder)
        closedir(folder);
    return awake;
}

/* Lists all processes, and marks those that this one has started, however far down. Who loses a parent becomes a child
 * of this process. */
static void look(void)
{
    DIR *folder = opendir("/proc");
    count = 0;
    for (struct dirent *entry; folder && count < MOST_PROCESSES && (entry = readdir(folder));) {
        char path[sizeof entry->d_name + 16];
        snprintf(path, sizeof path, "/proc/%s/stat", entry->d_name);
        all[count] = (process){.pid = (pid_t)atoi(entry->d_name)};
        count += all[count].pid > 0 && read_process(path, &all[count]);
    }
    if (folder)
        closedir(folder);
    const pid_t me = getpid();
    for (int more = 1; more;) {
        more = 0;
        for (int i = 0; i < count; i++)
            for (int j = 0; j < count && !all[i].ours; j++)
                more |= all[i].ours = all[i].parent == me || (all[j].ours && all[i].parent == all[j].pid);
    }
}

/* Returns the CPU seconds of all that was started, and whether anything of it is awake. */
static double used_seconds(int *awake)
{
    struct rusage waited;
    getrusage(RUSAGE_CHILDREN, &waited);
    double seconds = (double)(waited.ru_utime.tv_sec + waited.ru_stime.tv_sec) +
                     1e-6 * (double)(waited.ru_utime.tv_usec + waited.ru_stime.tv_usec);
    *awake = 0;
    look();
    for (int i = 0; i < count; i++)
        if (all[i].ours) {
            seconds += all[i].seconds;
            *awake = *awake || is_awake(all[i].state) || has_awake_thread(all[i].pid);
        }
    return seconds;
}

/* Ends all that was started; who starts others meanwhile is met in the next round. */
static void end_all(void)
{
    for (int round = 0; round < 5; round++) {
        look();
        for (int i = 0; i < count; i++)
            if (all[i].ours)
                kill(all[i].pid, SIGKILL);
        nanosleep(&(struct timespec){0, 20000000}, NULL);
    }
}

static void name_all(void)
{
    for (int i = 0; i < count; i++)
        if (all[i].ours && all[i].state != 'Z')
            fprintf(stderr, "limit: process %d, %s, state %c, %.1f s of CPU time\n", (int)all[i].pid, all[i].name,
                    all[i].state, all[i].seconds);
}

/* Takes the exit codes of all that have ended; returns whether the test has. */
static int has_ended(pid_t test, int *status)
{
    int one, ended = 0;
    for (pid_t pid; (pid = waitpid(-1, &one, WNOHANG)) > 0;)
        if (pid == test) {
            *status = one;
            ended = 1;
        }
    return ended;
}

static pid_t start(char **command, const sigset_t *before)
{
    const pid_t me = getpid(), pid = fork();
    if (pid != 0)
        return pid;
    sigprocmask(SIG_SETMASK, before, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* who ends this process ends the test */
    if (getppid() == me)
        execvp(command[0], command);
    fprintf(stderr, "limit: cannot start %s: %s\n", command[0], strerror(errno));
    _exit(127);
}

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Waits for a second, or until the test has ended; returns whether it has. */
static int wait_a_second(pid_t test, int *status)
{
    const double end_s = now_s() + 1.0;
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGCHLD);
    for (;;) {
        if (has_ended(test, status))
            return 1;
        const double left_s = end_s - now_s();
        if (left_s <= 0)
            return 0;
        sigtimedwait(&ends, NULL, &(struct timespec){0, (long)(left_s * 999999999)});
    }
}

/* Watches the test until it ends by itself, and returns NULL, or why it is ended. */
static const char *watch(pid_t test, double most, int *status)
{
    double used[MINUTE] = {0}; /* at each second of the last minute */
    int awake[MINUTE] = {0};
    for (int second = 0; !wait_a_second(test, status); second++) {
        const int place = second % MINUTE;
        int awake_seconds = 0;
        const double before = used[place];
        used[place] = used_seconds(&awake[place]);
        for (int i = 0; i < MINUTE; i++)
            awake_seconds += awake[i];
        if (used[place] > most)
            return "it has taken more CPU time than it may";
        if (second >= MINUTE && awake_seconds <= MOST_AWAKE && used[place] - before <= most_awake_seconds)
            return "for a minute hardly anything of it has run or wanted to run";
    }
    return NULL;
}

int main(int argc, char **argv)
{
    const char *less = getenv("RUNG_LIMIT_SECONDS"); /* of who knows the test */
    const double given = argc > 2 ? atof(argv[1]) : 0, most = less && atof(less) < given ? atof(less) : given;
    int status = 0;
    sigset_t ends, before;
    if (most <= 0)
        return fprintf(stderr, "usage: limit SECONDS COMMAND...\n"), 2;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    sigemptyset(&ends);
    sigaddset(&ends, SIGCHLD); /* is waited for */
    sigprocmask(SIG_BLOCK, &ends, &before);
    const pid_t test = start(argv + 2, &before);
    if (test < 0)
        return fprintf(stderr, "limit: no process: %s\n", strerror(errno)), ENDED;
    const char *why = watch(test, most, &status);
    if (why) {
        fprintf(stderr, "limit: %s (%g s): ended\n", why, most);
        name_all();
        end_all();
        return ENDED;
    }
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
