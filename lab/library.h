/* Where librung.so was loaded from: the drop-ins, the lens and the course lie beside it, or where a variable says. */
#ifndef LAB_LIBRARY_H
#define LAB_LIBRARY_H

#include <stddef.h>

/* Gives the folder, through links and without a slash at its end. Returns 0, and ".", where it cannot be found. */
int lab_library_folder(char *folder, size_t bytes);
/* Returns what the environment names; NULL where the variable is not set, or empty. */
const char *lab_named(const char *variable);

#endif
