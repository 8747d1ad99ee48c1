#!/bin/sh
# The book: every page is in the contents, every chapter has a picture, a command and its ten questions; the site is built
# and each of its links leads somewhere; a link to nowhere, an unlisted page and a chapter of nine questions are told.
# usage: book.sh SOURCE RUNG
set -u
source=$1 rung=$2
fail() {
    echo "book: $*" >&2
    exit 1
}
python3 "$source/tools/book/book.py" --check || fail "the contents or a chapter is not as it should be"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/tree"
cp -r "$source/docs" "$source/tools" "$source/include" "$source/src" "$work/tree"
echo "# A page that nobody lists" >"$work/tree/docs/book/99-lost.md"
sed -i '/^10\. /d' "$work/tree/docs/book/02-first-kernels.md"
python3 "$work/tree/tools/book/book.py" --check 2>"$work/said" && fail "faults were not told"
grep -q "99-lost.md is not in" "$work/said" || fail "an unlisted page was not told: $(cat "$work/said")"
grep -q "02-first-kernels.md asks 9 questions" "$work/said" || fail "a missing question was not told: $(cat "$work/said")"
for python in /usr/bin/python3 python3; do
    $python -c 'import markdown' 2>/dev/null || continue
    $python "$source/tools/book/book.py" "$work/site" --rung "$rung" || fail "the site has links to nowhere"
    grep -q 'class="next"' "$work/site/book/02-first-kernels.html" || fail "a page has no next one"
    grep -q 'glossary.html#w-occupancy" title="warps' "$work/site/book/06-occupancy.html" || fail "a word of the glossary is not explained at its first use"
    grep -q 'id="w-occupancy"' "$work/site/glossary.html" || fail "a word has no place in the glossary"
    grep -q '<h1[^>]*>6\. ' "$work/site/book/06-occupancy.html" || fail "a chapter has no number"
    grep -q 'rung climb' "$work/site/commands.html" || fail "the commands are not on the site"
    sed -i 's/img\/sectors.svg/img\/nowhere.svg/' "$work/tree/docs/book/01-the-machine.md"
    $python "$work/tree/tools/book/book.py" "$work/other" 2>"$work/said" && fail "a link to nowhere passed"
    grep -q nowhere.svg "$work/said" || fail "a link to nowhere was not named"
    exit 0
done
echo "left out: no python3-markdown, which builds the site (python3-markdown)"
exit 77
