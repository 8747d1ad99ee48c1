/* Writes files that appear whole or not at all. */
#include "lab/output.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

rung_status lab_cannot_write(const char *path)
{
    int error = errno;
    char folder[4096];
    snprintf(folder, sizeof folder, "%s", path);
    for (char *slash = strchr(folder + (folder[0] == '/'), '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        if (error == ENOENT && access(folder, F_OK) != 0)
            return lab_fail(RUNG_INVALID_ARGUMENT, "cannot write '%s': there is no folder '%s'", path, folder);
        *slash = '/';
    }
    return lab_fail(RUNG_INVALID_ARGUMENT, "cannot write '%s': %s", path, strerror(error));
}

rung_status lab_output_open(lab_output *output, const char *path)
{
    struct stat there;
    *output = (lab_output){.path = path};
    /* A device, a pipe or a link is written to, never replaced. */
    if (lstat(path, &there) != 0 || S_ISREG(there.st_mode)) {
        int length = snprintf(output->unfinished, sizeof output->unfinished, "%s.%ld.part", path, (long)getpid());
        if (length < 0 || length >= (int)sizeof output->unfinished)
            return lab_fail(RUNG_INVALID_ARGUMENT, "cannot write '%s': its name is too long", path);
    }
    output->to = fopen(output->unfinished[0] ? output->unfinished : path, "w");
    if (!output->to)
        return lab_cannot_write(path);
    return RUNG_SUCCESS;
}

rung_status lab_output_close(lab_output *output)
{
    rung_status status = lab_close(output->to, output->path);
    if (output->unfinished[0] && status == RUNG_SUCCESS && rename(output->unfinished, output->path) != 0)
        status = lab_fail(RUNG_INTERNAL, "cannot finish %s: %s", output->path, strerror(errno));
    if (output->unfinished[0] && status != RUNG_SUCCESS)
        remove(output->unfinished);
    return status;
}

rung_status lab_close(FILE *to, const char *path)
{
    int lost = ferror(to), failed = fclose(to) != 0;
    if (!failed && !lost)
        return RUNG_SUCCESS;
    return lab_fail(RUNG_INTERNAL, "cannot write all of %s: %s", path,
                    failed ? strerror(errno) : "a write failed, as on a full disk");
}

int lab_is_same_file(const char *path, const char *other)
{
    struct stat one, two;
    return stat(path, &one) == 0 && stat(other, &two) == 0 && S_ISREG(one.st_mode) && one.st_dev == two.st_dev &&
           one.st_ino == two.st_ino;
}
