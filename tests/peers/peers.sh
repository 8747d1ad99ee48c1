#!/bin/sh
# Several libraries in one process are timed each for itself: one whose own function computes nothing must be found out, also
# beside one that offers its functions to all. And a peer that errs as no product does fails the bench by name. A setting
# that one peer is told holds for that one.
# And what lab/beside_blas.c says of a BLAS whose times are known, and lab/in_turn.c of libraries that agree and that do not.
# usage: peers.sh RUNG OFFERING ZEROS BESIDE LIBBESIDE IN_TURN LIBRUNG NO_NUMBER
set -eu
rung=$1 offering=$2 zeros=$3 beside=$4 library=$5 in_turn=$6 librung=$7 no_number=$8
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
# Two copies of Rung beside a slow BLAS: no wide margins, so that a busy machine changes nothing. The one that offers its
# functions to all comes before the one that computes zeros, and the zeros are found all the same.
shapes() { printf '# none\nNN 61 45 77 pad=3\n\nNN 64 64 64\n'; }
shapes | "$in_turn" 1 0 old="$librung" blas="$offering" new="$librung" >"$log" || { cat "$log"; echo "in_turn: exit code $?"; exit 1; }
for line in '# old blas new, microseconds on 1 threads, beta 0' 'NN 61 45 77 pad=3 [0-9.]* [0-9.]* [0-9.]*' 'NN 64 64 64 [0-9.]* [0-9.]* [0-9.]*' \
    '# old: [0-9.]* times the best of the others, 0 of 2 below 0.95, the worst [0-9.]*' '# old: 1.000 of the time of the first Rung' \
    '# new: [0-9.]* times the best of the others, 0 of 2 below 0.95, the worst [0-9.]*' '# new: [0-9.]* of the time of the first Rung'; do
    grep -qx "$line" "$log" || { cat "$log"; echo "in_turn says no line '$line'"; exit 1; }
done
[ "$(wc -l <"$log")" = 7 ] || { cat "$log"; echo "in_turn says more than seven lines"; exit 1; }
code=0
shapes | "$in_turn" 1 0 rung="$librung" blas="$offering" zeros="$zeros" >"$log" || code=$?
[ $code = 1 ] && [ "$(grep -c '^# zeros differs from rung by [0-9.]*: NN' "$log")" = 2 ] && ! grep -q '^# blas differs' "$log" ||
    { cat "$log"; echo "in_turn: exit code $code; who computes zeros was not told"; exit 1; }
code=0
shapes | "$in_turn" 1 0 rung="$librung" wrong="$no_number" >"$log" || code=$? # of all elements the first alone
[ $code = 1 ] && [ "$(grep -c '^# wrong differs from rung by -*nan: NN' "$log")" = 2 ] ||
    { cat "$log"; echo "in_turn: exit code $code; who computes what is no number was not told"; exit 1; }
for words in "1 0 rung=$librung" "0 0 rung=$librung blas=$offering" "1 0 $librung blas=$offering" "1 0 rung=$librung blas=/nowhere/library.so" \
    "1 0 rung=$librung none=libm.so.6" "4097 0 rung=$librung blas=$offering"; do
    code=0
    # shellcheck disable=SC2086
    said=$(shapes | "$in_turn" $words 2>&1 >/dev/null) || code=$?
    case $code:$words:$said in
    2:*none=*:"none: has neither rung_sgemm nor cblas_sgemm") ;;
    2:*/nowhere*:*/nowhere/library.so* | 2:"1 0 $librung "*:*"a library is NAME=PATH" | \
        2:4097*:"rung: its context cannot be made" | \
        2:*:"usage: in_turn THREADS BETA NAME=LIBRARY NAME=LIBRARY... <SHAPES (at most 12 libraries)") ;;
    *) echo "in_turn $words: exit code $code, $said"; exit 1 ;;
    esac
done
code=0
said=$(echo 'NN 3 0 4' | "$in_turn" 1 0 rung="$librung" blas="$offering" 2>&1 >/dev/null) || code=$?
[ "$code:$said" = "2:no shape, or no memory for it: NN 3 0 4" ] || { echo "in_turn takes NN 3 0 4: exit code $code, $said"; exit 1; }
# What a library is told: how many threads it has, on one thread that MKL brings no OpenMP, and by the bench how long OpenBLAS's workers spin.
export PEER_TELLS=1
unset OPENBLAS_NUM_THREADS OMP_NUM_THREADS MKL_NUM_THREADS BLIS_NUM_THREADS MKL_THREADING_LAYER OPENBLAS_THREAD_TIMEOUT
for threads in 1 2; do
    [ $threads = 1 ] && layer=SEQUENTIAL asked="layer 1" || layer=- asked=
    shapes | "$in_turn" $threads 0 rung="$librung" blas="$offering" >/dev/null 2>"$log"
    grep -qx "told $threads $threads $threads $threads $layer -" "$log" || { cat "$log"; echo "in_turn on $threads threads tells something else"; exit 1; }
    RUNG_MKL=$offering "$rung" bench --device cpu --threads $threads --budget-ms 5 --against mkl 16x24x32 >/dev/null 2>"$log"
    grep -qx "told - - - - - 16" "$log" && [ "$(grep '^layer' "$log")" = "$asked" ] || { cat "$log"; echo "the bench on $threads threads tells something else"; exit 1; }
done
echo "each peer's figures and settings are its own"
