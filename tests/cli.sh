#!/bin/sh
# The command's manners, beside the transcripts: what cannot be written, variables, the drop-ins, run, signals, formats that
# other programs read. usage: cli.sh <rung> [a program that calls sgemm_ [slow_fork.c's library]]
# What nohup or a shell's & starts ignores signals, and so would all that is started here.
[ "${RUNG_USUAL_SIGNALS:-}" ] || RUNG_USUAL_SIGNALS=1 exec env --default-signal "$0" "$@"
rung=$1 bad=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# refuses WORDS ARGUMENTS...: exit code 2, nothing on stdout, one line on stderr that has the words.
refuses() {
    words=$1
    shift
    "$rung" "$@" >"$work/out" 2>"$work/err" </dev/null
    code=$?
    if [ $code != 2 ] || [ -s "$work/out" ] || [ "$(wc -l <"$work/err")" != 1 ] || ! grep -q -- "$words" "$work/err"; then
        echo "rung $*: exit code $code, stdout $(wc -c <"$work/out") bytes, stderr: $(cat "$work/err")"
        bad=1
    fi
}

# accepts WORDS ARGUMENTS...: exit code 0, the words on stdout.
accepts() {
    words=$1
    shift
    "$rung" "$@" >"$work/out" 2>"$work/err" </dev/null
    code=$?
    if [ $code != 0 ] || ! grep -q -- "$words" "$work/out"; then
        echo "rung $*: exit code $code, stdout: $(head -5 "$work/out"), stderr: $(head -5 "$work/err")"
        bad=1
    fi
}

refuses "no device is called 'gpu-1'" bench --device gpu-1 8x8x8
if "$rung" lens l01_naive 32x32x32 >/dev/null 2>&1; then
    accepts '72 results checked' lens l01_naive 8x9x0 # nothing is multiplied
    accepts '1 results checked' lens l01_naive 1x1x1
    refuses 'is no shape' lens l01_naive 0x1x1
    refuses 'is no shape' lens l01_naive 1x0x1
    refuses 'is no shape' lens l01_naive 1x1x-1
    accepts 'no result judged.*--all' lens l25_stream_k            # its second launch reads what all blocks of the first write
    accepts '52429 results checked' lens l29_one_kernel 512x512x128 # its blocks wait for each other, so all run
    accepts 'decision *sm90_' explain 1024x1024x1024 --gpu h200
    ! [ -e "$(dirname "$rung")/../lib/librung_sm_90a.so" ] || accepts 'set by the.*waves' explain l10_thread_tile_8x8
    accepts 'tensor cores in fp16' explain 4096x4096x4096 --gpu h200 --math accurate
fi
accepts 'CPU' doctor
accepts '^5 calls of --seed 9: 5 passed' fuzz --device cpu --threads 1 --calls 5 --size 20 --seed 9 -o "$work/fuzzed"
grep -q '"kind": "fuzz", "calls": 5, "seed": 9, "passed": 5, "refused": 0, "failed": 0' "$work/fuzzed" ||
    { echo "fuzz -o did not append its row: $(cat "$work/fuzzed")"; bad=1; }
accepts 'bench-summary' bench --device cpu --threads 1 --budget-ms 20 --against '' -o /dev/stdout 33x1x65:TN 8x8x8:NNx3
command -v python3 >/dev/null || echo "left out: lines of JSON and a narrow terminal, no python3 (python3-numpy)"
if command -v python3 >/dev/null; then
    for verb in "list" "doctor" "bench --device cpu --threads 1 --budget-ms 20 8x8x8" "verify --device cpu --quick --kernel c01_naive"; do
        # shellcheck disable=SC2086
        "$rung" $verb --format json 2>/dev/null | python3 -c 'import json, sys; [json.loads(line) for line in sys.stdin]' ||
            { echo "rung $verb --format json: not JSON lines"; bad=1; }
    done
