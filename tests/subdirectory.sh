#!/bin/sh
# Builds Rung inside another project by add_subdirectory, as a static library; of objects that the build under test has, too, with a copy.
# usage: subdirectory.sh SOURCE BUILD CMAKE
set -eu
source=$1 build=$2 cmake=$3
same=$(cd "$(dirname "$0")" && pwd)/same_objects.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.22)
project(outer LANGUAGES C)
set(BUILD_SHARED_LIBS OFF)
add_subdirectory($source rung)
add_executable(product $source/examples/product.c)
target_link_libraries(product PRIVATE rung::rung)
END
"$cmake" -G Ninja -S "$work" -B "$work/build" -DRUNG_WITH_CUDA=OFF -DRUNG_WITH_MPI=OFF -DCMAKE_BUILD_TYPE=Release -DRUNG_WERROR=ON \
    -DCMAKE_EXPORT_COMPILE_COMMANDS=ON -DCMAKE_C_COMPILER_LAUNCHER="$same;take" >"$work/log" || { cat "$work/log"; exit 1; }
mv "$work/build/compile_commands.json" "$work/build/rung"
"$same" list "$build" "$source" "$work/build/rung" "$source" rung/
RUNG_SAME=$work/build/rung/same RUNG_SAME_FROM=$build RUNG_SAME_PREFIX=rung/ "$cmake" --build "$work/build" --target product >"$work/log" ||
    { tail -20 "$work/log"; exit 1; }
"$work/build/product"
! ldd "$work/build/product" | grep librung || { echo "the program needs a shared librung"; exit 1; }
! "$cmake" --build "$work/build" --target help | grep -q 'test_' || { echo "Rung's tests are built in somebody else's project"; exit 1; }
