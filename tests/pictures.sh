#!/bin/sh
# The pictures of the ladder's pages are what the lens draws today, and one that differs is found.
# usage: pictures.sh RUNG IMG_FOLDER [all]; without `all` eight rungs are left out that take a quarter of a minute each: all of their blocks run, or
# their sums on tensor cores are made bit by bit
rung=$1 kept=$2 bad=0
command -v "${RUNG_LENS_CXX:-g++}" >/dev/null || { echo "left out: no g++ for what the lens draws (g++)"; exit 77; }
drawn=$(mktemp -d) || exit 1
trap 'rm -rf "$drawn"' EXIT
slow=' l29_one_kernel l34_f16x3_chain l35_f16x3_promoted l36_f16x3_overlapped l37_f16x3_guarded l38_f16x3_pipeline l39_f16x3_read_once l40_f16x3_whole_tiles '
[ "${3:-}" != all ] || slow=
names=
for name in $("$rung" list --format csv | awk -F, '/^[lr][0-9][0-9]_/ { print $1 }'); do
    case $slow in *" $name "*) continue ;; esac
    names="$names $name"
done
# shellcheck disable=SC2086
"$rung" lens --pictures "$drawn" $names || exit 1
differ() { # folder with the kept pictures
    for name in $names; do
        cmp -s "$drawn/$name.svg" "$1/$name.svg" || echo "$name.svg is not what the lens draws: ./dev pages --record $name"
    done
}
found=$(differ "$kept")
[ -z "$found" ] || { echo "$found"; bad=1; }
mkdir "$drawn/other" && cp "$kept"/[lr][0-9][0-9]_*.svg "$drawn/other"
sed -i '0,/line [0-9]*/s//line 1/' "$drawn/other/l02_coalesced.svg"
differ "$drawn/other" | grep -q '^l02_coalesced.svg is not' || { echo "FAILED: a picture with another line was not found"; bad=1; }
# shellcheck disable=SC2086
set -- $names
echo "$# pictures drawn"
[ $# -ge 40 ] || bad=1
exit $bad
