#!/bin/sh
# What the planner predicts of the stored timings is what results/predictions-h200.txt says, tile by tile: a changed cost, branch or count of parts
# shows there. Tiles that came or went since are passed over.
# usage: predictions.sh RUNG_FIT SOURCE_DIR
set -u
fit=$1 kept=$2/results/predictions-h200.txt
now=$("$fit" "$2"/results/times-*-h200.jsonl --tiles) || { echo "FAILED: $fit --tiles: $now"; exit 1; }
printf '%s\n' "$now" | awk -v kept="$kept" '
    BEGIN { while ((getline line < kept) > 0) if (line !~ /^#/) { name = line; sub(/:.*/, "", name); was[name] = line } }
    { name = $0; sub(/:.*/, "", name) }
    name in was { looked++; if (was[name] != $0) { changed++; print "- " was[name]; print "+ " $0 } }
    END {
        print looked + 0 " tiles compared, " changed + 0 " predict otherwise"
        if (changed)
            print "Where that is meant, the new lines go into results/predictions-h200.txt (docs/costs.md)."
        exit !(looked > 20 && !changed)
    }'
