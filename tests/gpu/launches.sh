#!/bin/sh
# What the CUDA backend's host side does for drawn products is what results/launches-gpu.txt says, kernel by kernel: a changed plan, argument, grid,
# copy or refusal shows there, also where no result changes. Kernels that came or went since are passed over. usage: launches.sh LAUNCHES STAND_IN SOURCE_DIR
set -u
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
export RUNG_CACHE_DIR="$work" # no shapes that were tuned here
"$1" "$2" >"$work/now" || { echo "FAILED: $1 ended with $?"; tail -n 3 "$work/now"; exit 1; }
awk '
    FNR == NR { if ($0 !~ /^#/) was[$1, ++rows[$1]] = $0; next }
    { now = $1; at[now]++ }
    !(now in rows) { next }
    { looked++ }
    was[now, at[now]] != $0 { changed++; if (changed <= 30) { print "- " was[now, at[now]]; print "+ " $0 } }
    END {
        print looked + 0 " lines compared, " changed + 0 " differ"
        if (changed) {
            print "Where that is meant the table is made anew by: (sed -n \"/^#/p\" results/launches-gpu.txt; COMMAND) >build/launches && mv build/launches results/launches-gpu.txt"
            print "COMMAND is the first line of results/launches-gpu.txt; with the word every it prints the products that are summed up in a line, too."
        }
        exit !(looked > 200 && !changed)
    }' "$3/results/launches-gpu.txt" "$work/now"
