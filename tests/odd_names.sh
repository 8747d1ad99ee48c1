#!/bin/sh
# Files and folders of any name: every option that names one takes blanks, signs that a shell reads, letters beyond ASCII and a dash in front.
# Only the lens's compiler takes no quote, and the command says so. usage: odd_names.sh RUNG LIBRUNG_LENS
set -u
rung=$1 lens=$2 failed=0 tried=0
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
export RUNG_LIBCUDA=/nowhere

ends() { # CODE COMMAND...
    want=$1
    shift
    tried=$((tried + 1))
    "$@" >"$work/said" 2>&1
    got=$?
    [ $got = "$want" ] || { failed=1; echo "FAILED in '$PWD': exit code $got, not $want: $*"; tail -n 2 "$work/said"; }
}

makes() { # FILE COMMAND...
    made=$1
    shift
    ends 0 "$@"
    [ -s "$made" ] || { failed=1; echo "FAILED in '$PWD': there is no '$made' after $*"; }
}

# shellcheck disable=SC2016,SC1003 # the shell must not read these
for name in plain 'a b  c' '$(touch got_out) `touch got_out`' ';touch got_out;&|<>' 'ü 你 %s%n' '-o' '*?[x]\' '"double"' "it's"; do
    folder=$work/$name
    mkdir "$folder" && cd "$folder" || exit 1
    export RUNG_CACHE_DIR="$folder/cache" RUNG_LEARN_DIR="$folder/learn" XDG_DATA_HOME="$folder/data"
    printf 'NN 8 8 8\n' >"$folder/shapes"
    makes "$folder/out" "$rung" bench --device cpu --threads 1 --budget-ms 1 --against= --shapes "$folder/shapes" -o "$folder/out"
    makes "$folder/bits" "$rung" verify --device cpu --threads 1 --kernel c01_naive --case NN:3x4x5:row -o "$folder/bits"
    makes "$folder/-out" "$rung" list -o "$folder/-out"
    if [ -e "$lens" ]; then
        cp "$here/lens/sound.cu" "$here"/lens/*.h "$folder"
        code=0
        case $name in *\'*) code=2 ;; esac
        ends "$code" "$rung" lens --file "$folder/sound.cu" --tile 16x16 --threads 256 32x32x16
        [ "$code" = 0 ] || grep -q "takes no path with a '" "$work/said" || { failed=1; echo "FAILED: a quote is not told"; cat "$work/said"; }
        makes "$folder/p.svg" "$rung" lens l01_naive 16x16x16 --svg "$folder/p.svg"
        makes "$folder/p.html" "$rung" lens l01_naive 16x16x16 --html "$folder/p.html"
    fi
    cd "$work" || exit 1
    [ -z "$(find "$work" -name 'got_out*' ! -path "$folder")" ] || { failed=1; echo "FAILED: a shell has read '$name'"; }
done
# A build whose own folder has a blank: the drop-ins are found all the same.
if [ -e "${rung%/bin/*}/lib/librung_blas.so" ]; then
    mkdir -p "$work/a b/bin" "$work/a b/lib"
    cp "$rung" "$work/a b/bin"
    cp -P "${rung%/bin/*}"/lib/librung*.so* "$work/a b/lib"
    ends 0 "$work/a b/bin/rung" run --only blas -- grep -q 'a b/lib/librung_blas' /proc/self/maps
    [ ! -s "$work/said" ] || { failed=1; echo "FAILED in a folder with a blank:"; cat "$work/said"; }
fi
echo "$tried calls"
exit $failed
