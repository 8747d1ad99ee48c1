#!/bin/sh
# Installs into an empty folder, then builds and runs an example against that copy alone: by CMake package and by
# pkg-config, in a folder layout as Debian's too; each component by itself; and takes it all away again.
# usage: install.sh <build folder> <source folder> <cmake>
set -eu
build=$1 source=$2 cmake=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "$*"; exit 1; }
unset RUNG_LIBRARY_DIR LD_LIBRARY_PATH || true
manifests=$(ls "$build"/install_manifest*.txt 2>/dev/null || true) # somebody's own installation from here stays known
for file in $manifests; do mv "$file" "$file.kept"; done

"$cmake" --install "$build" --prefix "$work/usr" >"$work/log"
for file in include/rung.h include/rung_catalog.h bin/rung share/man/man1/rung-bench.1 share/man/man3/rung_sgemm.3 \
    share/bash-completion/completions/rung share/zsh/vendor-completions/_rung share/fish/vendor_completions.d/rung.fish; do
    [ -e "$work/usr/$file" ] || fail "not installed: $file"
done
libdir=$(dirname "$(find "$work/usr" -name librung.so)")
"$work/usr/bin/rung" version
"$work/usr/bin/rung" learn list 2>/dev/null | grep -q e01 || "$work/usr/bin/rung" learn 2>/dev/null | grep -q e01 || fail "the installed course is not found"

[ -f "$work/usr/share/doc/rung/docs/book/01-the-machine.md" ] || fail "what the course says to read next is not installed"

# The recipes of README and docs/install.md.
"$cmake" -G Ninja -S "$source/examples" -B "$work/by_cmake" -DCMAKE_PREFIX_PATH="$work/usr" >>"$work/log"
"$cmake" --build "$work/by_cmake" >>"$work/log"
"$work/by_cmake/product"
[ ! -x "$work/by_cmake/product_cxx" ] || "$work/by_cmake/product_cxx"
if command -v pkg-config >/dev/null; then
    export PKG_CONFIG_PATH="$libdir/pkgconfig"
    # shellcheck disable=SC2046
    cc -Wall -Werror -o "$work/by_pkg_config" "$source/examples/product.c" $(pkg-config --cflags --libs rung) -Wl,-rpath,"$(pkg-config --variable=libdir rung)"
    "$work/by_pkg_config" >/dev/null
    [ "$(cd "$(pkg-config --variable=includedir rung)" && pwd)" = "$(cd "$work/usr/include" && pwd)" ] || fail "rung.pc's prefix is $(pkg-config --variable=prefix rung)"
else
    echo "left out: a program built through rung.pc, no pkg-config (pkg-config)"
fi

# The library folder may be a whole path, as some systems give it.
"$cmake" -G Ninja -S "$source" -B "$work/whole" -DRUNG_TESTS=OFF -DRUNG_WITH_CUDA=OFF -DRUNG_WITH_MPI=OFF -DCMAKE_INSTALL_PREFIX=/opt/x -DCMAKE_INSTALL_LIBDIR=/opt/x/lib >>"$work/log"
# shellcheck disable=SC2016 # pkg-config reads these
for line in 'prefix=${pcfiledir}/../..' 'libdir=${prefix}/lib' 'includedir=${prefix}/include'; do
    grep -qxF "$line" "$work/whole/packaging/rung.pc" || fail "rung.pc where the library folder is a whole path: $(head -n 3 "$work/whole/packaging/rung.pc")"
done
[ ! -e "$work/whole/src/lens/kernels.txt" ] || grep -qx 'root ../../share/rung' "$work/whole/src/lens/kernels.txt" ||
    fail "the lens's sources where the library folder is a whole path: $(head -n 1 "$work/whole/src/lens/kernels.txt")"

