#!/bin/sh
# Prints the model of docs/scaling.md as a table: GPUs against the share of their products' own time, for one size a call.
# usage: lab/scaling.sh N RATE_TFLOPS [LINK_GBYTES_PER_S [KAPPA]]. Nodes of 8 GPUs; a link is one GPU's share of the
# network; kappa: how much products slow down while copies within a node run (0: strict, 0.87: accurate).
n=${1:?usage: lab/scaling.sh N RATE_TFLOPS [LINK_GBYTES_PER_S [KAPPA]]} rate=${2:?rate} link=${3:-50} kappa=${4:-0}
awk -v n="$n" -v rate="$rate" -v link="$link" -v kappa="$kappa" 'function ceil(x) { return x == int(x) ? x : int(x) + 1 }
BEGIN {
    nvlink = 390e9; start = 0.15e-3; hop = 20e-6; memory = 120e9; sms = 132
    first = 2048; widest = 8192; last = 4096
    for (k = 0; k < n; k += width) {                         # the panels of src/multi/panels.c
        grown = k < first ? first : k < widest ? k : widest
        half = ceil((n - k) / 2 / 256) * 256
        shrunk = half > last ? half : last
        width = grown < shrunk ? grown : shrunk
        if (width > n - k) width = n - k
        panels++
    }
    final = width
    printf "%6s %10s %10s %8s %10s %8s %4s\n", "GPUs", "product s", "2-D s", "share", "2.5-D s", "share", "c"
    for (p = 1; p <= 4096; p *= 2) {
        q = sqrt(p)
        alone = 2 * n * n * n / (p * rate * 1e12)
        x = ceil(n / q / 128) * ceil(n / q / 256) / sms * n / final
        work = alone * ceil(x) / x * (1 + 34 * panels / n)   # the last round of tiles is not full; each panel is added to C
        b = p > 8 ? link * 1e9 : nvlink
        bytes = p > 1 ? 8 * n * n / q * (1 - 1 / q) : 0     # A and B parts that a GPU receives
        inside = p > 8 ? 0 : kappa * bytes / b
        outside = p > 8 ? bytes / b : 0                      # network: beside the products
        lead = 8 * n / q * (first < n ? first : n) / b / 8 + q * hop
        two = (work + inside > outside ? work + inside : outside) + (p > 1 ? lead : 0) + start
        best = two; bc = 1
        for (c = 2; c * c * c <= p && 12 * n * n * c / p <= memory; c++) {
            qc = sqrt(p / c)
            bytes = 8 * n * n / (qc * c) + 8 * n * n / (qc * qc) * (1 - 1 / c)  # a share of the panels; sums and copies
            t = (work > bytes / b ? work : bytes / b) + lead + start
            if (t < best && p > 8) { best = t; bc = c }
        }
        printf "%6d %10.4f %10.4f %8.2f %10.4f %8.2f %4d\n", p, alone, two, alone / two, best, alone / best, bc
    }
}'
