#!/bin/sh
# Nothing calls back up. Over the object files, who uses whose functions and data has no circle; over the headers, who
# includes whom has none. Calls through a table of functions (core/backend.h) are not seen. So one more rule: a backend uses nothing of
# the core that decides, but where a GPU has no room for a plan. Then it asks for another one.
# usage: layers.sh SOURCE_DIR BUILD_DIR
set -eu
source=$1 build=$2 bad=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$source"

# circles NAME: the pairs "from to" in $work/NAME.
circles() {
    sort -u "$work/$1" | tsort >/dev/null 2>"$work/loops" || :
    [ ! -s "$work/loops" ] || { echo "a circle of $1:"; sed 's/^tsort: //' "$work/loops"; bad=1; }
}

# Objects of sources that are there; a build folder keeps those of others.
for folder in "$build"/src/CMakeFiles/rung.dir "$build"/lab/CMakeFiles/rung_lab.dir "$build"/src/lens/CMakeFiles/rung_lens.dir; do
    [ ! -d "$folder" ] || find "$folder" -name '*.c.o' -exec nm -A -g {} + 2>/dev/null
done | awk '
    { split($1, at, ":"); file = at[1]; sub(/.*\.dir\//, "", file); sub(/\.o$/, "", file) }
    $(NF - 1) == "U" { uses[file " " $NF] = 1 }
    $(NF - 1) ~ /^[TDBRVC]$/ { of[$NF] = file }
    END { for (pair in uses) { split(pair, p, " "); if (p[2] in of && of[p[2]] != p[1]) print p[1], of[p[2]], p[2] } }' |
    while read -r from to what; do
        { [ -e "src/$from" ] || [ -e "lab/$from" ] || [ -e "src/lens/$from" ]; } && { [ -e "src/$to" ] || [ -e "lab/$to" ] || [ -e "src/lens/$to" ]; } || continue
        echo "$from $to $what"
    done >"$work/uses"
[ "$(wc -l <"$work/uses")" -gt 300 ] || { echo "only $(wc -l <"$work/uses") uses between files: were the objects found?"; exit 1; }
cut -d' ' -f1,2 "$work/uses" >"$work/calls"
circles calls
up=$(grep -E '^(cpu|cuda|ladder)/[^ ]* core/(plan|peel|context|api|tune|tuned|recent|validate)\.c ' "$work/uses" |
    grep -vE '^cuda/host/(backend\.c core/(plan\.c rung_decide|peel\.c rung_peeled)|tools\.c core/context\.c rung_config_init)$' || :)
[ -z "$up" ] || { echo "a backend calls what decides:"; echo "$up"; bad=1; }

# Headers: an #include "a/b.h" is the file under src, src/cuda, include or beside that ends so.
find include src lab cli shim tools -name '*.h' -o -name '*.inc' | sort >"$work/headers"
awk '
    FNR == NR { known[$0] = 1; n = split($0, part, "/"); next }
    /^[[:space:]]*#[[:space:]]*include "/ {
        name = $0; sub(/^[^"]*"/, "", name); sub(/".*/, "", name)
        here = FILENAME; sub(/[^\/]*$/, "", here)
        split(here name " src/" name " src/cuda/" name " include/" name " src/lens/cuda/" name " " name, tried, " ")
        for (i = 1; i <= 6; i++) if (tried[i] in known) { if (tried[i] != FILENAME) print FILENAME, tried[i]; break }
    }' "$work/headers" $(cat "$work/headers") >"$work/includes"
[ "$(wc -l <"$work/includes")" -gt 100 ] || { echo "only $(wc -l <"$work/includes") includes of headers: were they found?"; exit 1; }
circles includes
exit $bad
