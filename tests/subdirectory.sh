#!/bin/sh
# Builds Rung inside another project by add_subdirectory, as a static library. usage: subdirectory.sh <source folder> <cmake>
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.22)
project(outer LANGUAGES C)
set(BUILD_SHARED_LIBS OFF)
add_subdirectory($1 rung)
add_executable(product $1/examples/product.c)
target_link_libraries(product PRIVATE rung::rung)
END
"$2" -G Ninja -S "$work" -B "$work/build" -DRUNG_WITH_CUDA=OFF -DRUNG_WITH_MPI=OFF -DCMAKE_BUILD_TYPE=Debug >"$work/log" || { cat "$work/log"; exit 1; }
"$2" --build "$work/build" --target product >"$work/log" || { tail -20 "$work/log"; exit 1; }
"$work/build/product"
! ldd "$work/build/product" | grep librung || { echo "the program needs a shared librung"; exit 1; }
! "$2" --build "$work/build" --target help | grep -q 'test_' || { echo "Rung's tests are built in somebody else's project"; exit 1; }
