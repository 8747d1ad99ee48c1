#!/bin/sh
# Exit codes of every verb on every kind of failure: 0 pass, 1 fail, 2 a wrong call. A file that is named and cannot be opened is a wrong
# call; one that does not take everything, a device that is not there and a wrong result are failures. For each verb of `rung help` the
# table has a line of each kind, or a dash where the verb has nothing of it, or what it has takes long and is in other verbs' code; or "judge"
# where judge/judge.sh looks at it. A verb without such lines fails the test.
# usage: exit_codes.sh RUNG LIBRUNG_LENS LIBWRONG
set -u
rung=$1 lens=$2 wrong=$3
bad=0 tried=0 left=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export RUNG_LEARN_DIR="$work" XDG_DATA_HOME="$work" RUNG_LIBCUDA=/nowhere RUNG_CACHE_DIR="$work/cache"
: >"$work/file"
printf 'NN 8 8 8 junk\n' >"$work/junk"
printf '{"kind": "bench", "rung": "0.1.0"\n' >"$work/damaged"

# VERB KIND CODE WORDS: [NAME=VALUE ...] ARGUMENTS. In arguments FILE is an empty file, GONE one that is not there, BELOW one below a file,
# LENS the lens's library, WRONG the library that computes wrongly; QUICK, CLIMB and
# TUNE are the options of short runs. An underline in WORDS is a blank or itself.
table() {
    cat <<'TABLE'
list argument 2 no_kernel_is_called: no_such
list argument 2 no_kernel_is_called_.no_such: c01_naive no_such
list input -
list output 2 cannot_write: -o BELOW
list full 1 cannot_write_all: -o /dev/full
list device -
list result -
climb argument 2 does_not_know_what_to_do: extra
climb input -
climb output 2 cannot_write: CLIMB -o BELOW
climb output 2 cannot_write: CLIMB --report BELOW
climb full -
climb device 1 no_device: --device gpu
climb result judge
bench argument 2 is_neither_a_file_nor_a_shape: 8x8y
bench argument 2 no_peer: QUICK --against nobody 8x8x8
bench argument 2 expected_numbers: --gpus cpu4x 8x8x8
bench argument 2 kind_of_--operands: --gpus cpu1 --operands hots 8x8x8
bench input 2 cannot_read: GONE
bench input 2 expected_NN: --shapes JUNK
bench output 2 cannot_write: QUICK --against= 8x8x8 -o BELOW
bench output 2 cannot_write: --gpus cpu1 --repeats 1 8x8x8 -o BELOW
bench output 2 cannot_write: --gpus cpu1 --repeats 1 8x8x8 --timeline BELOW
bench full 1 cannot_write_all: QUICK --against= 8x8x8 -o /dev/full
bench full 1 cannot_write_all: --gpus cpu1 --repeats 1 8x8x8 --timeline /dev/full
bench device 1 no_device: --device gpu 8x8x8
bench device 1 no_device: --gpus 2 8x8x8
bench result judge
bench result 1 every_shape_was_refused: QUICK --against= --kernel c01_naive 8x8x8:TN
bench device 1 is_a_GPU_kernel: QUICK --against= --kernel l01_naive 8x8x8
verify argument 2 one_of_--quick: --quick --huge
verify argument 2 one_of_--quick: --huge --pairs
verify argument 2 one_of_--quick: --quick --pairs
verify input 2 cannot_be_read: --device cpu --bits GONE
verify input 1 no_product: --device cpu --bits FILE
verify output 2 cannot_write: --device cpu --quick --kernel c01_naive -o BELOW
verify full 1 cannot_write_all: --device cpu --quick --kernel c01_naive -o /dev/full
verify device 1 no_device: --device gpu --quick
verify result judge
verify result 1 FAIL_rung_ssum: RUNG_WRONG=sum LD_PRELOAD=WRONG --device cpu --quick --no-vendor
verify result 1 nothing_was_verified: --device cpu --kernel c01_naive --case NN:5x7x3:row,bias=row
fuzz argument 2 is_not_a_number_from_1: --device cpu --calls 0
fuzz input -
fuzz output 2 cannot_write: --device cpu --calls 2 --size 5 -o BELOW
fuzz full 1 cannot_write_all: --device cpu --calls 2 --size 5 -o /dev/full
fuzz device 1 no_device: --device gpu --calls 1
fuzz result judge
fuzz result 1 every_call_was_refused: --device cpu --threads 1 --kernel l01_naive --calls 2
lens argument 2 is_a_CPU_kernel: c01_naive
lens input 2 cannot_read: --file GONE --tile 8x8 --threads 64
lens output 2 cannot_write: l01_naive 16x16x16 --svg BELOW
lens output 2 cannot_write: l01_naive 16x16x16 --html BELOW
lens output 2 cannot_write: l01_naive 16x16x16 -o BELOW
lens full 1 cannot_write_all: l01_naive 16x16x16 --svg /dev/full
lens full 1 cannot_write_all: l01_naive 16x16x16 --html /dev/full
lens full 1 cannot_write_all: l01_naive 16x16x16 -o /dev/full
lens device 1 this_build_has_no_lens: RUNG_LENS=GONE l01_naive 16x16x16
lens result 1 nothing_has_written: --file RACY --tile 16x16 --threads 256 37x41x45
learn argument 2 no_exercise_is_called: check 99
learn input 2 cannot_read: check 01 GONE
learn input 1 there_are_no_exercises: RUNG_LEARN=GONE
learn output 2 cannot_write: -o BELOW
learn full 1 cannot_write_all: -o /dev/full
learn full 1 cannot_write_all: check 01 START --html /dev/full
learn device 1 this_build_has_no_lens: RUNG_LENS=GONE check 01 FILE
learn result 1 e01_one_each: check 01 FILE
reduce argument 2 2^20: 2^
reduce argument 2 no_kernel_of_the_reduce_ladder: --device cpu --kernel c01_naive
reduce input -
reduce output 2 cannot_write: --device cpu --quick --budget-ms 5 -o BELOW 1000
reduce full 1 cannot_write_all: --device cpu --quick --budget-ms 5 -o /dev/full 1000
reduce device 1 no_device: --device gpu 1000
reduce result judge
explain argument 2 needs_a_shape:
explain input -
explain output 2 cannot_write: --device cpu 8x8x8 -o BELOW
explain full 1 cannot_write_all: --device cpu 8x8x8 -o /dev/full
explain device 1 no_device: --device gpu 8x8x8
explain device 1 this_build_has_no_lens: RUNG_LENS=GONE --gpu h200 8x8x8
explain result 1 out_of_memory: --device cpu 40000x40000x40000:NNx1000 --data signed
doctor argument 2 does_not_know_what_to_do: extra
doctor input -
doctor output 2 cannot_write: -o BELOW
doctor full 1 cannot_write_all: -o /dev/full
doctor device 0 : 
doctor result -
tune argument 2 there_is_no_shape: 
tune input 2 cannot_read: RUNG_LIBCUDA=LENS GONE
tune output 2 cannot_write: RUNG_LIBCUDA=LENS TUNE -o BELOW
tune output 1 cannot_write: RUNG_LIBCUDA=LENS RUNG_CACHE_DIR=BELOW --budget-ms 1 --candidates 1 8x8x8
tune full 1 cannot_write_all: RUNG_LIBCUDA=LENS TUNE -o /dev/full
tune device 1 no_device: 8x8x8
tune result -
profile argument 2 takes_no_kernel: --ports l01_naive
profile input 2 cannot_read: l01_naive 16x16x16 --counters GONE
profile output 2 cannot_write: --no-counters l01_naive 16x16x16 -o BELOW
profile full 1 cannot_write_all: --no-counters l01_naive 16x16x16 -o /dev/full
profile device 1 no_device: --ports
profile result -
report argument 2 takes_result_files: 
report input 2 cannot_read: GONE
report input 2 is_damaged: DAMAGED
report input 2 holds_no_results: FILE
report output 2 cannot_write: GOOD -o BELOW
report full 1 cannot_write_all: GOOD -o /dev/full
report device -
report result -
run argument 2 no_program_to_run: 
run argument 2 the_program_goes_behind: true
run input 127 cannot_start: -- GONE
run input 127 cannot_start: -- BELOW
run input 126 cannot_start: -- FILE
run input 126 cannot_start: -- /
run output 2 cannot_write: -o BELOW -- true
run full 1 cannot_write_all: -o /dev/full -- true
run full 1 cannot_write_all: --report-file /dev/full -- true
run full 3 cannot_write_all: -o /dev/full -- sh -c 'exit 3'
run full 143 cannot_write_all: -o /dev/full -- sh -c 'kill -TERM $$'
run full 127 cannot_write_all: -o /dev/full -- GONE
run device -
run result 3 : -- sh -c 'exit 3'
version argument 2 does_not_know_what_to_do: extra
version input -
version output 2 cannot_write: -o BELOW
version full 1 cannot_write_all: -o /dev/full
version device -
version result -
help argument 2 no_verb_is_called: nosuchverb
help input -
help output -
help full -
help device -
help result -
TABLE
}

