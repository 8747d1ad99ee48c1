#!/bin/sh
# Installs into an empty folder, then builds and runs an example against that copy alone: by CMake package and by
# pkg-config. usage: install.sh <build folder> <source folder> <cmake>
set -eu
build=$1 source=$2 cmake=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$cmake" --install "$build" --prefix "$work/usr" >"$work/log"
for file in include/rung.h include/rung_catalog.h bin/rung; do
    [ -e "$work/usr/$file" ] || { echo "not installed: $file"; exit 1; }
done
"$work/usr/bin/rung" version
"$cmake" -G Ninja -S "$source/examples" -B "$work/by_cmake" -DCMAKE_PREFIX_PATH="$work/usr" >>"$work/log"
"$cmake" --build "$work/by_cmake" >>"$work/log"
"$work/by_cmake/product"
if command -v pkg-config >/dev/null; then
    pc=$(dirname "$(find "$work/usr" -name rung.pc)")
    # shellcheck disable=SC2046
    cc -Wall -Werror -o "$work/by_pkg_config" "$source/examples/product.c" $(PKG_CONFIG_PATH=$pc pkg-config --cflags --libs rung)
    LD_LIBRARY_PATH=${pc%/pkgconfig} "$work/by_pkg_config" >/dev/null
fi
soname=$(objdump -p "$(find "$work/usr" -name librung.so)" | awk '/SONAME/ { print $2 }')
[ "$soname" = librung.so.0 ] || { echo "soname is $soname"; exit 1; }
! ldd "$(find "$work/usr" -name librung.so)" | grep -iE 'cuda|cublas' || { echo "the library links CUDA"; exit 1; }
