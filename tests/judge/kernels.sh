#!/bin/sh
# Judges the judge by kernels: a rung of an installed copy is damaged, one way at a time, as its author might, and `rung verify`, `bench`, `climb` and
# `lens --check` must each say what is wrong and exit with 1, also where the result happens to be right. The lens is the GPU.
# usage: kernels.sh BUILD_DIR CMAKE
set -u
build=$1 cmake=$2 failed=0 tried=0 kernel=l04_shared_16x16
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
export RUNG_CACHE_DIR="$work/cache"
unset RUNG_LENS_KERNELS RUNG_LENS_FINDINGS
"$cmake" --install "$build" --prefix "$work/usr" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
rung=$work/usr/bin/rung
RUNG_LIBCUDA=$(find "$work/usr" -name librung_lens.so) && export RUNG_LIBCUDA
[ -n "$RUNG_LIBCUDA" ] || { echo "left out: no lens in this build"; exit 77; }
source=$(find "$work/usr" -name $kernel.cu)
cp "$source" "$work/sound"

ends() { # CODE SENTENCE WORDS...
    want=$1 sentence=$2
    shift 2
    tried=$((tried + 1))
    "$rung" "$@" >"$work/out" 2>&1
    got=$?
    [ $got = "$want" ] && grep -Eq -- "$sentence" "$work/out" && return
    echo "FAILED: $how: rung $*: exit code $got, wanted $want and '$sentence'"
    tail -n 4 "$work/out"
    failed=1
}
# each CODE: of verify, bench, lens and climb, with their sentences; a dash leaves one out
each() {
    code=$1
    [ "$2" = - ] || ends "$code" "$2" verify --device gpu --no-vendor --kernel $kernel \
        --case 'NN:33x31x35:row,pad=3,alpha=0.7,beta=-0.5;NN:32x32x33:row;NN:9x9x8:row,data=special;NN:17x1x0:row,beta=0.5'
    [ "$3" = - ] || ends "$code" "$3" bench --device gpu --kernel $kernel --budget-ms 1 --against '' 34x31x33
    [ "$4" = - ] || ends "$code" "$4" lens --check $kernel
    [ "$5" = - ] || ends "$code" "$5" climb --device gpu --size 33 --kernel $kernel --against ''
}
damaged() { # WHAT SED_EXPRESSION SENTENCE_OF_VERIFY OF_BENCH OF_LENS OF_CLIMB
    how=$1
    sed "$2" "$work/sound" >"$source"
    if cmp -s "$work/sound" "$source"; then
        echo "FAILED: $how: nothing of $kernel.cu has changed"
        failed=1
        return
    fi
    each 1 "$3" "$4" "$5" "$6"
}

how=sound
each 0 "$kernel +pass" "^34x31x33" "$kernel +pass" -
wrong='errs .* the bound is' infinite='errs inf u' special='NaN or Inf where they should not be' checked="$kernel +FAIL"
damaged "no barrier before the copies" '/everybody is done/s/__syncthreads();//' "FAIL .*: a race" ': a race' ': a race' "FAIL $kernel: .*: a race"
damaged "no barrier behind the copies" '/b_tile\[y\]\[x\] = bv/{n;s/__syncthreads();//;}' 'FAIL ' "$kernel|34x31x33" "$checked" -
damaged "a row too many" 's/row < g.m && column/row <= g.m \&\& column/' 's C.33..0., but C is 33 x 31' - 'but C is' -
damaged "a column too many" 's/column < g.n)/column <= g.n)/' 'writes C.0..31., but C is 33 x 31' 'FAIL 34x31x33|no allocation|but C is|wrote too' 'but C is' -
damaged "the last k is left out" 's/i < g.k; i += BK/i < g.k - 1; i += BK/' "element .* $wrong" "$wrong" "$checked" -
damaged "k is read one too far" 's/i + x < g.k/i + x <= g.k/' 'FAIL .*reads A.32..35., but A is 33 x 35' - 'reads A.[0-9]*..[0-9]*., but A is' -
damaged "B has A's leading dimension" 's/(i + y) \* g.ldb/(i + y) * g.lda/' 'FAIL ' 'FAIL |no allocation|but B is' "$checked" -
damaged "beta is left out" 's/\*c = rung_blend(&g, acc, c)/*c = g.alpha * acc/' "element .* $wrong" - - "FAIL $kernel: element .* $wrong"
damaged "C is read where beta is 0" 's/\*c = rung_blend(&g, acc, c)/*c = fmaf(g.beta, *c, g.alpha * acc)/' "$special" "$infinite" "$checked" -
damaged "alpha is left out" 's/rung_blend(&g, acc, c)/acc + (g.beta != 0.0f ? g.beta * *c : 0.0f)/' "element .* $wrong" - - -
damaged "NaN becomes a number" 's/acc = fmaf(a_tile\[y\]\[kk\], b_tile\[kk\]\[x\], acc)/acc = fmaxf(fmaf(a_tile[y][kk], b_tile[kk][x], acc), -1e30f)/' "$special" - - -
damaged "C is added to by each call" 's/\*c = rung_blend/*c += rung_blend/' "$special" "$infinite" "$checked" -
damaged "A is written to" 's/float acc = 0.0f;/float acc = 0.0f; if (g.k > 0 \&\& row == 0 \&\& column == 0) *(float *)g.a += 1.0f;/' 'FAIL .*no __threadfence|operand A was changed' - "$checked" -
damaged "it traps" 's/float acc = 0.0f;/float acc = 0.0f; if (column == 20) __trap();/' 'FAIL .*executes __trap' 'executes __trap' 'executes __trap' "FAIL $kernel: .*executes __trap"
damaged "threads leave before a barrier" 's/float acc = 0.0f;/float acc = 0.0f; if (row >= g.m) return;/' 'they have returned' 'they have returned' 'they have returned' -
damaged "it never ends" 's/float acc = 0.0f;/float acc = 0.0f; for (volatile int i = 0; row == 32 \&\& i < 1;) ;/' 'an endless loop' - - -
how="what nothing has written is read, and not used" # whichever kernel was checked before it, also one that may read ahead
sed 's/float acc = 0.0f;/float acc = a_tile[y][x] == 12345.0f ? 1.0f : 0.0f;/' "$work/sound" >"$source"
for names in "$kernel" "sm80_small_f32_8x8x8_s1 $kernel" "$kernel sm80_small_f32_8x8x8_s1"; do
    # shellcheck disable=SC2086
    ends 1 "$kernel +FAIL .*: right, with findings" lens --check $names
done
damaged "it does not compile" 's/float acc = 0.0f;/float acc = none;/' 'none' - 'none' -

if [ $failed = 0 ]; then echo "$tried runs: damaged kernels fail, each for its reason; the sound one passes"; fi
exit $failed
