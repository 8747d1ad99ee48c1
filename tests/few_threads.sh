#!/bin/sh
# A process that may start no thread, or one, or two: products are right or refused with a sentence, and nothing crashes or waits for a thread
# that is not there. usage: few_threads.sh LIBFEW_THREADS RUNG LIBRUNG_LENS, or LIBFEW_THREADS - - COMMAND...
few=$1 rung=$2 lens=$3 failed=0 tried=0
shift 3
said=$(mktemp) || exit 1
trap 'rm -f "$said"' EXIT

ends() { # COMMAND...
    for most in 0 1 2; do
        tried=$((tried + 1))
        env FEW_THREADS=$most LD_PRELOAD="$few" "$@" >"$said" 2>&1
        code=$?
        [ $code -le 1 ] && ! grep -q '^FAIL' "$said" && { [ $code = 0 ] || grep -q thread "$said"; } && continue
        failed=1
        echo "FAILED: with $most threads: exit code $code: $*"
        tail -n 3 "$said"
    done
}

if [ "$rung" != - ]; then
    ends "$rung" verify --device cpu --threads 3 --no-vendor --case "NN:300x300x300:row;TN:31x900x40:row;NN:1x4000x4000:row"
    ends "$rung" fuzz --device cpu --threads 3 --calls 20
    ends "$rung" fuzz --device cpu --jobs 3 --calls 20
    ends "$rung" fuzz --device cpu --via ranks --calls 5 --size 60
    ends "$rung" bench --device cpu --threads 3 --against= --budget-ms 2 300x300x300
fi
if [ -e "$lens" ]; then
    ends env RUNG_LIBCUDA="$lens" "$rung" fuzz --device gpu --calls 3 --size 20
fi
[ $# = 0 ] || ends "$@"
echo "$tried calls"
exit $failed
