#!/bin/sh
# Judges the judge: behind a library that computes wrongly, one way at a time, every verb that promises verified results must
# say what is wrong and exit with 1. And what is right, or errs just less than the bound, must pass.
# usage: judge.sh RUNG LIBWRONG LIBRUNG_LENS, which need not be there
set -u
rung=$1 wrong=$2 lens=$3 failed=0 tried=0
work=$(mktemp)
trap 'rm -f "$work" "$work.bits" "$work.kept" "$work.modes"' EXIT

run() { # HOW WORDS...: prints to $work, returns the exit code
    how=$1
    shift
    tried=$((tried + 1))
    RUNG_WRONG=$how LD_PRELOAD=$wrong "$rung" "$@" >"$work" 2>&1
}
complain() {
    failed=$((failed + 1))
    echo "FAILED: $*"
    tail -n 4 "$work"
}
judged='
'
right_passes() { # WORDS...: what is right passes by the words of what is refused; each are tried once
    case $1$judged in
    climb*) ;; # seconds each; the transcripts have them
    *"
$*
"*) ;;
    *) judged="$judged$*
" && passes none "$@" ;;
    esac
}
refused() { # HOW SENTENCE WORDS...
    wrongly=$1 sentence=$2
    shift 2
    right_passes "$@"
    how=$wrongly
    run "$how" "$@"
    code=$?
    [ $code = 1 ] || complain "RUNG_WRONG=$how rung $*: exit code $code, not 1"
    grep -Eq "$sentence" "$work" || complain "RUNG_WRONG=$how rung $*: no '$sentence'"
}
passes() { # HOW WORDS...
    run "$@" || complain "RUNG_WRONG=$1 rung ...: exit code $?, not 0"
}

verify() { # HOW SENTENCE CASE
    refused "$1" "$2" verify --device cpu --no-vendor --threads 1 --math strict --case "$3"
    grep -q "rung verify .*--case" "$work" || complain "$1: no line that runs the case again"
}
for layout in row col; do
    case=NN:17x19x23:$layout
    passes none verify --device cpu --math strict --case "$case,pad=3"
    verify product 'errs .* the bound is' "$case"
    verify edge 'element \(16, 18\) errs' "$case,pad=2"
    verify nan '1 elements are NaN or Inf where they should not be' "TN:17x19x23:$layout"
    verify inf 'the first is \(8, 9\)' "NT:17x19x23:$layout"
    verify second 'the same call gave other bits than the first time' "$case"
    verify outside '1 words outside C.s m x n were written' "$case,pad=5"
    verify outside 'words outside' "$case"
    verify before 'the first is -1 elements from C' "$case"
    verify before 'the first is -1 elements from C' "$case,offset=1"
    verify a 'operand A was changed' "TT:17x19x23:$layout"
    verify b 'operand B was changed' "$case,beta=1"
    verify first_a 'operand A was changed' "$case"
    verify first_b 'operand B was changed' "TN:17x19x23:$layout"
    verify error 'internal error|RUNG_INTERNAL' "$case"
done
# An element that is not written, C read where beta is 0 and not read where it is not, rows in each other's places, operands that lose half of their
# bits, results below the normal range, NaN and Inf that become numbers, and a batch of which all is the first entry's.
not_a_number='1 elements are NaN or Inf where they should not be, or the reverse; the first is \(8, 9\)'
for case in NN:17x19x23:row NN:17x19x23:col,alpha=0 TT:17x19x0:row; do
    verify left "$not_a_number" "$case"
    verify old "$not_a_number" "$case"
done
verify left 'element \(8, 9\) errs .* the bound is' NN:17x19x23:row,beta=1
verify beta 'element \(8, 9\) errs .* the bound is' NN:17x19x23:row,beta=-0.5
verify swap 'element \((0|16), [0-9]*\) errs .* the bound is' NN:17x19x23:row
verify halves 'errs .* the bound is' NN:17x19x23:row
verify flush 'errs .* the bound is' NN:31x29x4:row,alpha=1.5e-38
verify swallow 'elements are NaN or Inf where they should not be, or the reverse' NN:17x19x23:row,data=special
verify saturate 'elements are NaN or Inf where they should not be, or the reverse' NN:17x19x23:row,data=special
verify first 'errs .* the bound is' NN:17x19x23:row,strided=3
refused flush 'FAIL' verify --device cpu --quick --kernel c01_naive --threads 1 # a case of the list has such results
# A case that has passed is judged again where its bits are other ones, though it is the same case.
verify later 'errs .* the bound is' 'NN:17x19x23:row;NN:17x19x23:row'
passes none verify --device cpu --math strict --case 'NN:17x19x23:row;NN:17x19x23:row'
# And where another kernel has them: its bound is another one. Without fused products a result may err by 1 u more.
if grep -qw avx2 /proc/cpuinfo; then
    refused err=1.2 'FAIL avx2_.* errs 1[.].* the bound is 1 u' verify --device cpu --no-vendor --threads 1 \
        --kernel portable_f32_4x8,avx2_f32_6x16 --case NN:16x16x16:row,data=integers,judge=accuracy
    ! grep -q 'FAIL portable' "$work" || complain "portable_f32_4x8 has another bound than 2 u"