complain() {
    bad=1
    echo "FAILED: $*"
    tail -n 2 "$work/err"
}

# ends CODE WORDS COMMAND...: it exits with the code; what it says on stderr or stdout has the words.
ends() {
    want=$1 words=$2
    shift 2
    "$@" >"$work/out" 2>"$work/err" </dev/null
    code=$?
    tried=$((tried + 1))
    [ $code = "$want" ] || complain "exit code $code, not $want: $*"
    [ "$want" = 0 ] || [ -z "$words" ] || cat "$work/out" "$work/err" | grep -q -- "$words" || complain "no word of '$words': $*"
}

verbs=$("$rung" help | awk '/^  [a-z]/ { print $1 }')
[ "$(echo "$verbs" | wc -l)" -ge 16 ] || complain "rung help lists few verbs"
for verb in $verbs; do
    for kind in argument input output full device result; do
        table | grep -q "^$verb $kind " || complain "the table has no line of $verb for a wrong $kind"
    done
    # Each option that names what is written has met a full disk, here or in a transcript.
    for option in $("$rung" help "$verb" | sed -nE 's/^ *(-o, )?(--[a-z-]+) TEXT .*(append|make this page|as one page|into this file|as .svg|into a file|the page;).*/\2/p'); do
        tried=$((tried + 1))
        [ "$option" != --output ] || option='(-o|--output)'
        { table; cat "$(dirname "$0")/transcripts/$verb"*.txt 2>"$work/err"; } | grep -Eq -- "^$verb full .*$option[ =]/dev/full|rung $verb .*$option[ =]/dev/full" ||
            complain "$verb $option has not met a full disk"
    done
    ends 2 . "$rung" "$verb" --bogus
    ends 2 . "$rung" "$verb" -o
    ends 2 . "$rung" "$verb" --format xml
    # shellcheck disable=SC2016
    ends 1 'cannot write all' sh -c '"$0" "$1" --help >/dev/full' "$rung" "$verb"
    [ "$verb" = help ] || ends 0 . "$rung" "$verb" --help
    for option in $("$rung" help "$verb" | sed -n 's/^ *\(--[a-z-]*\) N .*/\1/p'); do # numbers that are none
        for number in '' -1 1x 0x10 99999999999999999999; do
            ends 2 'is not a number' "$rung" "$verb" "$option" "$number"
        done
    done
