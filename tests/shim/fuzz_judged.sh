#!/bin/sh
# Judges `rung fuzz --via cublas`: of a call that cuBLAS refuses it compares the drop-in's answer with cuBLAS's own. Here these differ, as the stand-in answers otherwise
# where it was asked by way of the drop-in: every seed's first refused call is told, of each kind of entry point in some.
# usage: fuzz_judged.sh RUNG
set -u
rung=$1 work=$(mktemp) bad=0
trap 'rm -f "$work"' EXIT
export FAKE_CUBLAS_TELLS=1
for seed in 1 2 3 4 5 6; do
    "$rung" fuzz --device gpu --via cublas --calls 60 --size 20 --seed $seed >>"$work" 2>&1
    code=$?
    [ $code = 1 ] || { echo "FAILED: seed $seed: exit code $code, not 1"; bad=1; }
done
for what in 'layout NULL' '= -[15]' 'one too small'; do
    grep -Eq "with .*$what the drop-in answered status 1[0-9]*, cuBLAS itself 1" "$work" || { echo "FAILED: no call with '$what' is told of:"; grep status "$work"; bad=1; }
done
exit $bad
