#!/bin/sh
# Cases in which every two choices meet (rung verify --pairs) under the lens: a kernel of each family, on a GPU of 132
# multiprocessors and of three; what the lens finds, reads out of bounds and races included, fails the case.
# Products believe that they are captured: each has workspace of its own, of the size it asked for, and a step past its end is found. On three
# multiprocessors the driver is one with which launches do not overlap, so that blocks have no more shared memory than they asked for.
# usage: lens_pairs.sh RUNG LIBRUNG_LENS; RUNG_ONLY_KERNELS=_crowd_: the kernels whose names contain that
set -u
rung=$1 failed=0 here=$(dirname "$0")
export RUNG_LIBCUDA=$2 RUNG_LENS_FINDINGS=fail RUNG_LENS_KEPT=fail
[ -e "$RUNG_LIBCUDA" ] || { echo "left out: no lens in this build"; exit 77; }
work=$(mktemp)
trap 'rm -f "$work"' EXIT

# MULTIPROCESSORS LEAST FAMILY FIELD=VALUE...: the family's first tile with these values; so many cases at least are accepted, of some 120: a
# kernel that refuses more of them is one of which pairs are not tried. All of them pass.
pairs() {
    least=$2 sms=$1
    shift 2
    kernel=$("$here"/tiles_with.sh -1 "$here/.." "$@") || { failed=1; return; }
    case $kernel in *"${RUNG_ONLY_KERNELS:-}"*) ;; *) return ;; esac
    if [ "$sms" = 3 ]; then export RUNG_LENS_DRIVER=12020; else unset RUNG_LENS_DRIVER; fi
    if RUNG_LENS_CAPTURING=1 RUNG_LENS_SMS=$sms "$rung" verify --device gpu --kernel "$kernel" --pairs --no-vendor --format csv >"$work" 2>"$work.said" &&
        awk -F, -v least="$least" 'NR == 2 { exit !($2 == "pass" && $3 >= least) }' "$work"; then
        awk -F, 'NR == 2 { print $1 ": " $3 " cases" }' "$work"
    else
        failed=1
        echo "FAILED: $kernel on $sms multiprocessors, or fewer than $least cases:"
        cat "$work" "$work.said"
    fi
    rm -f "$work.said"
}

pairs 3 115 accurate tf32=0
pairs 3 115 accurate tf32=1
pairs 3 120 large
pairs 3 115 medium large_loop=1
pairs 3 110 medium groups=2 # a block computes several tiles, one after the other
pairs 132 120 lone
pairs 3 120 lone tn=12 # stores down columns
pairs 3 120 lone copied=1 tm=4
pairs 132 95 lone fourths=1
pairs 3 95 lone fourths=1 # a block has all of a tile's k
pairs 3 100 lone tm=8 tn=16 whole_steps=0 # lanes take slices of k
pairs 3 110 pairs
pairs 3 110 pairs shifted=1
pairs 3 120 small slices=1 crowd=0
pairs 132 120 small crowd=1 resident=8
pairs 132 85 small brief=1
pairs 132 80 small batch=1
pairs 3 105 lines
pairs 132 45 vector k_innermost=0
pairs 132 70 vector k_innermost=1
exit $failed
