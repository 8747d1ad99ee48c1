#!/bin/sh
# Which of several versions of cuBLAS the drop-in calls: the one that the program sees, else one that it has loaded for itself, else the newest to be had.
# usage: test_real.sh PROGRAM FOLDER, which holds a folder for each version
set -u
program=$1 at=$2 bad=0 tried=0
unset RUNG_CUBLAS
loader=$(ldd "$program" | sed -n 's|^[[:space:]]*\(/[^ ]*/ld-[^ ]*\).*|\1|p')
[ -x "$loader" ] || { echo "left out: versions of cuBLAS, no loader is known that leaves the machine's own ones alone"; exit 77; }

# expect WANTED FUNCTION "VERSIONS THAT CAN BE FOUND" LIBRARY...
expect() {
    wanted=$1 function=$2 path=
    for version in $3; do path="$path:$at/$version"; done
    shift 3
    tried=$((tried + 1))
    said=$(LD_LIBRARY_PATH="${path#:}" "$loader" --inhibit-cache "$program" "$function" "$@" 2>&1)
    [ "$said" = "$wanted" ] && return
    echo "FAILED: $function with '$path' and $*: '$said', not '$wanted'"
    bad=1
}

sgemm=cublasSgemm_v2 lt=cublasLtMatmul
expect none $sgemm ""
for order in "11 12 13" "13 12 11"; do
    expect 13 $sgemm "$order"
    expect 1013 $lt "$order"
done
expect 12 $sgemm "11 12"
expect 11 $sgemm "11"
expect 1012 $lt "11 12"
expect 1011 $lt "11"
# What the program has loaded for itself is what it uses, whatever else there is.
expect 12 $sgemm "11 12 13" "$at/12/libcublas.so.12"
expect 11 $sgemm "13 12" "$at/11/libcublas.so.11"
expect 13 $sgemm "11 12" "$at/12/libcublas.so.12" "$at/13/libcublas.so.13"
expect 1012 $lt "13" "$at/12/libcublasLt.so.12"
expect 1011 $lt "13 12" "$at/13/libcublas.so.13" "$at/11/libcublasLt.so.11" # the other library's version says nothing
expect 13 $sgemm "13" "$at/11/libcublasLt.so.11"
# A library without the function is passed by.
expect 12 cublasOnlyIn12 "11 12 13"
expect 12 cublasOnlyIn12 "12 13" "$at/13/libcublas.so.13"
expect none cublasOnlyIn12 "11 13"
expect none cublasLtOnlyIn12 "11 12 13"
# What stands behind the drop-in in the program's own order comes first.
LD_PRELOAD=$at/11/libcublas.so.11 expect 11 $sgemm "13 12" "$at/12/libcublas.so.12"
# RUNG_CUBLAS names it or its folder, and nothing else is looked for.
export RUNG_CUBLAS="$at/11/libcublas.so.11"
expect 11 $sgemm "13" "$at/12/libcublas.so.12"
expect none cublasOnlyIn12 "12"
export RUNG_CUBLAS="$at/12"
expect 12 $sgemm "13" "$at/11/libcublas.so.11"
expect 1012 $lt "13"
expect none cublasOnlyIn13 "13"
export RUNG_CUBLAS="/nowhere/libcublas.so"
expect "librung_cublas.so: RUNG_CUBLAS is '/nowhere/libcublas.so', which is neither cuBLAS nor its folder: what Rung does not answer fails
none" $sgemm "13" "$at/12/libcublas.so.12"
echo "$tried cases"
exit $bad
