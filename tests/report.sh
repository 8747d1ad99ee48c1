#!/bin/sh
# rung report: whole results make a page that a browser draws without complaint; damaged ones make a sentence and no file.
# report.sh RUNG
rung=$1 failed=0
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
if "$rung" report /dev/null 2>&1 | grep -q 'this build has no report'; then
    echo "left out: no jansson (libjansson-dev)"
    exit 77
fi

line() { # SIZE KERNEL US KIND
    printf '{"kind": "%s", "time": "2026-01-01T00:00:00Z", "command": "a test", "rung": "0.1.0", "commit": "none", ' "$4"
    printf '"device": "NVIDIA H200", "driver": "0", "cuda": "13.0", "sms": 132, "shape": "%sx%sx%s", ' "$1" "$1" "$1"
    printf '"m": %s, "n": %s, "k": %s, "batch": 1, "math": "strict", "kernel": "%s", ' "$1" "$1" "$1" "$2"
    printf '"us": {"median": %s, "noise": 0.001}, "error_u": 2.5, "bound_u": 9, ' "$3"
    printf '"peers": [{"name": "cublas", "us": {"median": 66}, "ratio": {"median": 1.1}, "error_u": 3.5}]}\n'
}
{
    line 1024 l02_coalesced 376 climb
    line 1024 l02_coalesced 376 bench
    line 2048 l02_coalesced 3001 bench
    printf '{"kind": "counters", "command": "a test", "rung": "0.1.0", "kernel": "l02_coalesced </script>", '
    printf '"counter": {"ld_requests": 100}, "lens": {"ld_requests": 100}}\n'
    # This is another machine, and a command that would hide the end of a script.
    for size in 256 512; do
        line $size c01_naive 900 climb | sed 's/NVIDIA H200/AMD EPYC/; s/"sms": 132/"threads": 2/; s/"a test"/"a <!--<script> test"/'
    done
} >"$folder/good.jsonl"

say() { # EXPECTED_EXIT TEXT FILE...
    want=$1 text=$2
    shift 2
    rm -f "$folder/page.html"
    "$rung" report -o "${to:-$folder/page.html}" "$@" >"$folder/said" 2>&1
    got=$?
    if [ $got -ne "$want" ] || ! grep -q -- "$text" "$folder/said"; then
        echo "FAIL exit $got, wanted $want and '$text'; it said:"
        cat "$folder/said"
        failed=1
    fi
    if [ "$want" -ne 0 ] && ls "$folder"/page.html* >/dev/null 2>&1; then
        echo "FAIL: a page was left behind after '$text'"
        failed=1
    fi
}

sed '2s/, "m".*//' "$folder/good.jsonl" >"$folder/cut.jsonl"
sed 's/"rung": "0/"rung": "7/' "$folder/good.jsonl" >"$folder/foreign.jsonl"
sed 's/"median": 376,//' "$folder/good.jsonl" >"$folder/partial.jsonl"
echo '[1, 2]' >"$folder/other.json"
: >"$folder/empty.jsonl"
say 2 "cut.jsonl line 2: is damaged" "$folder/cut.jsonl"
say 2 "foreign.jsonl line 1: comes from another version" "$folder/foreign.jsonl"
say 2 "partial.jsonl line 1: is a measurement without" "$folder/partial.jsonl"
say 2 "other.json line 1: is no result" "$folder/other.json"
say 2 "empty.jsonl holds no results" "$folder/empty.jsonl"
say 2 "cannot read" "$folder/nowhere.jsonl"
say 0 "wrote" "$folder/good.jsonl"

# A device or a link is written to, and stays what it is.
to=/dev/full
say 1 "^rung: report: cannot write all of /dev/full: .*\(No space left\|full disk\)" "$folder/good.jsonl"
to=
[ -c /dev/full ] || { echo "FAIL: /dev/full is no device any more"; failed=1; }
ln -s "$folder/target.html" "$folder/link.html"
"$rung" report "$folder/good.jsonl" -o "$folder/link.html" 2>/dev/null
[ -L "$folder/link.html" ] && [ -s "$folder/target.html" ] || { echo "FAIL: a link was replaced"; failed=1; }
# Where a regular file can take no more, the reason is said and nothing is left of it.
(
    trap '' XFSZ
    ulimit -f 8 # in 512 bytes
    say 1 "^rung: report: cannot write all of $folder/page.html: .*\(too large\|full disk\)" "$folder/good.jsonl"
    exit $failed
) || failed=1
say 0 "wrote" "$folder/good.jsonl"

