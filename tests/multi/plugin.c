/* An MPI transport that lies beside the library and cannot be opened is told with its own reason, not as one that is
 * missing. usage: plugin LIBRUNG */
#include "rung_multi.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 256 };

static void *find(void *library, const char *name)
{
    void *found = library ? dlsym(library, name) : NULL;
    if (!found)
        fprintf(stderr, "%s: %s\n", name, dlerror()), exit(2);
    return found;
}

int main(int argc, char **argv)
{
    char folder[] = "/tmp/rung-plugin-XXXXXX", library[PATH_BYTES], transport[PATH_BYTES];
    rung_status (*create)(rung_multi **, const rung_multi_config *);
    const char *(*last_error)(void);
    rung_multi *multi;
    rung_multi_config config = {.transport = RUNG_TRANSPORT_MPI, .device = RUNG_DEVICE_BEST};
    if (argc != 2 || !mkdtemp(folder))
        return 2;
    snprintf(library, sizeof library, "%s/librung.so", folder);
    snprintf(transport, sizeof transport, "%s/librung_mpi.so", folder);
    unsetenv("RUNG_MPI");
    const int file = open(transport, O_CREAT | O_WRONLY, 0600); /* empty, as where the disk was full */
    if (symlink(argv[1], library) || file < 0)
        return 2;
    close(file);
    void *opened = dlopen(library, RTLD_NOW);
    *(void **)&create = find(opened, "rung_multi_create");
    *(void **)&last_error = find(opened, "rung_last_error");
    const rung_status status = create(&multi, &config);
    const int right = status == RUNG_MISSING_LIBRARY && strstr(last_error(), transport) != NULL;
    if (!right)
        printf("status %d, and nothing of %s: %s\n", (int)status, transport, last_error());
    unlink(library);
    unlink(transport);
    rmdir(folder);
    return !right;
}