fi
# A result line tells its command, but not where it was written to.
"$rung" bench --device cpu --threads 1 --budget-ms 5 --against '' -o /dev/stdout 8x8x8 2>/dev/null |
    grep '"kind": "bench"' | grep -q '"command": "[^"]*rung bench --device cpu --threads 1 --budget-ms 5 --against  8x8x8"' ||
    { echo "a result line's command is not the one that was typed, without -o"; bad=1; }

# What cannot be written is told, with exit code 1; what was closed is not written into a file of results.
lost() {
    sh -c "$1" >"$work/out" 2>"$work/err"
    code=$?
    if [ $code != 1 ] || ! grep -q 'cannot write all' "$work/err"; then
        echo "$1: exit code $code, stderr: $(cat "$work/err")"
        bad=1
    fi
}
brief='--device cpu --threads 1 --budget-ms 5'
lost "'$rung' list >/dev/full"
lost "'$rung' version --format json >/dev/full"
lost "'$rung' bench $brief --against '' 8x8x8 -o /dev/full"
lost "'$rung' reduce --device cpu --quick --budget-ms 5 -o /dev/full 1000"
lost "'$rung' list -o /dev/full"
lost "'$rung' fuzz --device cpu --threads 1 --calls 5 --size 20 -o /dev/full"
lost "'$rung' run --report-file /dev/full -- true"
lost "'$rung' bench $brief --against '' -o '$work/results' 8x8x8 >&-"
grep -qv '^{"kind"' "$work/results" && { echo "a closed stdout went into the file of results"; bad=1; }
# shellcheck disable=SC2086
"$rung" bench $brief --against '' --kernel c01_naive -o "$work/results" 8x8x8 8x8x8:TN >/dev/null 2>"$work/said"
[ -s "$work/said" ] || { echo "a shape that is left out is not told of"; bad=1; }
# shellcheck disable=SC2086
"$rung" bench $brief --against '' --kernel c01_naive -o "$work/results" 8x8x8 8x8x8:TN >/dev/null 2>&-
grep -qv '^{"kind"' "$work/results" && { echo "a closed stderr went into the file of results"; bad=1; }
# Cold operands are as many as go over more than the caches, warm ones a few.
for cold in '' --cold; do
    # shellcheck disable=SC2086
    "$rung" bench $brief --against '' $cold -o "$work/sets" 8x8x8 >/dev/null
done
sets=$(sed -n 's/.*"operand_sets": \([0-9]*\).*/\1/p' "$work/sets" | tr '\n' ' ')
[ "$sets" = '4 256 ' ] || { echo "warm and cold take these sets of operands: $sets"; bad=1; }
"$rung" lens l01_naive 16x16x16 >/dev/null 2>&1 && lost "'$rung' profile --no-counters l01_naive 16x16x16 --output /dev/full"

# One check of sizes for every verb.
for verb in bench explain tune; do
    for size in 9223372036854775807x1x1 4294967296x4294967296x1 64x64x64+9223372036854775807; do
        refuses '2^62 bytes' $verb $size
    done
done
refuses '2^62 bytes' lens l01_naive 9223372036854775807x1x1
refuses '2^62 bytes' profile l01_naive 1x9223372036854775807x1
refuses '2^62 bytes' verify --device cpu --case NN:9223372036854775807x1x1:row
refuses '2^48' reduce 9223372036854775807
refuses '2^48' reduce 281474976710657
for most in 2^48 281474976710656; do # the longest is one that memory is asked for
    "$rung" reduce --device cpu --quick $most >"$work/out" 2>"$work/err"
    [ $? = 1 ] && grep -q 'no memory for operands' "$work/err" || { echo "reduce $most: $(cat "$work/err")"; bad=1; }
