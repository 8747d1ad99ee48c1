#!/bin/sh
# Several ranks over MPI on the CPU. usage: mpi.sh <mpirun> <mpi_ranks> layouts|nameless|bits|mismatch|killed|stopped|threads
mpirun=$1 program=$2 mode=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OPENBLAS_NUM_THREADS=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_hwloc_base_binding_policy=none

case $mode in
layouts)
    for ranks in 4 3; do
        "$mpirun" -n $ranks "$program" layouts 120 || exit 1
    done
    ;;
nameless) # on a machine whose own name nothing knows, as in a bare container
    unshare --uts true 2>/dev/null || { echo "left out: no right to give this process another host name"; exit 77; }
    # shellcheck disable=SC2016
    unshare --uts sh -c 'hostname known.to.nobody.invalid && exec "$@"' sh "$mpirun" -n 2 "$program" layouts 20 || exit 1
    ;;
bits)
    for grid in "1 1 1" "2 1 2" "2 2 1" "4 2 2" "4 1 4" "4 4 1"; do
        # shellcheck disable=SC2086
        set -- $grid
        "$mpirun" -n "$1" "$program" bits "$2" "$3" >"$work/$1.$2" || exit 1
        cmp "$work/1.1" "$work/$1.$2" || { echo "other bits on $1 ranks, grid $2 x $3"; exit 1; }
        cat "$work/$1.$2"
    done
    ;;
threads)
    for ranks in 1 2 3; do
        "$mpirun" -n $ranks "$program" threads || exit 1
    done
    ;;
mismatch) "$mpirun" -n 4 "$program" mismatch || exit 1 ;;
killed | stopped)
    # mpirun would end the others as well: it is told not to.
    "$mpirun" --mca orte_enable_recovery 1 --mca orte_abort_on_non_zero_status 0 -n 4 "$program" "$mode" \
        >"$work/out" 2>"$work/err"
    cat "$work/out" "$work/err"
    [ "$(grep -c '^rank [013] survived$' "$work/out")" = 3 ] || exit 1
    ;;
*) exit 2 ;;
esac
