#!/bin/sh
# Stands in for nvcc where the lens stands in for a GPU: compiles for the lens, and writes where the object lies. What it was told
# is in nvcc.said. CHANGES, commands of sed, come into the file first.
printf '%s ' "$@" | sed 's|/tmp/rung-learn-[^/]*/|<folder>/|' >nvcc.said
for word; do
    case ${last:-} in
    -o) cubin=$word ;;
    esac
    last=$word
done
sed "${CHANGES:-}" "$last" >own.cu && "$SOURCE/src/lens/lens_cc.sh" own.cu "$PWD/own.so" && printf 'lens object %s\n' "$PWD/own.so" >"$cubin"