fi
# Bits are hashed and not judged; but of a call that fails there are none.
echo 'portable_f32_4x8 NN:17x19x23:row' >"$work.bits"
refused error 'portable_f32_4x8 NN:17x19x23:row: .*(internal error|RUNG_INTERNAL)' verify --device cpu --bits "$work.bits"
# After a device that fails nothing is tried on it.
refused lost 'the device failed' verify --device cpu --no-vendor --math strict --case 'NN:17x19x23:row;TN:17x19x23:row'
[ "$(grep -c '^FAIL' "$work")" = 1 ] || complain "a device that fails is asked again"

# Each element of a contract's case has a bound of its own. With an error of as many u everywhere, the one that is told is the least.
for case in NN:8x8x256:row NN:8x8x256:row,data=positive TN:9x9x284:col,data=constant NN:10x3x51:col,data=span24,seed=296887; do
    run err=100000 verify --device cpu --no-vendor --threads 1 --math strict --case "$case"
    bound=$(sed -n 's/.*the bound is \([0-9.]*\) u.*/\1/p' "$work")
    awk -v bound="${bound:-0}" 'BEGIN { exit !(bound >= 4 && bound < 300) }' || complain "$case: a bound of $bound u"
    passes err="$(awk -v b="${bound:-0}" 'BEGIN { print b - 1 }')" verify --device cpu --no-vendor --math strict --case "$case"
    verify err="$(awk -v b="${bound:-0}" 'BEGIN { print b + 1 }')" 'errs .* the bound is' "$case"
done
for data in signed positive constant outliers softmax; do
    verify product 'errs .* the bound is' "TN:9x9x284:col,data=$data"
done
# What a right product may err by the luck of one order of additions, and sums that round toward zero.
for case in NT:1x1x298:row,data=outliers,seed=497515 TN:20x13x297:col,data=spike,seed=587576 TT:9x1x284:row,data=constant; do
    passes none verify --device cpu --math strict --case "$case"
done
for case in NN:8x8x256:row,data=positive NN:48x48x300:row NN:48x48x64:row,data=positive; do
    verify truncate 'errs .* the bound is' "$case"
done

# Over 1000 and more results of random data one bound is a multiple of the FP32 chain's largest error: 2 for the contract, 1.25
# for accuracy. 4 u and 1 u are always allowed.
multiply() { # NUMBER NUMBER
    awk -v a="$1" -v b="$2" 'BEGIN { print a * b }'
}
case=NN:48x48x256:row,data=positive
RUNG_WRONG='' "$rung" verify --device cpu --no-vendor --math strict --verbose --case "$case" >"$work" 2>&1
chain=$(sed -n 's/.*(chain \([0-9.]*\)[,)].*/\1/p' "$work")
awk -v chain="${chain:-0}" 'BEGIN { exit !(chain > 2.1 && chain < 50) }' || complain "a chain that errs $chain u is no help here"
passes err="$(multiply "$chain" 1.9)" verify --device cpu --no-vendor --math strict --case $case
verify err="$(multiply "$chain" 2.1)" 'errs .* the bound is' $case
passes err="$(multiply "$chain" 1.15)" verify --device cpu --no-vendor --math strict --case $case,judge=accuracy
verify err="$(multiply "$chain" 1.3)" 'errs .* the bound is' $case,judge=accuracy
passes err=3.2 verify --device cpu --no-vendor --math strict --case NN:16x16x16:row,data=integers
verify err=4.9 'the bound is 4 u' NN:16x16x16:row,data=integers
passes err=0.3 verify --device cpu --no-vendor --math strict --case NN:16x16x16:row,data=integers,judge=accuracy
verify err=1.8 'the bound is 1 u' NN:16x16x16:row,data=integers,judge=accuracy

