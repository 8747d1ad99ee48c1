#!/bin/sh
# The command's verbs give back what they take: memory of the device under the lens, which ends a process that has not; the host's under the
# address sanitizer, whose own look at the end does so.
# usage: kept.sh RUNG [LIBRUNG_LENS]: without the lens on the CPU
set -u
course=$(cd "$(dirname "$0")/../learn" && pwd)
rung=$1 device=cpu kernels=c01_naive,c02_loop_order failed=0 tried=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export RUNG_CACHE_DIR="$work/cache" RUNG_LEARN_DIR="$work" XDG_DATA_HOME="$work" RUNG_LIBCUDA="${2:-/nowhere}"
if [ $# -gt 1 ]; then
    [ -e "$2" ] || { echo "left out: no lens in this build"; exit 77; }
    unset RUNG_CACHE_DIR # objects of the lens that are there
    export RUNG_LENS_KEPT=fail RUNG_CUB=/nowhere # which a build with nvcc has, and which asks a driver of its own
    device=gpu kernels=l01_naive,l02_coalesced
fi

gives_back() { # CODE VERB ...
    want=$1 tried=$((tried + 1))
    shift
    "$rung" "$@" >"$work/out" 2>"$work/err" </dev/null
    code=$?
    [ $code = "$want" ] || { failed=$((failed + 1)); echo "FAILED: exit code $code, not $want: rung $*"; tail -n 5 "$work/err"; }
}

on="--device $device"
# shellcheck disable=SC2086
{
    gives_back 0 verify $on --no-vendor --kernel "${kernels%,*}" --case NN:5x7x3:row,pad=1
    gives_back 0 verify $on --math strict --no-vendor --case NN:17x33x20:col,beta=0.5
    gives_back 1 verify $on --no-vendor --kernel "${kernels%,*}" --case NN:5x7x3:row,bias=row # refused
    gives_back 0 verify $on --wrong-calls
    gives_back 0 bench $on --budget-ms 1 --against= 8x8x8 9x7x5 -o "$work/rows"
    gives_back 0 bench $on --budget-ms 1 --against= --layout row --data normal 16x8x4x3
    gives_back 0 fuzz $on --calls 5 --size 20
    gives_back 0 reduce $on --quick --budget-ms 1 1000
    gives_back 0 explain $on 64x64x64
    gives_back 0 report "$work/rows" -o "$work/page"
    gives_back 2 bench $on --budget-ms 1 --against= 8x8
    if [ $device = gpu ]; then
        gives_back 0 doctor # which opens the peers, whose Fortran keeps a few words on the host
        gives_back 0 explain $on --math accurate --data outliers 64x64x64
        gives_back 0 tune --budget-ms 1 --candidates 1 --dry-run 8x8x8
        gives_back 0 profile --no-counters l01_naive 16x16x16
        gives_back 0 lens l01_naive 16x16x16 --svg "$work/picture"
        gives_back 0 lens r06_vector_one_launch 1x1000x1
        for exercise in e01_one_each e06_dot e24_tree e27_last_block; do # a copy, a product, sums by two launches and by one
            gives_back 0 learn check $exercise "$course/$exercise/solution.cu"
        done
        gives_back 0 verify $on --via host --math strict --no-vendor --case NN:17x33x20:col,beta=0.5
    else
        gives_back 0 climb $on --size 16 --kernel "$kernels" --against=
        gives_back 0 bench --gpus cpu2 --repeats 1 8x8x8 --timeline "$work/line"
        gives_back 0 verify $on --via ranks --math strict --no-vendor --case NN:17x33x20:col,beta=0.5
    fi
}
echo "$tried commands, $failed of them keep something or fail"
exit $((failed > 0))
