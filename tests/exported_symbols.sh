#!/bin/sh
# The library exports its own names only. usage: exported_symbols.sh <library> <regular expression>
extra=$(nm -D --defined-only "$1" | awk '{ print $NF }' | sed 's/@.*//' | grep -vE "^($2)$")
[ -z "$extra" ] || { echo "$1 also exports:"; echo "$extra"; exit 1; }