done
# A list is read whole or refused.
many() { # COUNT WORD
    awk -v count="$1" -v word="$2" 'BEGIN { while (count-- > 1) printf "%s,", word; print word }'
}
refuses 'at most 64 words' bench --device cpu --shapes "$(many 65 8x8x8)"
refuses 'and 2047 characters' bench --device cpu --shapes "$(many 60 000000000000000000000000000008x8x8)"
for letters in 2046 2047 2048 2049; do # of one word, which no kernel has for its name
    [ $letters -lt 2048 ] && words='no kernel of the reduce ladder' || words='and 2047 characters'
    refuses "$words" reduce --device cpu --kernel "$(many $letters x | tr , x | cut -c 1-$letters)"
done
refuses 'at most 8 words' bench --gpus "$(many 9 1)" 8x8x8
refuses 'at most 8 words' bench --gpus cpu1 --operands "$(many 9 host)" 8x8x8
refuses 'at most 8 words' bench --gpus cpu1 --panels "$(many 9 64)" 8x8x8
accepts '8x8x8' bench --gpus "cpu$(many 8 1)" --repeats 1 8x8x8
refuses 'at most 256 words' verify --device cpu --kernel "$(many 257 c01_naive)"
refuses 'at most 64 words' reduce --device cpu --kernel "$(many 65 r05_shuffle)"
for verb in bench verify climb explain; do
    refuses 'from 1 to 4096' $verb --threads 100000
    refuses "'0' is not a number from 1 to 4096" $verb --threads 0
done
refuses '2^62 bytes' explain 8x8x8:NNx99999999999 --pad 1099511627776
one="--device cpu --budget-ms 1 --against="
for sizes in "$one --no-verify 8x8x8:NNx99999999999 --pad=1099511627776" "$one 1073741824x1x1:NNx1073741823" '--distributed 1x1x100000000000000'; do
    case $sizes in --distributed*) [ -e "${rung%/bin/*}/lib/librung_mpi.so" ] || continue ;; esac # it is left out without MPI
    # shellcheck disable=SC2086
    "$rung" bench $sizes >"$work/out" 2>"$work/err"
    [ $? = 1 ] && grep -q '2^62 bytes\|no memory for operands' "$work/err" || { echo "bench $sizes: $(cat "$work/err")"; bad=1; }
done

# Every verb: -V, and -o for its rows.
for verb in list climb bench verify fuzz lens learn reduce explain doctor tune profile report run version help; do
    accepts '^rung [0-9].*(' $verb -V
    [ "$verb" = help ] || accepts '-o, --output' help $verb
done
# An option that takes a name says in its verb's help which names there are, or some and '...', and only those.
names=0
for verb in list climb bench verify fuzz lens learn reduce explain doctor tune profile report run version; do
    "$rung" help $verb | sed -n 's/^  --\([a-z-]*\) NAME  *\(.*\)/\1 \2/p' >"$work/options"
    while read -r option help; do
        "$rung" $verb "--$option" no/such/name 2>"$work/err" && { echo "$verb --$option takes any name"; bad=1; }
        case $help in *...*) continue ;; esac
        for name in $(sed -n 's/.*; there are: //p' "$work/err" | tr -d ,); do
            names=$((names + 1))
            echo "$help" | grep -qw -- "$name" || { echo "$verb --$option: the help has no word of $name"; bad=1; }
        done
    done <"$work/options"
