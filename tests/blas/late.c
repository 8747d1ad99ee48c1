/* A program's xerbla as the reference CBLAS has it: it keeps the position that it is told and whether rows were
 * exchanged. */
#include <stdint.h>

int RowMajorStrg, CBLAS_CallFromC;
int64_t late_position;
int late_row_major;

void cblas_xerbla(int64_t position, const char *name, const char *form, ...);
void cblas_xerbla(int64_t position, const char *name, const char *form, ...)
{
    (void)name, (void)form;
    late_position = position;
    late_row_major = RowMajorStrg;
}
