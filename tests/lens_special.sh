#!/bin/sh
# Inf and NaN among the operands, through every kernel that splits or rounds what it multiplies, under the lens: what is not taken apart with care becomes NaN where
# Inf belongs, or a number. usage: lens_special.sh RUNG LENS
rung=$1 bad=0 tried=0
export RUNG_LIBCUDA="$2" RUNG_LENS_SMS=3 RUNG_LENS_FINDINGS=fail
work=$(mktemp) && trap 'rm -f "$work"' EXIT
for kernel in $("$rung" list --device gpu --format csv | awk -F, 'NR > 1 && $3 != "reduce" && $4 != "f32" { print $1 }'); do
    for size in 65x67x96 130x129x100 33x31x70; do
        tried=$((tried + 1))
        "$rung" verify --device gpu --no-vendor --kernel "$kernel" --case "NN:$size:row,data=special;NN:$size:row,data=special,pad=1,beta=-0.5" >"$work" 2>&1 && continue
        grep FAIL "$work"
        echo "FAILED: $kernel, $size"
        bad=1
    done
done
echo "$tried sizes of kernels that split or round"
[ $tried -ge 30 ] && [ $bad = 0 ]
