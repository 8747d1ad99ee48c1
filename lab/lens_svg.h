/* A kernel's pictures, from what it did under the lens. */
#ifndef LAB_LENS_SVG_H
#define LAB_LENS_SVG_H

#include "lab/lens.h"

/* Draws the last run: which thread makes which results, the sectors and banks each access touches. */
rung_status lab_lens_svg(const char *path, const lab_lens_case *c);

#endif