done
[ $names -ge 100 ] || { echo "$names names of options"; bad=1; }
accepts 'c01_naive' list -o "$work/rows"
accepts 'CPU' doctor --output "$work/rows"
[ "$(grep -c '"kind": "list", "name": "c' "$work/rows")" -gt 1 ] && grep -q '"kind": "doctor", "what": "CPU"' "$work/rows" ||
    { echo "-o did not append the rows: $(cat "$work/rows")"; bad=1; }

# The variables for threads, the first that is set.
OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=3 accepts 'uses 3 threads' doctor
OPENBLAS_NUM_THREADS=3 RUNG_NUM_THREADS=2 accepts 'uses 2 threads' doctor

# A variable that means nothing is named, with what it may be. The drop-ins have no caller to tell: they say it once.
named() {
    words=$1
    shift
    "$@" >"$work/out" 2>"$work/err"
    [ $? != 0 ] && grep -q -- "$words" "$work/err" || { echo "$*: $(cat "$work/err")"; bad=1; }
}
export RUNG_NUM_THREADS=abc
named "RUNG_NUM_THREADS is 'abc': set it to a number from 1 to 4096" "$rung" bench --device cpu --budget-ms 1 8x8x8
accepts "RUNG_NUM_THREADS is 'abc'" doctor
RUNG_NUM_THREADS=99999 named "RUNG_NUM_THREADS is '99999'" "$rung" verify --device cpu --quick --kernel c01_naive
unset RUNG_NUM_THREADS
RUNG_CPU_FEATURES=avx512,avx3 named "RUNG_CPU_FEATURES is 'avx512,avx3': set it to avx512, avx2" "$rung" bench --device cpu --budget-ms 1 8x8x8
# A plan for another processor is one, and a timing by it says so, where rows are written (jansson).
RUNG_CPU_PLAN=zen named "RUNG_CPU_PLAN is 'zen': set it to zen1, zen3" "$rung" bench --device cpu --budget-ms 1 8x8x8
for plan in 'zen3 B packed, A in place' 'emerald B packed, C written by rows'; do
    RUNG_CPU_FEATURES=none RUNG_CPU_PLAN=${plan%% *} "$rung" explain --device cpu 1000x2000x41 | grep -q "${plan#* }" || { echo "not planned as on a $plan"; bad=1; }
done
RUNG_CPU_PLAN=zen3 "$rung" bench --device cpu --budget-ms 1 --against= 8x8x8 -o "$work/planned" >"$work/out" 2>&1
[ ! -e "$work/planned" ] || grep -q 'RUNG_CPU_PLAN=zen3 rung bench' "$work/planned" || { echo "a timing does not say whose plan it is of"; bad=1; }
RUNG_SEARCH_TILE=9x9 named "RUNG_SEARCH_TILE is '9x9': 128x256, 256x128, 128x128, 64x256, 64x128 and 64x64 are its tiles" "$rung" explain --gpu h200 --kernel l23_searched 1024x1024x1024
drop_in=$(dirname "$rung")/../lib/librung_blas.so
if [ -x "$2" ] && [ -e "$drop_in" ] && ldd "$rung" >/dev/null 2>&1; then
    # tells WORDS SETTING...: the program ends well, and stderr is one line with the words.
    tells() {
        words=$1
        shift
        env "$@" LD_PRELOAD="$drop_in" "$program" 5 2>"$work/err" || { echo "$*: the program failed: $(cat "$work/err")"; bad=1; }
        [ "$(wc -l <"$work/err")" = 1 ] && grep -q -- "$words" "$work/err" || { echo "$*: $(cat "$work/err")"; bad=1; }
    }
    program=$2
    tells "librung_blas.so: RUNG_MATH is 'Fast': strict, accurate or fast; strict is taken" RUNG_MATH=Fast
    tells "librung_blas.so: RUNG_DEVICE is 'tpu': cpu, gpu or a GPU's number; cpu is taken" RUNG_DEVICE=tpu
    tells "librung_blas.so: RUNG_DISABLE is 'true': 1 or 0; 0 is taken" RUNG_DISABLE=true
    tells "RUNG_DEVICE asks for a GPU: no NVIDIA driver: /nowhere.*; the CPU computes" RUNG_DEVICE=gpu0 RUNG_LIBCUDA=/nowhere
    tells "could not be written to /nowhere/report: No such file" RUNG_REPORT=/nowhere/report
    tells "could not be written to /dev/full: No space left" RUNG_REPORT=/dev/full
    env RUNG_NUM_THREADS=abc LD_PRELOAD="$drop_in" "$program" 5 2>"$work/err" # which has no other BLAS
    grep -q "RUNG_NUM_THREADS is 'abc'.*products are left to the other BLAS" "$work/err" || { echo "a wrong number of threads: $(cat "$work/err")"; bad=1; }
fi

# run: exit codes as shells have them, a report of all processes, also of CPU calls and of more shapes than are listed.
ends() {
    want=$1
    shift
    "$rung" run "$@" >"$work/out" 2>"$work/err"
    code=$?
    [ $code = "$want" ] || { echo "rung run $*: exit code $code, not $want: $(cat "$work/err")"; bad=1; }
}
ends 127 -- /missing
ends 126 -- /tmp
ends 127 --report -- /missing
ends 127 -- /dev/null/program # below what is no folder
ends 3 --report -- sh -c 'exit 3'
# A program with a report has each signal as it would have it without, also those that rung ignores or hands on.
for signal in HUP:129 INT:130 QUIT:131 TERM:143; do
    code=$("$rung" run --report -- sh -c "ulimit -c 0; kill -${signal%:*} \$\$; exit 9" >/dev/null 2>&1; echo $?)
    [ "$code" = "${signal#*:}" ] || { echo "a program with a report that ends by ${signal%:*}: exit code $code"; bad=1; }
done
# The program finds each signal as the command found it: ignored, as under nohup, or not.
for signal in HUP INT QUIT TERM PIPE CHLD; do
    alone=$(env "--ignore-signal=$signal" grep -E '^Sig(Ign|Blk)' /proc/self/status)
    under=$(env "--ignore-signal=$signal" "$rung" run --report-file "$work/report" -- grep -E '^Sig(Ign|Blk)' /proc/self/status)
    [ "$under" = "$alone" ] || { echo "rung run: with SIG$signal ignored the program has $under, not $alone"; bad=1; }
done
# Also where the ends of children are ignored, as by some who start programs, they are waited for.
code=$(env --ignore-signal=CHLD "$rung" run --report-file "$work/report" -- sh -c 'exit 5' >/dev/null 2>&1; echo $?)
[ "$code" = 5 ] || { echo "rung run: exit code $code, not 5, where the ends of children are ignored"; bad=1; }
# What a list of libraries had before comes behind the drop-ins; where it was empty nothing does, not even a colon.
for variable in LD_PRELOAD LD_AUDIT; do
    without=$(env -u "$variable" "$rung" run -- sh -c "echo \"\$$variable\"")
    empty=$(env "$variable=" "$rung" run -- sh -c "echo \"\$$variable\"")
    behind=$(env "$variable=libc.so.6" "$rung" run -- sh -c "echo \"\$$variable\"" 2>/dev/null)
    [ "$empty" = "$without" ] && case $empty in *:) false ;; esac || { echo "rung run: an empty $variable became '$empty', none '$without'"; bad=1; }
    [ "$behind" = "${without:+$without:}libc.so.6" ] || { echo "rung run: $variable=libc.so.6 became '$behind'"; bad=1; }
