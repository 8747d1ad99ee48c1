#!/bin/sh
# The end of a tile under the lens: a tile of each kind stores C with each of alpha, beta, bias and activation alone, and in pairs, where C's rows lie at multiples of
# 16, of 8 and of 4 bytes, of whole tiles, of those at C's edges and of those whose k several blocks share. A way of its own for plain results that asks too little of a product forgets something of one that is not plain.
# An alpha of 0 that only the GPU can read leaves out what is Inf or NaN, too.
# usage: lens_ends.sh RUNG LIBRUNG_LENS PART PARTS: every PARTS-th kind of tiles from the PART-th (0 ...) on
set -u
rung=$1 part=$3 parts=$4 here=$(dirname "$0") failed=0 passed=0 piece=0
export RUNG_LIBCUDA=$2 RUNG_LENS_FINDINGS=fail RUNG_LENS_KEPT=fail RUNG_LENS_SMS=9 RUNG_LENS_CAPTURING=1 # workspace of the size that was asked for
[ -e "$RUNG_LIBCUDA" ] || { echo "left out: no lens in this build"; exit 77; }
work=$(mktemp)
trap 'rm -f "$work"' EXIT

ends() { # KERNEL SIZE CPAD...
    name=$1 size=$2
    shift 2
    for cpad; do
        cases=
        for end in '' alpha=-0.5 beta=1 beta=-0.5 bias=row bias=column act=relu act=gelu scalars=device bias=row,act=relu beta=0.5,bias=column beta=0.5,act=gelu \
            alpha=-0.5,bias=row alpha=2,act=relu scalars=device,bias=column alpha=0,scalars=device,data=special alpha=0,beta=-0.5,scalars=alpha,data=special; do
            cases="$cases;NN:$size:row,cpad=$cpad${end:+,$end}"
        done
        "$rung" verify --device gpu --kernel "$name" --no-vendor --verbose --case "${cases#;}" >"$work" 2>&1
        code=$? ok=$(grep -c '^ok ' "$work")
        passed=$((passed + ok))
        [ $code = 0 ] && [ "$ok" -ge "$least" ] && ! grep -q 'not given back' "$work" && continue
        failed=$((failed + 1))
        echo "FAILED: $name at $size, C's rows $cpad apart: exit code $code, $ok cases passed"
        grep -A1 -e '^FAIL' -e '^rung: ' "$work" | head -n 6
    done
}

shared() { # KERNEL SIZE: whether several blocks share the k of a tile
    "$rung" explain "$2" --layout row --device gpu --kernel "$1" >"$work" 2>&1
    grep -m1 '^ *predicted .* us,' "$work" | grep -qE ' ([2-9]|1[0-9]) (blocks|parts of k)|[1-9] cut along k' && return 0
    failed=$((failed + 1))
    echo "FAILED: $1 at $2: its blocks share no k:"
    sed -n 3,4p "$work"
}

kind() { # K LONG FAMILY FIELD=VALUE...: the first such tile, with so many k, and with so many that several blocks share them (0: they do not)
    piece=$((piece + 1))
    [ $((piece % parts)) = "$part" ] || return 0
    k=$1 long=$2
    shift 2
    name=$("$here"/tiles_with.sh -1 "$here/.." "$@") || { failed=$((failed + 1)); return 0; }
    m=$(echo "$name" | sed 's/.*_\([0-9]*\)x[0-9]*x[0-9]*_.*/\1/') n=$(echo "$name" | sed 's/.*_[0-9]*x\([0-9]*\)x[0-9]*_.*/\1/')
    ends "$name" "${m}x${n}x$k" 0 2 1
    ends "$name" "$((m - 3))x$((n - 5))x$k" 1 3 2
    [ "$long" = 0 ] || { shared "$name" "$((m - 1))x$((n - 5))x$long" && ends "$name" "$((m - 1))x$((n - 5))x$long" 1 3 2; }
}

least=17
kind 70 450 accurate tf32=0
kind 33 700 accurate tf32=1
kind 33 250 large
kind 36 200 medium
kind 36 800 medium large_loop=1
kind 36 0 pairs shifted=0
kind 36 0 pairs shifted=1
kind 40 400 lone
kind 300 0 lone fourths=1
kind 40 70 small slices=1 crowd=0
kind 40 150 small crowd=1
kind 40 0 small brief=1
kind 40 0 small batch=1
kind 8 0 lines

echo "$passed passed, $failed lists of cases failed"
[ $failed = 0 ] && [ $passed -gt 0 ]