# Without --case: the cases of one kernel, all of which run wrongly; a table with totals.
for how in product nan outside; do
    refused $how 'fail' verify --device cpu --quick --kernel c01_naive --threads 1
done

# Wrong calls that are not refused.
refused accepts 'FAIL a wrong call, .*\(expected ' verify --device cpu --wrong-calls
passes none verify --device cpu --wrong-calls

bench() { # HOW SENTENCE
    refused "$1" "$2" bench --device cpu --threads 1 --budget-ms 20 --against '' --format csv 24x20x30
}
for how in product edge nan inf; do
    bench $how 'FAIL 24x20x30: .*errs .* the bound is'
done
bench second 'FAIL 24x20x30: .*the same call gave other bits than the first time'
bench outside 'FAIL 24x20x30: .*words outside C.s m x n were written; the first is'
bench before 'FAIL 24x20x30: .*words outside C.s m x n were written; the first is -1 elements'
bench swap 'FAIL 24x20x30: .*errs .* the bound is'
bench halves 'FAIL 24x20x30: .*errs .* the bound is'
bench left 'FAIL 24x20x30: .*errs inf u'
bench old 'FAIL 24x20x30: .*errs inf u'
# With a beta the product that is timed is the one that is judged: C's old numbers count, in whatever shape.
for shape in 24x20x30 19x7x5:NT; do
    for way in "beta errs .* the bound is" "left errs .* the bound is" "second the same call gave other bits" "outside words outside C.s m x n were written" "b operand B was changed"; do
        refused "${way%% *}" "FAIL $shape: .*${way#* }" bench --device cpu --threads 1 --budget-ms 1 --against '' --beta -0.5 $shape
    done
done
refused entry=1 'FAIL 24x20x30:NNx3: .*errs .* the bound is' bench --device cpu --threads 1 --budget-ms 1 --against '' --beta 2 24x20x30:NNx3
refused first 'FAIL 24x20x30:NNx5: .*errs .* the bound is' bench --device cpu --threads 1 --budget-ms 1 --against '' 24x20x30:NNx5
for how in a first_a; do
    bench $how 'FAIL 24x20x30: .*operand A was changed'
done
bench b 'FAIL 24x20x30: .*operand B was changed'
# Of a C too large to be checked whole its last rows and columns are, and of a batch the first, one in the middle and the last.
for at in 599,400 400,599 0,400; do # not where the rows and columns at a random place are: from 137 on
    refused at=$at 'FAIL 600x600x600: .*errs .* the bound is' bench --device cpu --threads 1 --budget-ms 1 --against '' 600x600x600
done
for entry in 0 2 4; do
    refused entry=$entry 'FAIL 24x20x30:NNx5: .*errs .* the bound is' bench --device cpu --threads 1 --budget-ms 1 --against '' 24x20x30:NNx5
done
# The bound of a bench is that of accuracy: 1.25 times the FP32 chain's largest error.
run err=500 bench --device cpu --threads 1 --budget-ms 20 --against '' --format csv 48x48x256
bound=$(sed -n 's/.*the bound is \([0-9.]*\) u.*/\1/p' "$work")
awk -v bound="${bound:-0}" 'BEGIN { exit !(bound >= 1 && bound < 50) }' || complain "bench: a bound of $bound u"
passes err="$(multiply "${bound:-0}" 0.95)" bench --device cpu --threads 1 --budget-ms 20 --against '' --format csv 48x48x256
refused err="$(multiply "${bound:-0}" 1.05)" 'FAIL 48x48x256: .*errs' bench --device cpu --threads 1 --budget-ms 20 --against '' 48x48x256
passes none bench --device cpu --threads 1 --budget-ms 20 --against '' --format csv 24x20x30
# A candidate that computes nothing is the fastest, and is not kept.
if [ -e "$lens" ]; then
    fast=$(RUNG_LIBCUDA=$lens "$rung" explain 16x16x16 --device gpu 2>/dev/null | awk '/^ranking/ { on = NR } on && NR == on + 2 { print $2 }')
    RUNG_LIBCUDA=$lens run "skip=$fast" tune 16x16x16 --device gpu --candidates 3 --budget-ms 1 --dry-run --format csv
    awk -F, -v fast="$fast" '/^16x16x16,/ { tried = $NF == 3 && $4 != fast } END { exit !tried }' "$work" || complain "tune keeps $fast, which computes nothing"
