#!/bin/sh
# Prints the end of ./dev test: how many tests passed, which failed, and every part that was left out, with its reason.
# usage: table.sh SUITE.xml CONFIGURE_LOG...   (ctest --output-junit; what cmake said of each tree)
# Exit 1 where a test failed; with CI=true also where a package of packaging/*.txt would have given a part that was left out.
set -eu
suite=$1
shift
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A line a test: state, seconds, name, and for one left out the first line it printed. A test that passes tells in lines
# "left out: WHAT, REASON" what it could not try.
touch "$work/in_part"
awk -v in_part="$work/in_part" '
    function finish() { if (name != "") printf "%s\t%.1f\t%s\t%s\n", state, time, name, reason; name = "" }
    function value(key,    rest) { rest = substr($0, index($0, key "=\"") + length(key) + 2); return substr(rest, 1, index(rest, "\"") - 1) }
    /<testcase / { finish(); name = value("name"); time = value("time"); state = value("status"); reason = "" }
    /<skipped / { state = "left out" }
    /<system-out>/ && state == "left out" { reason = $0; sub(/.*<system-out>/, "", reason); sub(/<\/system-out>.*/, "", reason); sub(/^[a-z ]*: /, "", reason) }
    state == "run" && /^(.*<system-out>)?left out: / {
        sub(/^.*left out: /, "")
        sub(/<\/system-out>.*/, "")
        printf "%s, in part\t%s\n", name, $0 >in_part
    }
    END { finish() }' "$suite" >"$work/tests"

# Parts that the builds left out: "NAME: left out, REASON". What a tree with a sanitizer leaves out for the same reason as the release
# tree stands there once. A cross build finds no libraries of this machine, which is no fault of the machine.
for log in "$@"; do
    [ -f "$log" ] || continue
    tree=$(basename "$log" .configure)
    [ "$tree" = aarch64 ] && wanted='64-bit Arm' || wanted=.
    grep -e "$wanted" "$log" | sed -n 's/^-- \(.*\): left out, \(.*\)/\1\t\2\t'"$tree/p" || :
done | sort -u >"$work/built"
awk -F '\t' 'NR == FNR { if ($3 == "release") there[$1 $2]; next }
    !($1 $2 in there) || $3 == "release" { print ($3 == "release" || $3 == "aarch64" ? $1 : $3 ": " $1) "\t" $2 }' "$work/built" "$work/built" >"$work/parts"
cat "$work/in_part" >>"$work/parts"
awk -F '\t' '$1 == "left out" { print $3 "\t" $4 }' "$work/tests" >>"$work/parts"

count() { awk -F '\t' -v state="$1" '$1 == state { n++ } END { print n + 0 }' "$work/tests"; }
echo
echo "passed    $(count run)"
echo "failed    $(($(wc -l <"$work/tests") - $(count run) - $(count 'left out')))"
awk -F '\t' '$1 != "run" && $1 != "left out" { printf "          %s (%s s)\n", $3, $2 }' "$work/tests"
echo "left out  $(wc -l <"$work/parts")"
awk -F '\t' '{ printf "          %s: %s\n", $1, $2 }' "$work/parts"
if ! awk -F '\t' '$1 != "run" && $1 != "left out" { bad = 1 } END { exit bad }' "$work/tests"; then
    # Limits of time are by the clock: beside other work a test may reach its own without a fault.
    awk -v cpus="$(nproc)" '$1 > 2 * cpus { printf "The machine has %d processors and %d threads that want one: ./dev test NAME tries again what ran out of time.\n", cpus, $1 }' /proc/loadavg
    exit 1
fi

[ "${CI:-}" = true ] || exit 0
sed -n 's/^\([a-z0-9][a-z0-9.+-]*\).*/\1/p' packaging/debian-12.txt packaging/cuda.txt >"$work/packages"
while IFS='	' read -r part reason; do
    for word in $(echo "$reason" | tr -c 'a-z0-9.+\n-' ' '); do
        if grep -qxF -e "$word" "$work/packages"; then echo "FAILED: $part was left out, and $word is a package of the list"; fi
    done
done <"$work/parts" >"$work/wrong"
cat "$work/wrong"
[ ! -s "$work/wrong" ]
