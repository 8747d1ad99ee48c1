#!/bin/sh
# The book: every page is in the contents, every chapter has its parts, every section a picture, every question its answer, every term its
# entry in the glossary; the site is built and each of its links leads somewhere. What is planted against these is told.
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
sed -i 's/, to any number of lanes//; /img\/tile.svg/d' "$work/tree/docs/book/01-the-machine.md"
sed -i '/fill said/,/\/fill/d' "$work/tree/docs/book/07-vectors.md"
echo "A *quibble* is no word of ours." >>"$work/tree/docs/book/03-floors.md"
python3 "$work/tree/tools/book/book.py" --check 2>"$work/said" && fail "faults were not told"
grep -q "99-lost.md is not in" "$work/said" || fail "an unlisted page was not told: $(cat "$work/said")"
grep -q "02-first-kernels.md asks 9 questions" "$work/said" || fail "a missing question was not told: $(cat "$work/said")"
grep -q "01-the-machine.md no longer says what answers question 4" "$work/said" || fail "an answer that is gone was not told: $(cat "$work/said")"
grep -q "the section 'A tile is the unit of work' has no picture" "$work/said" || fail "a section without a picture was not told: $(cat "$work/said")"
grep -q "07-vectors.md shows nothing of what a command prints" "$work/said" || fail "a chapter without output was not told: $(cat "$work/said")"
grep -q "'quibble' in italics" "$work/said" || fail "a word out of the glossary was not told: $(cat "$work/said")"
cp "$source/docs/book/01-the-machine.md" "$work/tree/docs/book"
for python in /usr/bin/python3 python3; do
    $python -c 'import markdown' 2>/dev/null || continue
    $python "$source/tools/book/book.py" "$work/site" --rung "$rung" || fail "the site has links to nowhere"
    grep -q 'class="next"' "$work/site/book/02-first-kernels.html" || fail "a page has no next one"
    grep -q 'glossary.html#w-occupancy" title="warps' "$work/site/book/06-occupancy.html" || fail "a word of the glossary is not explained at its first use"
    grep -q 'id="w-occupancy"' "$work/site/glossary.html" || fail "a word has no place in the glossary"
    grep -q '<h1[^>]*>6\. ' "$work/site/book/06-occupancy.html" || fail "a chapter has no number"
    grep -q 'rung climb' "$work/site/commands.html" || fail "the commands are not on the site"
    grep -q 'class="own" alt="What l01 reads"' "$work/site/book/02-first-kernels.html" || fail "a drawing with dark colours of its own is turned on dark pages"
    grep -q 'href="#answer-6-10"' "$work/site/book/06-occupancy.html" && grep -q 'id="answer-6-10"' "$work/site/book/06-occupancy.html" ||
        fail "a question does not lead to its answer"
    sed -i 's/img\/sectors.svg/img\/nowhere.svg/' "$work/tree/docs/book/01-the-machine.md"
    $python "$work/tree/tools/book/book.py" "$work/other" 2>"$work/said" && fail "a link to nowhere passed"
    grep -q nowhere.svg "$work/said" || fail "a link to nowhere was not named"
    exit 0
done
echo "left out: no python3-markdown, which builds the site (python3-markdown)"
exit 77
