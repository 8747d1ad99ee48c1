/* Preloaded before the command: of the calls that Rung's own code makes of the system, the FAILING-th fails, as the
 * system would have it fail. A call counts when it is the first or the second from its place in the code. What failed,
 * how many calls counted, and how many files were left open, is told in the file FAILING_SAYS. */
#define _GNU_SOURCE
#include "sites.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);

enum { MOST_OBJECTS = 16 };

static struct {
    uintptr_t base, begin, end;
    int lens; /* which ends where it has no memory for what it counts: its memory does not fail */
} objects[MOST_OBJECTS];
static int object_count;

static int open_streams;
static long fail_at;
static pid_t process;
static int alone; /* with FAILING_ALONE no call of a process that this one has started fails */

static void add_object(uintptr_t base, const ElfW(Phdr) * segments, int count, int lens)
{
    for (int i = 0; i < count; i++)
        if (segments[i].p_type == PT_LOAD && segments[i].p_flags & PF_X && object_count < MOST_OBJECTS) {
            objects[object_count].base = base, objects[object_count].lens = lens;
            objects[object_count].begin = base + segments[i].p_vaddr;
            objects[object_count++].end = base + segments[i].p_vaddr + segments[i].p_memsz;
        }
}

/* Rung's own: the command, which has no name here, librung, and what they open of it. */
static int find_own(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size, (void)data;
    int known = 0;
    for (int i = 0; i < object_count; i++)
        known |= objects[i].base == info->dlpi_addr;
    if (!known && (!info->dlpi_name[0] || strstr(info->dlpi_name, "/librung")))
        add_object(info->dlpi_addr, info->dlpi_phdr, info->dlpi_phnum, strstr(info->dlpi_name, "librung_lens") != NULL);
    return 0;
}

__attribute__((constructor)) static void look_around(void)
{
    char self[4096] = "";
    const char *number = getenv("FAILING");
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (!number || length < 5 || strcmp(self + length - 5, "/rung") != 0)
        return;
    dl_iterate_phdr(find_own, NULL);
    fail_at = atol(number);
    process = getpid();
    alone = getenv("FAILING_ALONE") != NULL;
}

/* Returns whether this call is the one that fails. */
static int fails(const char *name, const void *caller, int is_memory)
{
    const uintptr_t at = (uintptr_t)caller;
    int own = 0;
    for (int i = 0; i < object_count && !own; i++)
        own = at >= objects[i].begin && at < objects[i].end && !(is_memory && objects[i].lens);
    if (!own)
        return 0;
    return is_turn(name, at, alone && getpid() != process ? 0 : fail_at);
}

__attribute__((destructor)) static void tell(void)
{
    const char *path = getenv("FAILING_SAYS");
    char text[128];
    if (!path || process != getpid())
        return;
    int length = snprintf(text, sizeof text, "%s %ld %d\n", failed, counted, open_streams);
    int file = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (file >= 0 && write(file, text, (size_t)length) == length)
        close(file);
}

#define CALLER __builtin_return_address(0)
#define NEXT(name) ((__typeof__(&name))(uintptr_t)dlsym(RTLD_NEXT, #name))
#define FAILS(name, error) (fails(name, CALLER, 0) && (errno = (error), 1))
#define NO_MEMORY(name) (fails(name, CALLER, 1) && (errno = ENOMEM, 1))
#pragma GCC visibility push(default)

/* ---- memory ---- */

void *malloc(size_t bytes)
{
    return NO_MEMORY("malloc") ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    return NO_MEMORY("calloc") ? NULL : __libc_calloc(count, bytes);
}

void *realloc(void *memory, size_t bytes)
{
    return NO_MEMORY("realloc") ? NULL : __libc_realloc(memory, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    return NO_MEMORY("aligned_alloc") ? NULL : __libc_memalign(alignment, bytes);
}

int posix_memalign(void **memory, size_t alignment, size_t bytes)
{
    if (NO_MEMORY("posix_memalign"))
        return ENOMEM;
    *memory = __libc_memalign(alignment, bytes);
    return *memory ? 0 : ENOMEM;
}

char *strdup(const char *text)
{
    return NO_MEMORY("strdup") ? NULL : NEXT(strdup)(text);
}

void *mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset)
{
    return NO_MEMORY("mmap") ? MAP_FAILED : NEXT(mmap)(at, bytes, protection, flags, file, offset);
}

/* ---- files ---- */

static FILE *opened(FILE *file, const void *caller)
{
    for (int i = 0; i < object_count && file; i++)
        if ((uintptr_t)caller >= objects[i].begin && (uintptr_t)caller < objects[i].end)
            open_streams++;
    return file;
}

