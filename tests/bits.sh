#!/bin/sh
# rung verify --bits: what it prints passes as the kept list of the next run, and a hash that differs fails with its line.
# usage: bits.sh RUNG LISTS_DIR
set -eu
rung=$1 lists=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*"; exit 1; }

kernel=$("$rung" list --device cpu --role production --format csv | tail -n 1 | cut -d, -f1)
printf '# two products\n%s NN:33x17x65:row,pad=3,beta=1\n%s TN:5x7x9:col # the second\n' "$kernel" "$kernel" >"$work/list"
"$rung" verify --device cpu --bits "$work/list" >"$work/kept" 2>"$work/said" || fail "the list was refused: $(cat "$work/said")"
[ "$(wc -l <"$work/kept")" = 2 ] || fail "two products gave $(wc -l <"$work/kept") lines"
"$rung" verify --device cpu --bits "$work/kept" >/dev/null 2>"$work/said" || fail "its own bits were refused: $(cat "$work/said")"
grep -q '2 the same, 0 others' "$work/said" || fail "said: $(cat "$work/said")"

# The last digit of the second hash is changed.
sed '2s/.$/x/' "$work/kept" >"$work/other"
if "$rung" verify --device cpu --bits "$work/other" >/dev/null 2>"$work/said"; then fail "another hash passed"; fi
grep -q "^FAIL $kernel TN:5x7x9:col" "$work/said" || fail "the line that differs was not named: $(cat "$work/said")"
if "$rung" verify --device cpu --bits "$work/none" >/dev/null 2>&1; then fail "a list that is not there passed"; fi
echo "no_such_kernel NN:2x2x2:row" >"$work/unknown"
if "$rung" verify --device cpu --bits "$work/unknown" >/dev/null 2>&1; then fail "a list of unknown kernels alone passed"; fi

# Every line of the kept list names a kernel of the catalog, where that has the GPU's kernels.
"$rung" list --format csv | cut -d, -f1 | sort >"$work/catalog"
grep -q '^sm90_' "$work/catalog" || { echo "kept bits pass, other bits fail; this build has no GPU kernels"; exit 0; }
sed '/^#/d; s/ .*//' "$lists/bits.txt" | sort -u | comm -23 - "$work/catalog" >"$work/gone"
[ ! -s "$work/gone" ] || fail "lab/bits.txt names kernels that are not in the catalog: $(cat "$work/gone")"
echo "kept bits pass, other bits fail"
