/* The cuBLAS that the program would have called without the drop-in. */
#ifndef RUNG_SHIM_CUBLAS_REAL_H
#define RUNG_SHIM_CUBLAS_REAL_H

/* Finds a function: behind this library in the search order, else in the cuBLAS (cublasLt) the process has loaded, else
 * by versioned file name. NULL: there is none. Any thread. */
void *rung_real(const char *name);

/* Finds a function once for each place that asks for it. */
#define RUNG_FOUND(type, find)                                                                                         \
    ({                                                                                                                 \
        static void *found_;                                                                                           \
        void *now_ = __atomic_load_n(&found_, __ATOMIC_ACQUIRE);                                                       \
        if (!now_) {                                                                                                   \
            now_ = (find);                                                                                             \
            __atomic_store_n(&found_, now_, __ATOMIC_RELEASE);                                                         \
        }                                                                                                              \
        (type) now_;                                                                                                   \
    })
#define RUNG_REAL(type, name) RUNG_FOUND(type, rung_real(name))

#endif
