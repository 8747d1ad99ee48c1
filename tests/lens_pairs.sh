#!/bin/sh
# Cases in which every two choices meet (rung verify --pairs) under the lens: a kernel of each family, on a GPU of 132
# multiprocessors and of three; what the lens finds, reads out of bounds and races included, fails the case.
# On three multiprocessors products believe that they are captured: each has workspace of its own, of the size it asked for, and a step past
# its end is found.
# usage: lens_pairs.sh RUNG LIBRUNG_LENS
set -u
rung=$1 failed=0
export RUNG_LIBCUDA=$2 RUNG_LENS_FINDINGS=fail
[ -e "$RUNG_LIBCUDA" ] || { echo "left out: no lens in this build"; exit 77; }
work=$(mktemp)
trap 'rm -f "$work"' EXIT

# MULTIPROCESSORS KERNEL LEAST: so many cases at least are accepted, and all of them pass.
pairs() {
    capturing=
    [ "$1" != 3 ] || capturing=1
    if RUNG_LENS_CAPTURING=$capturing RUNG_LENS_SMS=$1 "$rung" verify --device gpu --kernel "$2" --pairs --no-vendor --format csv >"$work" 2>"$work.said" &&
        awk -F, -v least="$3" 'NR == 2 { exit !($2 == "pass" && $3 >= least) }' "$work"; then
        awk -F, 'NR == 2 { print $1 ": " $3 " cases" }' "$work"
    else
        failed=1
        echo "FAILED: $2 on $1 multiprocessors, or fewer than $3 cases:"
        cat "$work" "$work.said"
    fi
    rm -f "$work.said"
}

pairs 3 sm90_tma_f32_128x256x16_s8 30
pairs 3 sm90_tmaslice_f32_64x64x16_s2 30
pairs 132 sm90_tmawarp_f32_64x128x32_s4 20
pairs 132 sm90_lonewarp_f32_8x128x16_s3 30
pairs 3 sm90_lonewarp_f32_64x48x16_s3 30
pairs 3 sm90_lonecopy_f32_16x96x16_s3 30
pairs 132 sm90_lonefour_f32_48x64x16_s3 4
pairs 132 sm90_tmapair_f32_128x128x16_s4 30
pairs 3 sm90_tmashift_f32_128x128x16_s2 30
pairs 3 sm80_cpasync_f32_64x128x16_s4 30
pairs 132 sm90_crowd_f32_32x64x8_s4 30
pairs 132 sm80_small_f32_16x16x16_s1 10
pairs 132 sm80_axpy_f32_32x1x64_s6 6
exit $failed
