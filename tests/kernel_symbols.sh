#!/bin/sh
# Where host code names a module of device code and a function in it, that module's source has the function. The stand-in
# for the driver finds every name, so only a GPU would tell otherwise. usage: kernel_symbols.sh SOURCE
set -u
cd "$1" || exit 1
said=$(mktemp) || exit 1
grep -rhoE 'rung_gpu_function\([^,]+, *"[a-z0-9_]+", *[^;]*;' src/cuda --include='*.c' |
    sed -E 's/^[^"]*"([a-z0-9_]+)", *(.*)$/\1 \2/' |
    while read -r module rest; do
        source=$(find src -name "$module.cu")
        [ -n "$source" ] || { echo "no $module.cu under src, which host code names"; continue; }
        for symbol in $(echo "$rest" | grep -oE '"[a-z0-9_]+"' | tr -d '"'); do
            grep -qw "$symbol" "$source" || echo "$source has no function $symbol, which host code asks it for"
        done
    done >"$said"
status=0
[ -s "$said" ] && status=1
cat "$said"
rm -f "$said"
exit $status
