#!/bin/sh
# Prints the names of the tiles whose rows have these values, in the order of the rows; a field that a row leaves out is 0. Tests pick tiles so, by
# what their rows say, so that a tile can be changed or taken out without touching the tests.
# usage: tiles_with.sh [-1] SOURCE_DIR FAMILY|all [FIELD=VALUE...]      such as: tiles_with.sh -1 .. small crowd=0 slices=1
#        -1: the first of them alone; exits 1 with a sentence where there is none
set -eu
first=
[ "$1" != -1 ] || { first=1; shift; }
source=$1 family=$2 folder=$2
shift 2
[ "$family" != all ] || folder='*'
# shellcheck disable=SC2086  # the folder may be a pattern
names=$(cat "$source"/src/cuda/families/$folder/tiles.inc | awk -v wanted="$*" '
    function say(    i, pair, value) {
        for (i = 1; i <= count; i++) {
            split(want[i], pair, "=")
            value = match(row, "[.]" pair[1] " = [A-Za-z0-9_]+") ? substr(row, RSTART, RLENGTH) : 0
            sub(/.* /, "", value)
            if (value != pair[2])
                return
        }
        if (name != "")
            print name
    }
    BEGIN { count = split(wanted, want, " ") }
    /^RUNG_TILE\(/ { say(); name = $1; sub(/RUNG_TILE\(/, "", name); sub(/,.*/, "", name); row = "" }
    /^\/\*/ { say(); name = "" }
    { row = row " " $0 }
    END { say() }')
if [ -n "$first" ]; then
    [ -n "$names" ] || { echo "no tile of family $family has $*: what tests it can go" >&2; exit 1; }
    names=$(printf '%s\n' "$names" | head -n 1)
fi
[ -z "$names" ] || printf '%s\n' "$names"
