/* Where librung.so was loaded from: the drop-ins, the lens and the course lie beside it. */
#ifndef LAB_LIBRARY_H
#define LAB_LIBRARY_H

#include <stddef.h>

/* Gives the folder, through links and without a slash at its end. Returns 0, and ".", where it cannot be found. */
int lab_library_folder(char *folder, size_t bytes);

#endif
