#!/bin/sh
# Products of which a few rows and columns are cut off, under the lens on three multiprocessors: the cuts are made, and each part has
# its own rows and columns of A, B, C and the bias.
# usage: lens_peeled.sh RUNG LIBRUNG_LENS
set -u
rung=$1 failed=0
export RUNG_LIBCUDA=$2 RUNG_LENS_FINDINGS=fail RUNG_LENS_KEPT=fail RUNG_LENS_SMS=3
[ -e "$RUNG_LIBCUDA" ] || { echo "left out: no lens in this build"; exit 77; }

said=$("$rung" explain --device gpu --math strict 257x385x128)
for cut in '384 x 1 to the right by' '1 x 257 below by'; do
    printf '%s\n' "$said" | grep -q " $cut" || { failed=1; echo "FAILED: no part of 257x385x128 is $cut a kernel of its own"; }
done
# The decision's note is of the main part, not of the whole: what that kernel says of whole tiles alone.
kernel=$(printf '%s\n' "$said" | sed -n 's/.* 384 x 256 rows and columns by //p')
note=$(printf '%s\n' "$said" | sed -n 's/.*predicted .* bytes, //p')
alone=$("$rung" explain --device gpu --math strict 256x384x96 | grep " [0-9.]*  ${kernel:-none} ")
case $alone in
*"${note:-no note}") ;;
*) failed=1; echo "FAILED: the note of 257x385x96 by $kernel is '$note', of its main part alone: $alone" ;;
esac
for with in row,alpha=-0.5,beta=1,bias=column,act=relu row,bias=row,beta=-0.5,pad=3 col,bias=column col,bias=row,scalars=device,pad=1; do
    for trans in NN TT; do
        "$rung" verify --device gpu --math strict --no-vendor --case "$trans:257x385x128:$with" || failed=1
    done
done
# Edges of sixteen, by kernels with plans of their own.
case=257x400x256
"$rung" explain --device gpu --math strict $case | grep -q ' 16 x 257 below by .*_lone' || { failed=1; echo "FAILED: no part of $case is run by lone warps"; }
for trans in NN:$case:row,bias=column TT:$case:col,beta=0.5,bias=row,pad=1; do
    "$rung" verify --device gpu --math strict --no-vendor --case "$trans" || failed=1
done
exit $failed
