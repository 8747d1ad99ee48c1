#!/bin/sh
# What the guard of accurate mode refuses, under the lens: so many blocks are computed strictly, neither more nor fewer. Too few are
# wrong results, too many are lost time that no result shows.
# usage: lens_guard.sh RUNG LIBRUNG_LENS RECALL
set -u
rung=$1 recall=$3 failed=0 here=$(dirname "$0")
export RUNG_LIBCUDA=$2 RUNG_LENS_FINDINGS=fail RUNG_LENS_KEPT=fail # races, too
[ -e "$RUNG_LIBCUDA" ] || { echo "left out: no lens in this build"; exit 77; }

kernel=$("$here"/tiles_with.sh -1 "$here/.." accurate tf32=0) || exit 1
guard() { # SHAPE DATA "BLOCKS of ALL"
    said=$("$rung" explain "$1" --device gpu --kernel "$kernel" --math accurate --data "$2" 2>&1 | grep '^guard')
    case $said in
    *" $3 blocks"*) echo "ok   $1 $2: $3" ;;
    *) failed=1; echo "FAILED: $1 $2: $3 blocks, not: $said" ;;
    esac
}

guard 256x256x256:TN normal '0 of 4'
guard 256x256x256:TN trap '4 of 4'
guard 256x256x256:TN special '4 of 4'
guard 259x131x70:NN normal '0 of 6' # ends of lines: what lies behind them counts for nothing
for end in 69:TN+3 70:TN+2 71:TN+1; do # and lines along k that are read 16 bytes at a time, whatever is left of the last 16
    guard "259x131x$end" normal '0 of 6'
done
guard 131x130x70:NT+2 normal '0 of 4'
guard 259x131x70:NN trap '5 of 6'
guard 259x300x70:NN special '9 of 9' # a cluster's second block may lie wholly outside C: it is none of them
guard 257x129x1000:TT sparse '4 of 6' # few terms of a long sum
guard 257x129x1000:TT span24 '0 of 6'
guard 257x129x1000:TT span40 '6 of 6'
guard 66x1x1500:TN scaled '0 of 1' # lines of 2^60 and of 2^-60, each of which several warps share and scale by its own largest element
for trans in NN NT TN TT; do # a long tail behind what stands out, along k and across: of the first 128 lines, not of those whose last element stands out
    guard "130x70x1300:$trans" softmax '1 of 2'
done
guard 131x70x100:NT subnormal '2 of 2'
guard 129x70x100:TT large '2 of 2' # the sums are finite, and need not be on the way

# Lines of k that two warps share, four lines a block: each line is scaled by its own largest element. And a workspace in which C has its
# place only in panels of rows and of columns; and one in which a panel is refused and the next, on the same image of A, is not. And NaN and
# Inf in what is added to the product, of which the guard knows nothing. And lines whose largest element is the last below the normal range.
# And products that are refused as a whole and left to large tiles, of which there are three, as they lie, on copies or turned.
for case in NT:65x70x1500:row,data=across NT:65x70x1500:row,data=span24 TN:259x259x95:row,pad=1,bias=column,workspace=484 \
    NN:259x900x70:row,pad=1,workspace=500,data=special \
    NT:140x50x70:col,beta=0.5,bias=column,act=relu,added=special NN:70x60x200:row,data=subnormal TN:70x60x96:row,data=subnormal \
    NN:256x384x512:row,data=span100 TN:256x384x512:row,data=span100,bias=row \
    TT:255x385x511:row,pad=2,data=span100,beta=0.5 NN:255x383x511:row,pad=2,data=span100 \
    TN:256x384x512:row,pad=1,data=span100,bias=row NT:256x384x512:row,data=span100 NT:384x256x512:row,data=span100 NT:255x385x511:row,pad=2,data=span100,beta=0.5; do
    if said=$(RUNG_LENS_SMS=3 "$rung" verify --device gpu --no-vendor --kernel "$kernel" --case "$case" 2>&1); then
        echo "ok   $case is right"
    else
        failed=1
        echo "FAILED: $case: $said"
    fi
done

# A long k in three panels, a block each: the first alone scales C, the last alone has bias and activation. (Both calls are counted.)
case=NN:65x67x3300:row,beta=-0.5,bias=row,act=relu,workspace=2600
if said=$(RUNG_LENS_SMS=3 "$rung" verify --device gpu --no-vendor --kernel "$kernel" --verbose --case "$case" 2>&1) && echo "$said" | grep -q ' of 6 blocks'; then
    echo "ok   $case is right"
else
    failed=1
    echo "FAILED: $case, or it is not three panels: $said"
fi

# What the guard said before decides whether there is a look, and nothing else.
RUNG_LENS_SMS=3 "$recall" "$kernel" || failed=1
exit $failed
