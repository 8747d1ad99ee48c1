#!/bin/sh
# rung lens --html: a page that asks for no network, shows the counts that the table shows, and is stepped with keys in a
# browser. usage: lens_html.sh RUNG FOLDER (of kernels with planted faults)
rung=$1 kernels=$2 bad=0
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

"$rung" lens l01_naive 64x64x64 --html "$work/good.html" >/dev/null 2>"$work/err" || { cat "$work/err"; exit 1; }
"$rung" lens --file "$kernels/missing_second_barrier.cu" --tile 16x16 --threads 256 37x41x45 --html "$work/faulty.html" \
    >/dev/null 2>&1
"$rung" lens l01_naive 64x64x64 --html "$work/no/such/folder.html" >/dev/null 2>"$work/err"
[ $? = 2 ] && grep -q 'no/such/folder.html' "$work/err" || { echo "a page that cannot be written: $(cat "$work/err")"; bad=1; }

# "#include <...>" must not end or begin anything: within the data there is no "<".
for page in good faulty; do
    [ -s "$work/$page.html" ] || { echo "no $page.html"; exit 1; }
    grep -nE 'src=|href=|@import|fetch\(|http' "$work/$page.html" && { echo "$page.html asks for something else"; bad=1; }
    grep '^const data' "$work/$page.html" | grep -q '<' && { echo "$page.html: a source line can end the script"; bad=1; }
done

# The page is of the kernel that ran, as the table's first line has it: with the form that the operands asked for.
tile=$("$rung" list --device gpu --role production | sed -n 's/^\(sm80_cpasync_[^ ]*\).*/\1/p' | head -n 1)
"$rung" lens "$tile" 33x17x65 --html "$work/form.html" >"$work/out" 2>/dev/null
ran=$(sed -n '1s/ at 33 x 17 x 65 .*//p' "$work/out")
case $ran in "${tile}"_*) ;; *) echo "the form of $tile is no part of '$ran'"; bad=1 ;; esac
grep -q "\"kernel\": \"$ran\"" "$work/form.html" || { echo "the page names another kernel than $ran"; bad=1; }

# A sum's page says of how many floats. Operands that miss alignment are drawn where they lie: in five sectors, not four.
"$rung" lens r01_atomics 64x64x1 --html "$work/sum.html" >/dev/null 2>&1 && grep -q '"shape": "4096 floats"' "$work/sum.html" ||
    { echo "the page of a sum: $(grep -o '"shape": "[^"]*"' "$work/sum.html")"; bad=1; }
"$rung" lens l02_coalesced 64x64x64 --all --offset 1 --svg "$work/odd.svg" >/dev/null 2>&1 && grep -q 'Global load of B.*: 5 sectors a request' "$work/odd.svg" &&
    ! grep -q 'drawn is a request of' "$work/odd.svg" || { echo "operands at odd addresses: $(grep 'sectors' "$work/odd.svg")"; bad=1; }

browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome)
if [ -z "$browser" ]; then
    echo "left out: the page drawn, no browser (chromium)"
    exit $bad
fi

# seen PAGE KEYS: the page's text after these keys.
seen() {
    sed 's|</html>||' "$work/$1.html" >"$work/driven.html"
    printf '<script>for (const key of "%s".split(" ").filter(Boolean)) document.dispatchEvent(new KeyboardEvent("keydown", ' "$2" \
        >>"$work/driven.html"
    printf '{ key, bubbles: true, cancelable: true }));</script></html>' >>"$work/driven.html"
    HOME=$work "$browser" --headless --no-sandbox --disable-gpu --enable-logging=stderr --virtual-time-budget=2000 \
        --dump-dom "file://$work/driven.html" >"$work/dom" 2>"$work/log"
    if grep -E 'CONSOLE.*(Error|error)' "$work/log"; then
        echo "$1.html: the browser complains"
        bad=1
    fi
}

# shows WORDS: they are in the page's text.
shows() {
    grep -q -- "$1" "$work/dom" || { echo "the page lacks '$1'"; grep -o 'id="\(what\|lane\|figures\)"[^/]*' "$work/dom"; bad=1; }
}

seen good ""
shows 'A load 32 sectors'
shows 'its bytes alone would need 4'
shows 'lane 0: A\[32\]\[0\]\|lane 0: A\[0\]\[0\]'
[ "$(grep -o 'class="now"' "$work/dom" | wc -l)" = 1 ] || { echo "one word should be marked"; bad=1; }
[ "$(grep -o 'class="waste"' "$work/dom" | wc -l)" = 224 ] || { echo "32 sectors of 8 words should show 224 not wanted"; bad=1; }
seen good "ArrowRight ArrowRight ArrowRight"
shows 'lane 3: A\['
seen good "End"
shows 'lane 31: A\['
seen good "ArrowUp"
shows 'global load of B'
shows '1 sector a request'
seen faulty ""
shows 'class="finding"'
shows 'no barrier between them: a race'
exit $bad
