#!/bin/sh
# The model of docs/scaling.md, as a table: GPUs against the share of their products' own time, for one size a call.
# usage: lab/scaling.sh N RATE_TFLOPS [LINK_GBYTES_PER_S]. Nodes of 8 GPUs; a link is one GPU's share of the network.
n=${1:?usage: lab/scaling.sh N RATE_TFLOPS [LINK_GBYTES_PER_S]} rate=${2:?rate} link=${3:-50}
awk -v n="$n" -v rate="$rate" -v link="$link" 'BEGIN {
    nvlink = 390e9; kappa = 0.87; ends = 0.019; start = 0.15e-3; hop = 20e-6; memory = 120e9; panel = 8192
    printf "%6s %10s %10s %8s %10s %8s %4s\n", "GPUs", "product s", "2-D s", "share", "2.5-D s", "share", "c"
    for (p = 1; p <= 4096; p *= 2) {
        q = sqrt(p)
        work = 2 * n * n * n / (p * rate * 1e12) * (1 + ends)
        b = p > 8 ? link * 1e9 : nvlink
        bytes = p > 1 ? 8 * n * n / q * (1 - 1 / q) : 0     # A and B parts that a GPU receives
        inside = p > 8 ? 0 : kappa * bytes / b               # NVLink: products slow down while copies run
        outside = p > 8 ? bytes / b : 0                      # network: beside the products
        first = 8 * n / q * (panel < n ? panel : n) / b / 8 + q * hop
        two = (work + inside > outside ? work + inside : outside) + (p > 1 ? first : 0) + start
        best = two; bc = 1
        for (c = 2; c * c * c <= p && 12 * n * n * c / p <= memory; c++) {
            qc = sqrt(p / c)
            bytes = 8 * n * n / (qc * c) + 8 * n * n / (qc * qc) * (1 - 1 / c)  # a share of the panels; sums and copies
            t = (work > bytes / b ? work : bytes / b) + first + start
            if (t < best && p > 8) { best = t; bc = c }
        }
        printf "%6d %10.4f %10.4f %8.2f %10.4f %8.2f %4d\n", p, work, two, work / two, best, work / best, bc
    }
}'
