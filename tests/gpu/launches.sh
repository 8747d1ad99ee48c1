#!/bin/sh
# What the CUDA backend's host side does for drawn products, on one GPU and on several, is what a table says: a changed plan, argument, grid, copy or
# refusal shows there, also where no result changes. Lines whose first word only one side has are passed over, as kernels that came or went since.
# usage: launches.sh PROGRAM STAND_IN TABLE LINES_COMPARED_AT_LEAST
set -u
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
export RUNG_CACHE_DIR="$work" # no shapes that were tuned here
"$1" "$2" >"$work/now" || { echo "FAILED: $1 ended with $?"; tail -n 3 "$work/now"; exit 1; }
awk -v least="$4" -v table="results/${3##*/}" '
    FNR == NR { if ($0 !~ /^#/) was[$1, ++rows[$1]] = $0; next }
    { now = $1; at[now]++ }
    !(now in rows) { next }
    { looked++ }
    was[now, at[now]] != $0 { changed++; if (changed <= 30) { print "- " was[now, at[now]]; print "+ " $0 } }
    END {
        print looked + 0 " lines compared, " changed + 0 " differ"
        if (changed) {
            print "Where that is meant the table is made anew by: (sed -n \"/^#/p\" " table "; COMMAND) >build/table && mv build/table " table
            print "COMMAND is its first line; with the word every it prints what is summed up in a line, too."
        }
        exit !(looked >= least && !changed)
    }' "$3" "$work/now"
