#!/bin/sh
# Several libraries in one process are timed each for itself: one whose own function computes nothing must be found out, also
# beside one that offers its functions to all. And a peer that errs as no product does fails the bench by name.
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
echo "each peer's figures are its own"
