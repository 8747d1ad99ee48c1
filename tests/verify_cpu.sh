#!/bin/sh
# Every CPU kernel and the library's choice against FP64, and that all cases of results/tried.txt were tried: a kernel's and strict mode's in full,
# a small set of the modes for which a CPU has no other kernels. usage: verify_cpu.sh RUNG SOURCE_DIR
set -u
work=$(mktemp) && trap 'rm -f "$work"' EXIT
"$1" verify --device cpu --format csv >"$work" || { cat "$work"; echo "FAILED: exit code $?"; exit 1; }
cat "$work"
awk -F, '
    FNR == NR {
        if (/^#/ || !/ cases /) next
        name = $1
        sub(/:.*/, "", name)
        sub(/.*quick /, "", $1)
        sub(/.*full /, "", $2)
        quick[name] = $1 + 0
        full[name] = $2 + 0
        next
    }
    { name = $1; tried = $3 + $4 + $5; wanted = name in full ? full[name] : -1 }
    /^"\(library, / { # which has a comma of its own
        mode = $2
        gsub(/[^a-z]/, "", mode)
        name = "library-cpu-" mode
        tried = $4 + $5 + $6
        wanted = mode == "strict" ? full[name] : quick[name]
    }
    wanted >= 0 {
        looked++
        if (tried != wanted) { print "FAILED: " name ": " tried " cases, not " wanted; bad = 1 }
    }
    END { print looked + 0 " kernels and modes tried all their cases"; exit bad || looked < 10 }' "$2/results/tried.txt" "$work"