fi
# The line that runs a case again has the mode in which it failed; climb's is the same function's.
for math in strict accurate fast; do
    refused product "rung verify --device cpu --math $math --case 'NN:17x19x23:row'" verify --device cpu --math $math --case NN:17x19x23:row
done
# climb verifies a quick set of each rung's cases, then what it times.
climb() { # HOW SENTENCE SENTENCE: of a case, and of what is timed
    refused "$1" "FAIL c01_naive: $2" climb --device cpu --size 64 --kernel c01_naive --threads 1 --against ''
    grep -Eq "FAIL c01_naive at 64: $3" "$work" || complain "climb with '$1': what is timed is not told to be wrong"
}
climb product 'element .* errs .* the bound is' 'errs .* the bound is'
climb nan '.* elements are NaN or Inf where they should not be' 'errs inf u'
climb outside '.* words outside C.s m x n were written' '.* words outside C.s m x n were written'
climb a 'operand A was changed' 'operand A was changed'
climb swap 'element .* errs .* the bound is' 'errs .* the bound is'
climb halves 'element .* errs .* the bound is' 'errs .* the bound is'
climb left '.* elements are NaN or Inf where they should not be' 'errs inf u'
# What is wrong only at the size that is timed fails the climb, too, also where smaller products were tried first to see how long it takes.
for size in 72 200; do
    refused cube=$size "FAIL c01_naive at $size: errs" climb --device cpu --size $size --kernel c01_naive --threads 1 --against ''
    ! grep -q 'FAIL [^ ]*:' "$work" || complain "climb: a case is wrong that is not of $size"
done

# An error that grows faster than n fails once more than the cases that it makes too large; six sizes are tried.
refused grow=1.6 'FAIL \(growth of the error, strict\): the error grows as n\^1\.[1-9]' verify --device cpu --math strict --quick --threads 1 --no-vendor
awk '/^\(growth of the error, strict\) +FAIL/ { sum = $7 + $8; failed = $8 } END { exit !(sum == 7 && failed >= 2) }' "$work" ||
    complain "the growth of an error does not count"
passes grow=0.7 verify --device cpu --math strict --quick --threads 1 --no-vendor
# Sums: at the sizes with edges, and at the size that is timed; each of them as NaN, too, and with other bits the second time.
for how in sum sum_nan sum_second; do
    refused $how 'FAIL rung_ssum: the sum of ' reduce --device cpu --budget-ms 1 1000
    refused $how ',FAIL' reduce --device cpu --quick --budget-ms 1 --format csv 1000
done
passes none reduce --device cpu --budget-ms 1 1000

# The mode that is asked for is that of every product that a verb plans, be it to verify or to time it, and of every entry that it goes by.
in_mode() { # WORDS...
    number=0
    for math in strict accurate fast; do
        : >"$work.modes"
        passes modes="$work.modes" "$@" --math $math
        [ "$(sort -u "$work.modes")" = $number ] || complain "rung $* --math $math: modes $(sort -u "$work.modes" | tr '\n' ' '), not $number"
        number=$((number + 1))
    done
}
in_mode verify --device cpu --no-vendor --threads 1 --case NN:9x9x9
in_mode bench --device cpu --threads 1 --budget-ms 1 --against '' 8x8x8 8x9x8:NNx3
in_mode bench --device cpu --threads 1 --budget-ms 1 --against '' --no-verify 8x8x8
in_mode bench --gpus cpu1,2 --operands distributed,host,parts --repeats 1 8x8x8
in_mode explain --device cpu 8x8x8
for via in direct ranks blas; do
    in_mode fuzz --device cpu --threads 1 --via $via --calls 3 --size 9
done
if [ -e "$lens" ]; then # climb goes through two modes by itself; nothing is computed, since no product can be planned
    : >"$work.modes"
    RUNG_LIBCUDA=$lens run plans="$work.modes" climb --device gpu --size 33 --against ''
    for number in 0 1; do
        [ "$(grep -cx $number "$work.modes")" -gt 20 ] || complain "climb: mode $number is that of $(grep -cx $number "$work.modes") products"
    done
fi

# Of several things one that is wrong fails the call, whichever of them comes first.
for two in '72x72x72 24x20x30' '24x20x30 72x72x72'; do
    # shellcheck disable=SC2086
    refused cube=72 'FAIL 72x72x72: .*errs' bench --device cpu --threads 1 --budget-ms 1 --against '' $two
done
for two in 'NN:72x72x72:row;NN:17x19x23:row' 'NN:17x19x23:row;NN:72x72x72:row'; do
    refused cube=72 'element .* errs .* the bound is' verify --device cpu --no-vendor --threads 1 --math strict --case "$two"
