#!/bin/sh
# The drop-in against the real cuBLAS on a machine with a GPU: the same statuses for a table of good and bad calls, who is
# reached by which way of linking, and the CPU time of calls. compare_cublas.sh RUNG PROGRAMS [FOLDER OF LIBCUBLAS]
# [LIBCUBLAS_STATIC FOLDER]. Exit 77 without GPU or cuBLAS.
set -u
rung=$1 programs=$2 static=${4:-}
[ -z "${3:-}" ] || export LD_LIBRARY_PATH="$3${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
work=$(mktemp -d) failed=0
trap 'rm -rf "$work"' EXIT
program=$programs/program_cublas

# Entry by entry, each in a process of its own: cuBLAS itself crashes on some bad calls, and then must do so under Rung too.
entry=0
while [ $entry -lt 40 ]; do
    "$program" status $entry >"$work/real" 2>&1
    real=$?
    [ $real -ne 3 ] || break
    [ $real -ne 77 ] || { echo "skipped: $(cat "$work/real")"; exit 77; }
    "$rung" run --report-file "$work/report" -- "$program" status $entry >"$work/rung" 2>&1
    [ $real -lt 128 ] || echo "     cuBLAS ends with $real in: $(tail -n 1 "$work/real")"
    if cmp -s "$work/real" "$work/rung"; then
        echo "ok   $(sed -n '1s/ .*//p' "$work/real"): $(grep -c 'GPU [0-9]' "$work/real") calls, the same statuses and effects"
    else
        echo "FAIL $(sed -n '1s/ .*//p' "$work/real"): statuses differ (- cuBLAS, + Rung)"
        diff -U0 "$work/real" "$work/rung" | grep '^[-+]' | head -20
        failed=1
    fi
    entry=$((entry + 1))
done

# reached WANT NAME COMMAND: calls answered in a run of one product
reached() {
    want=$1 name=$2
    shift 2
    "$rung" run --report-file "$work/report" -- "$@" >"$work/out" 2>&1
    code=$?
    got=$(sed -n 's/^Rung [^:]*: \([0-9]*\) calls answered.*/\1/p' "$work/report" 2>/dev/null)
    echo "$name: $(cat "$work/out"), answered by Rung: ${got:-0}"
    [ $code -eq 0 ] && [ "${got:-0}" = "$want" ] || { echo "FAIL $name: wanted $want answered"; failed=1; }
    rm -f "$work/report"
}
reached 1 "linked" "$program" product
reached 1 "dlopen" "$program" dlopen libcublas.so.13
reached "${DEEPBIND_WANT:-0}" "RTLD_DEEPBIND" "$program" plugin "$programs/libplugin_cublas.so"
[ -z "$static" ] || reached 0 "static" "$static" product

echo "CPU time of a call, alone:"
"$program" time
echo "with Rung:"
"$rung" run -- "$program" time
exit $failed
