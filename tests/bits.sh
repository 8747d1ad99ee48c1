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

# A line may be of any length: what stands at the end of a long remark is no product.
{ sed 1q "$work/list"; printf '# %0600d %s NN:2x2x2:row\n%s NN:33x17x65:row # %0600d x NN:2x2x2:row\n' 0 "$kernel" "$kernel" 0; } >"$work/long"
"$rung" verify --device cpu --bits "$work/long" >"$work/out" 2>"$work/said" || fail "long remarks were refused: $(cat "$work/said")"
[ "$(wc -l <"$work/out")" = 1 ] || fail "of a list with long remarks one product came as $(cat "$work/out")"

# A row runs its own code: the portable one does not fuse products with sums as the best one does, and has other bits.
"$rung" list --device cpu --role production --format csv | cut -d, -f1 | sed '1d; s/$/ NN:31x33x65:row/' >"$work/list"
"$rung" verify --device cpu --bits "$work/list" >"$work/all" 2>"$work/said" || fail "rows that are all right: $(cat "$work/said")"
[ "$(wc -l <"$work/all")" -lt 2 ] || [ "$(awk '{ print $NF }' "$work/all" | sort -u | wc -l)" -gt 1 ] || fail "all rows have the same bits: $(cat "$work/all")"

# The last digit of the second hash is changed.
sed '2s/.$/x/' "$work/kept" >"$work/other"
if "$rung" verify --device cpu --bits "$work/other" >/dev/null 2>"$work/said"; then fail "another hash passed"; fi
grep -q "^FAIL $kernel TN:5x7x9:col" "$work/said" || fail "the line that differs was not named: $(cat "$work/said")"
# A kernel that had bits for a case and refuses it now is as wrong as one with other bits; one that never had any is not.
printf 'c01_naive NN:5x7x9:row\nc01_naive TN:5x7x9:col 0123456789abcdef\n' >"$work/refused"
if "$rung" verify --device cpu --bits "$work/refused" >/dev/null 2>"$work/said"; then fail "a case that is refused passed as kept bits"; fi
grep -q '^FAIL c01_naive TN:5x7x9:col' "$work/said" || fail "the case that is refused was not named: $(cat "$work/said")"
printf 'c01_naive NN:5x7x9:row\nc01_naive TN:5x7x9:col\n' >"$work/refused"
"$rung" verify --device cpu --bits "$work/refused" >/dev/null 2>"$work/said" || fail "a case without bits that is refused: $(cat "$work/said")"
if "$rung" verify --device cpu --bits "$work/none" >/dev/null 2>&1; then fail "a list that is not there passed"; fi
echo "no_such_kernel NN:2x2x2:row" >"$work/unknown"
if "$rung" verify --device cpu --bits "$work/unknown" >/dev/null 2>&1; then fail "a list of unknown kernels alone passed"; fi

# A line with a pattern holds for each kernel that it fits, at sizes of that kernel's tile.
"$rung" list --format csv | cut -d, -f1,5 >"$work/catalog"
tile=$(sed -n "s/^$kernel,//p" "$work/catalog")
echo "${kernel%_*}_* NT:2m+1xn+m-3x7:row,beta=0.5" >"$work/pattern"
"$rung" verify --device cpu --bits "$work/pattern" >"$work/kept" 2>"$work/said" || fail "a pattern was refused: $(cat "$work/said")"
grep -q "^$kernel NT:$((2 * ${tile%x*} + 1))x$((${tile#*x} + ${tile%x*} - 3))x7:row,beta=0.5 " "$work/kept" || fail "of $kernel, $tile: $(cat "$work/kept")"

# Every line of the kept list fits a kernel of the catalog, where that has the GPU's kernels.
grep -q '^sm90_' "$work/catalog" || { echo "kept bits pass, other bits fail; this build has no GPU kernels"; exit 0; }
sed '/^#/d; s/ .*//' "$lists/bits.txt" | sort -u | while read -r pattern; do
    found=
    while IFS=, read -r name _; do
        # shellcheck disable=SC2254  # a pattern of names
        case $name in $pattern) found=1 && break ;; esac
    done <"$work/catalog"
    [ -n "$found" ] || echo "$pattern"
done >"$work/gone"
[ ! -s "$work/gone" ] || fail "lab/bits.txt has lines for kernels that are not in the catalog, which can go: $(cat "$work/gone")"
echo "kept bits pass, other bits fail"
