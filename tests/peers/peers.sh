#!/bin/sh
# Several libraries in one process are timed each for itself: one whose own function computes nothing must be found out, also
# beside one that offers its functions to all. And a peer that errs as no product does fails the bench by name. A setting
# that one peer is told holds for that one.
# usage: peers.sh RUNG OFFERING ZEROS
set -eu
rung=$1 offering=$2 zeros=$3
log=$(mktemp)
trap 'rm -f "$log"' EXIT
bench() { RUNG_MKL=$offering RUNG_BLIS=$zeros "$rung" bench --device cpu --threads 1 --budget-ms 5 --against "$1" 16x24x32 >"$log" 2>&1; }
bench mkl || { cat "$log"; echo "the stand-in that multiplies was refused"; exit 1; }
for peers in blis mkl,blis; do
    code=0
    bench "$peers" || code=$?
    if [ $code != 1 ] || ! grep -q 'FAIL 16x24x32: .*blis errs .*: it is no peer' "$log"; then
        cat "$log"
        echo "--against $peers: exit code $code; blis, which computes zeros, was not found out"
        exit 1
    fi
done
# A library that is told a setting, and the same one that is not, in either order.
unset OPENBLAS_CORETYPE
for peers in openblas@First,openblas,openblas@Second openblas,openblas@First,openblas@Second openblas@Second,openblas@First,openblas; do
    RUNG_OPENBLAS=$offering "$rung" bench --device cpu --threads 1 --budget-ms 5 --against "$peers" 16x24x32 >"$log" 2>&1 ||
        { cat "$log"; echo "--against $peers: exit code $?"; exit 1; }
    for line in 'openblas  *unknown untold ' 'openblas@First  *unknown First ' 'openblas@Second  *unknown Second '; do
        grep -q "^against $line" "$log" || { cat "$log"; echo "--against $peers: no line 'against $line'"; exit 1; }
    done
done
echo "each peer's figures and settings are its own"