done
# Numbers of each first digit are numbers: behind options, where what comes next is refused, and as lengths and shapes.
for digit in 1 2 3 4 5 6 7 8 9; do
    for verb in $verbs; do
        for option in $("$rung" help "$verb" | sed -n 's/^ *\(--[a-z-]*\) N .*/\1/p'); do
            ends 2 bogus "$rung" "$verb" "$option" "$digit" --bogus
        done
    done
    ends 0 . "$rung" reduce --device cpu --quick --budget-ms 1 "${digit}00"
    ends 0 . "$rung" explain --device cpu "${digit}x${digit}0x${digit}01"
    [ ! -e "$lens" ] || ends 0 . "$rung" profile r02_shared "${digit}00" --no-counters
done
# No device before the first, and none whose number is no number.
for device in gpu-1 gpu1x gpu00000001 GPU cuda ''; do
    ends 2 "device" "$rung" verify --device "$device" --quick
done
ends 0 . "$rung"
ends 2 'no verb is called' "$rung" nosuchverb

# What a line needs and this build has not.
lacks() {
    case $1 in
    lens\ * | tune\ * | profile\ * | learn\ * | *LENS*) [ -e "$lens" ] || echo "the lens" ;;
    *WRONG*) [ -e "$wrong" ] || echo "the library that computes wrongly" ;;
    report\ * | *--report*) "$rung" report /dev/null 2>&1 | grep 'this build has no report' ;;
    esac
}

sed -e "s|GONE|$work/gone|g; s|BELOW|$work/file/below|g; s|JUNK|$work/junk|g; s|DAMAGED|$work/damaged|g; s|GOOD|$work/good|g" \
    -e "s|FILE|$work/file|g; s|=LENS|=$lens|g; s|LD_PRELOAD=WRONG|LD_PRELOAD=$wrong|g; s|RACY|$(dirname "$0")/lens/missing_barrier.cu|g; s|START|$(echo "$(dirname "$0")"/../learn/e01_*/start.cu)|g" \
    -e 's|CLIMB|--device cpu --threads 1 --size 16 --against=|g; s|QUICK|--device cpu --threads 1 --budget-ms 5|g; s|TUNE|--budget-ms 1 --candidates 1 --dry-run 8x8x8|g' <<END >"$work/table"
