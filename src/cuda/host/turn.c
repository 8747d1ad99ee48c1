/* Operands with k innermost that are turned before a product: the launch. */
#include "cuda/host/turn.h"
#include "core/divide.h"

rung_status rung_turn_run(rung_cuda *cuda, const rung_turn_args *turn, int64_t batch)
{
    enum { MOST = 65535 }; /* of a grid along y and z */
    rung_function function;
    RUNG_TRY(rung_gpu_function(cuda->gpu, "turn", turn->class_rows ? "turn_classes" : "turn_operand", &function));
    rung_turn_args args = *turn;
    for (int64_t z = 0; z < batch; z += MOST) {
        rung_grid grid = {.x = (unsigned)divide_up(args.mn, RUNG_TURN_TILE),
                          .y = (unsigned)min64(divide_up(args.k, RUNG_TURN_TILE), MOST),
                          .z = (unsigned)min64(batch - z, MOST),
                          .threads = RUNG_TURN_THREADS,
                          .overlaps = 1,
                          .prepares = 1};
        RUNG_TRY(rung_launch(cuda, &function, &grid, &args));
        args.from += MOST * args.stride_from;
        args.to += MOST * args.stride_to;
    }
    return RUNG_SUCCESS;
}
