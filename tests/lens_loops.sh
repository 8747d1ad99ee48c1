#!/bin/sh
# Kernels that loop over what a grid cannot hold do so under the lens, where their grids have a block or two: strides that are counted in blocks, and
# barriers before the next turn, which other tests would need gigabytes for. usage: lens_loops.sh RUNG LENS SOURCES
rung=$1 bad=0
export RUNG_LIBCUDA="$2" RUNG_LENS_SMS=3 RUNG_LENS_FINDINGS=fail
work=$(mktemp) && trap 'rm -f "$work"' EXIT

# loops SYMBOL GRIDS KERNEL CASE...: the kernel is right in these cases, whatever grid of these its helper SYMBOL has.
loops() {
    symbol=$1 grids=$2 kernel=$3
    shift 3
    grep -qrE "\<$symbol\>" "$sources/src/ladder" "$sources/src/cuda" || { echo "FAILED: there is no $symbol"; bad=1; }
    for grid in $grids; do
        for one in "$@"; do
            if RUNG_LENS_BLOCKS="none=1x1x1,$symbol=$grid" "$rung" verify --device gpu --no-vendor --kernel "$kernel" --case "$one" >"$work" 2>&1; then
                echo "ok   $kernel, $symbol with $grid blocks: $one"
            else
                echo "FAILED: $kernel, $symbol with $grid blocks: $one"
                grep FAIL "$work"
                bad=1
            fi
        done
    done
}

sources=$3
loops l19_split_k_finish "1x0x0 2x0x0 5x0x0" l19_split_k NN:70x67x1000:row NN:33x1x700:row,beta=-0.5 NN:5x300x2000:row,pad=3
loops l21_tma_pack "1x0x0 3x0x0" l21_tma NN:70x133x150:row,pad=1 NN:300x31x65:row,apad=3
loops l21_tma_pack "1x0x0 3x0x0" l22_persistent NN:131x65x97:row,pad=1,offset=1
for kernel in $("$sources/tests/tiles_with.sh" "$sources" large a_k_innermost=0); do
    loops turn_operand "0x1x0 0x2x0" "$kernel" TN:140x130x300:row NT:67x70x200:row,pad=3 TT:129x65x257:col,offset=1
    loops turn_classes "0x1x0 0x2x0" "$kernel" TN:140x130x301:row,pad=1 NT:70x67x203:row,pad=3 TT:129x65x257:col,pad=2
done
medium=$("$sources/tests/tiles_with.sh" "$sources" medium marked=0 groups=2 | head -n 1)
loops row_copy_two "1x0x0 2x0x0 3x0x0" "$medium" NN:140x130x301:row,pad=1 TT:129x65x257:col,offset=1

# What does not loop shows that the grid was cut.
if RUNG_LENS_BLOCKS=l02_coalesced=1x1x0 "$rung" verify --device gpu --no-vendor --kernel l02_coalesced --case NN:70x67x10:row >"$work" 2>&1; then
    echo "FAILED: l02_coalesced is right with one block"
    bad=1
fi
exit $bad