$(table)
END
"$rung" bench --device cpu --threads 1 --budget-ms 5 --against= 8x8x8 -o "$work/good" >"$work/out" 2>"$work/err" || complain "no result to report"
while read -r verb kind code rest; do
    words=${rest%%:*} arguments=${rest#*:} settings=
    case $code in
    -) continue ;;
    judge) grep -Eq "^refused .* $verb |^$verb()|^    refused .* $verb " "$(dirname "$0")/judge/judge.sh" || complain "judge.sh does not judge $verb"
        continue ;;
    esac
    missing=$(lacks "$verb $arguments")
    [ -z "$missing" ] || { left=$((left + 1)); continue; }
    eval "set -- $arguments"
    while [ $# -gt 0 ]; do
        case $1 in [A-Z]*=*) settings="$settings $1" && shift ;; *) break ;; esac
    done
    # shellcheck disable=SC2086
    ends "$code" "$(echo "$words" | tr _ .)" env $settings "$rung" "$verb" "$@"
    [ "$kind $code" = "argument 2" ] || continue
    # shellcheck disable=SC2086
    env $settings "$rung" "$verb" "$@" -o "$work/unasked" >"$work/out" 2>"$work/err" </dev/null # nothing is made before a command is taken
    [ ! -e "$work/unasked" ] || { complain "a refused command has made the file of -o: $verb $*"; rm "$work/unasked"; }
done <"$work/table"
# Of several things a failure counts, whichever of them comes first: no later one that is right makes it forgotten.
either() { # CODE WORDS ONE OTHER BETWEEN ARGUMENTS..., of which BOTH stands for the two with that between them
    want=$1 words=$2 one=$3 other=$4 between=$5
    shift 5
    for both in "$one$between$other" "$other$between$one"; do
        with=
        for word; do
            case $word in *BOTH*) word=${word%BOTH*}$both${word#*BOTH} ;; esac
            with="$with '$word'"
        done
        eval "ends $want '$words' \"\$rung\" $with"
    done
}
either 2 'no kernel is called .no_such' c01_naive no_such "' '" list BOTH
either 2 'no kernel is called .no_such' c01_naive no_such , verify --device cpu --quick --kernel BOTH
either 1 'l01_naive is a GPU kernel' c01_naive l01_naive , verify --device cpu --threads 1 --case NN:8x8x8 --kernel BOTH
either 0 . c01_naive l01_naive , climb --device cpu --threads 1 --size 16 --against= --kernel BOTH
grep -q 'l01_naive *left out: a GPU kernel' "$work/out" || complain "climb leaves a rung out without a word"
either 2 'at most 1 ranks' 1 2 , bench --gpus cpuBOTH --grid 2x1 --repeats 1 8x8x8
either 2 'at most 1 ranks' 1 2 , bench --gpus cpuBOTH --grid 2x1 --operands parts --repeats 1 8x8x8
either 1 'batches are not distributed' 8x8x8 8x8x8:NNx2 "' '" bench --gpus cpu1 --repeats 1 BOTH
either 1 '2^62 bytes' 8x8x8 1073741824x1x1:NNx1073741823 "' '" bench --device cpu --threads 1 --budget-ms 5 --against= BOTH
either 2 'neither a file nor a shape' 8x8x8 8x8x8x "' '" bench --device cpu --threads 1 --budget-ms 5 --against= BOTH
either 1 'no memory for operands' 100 1000000000000 "' '" reduce --device cpu --quick --budget-ms 1 BOTH
[ -n "$(lacks 'report x')" ] || either 2 'is damaged' "$work/good" "$work/damaged" "' '" report BOTH -o "$work/page"
[ -n "$(lacks 'report x')" ] || either 2 'cannot read' "$work/good" "$work/gone" "' '" report BOTH -o "$work/page"
# What cannot be written to its end leaves nothing, and what stood there before stays.
mkdir "$work/place"
part() { # COMMAND...: it writes place/kept or place/new
    for name in kept new; do
        echo old >"$work/place/kept"
        said=$( (trap '' XFSZ; ulimit -f 0; exec "$@" "$work/place/$name") 2>&1)
        code=$? tried=$((tried + 1))
        case $code:$said in 1:*'cannot write all'*) ;; *) complain "exit code $code, where nothing can be written: $* $name: $said" ;; esac
        [ "$(ls "$work/place")" = kept ] && [ "$(cat "$work/place/kept")" = old ] ||
            complain "of what could not be written there is left: $(ls "$work/place")"
        rm -f "$work/place"/*
    done
}
[ -n "$(lacks 'report x')" ] || part "$rung" report "$work/good" -o
[ -n "$(lacks 'lens x')" ] || part "$rung" lens l01_naive 16x16x16 --svg
[ -n "$(lacks 'lens x')" ] || part "$rung" lens l01_naive 16x16x16 --html
for kept in "$work"/cache/tuned-*; do # all that was tuned here was a dry run, or could not be written
    [ ! -e "$kept" ] || { echo "a dry run has kept $kept"; bad=1; }
done
[ "$left" = 0 ] || echo "left out: $left lines whose parts this build has not"
echo "$tried calls"
exit $bad
