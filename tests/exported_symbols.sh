#!/bin/sh
# The library exports its own names only; names of symbol versions (A) are no functions. usage: exported_symbols.sh <library> <regular expression>
extra=$(nm -D --defined-only "$1" | awk '$2 != "A" { print $NF }' | sed 's/@.*//' | grep -vE "^($2)$")
[ -z "$extra" ] || { echo "$1 also exports:"; echo "$extra"; exit 1; }
