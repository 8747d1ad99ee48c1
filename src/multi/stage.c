#include "multi/stage.h"
void multi_stage_close(rung_multi *multi)
{
    (void)multi;
}
