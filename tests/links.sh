#!/bin/sh
# Every relative link and every results/ file that a document names must exist; the changelog is in order. usage: links.sh <source folder>
cd "$1" || exit 1
bad=0
for page in *.md docs/*.md docs/*/*.md src/*/*.md src/*/*/README.md src/cuda/families/*/README.md tools/*/README.md; do
    [ -e "$page" ] || continue
    folder=$(dirname "$page")
    for target in $(grep -oE '\]\([^)#: ]+' "$page" | sed 's/^](//'); do
        [ -e "$folder/$target" ] || { echo "$page: no $target"; bad=1; }
    done
    for target in $(grep -oE 'results/[a-z0-9_.-]+\.(jsonl|json|txt|csv)' "$page" | sort -u); do
        [ -e "$target" ] || { echo "$page: no $target"; bad=1; }
    done
done

# The changelog: a date for each release, each line under the heading of its kind, none twice.
awk '/^## / { if ($0 !~ /^## [0-9]+\.[0-9]+\.[0-9]+ \(20[0-9][0-9]-[0-9][0-9]-[0-9][0-9]\)$/) { print "CHANGELOG.md: no release and date: " $0; bad = 1 } }
    /^### / { kind = $2 }
    /^- / { if ($2 != kind ":") { print "CHANGELOG.md: under " kind ": " $0; bad = 1 }
            if (seen[$0]++) { print "CHANGELOG.md: twice: " $0; bad = 1 } }
    END { exit bad }' CHANGELOG.md || bad=1
exit $bad