FILE *fopen(const char *path, const char *mode)
{
    return FAILS("fopen", EMFILE) ? NULL : opened(NEXT(fopen)(path, mode), CALLER);
}

FILE *fdopen(int file, const char *mode)
{
    return FAILS("fdopen", ENOMEM) ? NULL : opened(NEXT(fdopen)(file, mode), CALLER);
}

FILE *open_memstream(char **text, size_t *bytes)
{
    return FAILS("open_memstream", ENOMEM) ? NULL : opened(NEXT(open_memstream)(text, bytes), CALLER);
}

FILE *tmpfile(void)
{
    return FAILS("tmpfile", EMFILE) ? NULL : opened(NEXT(tmpfile)(), CALLER);
}

int fclose(FILE *file)
{
    for (int i = 0; i < object_count && file != stdout; i++)
        if ((uintptr_t)CALLER >= objects[i].begin && (uintptr_t)CALLER < objects[i].end)
            open_streams--;
    int result = NEXT(fclose)(file);
    return FAILS("fclose", EIO) ? EOF : result;
}

int open(const char *path, int flags, ...)
{
    va_list list;
    va_start(list, flags);
    const mode_t mode = flags & O_CREAT ? va_arg(list, mode_t) : 0;
    va_end(list);
    return FAILS("open", EMFILE) ? -1 : NEXT(open)(path, flags, mode);
}

/* A stream that has met an error says so from then on. */
static void spoil(FILE *file)
{
    enum { GLIBC_ERROR_SEEN = 0x20 };
    *(int *)(void *)file |= GLIBC_ERROR_SEEN;
    errno = EIO;
}

char *fgets(char *line, int bytes, FILE *file)
{
    if (FAILS("fgets", EIO)) {
        spoil(file);
        return NULL;
    }
    return NEXT(fgets)(line, bytes, file);
}

ssize_t getline(char **line, size_t *bytes, FILE *file)
{
    if (FAILS("getline", EIO)) {
        spoil(file);
        return -1;
    }
    return NEXT(getline)(line, bytes, file);
}

size_t fread(void *to, size_t size, size_t count, FILE *file)
{
    if (FAILS("fread", EIO)) {
        spoil(file);
        return 0;
    }
    return NEXT(fread)(to, size, count, file);
}

ssize_t read(int file, void *to, size_t bytes)
{
    return FAILS("read", EIO) ? -1 : NEXT(read)(file, to, bytes);
}

int mkdir(const char *path, mode_t mode)
{
    return FAILS("mkdir", EACCES) ? -1 : NEXT(mkdir)(path, mode);
}

int mkstemp(char *name)
{
    return FAILS("mkstemp", EACCES) ? -1 : NEXT(mkstemp)(name);
}

char *mkdtemp(char *name)
{
    return FAILS("mkdtemp", EACCES) ? NULL : NEXT(mkdtemp)(name);
}

int rename(const char *from, const char *to)
{
    return FAILS("rename", EACCES) ? -1 : NEXT(rename)(from, to);
}

DIR *opendir(const char *path)
{
    return FAILS("opendir", EMFILE) ? NULL : NEXT(opendir)(path);
}

int stat(const char *restrict path, struct stat *restrict about)
{
    return FAILS("stat", EACCES) ? -1 : NEXT(stat)(path, about);
}

char *realpath(const char *restrict path, char *restrict to)
{
    return FAILS("realpath", EACCES) ? NULL : NEXT(realpath)(path, to);
}

/* ---- processes, threads, libraries ---- */

int pipe(int ends[2])
{
    return FAILS("pipe", EMFILE) ? -1 : NEXT(pipe)(ends);
}

pid_t fork(void)
{
    return FAILS("fork", EAGAIN) ? -1 : NEXT(fork)();
}

FILE *popen(const char *command, const char *mode)
{
    return FAILS("popen", EAGAIN) ? NULL : NEXT(popen)(command, mode);
}

int pthread_create(pthread_t *restrict thread, const pthread_attr_t *restrict attributes, void *(*start)(void *),
                   void *restrict argument)
{
    return FAILS("pthread_create", EAGAIN) ? EAGAIN : NEXT(pthread_create)(thread, attributes, start, argument);
}

/* The loader has a reason for what it cannot open. What it opens may be Rung's own: the lens is. */
void *dlopen(const char *path, int flags)
{
    if (fails("dlopen", CALLER, 0))
        return NEXT(dlopen)("/nowhere/failing.so", RTLD_NOW);
    void *library = NEXT(dlopen)(path, flags);
    if (library && object_count)
        dl_iterate_phdr(find_own, NULL);
    return library;
}
#pragma GCC visibility pop
