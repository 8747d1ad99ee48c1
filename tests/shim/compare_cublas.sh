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

# cuBLAS prints lines of its own between a call's name and its status.
calls_in() { grep -c 'GPU [0-9]\|ends the process' "$1"; }

# table FILE ENTRY COMMAND...: cuBLAS itself crashes on some bad calls, and then must do so under Rung too: the calls after
# such a one are made by a new process.
table() {
    file=$1 entry=$2 from=0
    shift 2
    : >"$file"
    while :; do
        "$@" status "$entry" $from >>"$file" 2>"$file.err"
        code=$?
        case $code in
        0 | 3 | 77) break ;;
        4) ;;
        *) echo "ends the process with $code" >>"$file" ;;
        esac
        next=$(calls_in "$file")
        [ "$next" -gt $from ] || break
        from=$next
    done
    echo $code >"$file.code"
}

both() {
    table "$work/real$1$2" "$1" "$program" 2>"$work/shell"
    table "$work/rung$1$2" "$1" "$rung" run --report-file "$work/report$1" -- "$program" 2>"$work/shell"
}

same() { [ "$(cat "$work/real$1$2.code")" -eq 0 ] && cmp -s "$work/real$1$2" "$work/rung$1$2"; }

# Whether cuBLAS itself answers otherwise when it is asked again, alone on the GPU, and the drop-in then as it does: what
# cuBLAS breaks on some days (TF32 products by arrays of pointers, beside other processes) is no fault of the drop-in.
cublas_varies() {
    for turn in .1 .2 .3; do
        both "$1" $turn
        ! cmp -s "$work/real$1" "$work/real$1$turn" && same "$1" $turn && return 0
    done
    return 1
}

entries=15
entry=0
while [ $entry -lt $entries ]; do
    table "$work/real$entry" $entry "$program" 2>"$work/shell" &
    table "$work/rung$entry" $entry "$rung" run --report-file "$work/report$entry" -- "$program" 2>"$work/shell" &
    entry=$((entry + 1))
done
wait
[ "$(cat "$work/real0.code")" -ne 77 ] || { echo "left out: $(cat "$work/real0")"; exit 77; }
entry=0 calls=0
while [ $entry -lt $entries ]; do
    real=$work/real$entry
    name=$(sed -n '1s/ .*//p' "$real") count=$(calls_in "$real")
    grep 'ends the process' "$real" | sed 's/^/     cuBLAS: /'
    if same $entry ""; then
        echo "ok   $name: $count calls, the same statuses and effects"
    elif cublas_varies $entry; then
        echo "ok   $name: $count calls, the same statuses and effects in turn $turn, alone on the GPU; cuBLAS answered otherwise before:"
        diff -U0 "$real" "$real$turn" | grep '^[-+][^-+]' | head -20
    else
        echo "FAIL $name: statuses differ (- cuBLAS, + Rung)"
        diff -U0 "$real" "$work/rung$entry" | grep '^[-+]' | head -20
        failed=1
    fi
    calls=$((calls + count)) entry=$((entry + 1))
done
echo "$calls calls of $entries entry points"
[ -z "${TABLE:-}" ] || cat "$work"/real? "$work"/real1? >"$TABLE" # for who wants to read it

# reached WANT NAME COMMAND: calls answered in a run of one product
reached() {
    want=$1 name=$2
    shift 2
    "$rung" run --report-file "$work/report" -- "$@" >"$work/out" 2>&1
    code=$?
    got=$(sed -n 's/^Rung [^:]*: \([0-9]*\) calls* answered.*/\1/p' "$work/report" 2>/dev/null)
    echo "$name: $(cat "$work/out"), answered by Rung: ${got:-0}"
    [ $code -eq 0 ] && [ "${got:-0}" = "$want" ] || { echo "FAIL $name: wanted $want answered"; failed=1; }
    rm -f "$work/report"
}
reached 1 "linked" "$program" product
reached 1 "dlopen" "$program" dlopen libcublas.so.13
reached "${DEEPBIND_WANT:-0}" "RTLD_DEEPBIND" "$program" plugin "$programs/libplugin_cublas.so"
[ -z "$static" ] || reached 0 "static" "$static" product

echo "CPU time of a call, us, without the drop-in:"
"$program" time
echo "with it: cuBLAS and Rung in turn, in one process:"
"$rung" run -- "$program" time
exit $failed
