/* What a test can set and see of the stand-in for libcuda. */
#ifndef RUNG_TESTS_FAKE_LIBCUDA_H
#define RUNG_TESTS_FAKE_LIBCUDA_H

#include <stdint.h>

enum { FAKE_LOG_BYTES = 1 << 16, FAKE_LAUNCHED_BYTES = 1 << 12 };

typedef struct fake {
    /* This is the machine. */
    int devices, arch, init_result;
    int sms;                    /* multiprocessors; 0: as many as a chip of this kind has */
    int driver_version;         /* 0: 13000 */
    int64_t memory_left;        /* bytes a device still gives; beyond it: out of memory */
    uint64_t release_threshold; /* of the pool that was set last */
    int capturing;              /* every stream says it is being captured, by the recording of this number */
    int recording;              /* some other thread records a graph: calls that would end that are faults */
    int idle;                   /* kernels do nothing */
    int in_order;               /* blocks of memory follow each other from the same address on, in each run */
    unsigned eager;             /* bit i: the i-th stream (0: NULL) works at once; the others as late as they may */
    /* One call fails: the fail_call-th from now, or every one called fail_name, or all from the lost_call-th on. */
    long calls, fail_call, lost_call;
    const char *fail_name;
    int fail_result;
    /* This much is open. */
    int memory, pinned, pools, streams, events, libraries, graphs, pushed, primaries, user_objects;
    int hold;                /* threads other than the first wait before they load a kernel file or open a GPU */
    int copied;              /* kernel files whose code the driver was told to copy */
    int open_to_signals;     /* calls by threads other than the first that take the program's signals */
    int relaxed;             /* threads in another capture mode than the one they start with */
    int faults;              /* a kernel or copy touched memory that was not there, or a misuse of the API */
    int64_t held_bytes;      /* of device memory that is open */
    int64_t most_pooled;     /* the largest block that came from a pool or in a stream's order */
    int64_t moved_bytes;     /* to devices, from the host and from each other */
    int64_t filled_bytes;    /* by the last cuMemsetD32Async that began within a block */
    int64_t workspace_bytes; /* from where the last launch that cuts k has its workspace to the end of that block */
    /* This was the last launch. */
    unsigned grid[3], threads, shared_bytes;
    int overlapped; /* it could start while the one before it ended */
    void *stream;
    char kernel[96];
    /* A line a launch, whether it was queued singly or in a graph: name, grid, threads, shared bytes, cluster,
     * priority. */
    char launched[FAKE_LAUNCHED_BYTES];
    /* A sum over what launches, copies and fills were given since it was last 0: arguments with their maps, sizes,
     * values; an address counts as its block's number and its place there. */
    uint64_t given;
    char log[FAKE_LOG_BYTES]; /* names of calls, a space after each, since it was last emptied */
} fake;

enum { FAKE_OTHER_CONTEXT = 256 }; /* added to a primary context (device + 1): another one of its device */

typedef fake *fake_state_function(void); /* symbol "fake_state" */

#endif
