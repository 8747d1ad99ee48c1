#!/bin/sh
# docs/add_a_tile.md, taken at its word: one row makes a new tile, a folder and one line a new family; both are then planned with
# and computed by the lens.
# usage: add_a_tile.sh <source folder> <cmake>
set -eu
source=$1 cmake=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(cd "$source" && tar cf - CMakeLists.txt CMakePresets.json cmake include src lab cli shim tools packaging docs results/ladder-build.jsonl) | tar xf - -C "$work"
cd "$work"

# The n-th ```c block of the page.
block() { awk -v wanted="$1" '/^```c$/ { n++; on = 1; next } /^```/ { on = 0 } on && n == wanted' docs/add_a_tile.md; }

block 1 >>src/cuda/families/small/tiles.inc
block 2 >>src/cuda/families/list.inc
mkdir src/cuda/families/plain
block 3 >src/cuda/families/plain/tile.h
block 4 >src/cuda/families/plain/tiles.inc
block 5 >src/cuda/families/plain/kernel.cu
block 6 >src/cuda/families/plain/launch.c
"$cmake" -S . -B build -G Ninja -DRUNG_TESTS=OFF -DRUNG_WERROR=ON -DRUNG_CUDA_ARCHS= -DCMAKE_BUILD_TYPE=Debug >log 2>&1 || { cat log; exit 1; }
"$cmake" --build build >log 2>&1 || { tail -30 log; exit 1; }
tile=sm80_cpasync_f32_16x32x32_s3 plain=sm80_plain_f32_8x32x1_s1
for kernel in $tile $plain; do
    build/bin/rung list | grep -q "$kernel" || { echo "$kernel is not in the list"; exit 1; }
    build/bin/rung explain 60x60x60 --gpu h200 | grep -E "^ +[0-9.]+ +$kernel" || { echo "$kernel was not planned with"; exit 1; }
done
[ -e build/lib/rung-lens/librung_lens.so ] || { echo "no lens: the kernels were not run"; exit 0; }
export RUNG_LIBCUDA="$work/build/lib/rung-lens/librung_lens.so" RUNG_CACHE_DIR="$work/cache"
cases='NN:17x33x40:row,pad=3,alpha=-0.5,beta=1;NN:16x32x64:row;NN:1x5x0:col'
for kernel in $tile $plain; do
    build/bin/rung verify --device gpu --kernel "$kernel" --case "$cases" --no-vendor >log 2>&1 || { cat log; exit 1; }
    grep "$kernel *pass" log || { cat log; exit 1; }
done

# A name that does not say the sizes is refused.
echo 'RUNG_TILE(sm80_plain_f32_big, .idea = "no sizes in its name")' >>src/cuda/families/plain/tiles.inc
! "$cmake" build >log 2>&1 || { echo "a tile without sizes in its name was taken"; exit 1; }
grep -q "sm80_plain_f32_big" log || { cat log; exit 1; }
