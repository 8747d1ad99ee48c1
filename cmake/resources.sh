#!/bin/sh
# Registers, stack, spills and static shared memory of every kernel, from ptxas's own words, and the kernel file it is in, a
# line a kernel: "symbol registers stack spill shared stem". usage: resources.sh LOG... > resources.txt; a log is stem.ptxas
awk '
FNR == 1 { stem = FILENAME; sub(/.*\//, "", stem); sub(/\.ptxas$/, "", stem) }
/Compiling entry function/ { split($0, q, "\047"); symbol = q[2] }
/bytes stack frame/ { stack = $1; spill = $5 + $9 }
/Used [0-9]+ registers/ {
    registers = shared = 0
    for (i = 1; i <= NF; i++) {
        if ($i ~ /^registers/) registers = $(i - 1)
        if ($i ~ /^smem/) shared = $(i - 2)
    }
    if (symbol != "") print symbol, registers, stack + 0, spill + 0, shared, stem
    symbol = ""; stack = spill = 0
}' "$@"
