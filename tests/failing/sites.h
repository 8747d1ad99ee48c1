/* Places in the code that calls come from, and the call of which it is the turn to fail: what the two libraries of this
 * folder share. */
#ifndef RUNG_FAILING_SITES_H
#define RUNG_FAILING_SITES_H

#include <pthread.h>
#include <stdint.h>

enum { MOST_SITES = 4096, PER_SITE = 2 };

static struct {
    uintptr_t at;
    int calls;
} sites[MOST_SITES];
static int site_count;
static long counted;
static const char *failed = "nothing";
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Counts a call from a place, and returns whether it is the one that fails. */
static int is_turn(const char *name, uintptr_t at, long fail_at)
{
    int site = 0, result = 0;
    pthread_mutex_lock(&lock);
    while (site < site_count && sites[site].at != at)
        site++;
    if (site == site_count && site_count < MOST_SITES)
        sites[site_count++].at = at;
    if (site < MOST_SITES && sites[site].calls++ < PER_SITE && ++counted == fail_at) {
        failed = name;
        result = 1;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

#endif
