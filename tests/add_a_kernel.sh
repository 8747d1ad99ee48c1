#!/bin/sh
# docs/add_a_kernel.md, taken at its word: its files and rows go into a copy of the sources, which must then build, list and
# verify the new kernel; and the build must refuse a file without a row and a row without a file.
# usage: add_a_kernel.sh <source folder> <cmake>
set -eu
source=$1 cmake=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(cd "$source" && tar cf - CMakeLists.txt CMakePresets.json cmake include src lab cli shim packaging docs results/ladder-build.jsonl) | tar xf - -C "$work"
cd "$work"

# The n-th ```c block of the page.
block() { awk -v wanted="$1" '/^```c$/ { n++; on = 1; next } /^```/ { on = 0 } on && n == wanted' docs/add_a_kernel.md; }

"$cmake" -S . -B build -G Ninja -DRUNG_TESTS=OFF -DRUNG_WITH_CUDA=OFF -DRUNG_WERROR=ON -DCMAKE_BUILD_TYPE=Debug >log 2>&1 || { cat log; exit 1; }
block 1 >src/ladder/cpu/c90_two_rows.c
! "$cmake" build >log 2>&1 || { echo "a file without a row was taken"; exit 1; }
grep -q 'c90_two_rows.c has no row' log || { cat log; exit 1; }
block 2 >>src/ladder/cpu/rows.inc
block 3 >src/ladder/gpu/l90_two_rows.cu
block 4 >>src/ladder/gpu/rows.inc
"$cmake" --build build >log 2>&1 || { cat log; exit 1; }
build/bin/rung list | grep c90_two_rows
build/bin/rung verify --device cpu --kernel c90_two_rows | grep 'c90_two_rows *pass'
if command -v "${RUNG_LENS_CXX:-g++}" >/dev/null; then # what chapter 19 shows of it
    sed -n '/^\$ rung lens l90_two_rows 128x96x64$/,/^```$/{ /^line/p; /^  [0-9]/p }' docs/book/19-your-own-kernel.md >shown
    build/bin/rung lens l90_two_rows 128x96x64 | cut -c1-71 | sed -n 's/ *$//; /^line/p; /^  [0-9]/p' >said
    [ "$(wc -l <shown)" -eq 6 ] && diff shown said || { echo "chapter 19 shows something else of l90_two_rows"; exit 1; }
fi
rm src/ladder/cpu/c90_two_rows.c
! "$cmake" build >log 2>&1 || { echo "a row without a file was taken"; exit 1; }
grep -q 'lists c90_two_rows, but there is no' log || { cat log; exit 1; }
