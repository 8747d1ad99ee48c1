#!/bin/sh
# The BLAS drop-in's own allocations, its report's above all, fail one by one: the program goes on and ends as without.
# usage: few_memory.sh FEW_MEMORY PROGRAM_BLAS LIBRUNG_BLAS
set -u
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
number=1
while :; do
    rm -f "$work/report"
    env LD_PRELOAD="$1 $3" FEW_MEMORY=$number FEW_MEMORY_OF=librung_blas RUNG_REPORT="$work/report" "$2" 8 2>"$work/said"
    code=$?
    if [ $code -ne 0 ] || ! grep -q ': 8 calls answered, 0 handed on' "$work/report"; then
        echo "FAILED: without allocation $number: exit code $code, and the report is:"
        cat "$work/said" "$work/report"
        exit 1
    fi
    grep -q 'an allocation failed' "$work/said" || break
    number=$((number + 1))
done
echo "$((number - 1)) allocations failed one by one"
[ $number -gt 8 ] # a line of the report each, at least