done
# A signal is handed on, and the program may take its time.
"$rung" run --report-file "$work/report" -- sh -c 'trap "sleep 0.5; echo ended >\"$1\"; exit 7" TERM; : >"$2"; while :; do sleep 0.1; done' sh "$work/ended" "$work/begun" 2>/dev/null &
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do [ -e "$work/begun" ] || sleep 0.5; done
kill -TERM $!
wait $!
code=$?
[ $code = 7 ] && [ -e "$work/ended" ] || { echo "a program that was told to end: exit code $code, not 7"; bad=1; }
if [ -e "$3" ]; then # also one that comes before rung knows the program's number
    for signal in TERM HUP; do
        code=$(LD_PRELOAD=$3 "$rung" run --report -- sh -c "kill -$signal \$PPID; sleep 2; exit 9" >/dev/null 2>&1; echo $?)
        case $signal$code in TERM143 | HUP129) ;; *) echo "a program that was told $signal at once: exit code $code"; bad=1 ;; esac
    done
fi
ends 2 --report-file /nonexistent/folder/file -- true
if ldd "$rung" >/dev/null 2>&1 && [ -e "$(dirname "$rung")/../lib/librung_blas.so" ]; then
    unset OPENBLAS_THREAD_TIMEOUT
    ends 0 -- sh -c 'echo "timeout $OPENBLAS_THREAD_TIMEOUT"'
    grep -q 'timeout 22' "$work/out" || { echo "OpenBLAS's workers spin on: $(cat "$work/out")"; bad=1; }
    OPENBLAS_THREAD_TIMEOUT=9 ends 0 -- sh -c 'echo "timeout $OPENBLAS_THREAD_TIMEOUT"'
    grep -q 'timeout 9' "$work/out" || { echo "what the user set was lost: $(cat "$work/out")"; bad=1; }
