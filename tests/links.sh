#!/bin/sh
# Every relative link and every results/ file that a document names must exist. usage: links.sh <source folder>
cd "$1" || exit 1
bad=0
for page in *.md docs/*.md docs/*/*.md src/*/README.md src/*/*/README.md src/cuda/families/*/README.md tools/*/README.md; do
    [ -e "$page" ] || continue
    folder=$(dirname "$page")
    for target in $(grep -oE '\]\([^)#: ]+' "$page" | sed 's/^](//'); do
        [ -e "$folder/$target" ] || { echo "$page: no $target"; bad=1; }
    done
    for target in $(grep -oE 'results/[a-z0-9_.-]+\.(jsonl|json|txt|csv)' "$page" | sort -u); do
        [ -e "$target" ] || { echo "$page: no $target"; bad=1; }
    done
done
exit $bad
