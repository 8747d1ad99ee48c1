#!/bin/sh
# Names of the tiles whose row says what is done to the compiled code. usage: tiles_with.sh SOURCE_DIR RUNG_WRITTEN_LOOP|RUNG_ORDERED_FFMAS
awk -v post="$2" '
    /^RUNG_TILE\(/ { name = $1; sub(/RUNG_TILE\(/, "", name); sub(/,.*/, "", name) }
    $0 ~ "[.]post = " post { print name }' "$1"/src/cuda/families/*/tiles.inc
