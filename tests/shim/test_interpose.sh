#!/bin/sh
# The built drop-in in front of a program that dlopens cuBLAS: LD_AUDIT reaches it, other functions stay, the call that Rung
# cannot answer here (no GPU) is handed on with cuBLAS's own status, the report says so, RUNG_DISABLE turns it all off, and empty
# settings change nothing.
set -eu
lib=$1 program=$2 fake_dir=$3 # [STAND_IN_FOR_LIBCUDA]
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fake=$fake_dir/libcublas.so.13
fail() { echo "FAILED: $1"; exit 1; }

plain=$("$program" "$fake")
[ "$plain" = "libcublas.so.13 libcublas.so.13 100" ] || fail "without the drop-in: $plain"

export RUNG_LIBCUDA=/nonexistent/libcuda.so LD_LIBRARY_PATH="$fake_dir"
audited=$(LD_PRELOAD=$lib/librung_cublas.so LD_AUDIT=$lib/librung_audit.so RUNG_REPORT=$work/report "$program" "$fake")
[ "$audited" = "librung_cublas.so libcublas.so.13 100" ] || fail "under LD_AUDIT: $audited"
grep -q "0 calls answered, 1 handed on" "$work/report" || fail "report: $(cat "$work/report")"
grep -q "^cublasSgemm_v2 .*cuBLAS: no current GPU" "$work/report" || fail "report: $(cat "$work/report")"

off=$(LD_PRELOAD=$lib/librung_cublas.so LD_AUDIT=$lib/librung_audit.so RUNG_DISABLE=1 RUNG_REPORT=$work/off "$program" "$fake")
[ "$off" = "librung_cublas.so libcublas.so.13 100" ] || fail "disabled: $off"
[ ! -e "$work/off" ] || fail "disabled, and still a report: $(cat "$work/off")"

quiet=$(LD_PRELOAD=$lib/librung_cublas.so LD_AUDIT=$lib/librung_audit.so "$program" "$fake" 2>"$work/err")
[ "$quiet" = "$audited" ] && [ ! -s "$work/err" ] || fail "something was printed unasked: $quiet $(cat "$work/err")"
# Each function of cuBLAS that the drop-in answers comes from it, and each other one from cuBLAS.
functions() { nm -D --defined-only "$1" | awk '$2 == "T" { print $3 }'; }
# shellcheck disable=SC2046
LD_PRELOAD=$lib/librung_cublas.so LD_AUDIT=$lib/librung_audit.so "$program" "$fake" $(functions "$fake") >"$work/owners"
functions "$fake" | while read -r name; do
    functions "$lib/librung_cublas.so" | grep -qx "$name" && owner=librung_cublas.so || owner=libcublas.so.13
    echo "$name $owner"
done | diff - "$work/owners" || fail "a function comes from another library"
[ "$(grep -c ' librung_cublas.so$' "$work/owners")" -ge 14 ] || fail "few functions: $(cat "$work/owners")"
# What lies in a namespace of its own is another program's, so to speak.
apart=$(LD_PRELOAD=$lib/librung_cublas.so LD_AUDIT=$lib/librung_audit.so RUNG_REPORT=$work/apart "$program" "$fake" apart)
[ "$apart" = "$plain" ] || fail "in a namespace of its own: $apart"
[ ! -e "$work/apart" ] || ! grep -q '[1-9][0-9]* handed on' "$work/apart" || fail "in a namespace of its own: $(cat "$work/apart")"
# A setting that is there and empty is as one that is not there.
settings=$(grep -ohE '(getenv|setting_flag)\("RUNG_[A-Z_]+"\)' "$(dirname "$0")"/../../shim/*.c | sed 's/.*"\(.*\)".*/\1/' | sort -u)
for name in $settings; do
    empty=$(env "$name=" LD_PRELOAD="$lib/librung_cublas.so" LD_AUDIT="$lib/librung_audit.so" "$program" "$fake" 2>"$work/err") || empty="code $?"
    [ "$empty" = "$audited" ] && [ ! -s "$work/err" ] || fail "with an empty $name: $empty $(cat "$work/err")"
done
[ "$(echo "$settings" | wc -l)" -ge 8 ] || fail "few settings: $settings"
# A flag is 1 or 0; what is neither is told, once, and is 0.
for name in RUNG_DISABLE RUNG_REPORT_TIME RUNG_REPORT_COMPARE; do
    told=$(env "$name=yes" LD_PRELOAD="$lib/librung_cublas.so" LD_AUDIT="$lib/librung_audit.so" "$program" "$fake" 2>"$work/err") || told="code $?"
    [ "$told" = "$audited" ] && [ "$(cat "$work/err")" = "librung_cublas.so: $name is 'yes': 1 or 0; 0 is taken" ] || fail "$name=yes: $told $(cat "$work/err")"
done
# libcuda is found by its own name where nothing names another one, or what names one is empty.
[ -z "${4:-}" ] || ln -s "$4" "$work/libcuda.so.1"
for named in ${4:+unset empty}; do
    if [ $named = unset ]; then unset RUNG_LIBCUDA; else export RUNG_LIBCUDA=; fi
    LD_LIBRARY_PATH=$fake_dir:$work LD_PRELOAD=$lib/librung_cublas.so LD_AUDIT=$lib/librung_audit.so RUNG_REPORT=$work/found "$program" "$fake" >"$work/out"
    grep -q "^cublasSgemm_v2 .*cuBLAS: an argument Rung refuses" "$work/found" || fail "libcuda by its own name ($named): $(cat "$work/found")"
    rm "$work/found"
done
echo "interposition: 7 cases and all empty settings passed"
