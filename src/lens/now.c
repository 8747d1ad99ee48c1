/* What every part of the lens knows: the launch that runs, and its running thread. */
#include "lens.h"

lens_block lens_now;
lens_module *lens_module_now;
rung_lens_options lens_options;
