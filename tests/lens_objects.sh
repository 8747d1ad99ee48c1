#!/bin/sh
# An installed copy compiles a kernel for the lens when it is first asked for, again when a source has changed, and no more often;
# without a compiler it says what to install. An object that is not the lens's, or only half, is refused. usage: lens_objects.sh BUILD_DIR CMAKE
set -u
build=$1 cmake=$2 failed=0
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
export RUNG_CACHE_DIR="$work/cache"
unset RUNG_LENS_CXX RUNG_LENS_KERNELS
"$cmake" --install "$build" --prefix "$work/usr" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
rung=$work/usr/bin/rung
as= # another user
look() { # NAME EXIT_CODE COMPILED
    $as "$rung" lens l02_coalesced 64x64x64 >"$work/out" 2>&1
    code=$? compiled=$(grep -c 'compiling l02_coalesced for the lens' "$work/out")
    if [ $code = "$2" ] && [ "$compiled" = "$3" ]; then echo "ok   $1"; else
        echo "FAIL $1: exit $code, wanted $2; compiled $compiled times, wanted $3; it said:"
        tail -n 5 "$work/out"
        failed=1
    fi
}
look "asked for once" 0 1
mkdir "$work/other" && strip -o "$work/other/l02_coalesced.so" "$(find "$work/usr" -name l02_coalesced.so)" || failed=1
look "asked for again" 0 0
touch "$(find "$work/usr" -name l02_coalesced.cu)"
look "its source is newer" 0 1
touch "$(find "$work/usr" -path '*src/cuda/device/args.h')"
look "a header is newer" 0 1
# Where the folder of the objects may not be written they go into the cache. The superuser may write it, so nobody looks then.
[ "$(id -u)" != 0 ] || as='setpriv --reuid=65534 --regid=65534 --clear-groups'
if [ -z "$as" ] || command -v setpriv >/dev/null; then
    folder=$(dirname "$(find "$work/usr" -name l02_coalesced.so)")
    mkdir -p "$work/cache" && chmod a+rwx "$work/cache" && chmod a+rx "$work" && chmod a-w "$folder" || failed=1
    touch "$(find "$work/usr" -name l02_coalesced.cu)"
    look "its folder may not be written" 0 1
    look "the cache has it" 0 0
    [ -n "$(find "$work/cache" -name l02_coalesced.so)" ] || { echo "FAIL: no object is in the cache"; failed=1; }
    chmod u+w "$folder"
fi
as=
touch "$(find "$work/usr" -name l02_coalesced.cu)"
# A rung that computes wrongly fails --check, and its exit code says so.
"$rung" lens --check l02_coalesced >"$work/out" 2>&1 || { echo "FAIL: a right rung fails --check: $(cat "$work/out")"; failed=1; }
sed -i 's/g[.]k\b/(g.k - 1)/' "$(find "$work/usr" -name l02_coalesced.cu)"
"$rung" lens --check l02_coalesced >"$work/out" 2>&1
[ $? = 1 ] && grep -q 'l02_coalesced.*FAIL' "$work/out" || { echo "FAIL: a rung without its last k passes --check: $(cat "$work/out")"; failed=1; }
export RUNG_LENS_CC=/no/such/script
touch "$(find "$work/usr" -name l02_coalesced.cu)"
look "who compiles is not there" 1 1
grep -q 'its compiler, /no/such/script, did not run' "$work/out" || { echo "FAIL: it does not name who compiles: $(cat "$work/out")"; failed=1; }
unset RUNG_LENS_CC
printf '#!/bin/sh\nkill -9 $PPID\n' >"$work/killer"
chmod +x "$work/killer"
export RUNG_LENS_CXX="$work/killer"
touch "$(find "$work/usr" -name l02_coalesced.cu)"
look "who compiles is killed" 1 1
export RUNG_LENS_CXX=no-such-compiler
touch "$(find "$work/usr" -name l02_coalesced.cu)"
look "no compiler" 1 1
grep -q 'apt-get install g++' "$work/out" || { echo "FAIL: it does not say what to install: $(cat "$work/out")"; failed=1; }

# Objects that somebody put where the lens looks.
other() { # WHAT
    RUNG_LENS_KERNELS=$work/other "$rung" lens l02_coalesced 8x8x8 >"$work/out" 2>&1
    [ $? = 1 ] && grep -q 'l02_coalesced.so was not made for the lens' "$work/out" || { echo "FAIL: $1 is taken: $(cat "$work/out")"; failed=1; }
}
other "an object without the names of its variables"
for variable in "_Thread_local int tile[8]" "int rung_lens_anchor[4]" "static _Thread_local int rung_lens_anchor[4]" "int tile[8]"; do
    printf '%s;\nint *l02_coalesced(void);\nint *l02_coalesced(void) { return %s; }\n' "$variable" "$(printf '%s' "$variable" | sed 's/.*int //; s/\[.*//')" >"$work/other.c"
    gcc -shared -fPIC -o "$work/other/l02_coalesced.so" "$work/other.c" || failed=1
    other "an object of '$variable'"
done
exit $failed