fi
ends 0 --report -- true
grep -q '0 calls answered' "$work/err" || { echo "no word of no calls: $(cat "$work/err")"; bad=1; }
if [ -x "$2" ]; then
    ends 0 --report-file "$work/report" -- sh -c "'$2' 5 && '$2' 6000; true"
    grep -q ': 5 calls answered, 0 handed on' "$work/report" && grep -q ': 12000 calls answered' "$work/report" &&
        grep -q '^sgemm_ .* answered\|^sgemm_ .*[a-z0-9]*_f32_' "$work/report" && grep -q ' more calls, of other shapes' "$work/report" ||
        { echo "the report of CPU calls: $(grep -v '^sgemm_' "$work/report")"; bad=1; }
    ends 0 --report-file "$work/letters" -- "$2" 6 # with N n, n T, T t, t C, C c, c N
    ops=$(sort -n -k 3 "$work/letters" | awk '$1 == "sgemm_" { printf "%s ", $2 }')
    [ "$ops" = 'NN NT TT TT TT TN ' ] || { echo "the report's orientations: $ops"; bad=1; }
    for report in letters report; do # what took the most time comes first, in each program's table
        awk '$1 == "entry" { last = 1e300 } $1 == "sgemm_" { us = $7 * $8; if (us > last + 0.01 * $7 + 0.01) exit 1; last = us }' "$work/$report" ||
            { echo "the report's order: $(head -20 "$work/$report")"; bad=1; }
    done
fi
# The caller's order, the format asked for, options that would do nothing, kernels that cannot run here.
accepts '^{"kernel": "l01_naive", .*"text": "l01_naive: .*floors' explain l01_naive 64x64x64 --format json
"$rung" verify --device cpu --kernel l01_naive >/dev/null 2>"$work/err"
[ $? = 1 ] && grep -q 'verify: l01_naive is a GPU kernel.*rung lens --check l01_naive' "$work/err" || { echo "verify of a GPU kernel: $(cat "$work/err")"; bad=1; }
accepts 'no_such\|CPU' doctor
grep -q gnuplot "$work/out" && { echo "doctor asks for gnuplot"; bad=1; }

# A narrow terminal gets narrow lines with the whole text in them; here as wide as python3's pty says.
if command -v python3 >/dev/null; then
    python3 - "$rung" >"$work/wide" <<'PYTHON' || { echo "a narrow terminal: $(tail -3 "$work/wide")"; bad=1; }
import fcntl, os, pty, struct, sys, termios
pid, terminal = pty.fork()
if pid == 0:
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 72, 0, 0))
    os.execvp(sys.argv[1], [sys.argv[1], "list", "--device", "cpu"])
text = b""
while True:
    try:
        part = os.read(terminal, 65536)
    except OSError:
        break
    if not part:
        break
    text += part
lines = text.decode().replace("\033[1m", "").replace("\033[0m", "").split("\r\n")
print(max(lines, key=len))
sys.exit(not (len(lines) > 10 and max(map(len, lines)) <= 72 and all(word in text.decode() for word in "outward: walks".split())))
PYTHON
fi

# Each peer's file is the one that its own variable names.
for peer in openblas openblas_pypi mkl aocl blis; do
    variable=RUNG_$(echo $peer | tr a-z A-Z)
    env "$variable=/nowhere/$peer.so" "$rung" bench --device cpu --threads 1 --budget-ms 1 --no-verify --against $peer 8x8x8 >"$work/out" 2>"$work/err"
    grep -q "$variable is '/nowhere/$peer.so', which cannot be loaded" "$work/err" || { echo "$variable is not what $peer is looked for by: $(cat "$work/err")"; bad=1; }
