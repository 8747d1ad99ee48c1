/* The page of rung lens --html: the source with counts beside its lines, and each access lane by lane. */
#ifndef LAB_LENS_HTML_H
#define LAB_LENS_HTML_H

#include "lab/lens.h"

/* Writes the page of the lens's last run, one file that needs no other. verdict is a sentence for its head, or NULL. */
rung_status lab_lens_html(const char *path, const lab_lens_case *c, const char *verdict);

#endif
