#!/bin/sh
# What the compiler made of the CPU's tiles (cpu_tiles.awk): all sums stay in registers. A tile too large for the registers must be found, or
# nothing is tested. usage: cpu_tiles.sh SOURCE_DIR BUILD_DIR CC
set -eu
source=$1 build=$2 cc=$3
here=$(dirname "$0")
command -v objdump >/dev/null && [ "$(uname -m)" = x86_64 ] || { echo "left out: objdump shows the tiles of x86-64 (binutils)"; exit 77; }
! "$cc" --version | grep -qi clang || { echo "left out: what is looked for are GCC's loops"; exit 77; }

loops() { objdump -d --no-show-raw-insn "$1" | awk -v steps="$2" -v held="${3-}" -v most="${4-0}" -v parts="${parts-0}" -f "$here/cpu_tiles.awk"; }

kernels=$(cd "$source/src/cpu/kernels" && ls avx*.c)
case $kernels in *avx2_f32_6x16.c*avx512_f32_8x48.c*) ;; *) echo "where are the kernels of AVX2 and AVX-512? $kernels"; exit 1 ;; esac
for kernel in $kernels; do
    kernel=${kernel%.c}
    object=$(find "$build" -path "*/rung.dir/*" -name "$kernel.c.o" | head -n 1) # the library's own
    [ -n "$object" ] || { echo "$kernel: not in $build"; exit 1; }
    echo "$kernel:"
    case $kernel in
    avx2_f32_6x16.four) parts=1 loops "$object" 4 _6x2 24 ;;
    avx2_f32_6x16) loops "$object" 4 _6x2 24 ;; # 8 loads and 12 FMAs a step, 4 more at most: else it is slow where two threads share a core
    *) loops "$object" "$(sed -n "s/^#define UNROLL_K //p" "$source/src/cpu/kernels/$kernel.c" | grep . || echo 2)" ;;
    esac
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sed "s|FAMILY_ROWS 12, 6, 4,|FAMILY_ROWS 12, 6, 5,|" "$source/src/cpu/kernels/avx2_f32_6x16.c" >"$work/tile.c" # 15 sums, 3 vectors of B, one of A
grep -q "12, 6, 5," "$work/tile.c" || { echo "AVX2 has not four rows of three vectors any more: this test has to plant its tile elsewhere"; exit 1; }
"$cc" -O3 -std=c17 -mavx2 -mfma -I "$source/src" -I "$source/include" -c "$work/tile.c" -o "$work/tile.o"
! loops "$work/tile.o" 4 >"$work/found" || { echo "a tile of 5x3 vectors on AVX2 was not found"; exit 1; }
echo "a tile too large:"
grep 5x3 "$work/found"
