#!/bin/sh
# The pictures and the counts on the ladder's pages are what the lens draws and counts today, and one that differs is found.
# usage: pictures.sh SOURCE_DIR BUILD_DIR [all]; without `all` eight rungs are left out that take a quarter of a minute each (pages.py: SLOW)
source=$1 build=$2 bad=0
command -v python3 >/dev/null || { echo "left out: no python3 (python3-numpy)"; exit 77; }
command -v "${RUNG_LENS_CXX:-g++}" >/dev/null || { echo "left out: no g++ for what the lens draws (g++)"; exit 77; }
export PYTHONDONTWRITEBYTECODE=1
copy=$(mktemp -d) || exit 1
trap 'rm -rf "$copy"' EXIT
looked=$(python3 "$source/tools/pages/pages.py" --check-lens "$build" ${3:+"$3"}) || bad=1
echo "$looked"
[ "${looked%% *}" -ge 48 ] || { echo "FAILED: only $looked"; bad=1; }

mkdir "$copy/drawn"
"$build/bin/rung" lens --pictures "$copy/drawn" l02_coalesced r06_vector_one_launch || bad=1
for name in l02_coalesced r06_vector_one_launch; do
    cmp -s "$copy/drawn/$name.svg" "$source/docs/ladder/img/$name.svg" || { echo "FAILED: lens --pictures draws another $name.svg"; bad=1; }
done

mkdir -p "$copy/docs/ladder/img" "$copy/results" "$copy/src/ladder"
cp -r "$source/tools" "$copy"
for part in gpu cpu reduce; do
    mkdir "$copy/src/ladder/$part"
    cp "$source/src/ladder/$part/rows.inc" "$copy/src/ladder/$part"
done
fresh() { cp "$source"/results/ladder-lens-*.jsonl "$copy/results" && cp "$source/docs/ladder/img/l02_coalesced.svg" "$source/docs/ladder/img/r05_shuffle.svg" "$copy/docs/ladder/img"; }
expect() { # what was planted, what the check must say
    if python3 "$copy/tools/pages/pages.py" --check-lens "$build" l02_coalesced r05_shuffle >"$copy/said" 2>&1 || ! grep -q "$2" "$copy/said" ||
        ! grep -q '^2 rungs looked at$' "$copy/said"; then
        echo "FAILED: $1 was not found; said:"
        cat "$copy/said"
        bad=1
    fi
}
fresh
sed -i '0,/line [0-9]*/s//line 1/' "$copy/docs/ladder/img/l02_coalesced.svg"
expect "a picture with another line" '^l02_coalesced.svg is not what the lens draws'
fresh
sed -i '/"l02_coalesced"/s/"sectors_per_request": 2.5/"sectors_per_request": 2.4/' "$copy/results/ladder-lens-1024.jsonl"
expect "a wrong count of a product" '^results/ladder-lens-1024.jsonl: l02_coalesced is'
fresh
sed -i '/"r05_shuffle"/s/"shared_load_passes": 5/"shared_load_passes": 6/' "$copy/results/ladder-lens-sums.jsonl"
expect "a wrong count of a sum" '^results/ladder-lens-sums.jsonl: r05_shuffle is'
exit $bad