# One number rules: SONAME, the package's version rule, the symbols' version.
soname=$(objdump -p "$libdir/librung.so" | awk '/SONAME/ { print $2 }')
[ "$soname" = librung.so.0 ] || fail "soname is $soname"
printf 'cmake_minimum_required(VERSION 3.22)\nproject(x C)\nfind_package(rung 0.1 REQUIRED)\n' >"$work/CMakeLists.txt"
"$cmake" -G Ninja -S "$work" -B "$work/asks" -DCMAKE_PREFIX_PATH="$work/usr" >>"$work/log" || fail "0.1 is refused by $soname's package"
! ldd "$libdir/librung.so" | grep -iE 'cuda|cublas' || fail "the library links CUDA"
sed -n 's/^RUNG_API [^(]*[ *]\(rung_[a-z0-9_]*\)(.*/\1/p' "$work"/usr/include/*.h | sort >"$work/declared"
nm -D --defined-only --with-symbol-versions "$libdir/librung.so" | sed -n 's/.* T \(.*\)@@RUNG_0$/\1/p' | sort >"$work/exported"
cmp "$work/declared" "$work/exported" || fail "the headers and the symbols of version RUNG_0 differ: $(diff "$work/declared" "$work/exported")"
! nm -D --defined-only --with-symbol-versions "$libdir/librung.so" | grep ' [TDBR] ' | grep -v '@@RUNG_' || fail "symbols without a version"

# Nothing that is installed knows where it was built.
! grep -rlF -e "$source/src/" -e "$source/cli/" -e "$source/lab/" -e "$source/shim/" -e "$source/include/" -e "$build" "$work/usr" ||
    fail "these files hold the build's folder"

# The lens must find its sources in the copy.
if [ -e "$libdir/rung-lens/librung_lens.so" ] && command -v g++ >/dev/null; then
    XDG_CACHE_HOME=$work/cache "$work/usr/bin/rung" lens l01_naive 16x16x16 >"$work/lens" 2>&1 || fail "the installed lens: $(cat "$work/lens")"
fi

# Each component is installed by itself and taken away again.
DESTDIR=$work/only "$cmake" --install "$build" --prefix /usr --component runtime >>"$work/log"
[ -z "$(find "$work/only" -name '*.h' -o -name rung -type f -o -name '*.pc')" ] || fail "the component runtime holds more than libraries"
DESTDIR=$work/dev "$cmake" --install "$build" --prefix /usr --component development >>"$work/log"
[ -n "$(find "$work/dev" -name rung.h)" ] && [ -z "$(find "$work/dev" -name 'librung.so.0*')" ] || fail "the component development is not headers and links"
rm -f "$build"/install_manifest*.txt
"$cmake" --install "$build" --prefix "$work/usr" >"$work/log"
"$cmake" -DLISTS="$build" -P "$source/cmake/uninstall.cmake"
left=$(find "$work/usr" -type f -o -type l)
[ -z "$left" ] || fail "left after uninstalling: $left"
[ -z "$(find "$work/usr" -type d -name 'rung*')" ] || fail "folders left: $(find "$work/usr" -type d -name 'rung*')"
# Whatever the folders above are called: what others have put there stays, and what the lens has made goes.
prefix="$work/rung-lens/[1] rung"
mkdir -p "$prefix/share/rung"
touch "$work/rung-lens/theirs" "$prefix/share/rung/theirs"
"$cmake" --install "$build" --prefix "$prefix" --component program >>"$work/log"
"$cmake" --install "$build" --prefix "$prefix" --component lens >>"$work/log"
lens=$(find "$prefix" -name librung_lens.so)
[ -z "$lens" ] || touch "${lens%/*}/l01_naive.so" "${lens%/*}/l01_naive.d"
"$cmake" -DLISTS="$build" -P "$source/cmake/uninstall.cmake"
left=$(find "$work/rung-lens" -type f | sed "s|$work/||" | sort | tr '\n' ' ')
[ "$left" = "rung-lens/[1] rung/share/rung/theirs rung-lens/theirs " ] || fail "left after uninstalling among other people's files: $left"
for file in $manifests; do mv "$file.kept" "$file"; done
