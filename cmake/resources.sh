#!/bin/sh
# Registers, stack, spills and static shared memory of every kernel, from ptxas's own words, a line a kernel:
# "symbol registers stack spill shared". usage: resources.sh LOG... > resources.txt
awk '
/Compiling entry function/ { split($0, q, "\047"); symbol = q[2] }
/bytes stack frame/ { stack = $1; spill = $5 + $9 }
/Used [0-9]+ registers/ {
    registers = shared = 0
    for (i = 1; i <= NF; i++) {
        if ($i ~ /^registers/) registers = $(i - 1)
        if ($i ~ /^smem/) shared = $(i - 2)
    }
    if (symbol != "") print symbol, registers, stack + 0, spill + 0, shared
    symbol = ""; stack = spill = 0
}' "$@"