# Nothing is fetched, and a browser that is there draws every chart without an error.
if grep -nE 'src="http|href="http|@import|fetch\(' "$folder/page.html"; then
    echo "FAIL: the page asks the network"
    failed=1
fi
if grep -q '<!--<script>' "$folder/page.html"; then
    echo "FAIL: a command can end or hide the page's script"
    failed=1
fi
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome)
[ -n "$browser" ] || echo "left out: the page drawn, no browser (chromium)"
if [ -n "$browser" ] && [ $failed -eq 0 ]; then
    HOME=$folder "$browser" --headless --no-sandbox --disable-gpu --enable-logging=stderr --virtual-time-budget=3000 \
        --dump-dom "file://$folder/page.html" >"$folder/dom" 2>"$folder/log"
    if grep -q 'CONSOLE' "$folder/log" || [ "$(grep -o '<h2 class="machine">[^<]*' "$folder/dom" | sort -u | wc -l)" -ne 3 ] ||
        grep -q '<section id="beside"' "$folder/dom" || ! grep -q '<h2 class="machine">AMD EPYC, 2 threads' "$folder/dom" || [ "$(grep -o '<canvas' "$folder/dom" | wc -l)" -lt 5 ]; then
        echo "FAIL: the browser complained, or charts are missing:"
        grep CONSOLE "$folder/log"
        failed=1
    fi
    # A kernel that was named is not what the library chose.
    if ! grep -q '>Rate against size: single kernels' "$folder/dom" || grep -q '>Rate against size: the library' "$folder/dom"; then
        echo "FAIL: a rung's rates are drawn as the library's"
        failed=1
    fi
fi

# Two people's files: what both measured stands side by side.
mkdir -p "$folder/ann" "$folder/ben"
{ line 1024 l02_coalesced 400 climb; line 2048 sm90_x 3000 bench; line 512 sm90_x 90 bench; } >"$folder/ann/results.jsonl"
{ line 1024 l02_coalesced 200 climb; line 2048 sm90_y 1500 bench; line 256 sm90_y 30 bench; } >"$folder/ben/results.jsonl"
say 0 "wrote" "$folder/ann/results.jsonl" "$folder/ben/results.jsonl"
if [ -n "$browser" ]; then
    HOME=$folder "$browser" --headless --no-sandbox --disable-gpu --enable-logging=stderr --virtual-time-budget=3000 \
        --dump-dom "file://$folder/page.html" >"$folder/dom" 2>"$folder/log"
    for words in '<section id="beside"' 'ann/results.jsonl beside ' 'Geometric mean 2 over 2 measurements' 'faster in 2, slower in 0' 'Only in [^:]*ann[^:]*: 1' \
        '<td>sm90_x / sm90_y</td>'; do
        grep -q -- "$words" "$folder/dom" || { echo "FAIL: two files: the page lacks '$words'"; failed=1; }
    done
    grep CONSOLE "$folder/log" && failed=1
fi

# The words of the page, without a browser: a summary is no measurement, and a product whose operands come from memory is another than one
# whose operands lie in the caches.
command -v node >/dev/null || { echo "left out: the page's words, no node (nodejs)"; exit $failed; }
words() { # WANTED FILE...
    wanted=$1
    shift
    say 0 "wrote" "$@"
    node "$(dirname "$0")/report_words.js" "$folder/page.html" >"$folder/words" 2>&1
    grep -q -- "$wanted" "$folder/words" || { echo "FAIL: the page lacks '$wanted'; it says:"; cat "$folder/words"; failed=1; }
}
{ line 1024 sm90_x 400 bench; line 2048 sm90_x 3000 bench; line 1 x 1 bench-summary; } >"$folder/warm.jsonl"
sed 's/"a test"/"rung bench --cold x"/; s/: 400,/: 200,/' "$folder/warm.jsonl" >"$folder/cold.jsonl"
sed 's/"a test"/"another test"/; s/: 400,/: 200,/' "$folder/warm.jsonl" >"$folder/again.jsonl"
words '^4 of 4 measurements' "$folder/warm.jsonl" "$folder/again.jsonl"
words '^Geometric mean 1.414 over 2 measurements that both have' "$folder/warm.jsonl" "$folder/again.jsonl"
words '^They have no measurement in common' "$folder/warm.jsonl" "$folder/cold.jsonl"
cp "$folder/cold.jsonl" "$folder/cold.jsonl.copy"
words '^Geometric mean 1 over 2 measurements that both have' "$folder/cold.jsonl" "$folder/cold.jsonl.copy"
exit $failed