done

# What fuzz counts are all of its calls, and what is refused did not fail.
accepts 'passed' fuzz --device cpu --calls 300 --seed 3
said=$(sed -n 's/^300 calls of --seed 3: \([0-9]*\) passed, \([0-9]*\) refused, \([0-9]*\) failed$/\1 \2 \3/p' "$work/out" "$work/err")
set -- ${said:-0 0 1}
[ $(($1 + $2 + $3)) = 300 ] && [ "$2" -gt 0 ] && [ "$3" = 0 ] || { echo "fuzz of 300 right calls says: $said"; bad=1; }

# Doctor counts the rows that list shows.
if "$rung" doctor >"$work/out" 2>&1 && grep -q 'kernels in the catalog' "$work/out"; then
    counted=$(sed -n 's/.* \([0-9]*\) kernels in the catalog.*/\1/p' "$work/out") listed=$("$rung" list --device gpu --format csv | tail -n +2 | grep -c .)
    [ "$counted" = "$listed" ] || { echo "doctor counts $counted kernels of device code, list shows $listed"; bad=1; }
fi

# Ended by a signal, nothing is left behind.
own=$(dirname "$0")/lens/endless_loop.cu
if "$rung" lens l01_naive 16x16x16 >/dev/null 2>&1; then
    mkdir "$work/tmp"
    TMPDIR=$work/tmp "$rung" lens --file "$own" --tile 16x16 --threads 256 --all --patience 60 37x41x45 >/dev/null 2>&1 &
    while kill -0 $! 2>/dev/null && ! [ -e "$work"/tmp/rung-lens-*/own0.so ]; do sleep 0.2; done
    kill -TERM $!
    wait $!
    [ $? = 143 ] && [ -z "$(ls "$work/tmp")" ] || { echo "left behind after a signal: $(ls "$work/tmp")"; bad=1; }
fi
# A compiler that takes its time is ended with the command, which waits for that.
if [ -d "$work/tmp" ]; then
    printf '#!/bin/sh\necho $$ >"%s"\nexec sleep 40\n' "$work/compiles" >"$work/compiler"
    chmod +x "$work/compiler"
    for signal in TERM HUP; do
        rm -f "$work/compiles"
        RUNG_LENS_CXX=$work/compiler TMPDIR=$work/tmp "$rung" lens --file "$own" --tile 16x16 --threads 256 37x41x45 >/dev/null 2>&1 &
        while kill -0 $! 2>/dev/null && ! [ -s "$work/compiles" ]; do sleep 0.1; done
        before=$(date +%s)
        kill -$signal $!
        wait $!
        code=$? took=$(($(date +%s) - before))
        case $signal$code in TERM143 | HUP129) ;; *) echo "$signal while a compiler runs: exit code $code"; bad=1 ;; esac
        [ $took -lt 30 ] && ! kill -0 "$(cat "$work/compiles")" 2>/dev/null || { echo "$signal while a compiler runs: $took s, and the compiler goes on"; bad=1; }
    done
    [ -z "$(ls "$work/tmp")" ] || { echo "left behind by a compiler that was ended: $(ls "$work/tmp")"; bad=1; }
fi
# The keyboard's signal ends it while a compiler runs, too.
if [ -d "$work/tmp" ]; then
    TMPDIR=$work/tmp timeout -k 20 -s INT 1 "$rung" learn prove >/dev/null 2>&1
    [ $? = 124 ] && [ -z "$(ls "$work/tmp")" ] || { echo "learn prove after SIGINT: went on, or left $(ls "$work/tmp")"; bad=1; }
fi
NO_COLOR=1 "$rung" list | grep -q "$(printf '\033')" && { echo "colours in spite of NO_COLOR"; bad=1; }
exit $bad