done
for two in c01_naive,c02_loop_order c02_loop_order,c01_naive; do
    refused skip=c01_naive 'FAIL c01_naive' verify --device cpu --no-vendor --threads 1 --kernel $two --case NN:17x19x23:row
    refused skip=c01_naive 'FAIL c01_naive' climb --device cpu --size 32 --kernel $two --threads 1 --against ''
done
refused once '^c01_naive,FAIL,1,1,' verify --device cpu --no-vendor --threads 1 --kernel c01_naive --case 'NN:17x19x23:row;NN:17x19x23:row' --format csv
for two in '1000 2000' '2000 1000'; do
    # shellcheck disable=SC2086
    refused sum=1000 ',FAIL' reduce --device cpu --quick --budget-ms 1 --format csv $two
done
printf 'c01_naive NN:17x19x23:row\nc01_naive NN:17x19x24:row\n' >"$work.bits"
RUNG_WRONG='' "$rung" verify --device cpu --bits "$work.bits" >"$work.kept" 2>/dev/null
passes none verify --device cpu --bits "$work.kept"
for line in 1 2; do
    sed "$line"'s/[0-9a-f]*$/0123456789abcdef/' "$work.kept" >"$work.bits"
    refused none 'bits: 1 the same, 1 others' verify --device cpu --bits "$work.bits"
done

# Random calls: a failure becomes the smallest line that still fails.
refused edge "case 'NN:1x2x1:col'" fuzz --device cpu --threads 1 --calls 30
refused product "case 'NN:1x1x1:col'" fuzz --device cpu --threads 1 --calls 30
passes none fuzz --device cpu --threads 1 --calls 30
# What was told before the end of a process that crashes is there, in a file too.
dies() { # CALL SENTENCE WORDS...: at the CALL-th product
    how=dies=$1 sentence=$2
    shift 2
    run "$how" "$@"
    code=$?
    [ $code = 77 ] && grep -qE "$sentence" "$work" || complain "RUNG_WRONG=$how rung $*: exit code $code, or not told before"
}
dies 60 'made smaller' fuzz --device cpu --threads 1 --calls 1000
dies 3 '^c01_naive,FAIL' verify --device cpu --no-vendor --threads 1 --kernel c01_naive,c02_loop_order --case 'NN:17x19x23:row' --format csv
rm -f "$work.rows"
dies 3 '^c01_naive' verify --device cpu --no-vendor --threads 1 --kernel c01_naive,c02_loop_order --case 'NN:17x19x23:row' -o "$work.rows"
[ "$(wc -l <"$work.rows")" = 1 ] || complain "the row that was told is not in -o's file"
# What ranks write beside their C, whichever value it is.
for value in 0 -0 1 -1 nan -nan inf -inf 1e-40; do
    for side in above below left right; do
        refused $side=$value 'ranks wrote element \(-?[0-9]+, -?[0-9]+\) beside C' fuzz --device cpu --via ranks --calls 40 --size 20
    done
    refused gap=$value 'rank [0-3] wrote behind its rows in column [0-9]* of its part' fuzz --device cpu --via ranks --calls 40 --size 20
done
# What ranks do not write of C is seen, also where another way, or other ranks, have left the right results there.
for ways in distributed,host host,distributed; do
    refused host_leaves 'FAIL 24x20x30, host, 2 ranks' bench --gpus cpu1,2 --operands $ways --repeats 1 24x20x30
    ! grep -q 'FAIL .*distributed' "$work" || complain "bench --operands $ways: distributed operands fail, too"
    refused ranks_leave 'FAIL 24x20x30, distributed, 2 ranks' bench --gpus cpu1,2 --operands $ways --repeats 1 24x20x30
    ! grep -q 'FAIL .*host' "$work" || complain "bench --operands $ways: operands in host memory fail, too"
done
# What is wrong with operands in host memory alone is seen by the way that has them there, and by no other one.
if [ -e "$lens" ]; then
    export RUNG_LIBCUDA="$lens"
    refused host 'NaN or Inf where they should not be' fuzz --device gpu --via host --calls 4 --size 20
    passes host fuzz --device gpu --calls 4 --size 20
    unset RUNG_LIBCUDA
fi

if [ "$failed" -gt 0 ]; then echo "$failed of the complaints above"; exit 1; fi
echo "$tried runs: what is wrong is told and fails, what is right passes"
