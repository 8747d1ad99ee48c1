#!/bin/sh
# lab/sanitize.sh with a stand-in for compute-sanitizer: every kernel goes through all four tools, and nothing reported,
# failed, cut short or left out passes for clean. sanitize.sh RUNG SOURCE_DIR
set -u
rung=$1 script=$2/lab/sanitize.sh failed=0
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
"$rung" list --device gpu --format csv >"$work/rows" || exit 1
[ "$(wc -l <"$work/rows")" -gt 50 ] || { echo "FAIL: the catalog lists no GPU kernels"; exit 1; }
mkdir "$work/bin"
cat >"$work/bin/compute-sanitizer" <<'TOOL'
#!/bin/sh
# It runs nothing: it passes every kernel that it is asked for, and says what FAULT wants of the tool and case in WHERE.
tool=$2 all="$*" names=
while [ $# -gt 0 ]; do
    case $1 in --kernel) names=$2 ;; reduce) names=$(rung list --device gpu --role reduce --format csv | tail -n +2 | cut -d, -f1 | paste -sd,) ;; esac
    shift
done
fault=none
case "$tool $all" in *${WHERE:-nowhere}*) fault=$FAULT ;; esac
[ "$fault" = missing ] && names=${names#*,}
echo "$names" | tr , '\n' | sed 's/$/   pass   1   0/'
[ "$fault" = crash ] && exit 1
errors=0
[ "$fault" = error ] && errors=3
if [ "$tool" = racecheck ]; then
    echo "========= RACECHECK SUMMARY: $errors hazards displayed ($errors errors, 0 warnings)"
else
    echo "========= ERROR SUMMARY: $errors errors"
fi
[ "$fault" != fail ]
TOOL
chmod +x "$work/bin/compute-sanitizer"
ln -s "$(readlink -f "$rung")" "$work/bin/rung"
PATH=$work/bin:$PATH

# look NAME EXIT_CODE TEXT [options]
look() {
    name=$1 want=$2 text=$3
    shift 3
    "$script" -j 2 -o "$work/logs" "$@" "$rung" >"$work/out" 2>&1
    got=$?
    if [ $got -eq "$want" ] && grep -qE -- "$text" "$work/out"; then
        echo "ok   $name"
    else
        echo "FAIL $name: exit $got, wanted $want and '$text'; it said:"
        cat "$work/out"
        failed=1
    fi
}

look clean 0 "^racecheck +copies .* 0 errors$"
for tool in memcheck racecheck initcheck synccheck; do
    tail -n +2 "$work/rows" | cut -d, -f1 | sort >"$work/want"
    sort -u "$work/logs/ran-$tool" | grep -xFf "$work/want" | diff - "$work/want" >"$work/out" || {
        echo "FAIL $tool leaves kernels out: $(cat "$work/out")"
        failed=1
    }
done
export WHERE FAULT
FAULT=error WHERE="racecheck*TT:"
look "a hazard" 1 "^FOUND racecheck-copies" -t racecheck -f copies
FAULT=error WHERE="memcheck"
look "an invalid access" 1 "^memcheck +small .* [1-9][0-9]* errors" -t memcheck -f small
FAULT=crash WHERE="initcheck"
look "no summary" 1 "^FAILED initcheck-ladder" -t initcheck -f ladder
FAULT=fail WHERE="synccheck"
look "a failed check" 1 "^FAILED synccheck-matrix" -t synccheck -f matrix
FAULT=missing WHERE="racecheck"
look "a kernel that never ran" 1 "never ran: [a-z]" -t racecheck -f vectors
exit $failed
