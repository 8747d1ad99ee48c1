#!/bin/sh
# Several libraries in one process are timed each for itself: one whose own function computes nothing must be found out, also
# beside one that offers its functions to all. And a peer that errs as no product does fails the bench by name. A setting
# that one peer is told holds for that one.
# And what lab/beside_blas.c says of a BLAS whose times are known.
# usage: peers.sh RUNG OFFERING ZEROS BESIDE LIBBESIDE
set -eu
rung=$1 offering=$2 zeros=$3 beside=$4 library=$5
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
said=$(LD_PRELOAD=$library "$beside" "$library" 8 2) || { echo "$said"; exit 1; }
wanted="8 on 2 threads: between dgemms Rung's sgemm 1 us, its own 2001 (2001.00 x); dgemm beside Rung 3001 us, beside its own sgemm 3001
120 dgemms, 60 sgemms, 2 threads"
[ "$said" = "$wanted" ] || { printf 'beside says\n%s\ninstead of\n%s\n' "$said" "$wanted"; exit 1; }
for words in "" "/nowhere/library.so 8 2" "$library 8" "$zeros 8 2"; do
    code=0
    # shellcheck disable=SC2086
    said=$("$beside" $words 2>&1) || code=$?
    case $code:$said in
    2:"usage: beside BLAS N THREADS: "?* | 1:) ;;
    *) echo "beside $words: exit code $code, $said"; exit 1 ;;
    esac
done
echo "each peer's figures and settings are its own"
