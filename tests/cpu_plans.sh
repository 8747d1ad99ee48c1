#!/bin/sh
# How the CPU backend would compute drawn products is what results/plans-cpu.txt says: a changed rule, block, strip or request shows there, also
# where no result changes. usage: cpu_plans.sh CPU_PLANS SOURCE_DIR
set -u
# By a rule's name `rung explain` tells where to look: it is its function's, and no other rule's.
awk '
    match($0, /gemm_rule rung_rule_[a-z_0-9]+ = \{"[a-z_0-9]+", [a-z_0-9]+,/) {
        split(substr($0, RSTART, RLENGTH), word, /[" ,{]+/)
        name = word[4]; asks = word[5]
        sub(/^rung_/, "", asks)
        rules++
        if (name in seen || (asks != name && asks !~ /^holds/)) { print "FAILED: a rule that " asks "() asks for is called " name; bad = 1 }
        seen[name] = 1
    }
    END { if (rules < 25) { print "FAILED: only " rules + 0 " rules were found"; bad = 1 } exit bad }' "$2"/src/cpu/*.c "$2"/src/cpu/paths/*.c || exit 1
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
"$1" >"$work/now" || { echo "FAILED: $1 ended with $?"; head -n 5 "$work/now"; exit 1; }
grep -v '^#' "$2/results/plans-cpu.txt" >"$work/kept"
if diff "$work/kept" "$work/now" >"$work/difference" && [ -s "$work/now" ]; then
    echo "$(wc -l <"$work/now") lines of plans are as they were"
    exit 0
fi
head -n 60 "$work/difference"
echo "Where that is meant: (sed -n '/^#/p' results/plans-cpu.txt; build/release/tests/cpu_plans) >build/plans && mv build/plans results/plans-cpu.txt"
echo "The walks that are summed up in a line are printed by: build/release/tests/cpu_plans every"
exit 1
