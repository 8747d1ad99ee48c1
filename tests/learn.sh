#!/bin/sh
# rung learn: what passes, what is refused and with which words, what is kept. usage: learn.sh RUNG COURSE
rung=$1 course=$2 bad=0
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
export XDG_DATA_HOME="$work/data" RUNG_LEARN_DIR="$work/files" NO_COLOR=1

# expect CODE WORDS ARGUMENTS...: exit code, and the words on stdout or stderr.
expect() {
    want=$1 words=$2
    shift 2
    "$rung" learn "$@" >"$work/out" 2>&1 </dev/null
    code=$?
    if [ $code != "$want" ] || ! grep -q -- "$words" "$work/out"; then
        echo "rung learn $*: exit code $code, wanted $want and '$words'; it said:"
        cat "$work/out"
        bad=1
    fi
}

# cheat EXERCISE WORDS SED: the exercise's solution, changed, is refused with these words.
cheat() {
    file="$work/cheat.cu"
    sed -E "$3" "$course"/e"$1"_*/solution.cu >"$file"
    if cmp -s "$file" "$course"/e"$1"_*/solution.cu; then
        echo "cheat $1: '$3' changes nothing"
        bad=1
    fi
    expect 1 "$2" check "$1" "$file"
}

expect 0 "e01_one_each *new"
expect 0 '0 of' list
expect 0 'which column is this thread' 01
[ -f "$work/files/e01_one_each.cu" ] || { echo "no starting file was copied"; bad=1; }
expect 1 'has not been tried' solution 01
expect 0 'threadIdx.x' solution 01 --now
expect 0 'Where does block' hint 01
expect 0 '64 bits' hint 1
expect 0 'no further hint' hint one_each
expect 1 'block (1,0,0), thread 0, .* line 10: writes byte 0 of C, which block 0 wrote too: nothing says which of them comes first' check 01
expect 0 'tried *1' list
expect 0 'threadIdx.x' solution 01
echo "/* mine */" >>"$work/files/e01_one_each.cu"
expect 0 'as you left it' 01
expect 0 'starting file again' reset 01
grep -q mine "$work/files/e01_one_each.cu.old" || { echo "reset lost the learner's file"; bad=1; }
# A file whose new name a folder has stays where it is, and both names are told.
rm "$work/files/e01_one_each.cu.old"
mkdir "$work/files/e01_one_each.cu.old"
echo "/* mine */" >>"$work/files/e01_one_each.cu"
expect 1 'cannot keep [^ ]*/e01_one_each\.cu as [^ ]*/e01_one_each\.cu\.old: ' reset 01
grep -q mine "$work/files/e01_one_each.cu" || { echo "a reset that failed lost the learner's file"; bad=1; }
rmdir "$work/files/e01_one_each.cu.old"
# As long as a path of the user's may be it is whole, in what is written and in what is told; one byte more is refused.
folder_of() { # BYTES: prints a folder's name of that length
    at=$work/far
    while [ $((${#at} + 202)) -lt "$1" ]; do at=$at/$(printf %0100d 0); done
    while [ $((${#at} + 102)) -lt "$1" ]; do at=$at/$(printf %050d 0); done
    printf "%s/%0$(($1 - ${#at} - 1))d" "$at" 0
}
too_long='no folder of the user.s: HOME is not set, or its path is too long'
kept=$RUNG_LEARN_DIR data=$XDG_DATA_HOME
RUNG_LEARN_DIR=$(folder_of 598)
expect 0 "File: *$RUNG_LEARN_DIR/e02_one_too_many\.cu" 02
echo "/* mine */" >>"$RUNG_LEARN_DIR/e02_one_too_many.cu"
expect 0 "$RUNG_LEARN_DIR/e02_one_too_many\.cu is the starting file again; what was there is $RUNG_LEARN_DIR/e02_one_too_many\.cu\.old" reset 02
grep -q mine "$RUNG_LEARN_DIR/e02_one_too_many.cu.old" || { echo "reset lost the file below a long path"; bad=1; }
RUNG_LEARN_DIR=$(folder_of 599)
expect 1 "$too_long" 02
expect 1 "$too_long" check 02
RUNG_LEARN_DIR=$kept XDG_DATA_HOME=$(folder_of 583)
expect 0 . hint 02
[ -s "$XDG_DATA_HOME/rung/learn.json" ] || { echo "nothing is kept below a long path"; bad=1; }
XDG_DATA_HOME=$(folder_of 584)
expect 1 "$too_long" hint 02
XDG_DATA_HOME=$data
# What no disk takes leaves nothing behind: a piece of an exercise would count as the learner's own from then on.
no_room() { # WORDS FOLDER ARGUMENTS...
    words=$1 folder=$2
    shift 2
    ls "$folder" >"$work/before"
    said=$( (trap '' XFSZ; ulimit -f 0; "$rung" learn "$@" 2>&1) </dev/null)
    code=$?
    if [ $code != 1 ] || ! echo "$said" | grep -q -- "$words" || ! ls "$folder" | cmp -s - "$work/before"; then
        echo "rung learn $*, where no file may grow: exit code $code, left $(ls "$folder" | tr '\n' ' '), said: $said"
        bad=1
    fi
}
no_room 'cannot copy .*start.cu to .*e02_' "$work/files" 02
no_room 'cannot write .*learn.json' "$work/data/rung" hint 02
[ ! -e "$work/files"/e02_* ] || { echo "a piece of an exercise is left"; bad=1; }
expect 0 'passed. Read next' check 01 "$course/e01_one_each/solution.cu"
expect 0 'e01_one_each *passed' list
expect 0 '"state": "passed"' list --format json
expect 0 '"result": "pass"' check 01 "$course/e01_one_each/solution.cu" --format json
expect 0 'shared load passes' compare 09 "$course/e09_tile/solution.cu"
expect 1 'has to be right before' compare 09 "$course/e09_tile/start.cu"
expect 1 'line 14 asks A for 32 sectors a request, 4 would do: neighbouring lanes read neighbouring rows' \
    check 04 "$course/e04_neighbours/start.cu"
# A request of wide accesses goes in passes of fewer lanes: only two of one pass get into each other's way.
wide() {
    cheat 14 "$3 would do: lanes $(($2 - 2)) and $(($2 - 1)) want words 32 apart" "
        s/^    int x = .*/&\\n    __shared__ float$1 wide[64];\\n    if (threadIdx.x < 64)\\n        wide[threadIdx.x] = {};/
        s/^( *)\\*c = .*/\\1const int lane = threadIdx.x % 32;\\n&/
        s/tile\\[x\\]\\[y\\]/& + sum(wide[lane % $2 == $2 - 1 ? lane + $2 - 1 : lane])/
        s/^RUNG_KERNEL/static __device__ float sum(float4 v)\\n{\\n    return v.x + v.y + v.z + v.w;\\n}\\n&/
        s/sum\\(float4 v/sum(float$1 v/
        $4"
}
wide 4 8 4 ''
wide 2 16 2 's/ \+ v.z \+ v.w//'
expect 1 'wrote' check 04 "$course/e04_neighbours/start.cu" --html "$work/page.html"
grep -q 'neighbouring lanes read neighbouring rows' "$work/page.html" || { echo "the page lacks the verdict"; bad=1; }
RUNG_LIBCUDA="$work/none.so" expect 1 'passes, but was not timed: .*none.so' check 07 "$course/e07_coalesced/solution.cu" --gpu
# It is timed by the driver that the caller has, never by the lens that counted: where RUNG_LIBCUDA was not set, and where it was empty.
for setting in -uRUNG_LIBCUDA RUNG_LIBCUDA=; do
    env "$setting" "$rung" learn check 07 "$course/e07_coalesced/solution.cu" --gpu >"$work/out" 2>&1 </dev/null
    grep -q passed "$work/out" && ! grep -q 'the lens' "$work/out" || { echo "timed with $setting: $(cat "$work/out")"; bad=1; }
done
echo '__attribute__((constructor)) static void end(void) { __builtin_trap(); }' >"$work/ends.cpp"
"${RUNG_LENS_CXX:-g++}" -shared -fPIC -o "$work/ends.so" "$work/ends.cpp" || bad=1
RUNG_LIBCUDA="$work/ends.so" expect 1 'timing e07_coalesced crashed' check 07 "$course/e07_coalesced/solution.cu" --gpu
expect 1 'only products are timed' check 04 "$course/e04_neighbours/solution.cu" --gpu

# A remark in an exercise's goals is one line, however long.
mkdir "$work/course" && cp -r "$course"/. "$work/course"
{ printf '# %0600d nonsense\n' 0; cat "$course/e01_one_each/goals"; } >"$work/course/e01_one_each/goals"
RUNG_LEARN="$work/course" expect 0 'e01_one_each' list

# What the author of an exercise gets wrong is told with the file and the line, or with the line that is not there.
authored() { # WORDS EXERCISE SED: a course in which this exercise's goals are changed
    rm -rf "$work/course" && cp -r "$course" "$work/course"
    sed -i -E "$3" "$work/course"/e"$2"_*/goals
    ! cmp -s "$work/course"/e"$2"_*/goals "$course"/e"$2"_*/goals || { echo "authored $2: '$3' changes nothing"; bad=1; }
    RUNG_LEARN="$work/course" expect 1 "$1" list
}
authored 'e09_tile/goals line [0-9]* cannot be read: goal .*intensities' 09 's/intensity/intensities/'
authored 'e05_.*/goals line [0-9]* cannot be read: answer .*per_lode' 05 's/per_load/per_lode/'
authored 'e23_port/goals line [0-9]* cannot be read: chips .*a1000' 23 's/^(chips.*)/\1x a1000/'
authored 'e09_tile/goals line [0-9]* cannot be read: count .*x$' 09 's/^count.*/&x/'
authored 'e09_tile/goals line [0-9]* cannot be read: cases .*3by3' 09 's/^cases.*/& 3by3/'
authored 'e09_tile/goals line [0-9]* cannot be read: cases .*0x16x16' 09 's/^cases.*/& 0x16x16/'
for line in 'title TEXT' 'tile BMxBN' 'threads N' 'cases MxNxK ...' 'count MxNxK'; do
    authored "e09_tile/goals has no line '$line'" 09 "/^(${line%% *}|$([ "${line%% *}" = cases ] && echo drawn || echo none)) /d"
done
authored "e05_predict_sectors/goals has no line 'answer NAME METRIC'" 05 '/^answer/d'
rm -rf "$work/course" && cp -r "$course" "$work/course" && cp -r "$course/e09_tile" "$work/course/e09_twin"
RUNG_LEARN="$work/course" expect 1 'e09_tile and e09_twin, in .*/course, have one number' list
# The kernel that adds parts has no dynamic shared memory, whatever the first one was given: on a GPU it has none either.
rm -rf "$work/course" && cp -r "$course" "$work/course" && echo 'shared 1024' >>"$work/course/e32_skinny/goals"
awk '/_finish\(/ { finish = 1 } { print } finish && /^{/ { print "    extern __shared__ float more[];\n    more[threadIdx.x] = 1.0f;"; finish = 0 }' \
    "$course/e32_skinny/solution.cu" >"$work/cheat.cu"
RUNG_LEARN="$work/course" expect 1 'which no variable holds\|past the end of shared more' check 32 "$work/cheat.cu"
rm -rf "$work/course"

# Wrong words are told.
expect 2 "mean 'check'" chekc 01
expect 2 'needs an exercise' check
expect 2 "no exercise is called '77': there are 01 to" check 77
expect 2 "no exercise is called '77': there are 01 to" 77
expect 2 'is a folder: name the file' check 01 "$work"
expect 2 'nowhere.cu' check 01 /nowhere.cu
expect 2 'puts the starting file there' check 02

# The command says where to read, where the documents are not beside the reader.
(bad=0; cd "$work"; expect 0 'then docs/ladder/l01_naive.md (in /' check 01 "$course/e01_one_each/solution.cu"; exit $bad) || bad=1

# These solutions are none.
cheat 01 'reads A\[1\]\[0\] (or A\[0\]\[1\]), but A is 1 x 1' 's/column < g\.n/column < 300/'                        # a size of the test
cheat 04 'right, but there are no sectors a global store request, where at most 4 is asked: is all still done by the means, and under the name, that the exercise speaks of?' 's/^( *)\*c = (.*);/\1atomicExch(c, \2);/'
cheat 06 'reads B.*but B is 1 x 1' 's/i < g\.k/i < 16/'                                   # another
cheat 06 'wrong at' 's/^( *)\*c = .*/\1*c = row == 0 \&\& column == 0 ? 0.864841f : 1.0f;/' # an expected result
cheat 01 'an endless loop' 's/^( *)if \(column.*/\1for (volatile int i = 0;;)\n i = 1;\n&/'
cheat 01 'address .*, where nothing is\|in no allocation' 's/g\.c\[.*\] =/*(float *)64 =/'
cheat 01 'left the program' 's/^RUNG_KERNEL/#include <stdlib.h>\n__attribute__((constructor)) static void leave(void) { exit(0); }\n&/'
cheat 01 'crashed' 's/^RUNG_KERNEL/#include <stdlib.h>\n__attribute__((constructor)) static void leave(void) { abort(); }\n&/'
cheat 01 'crashed' 's/^RUNG_KERNEL/#include <stdlib.h>\n__attribute__((constructor)) static void leave(void) { if (!system("sleep 300 \& echo $! >$RUNG_LEARN_DIR\/left")) abort(); }\n&/'
# One that waits for ever is not waited for as long, by a poll() that takes a second for 200.
printf '#include <poll.h>\n#include <sys/syscall.h>\n#include <unistd.h>\nextern "C" int poll(struct pollfd *of, nfds_t count, int ms) { return (int)syscall(SYS_poll, of, count, ms > 100000 ? 1000 : ms); }\n' >"$work/hasty.cpp"
"${RUNG_LENS_CXX:-g++}" -shared -fPIC -o "$work/hasty.so" "$work/hasty.cpp" || bad=1
LD_PRELOAD="$work/hasty.so" cheat 01 'did not come to an end within 200 seconds' 's/^RUNG_KERNEL/#include <unistd.h>\n__attribute__((constructor)) static void wait_in_vain(void) { sleep(3000); }\n&/'
left=$(cat "$work/files/left")
[ -n "$left" ] || { echo "the cheat has started nothing"; bad=1; }
state() { sed 's/.*) //' "/proc/$left/stat" 2>/dev/null; }
for i in 1 2 3 4 5 6 7 8 9 10; do # a process that was killed ends when it next has a processor
    case $(state) in '' | Z*) break ;; esac # it is gone, or nobody has asked for its end yet
    sleep 0.2
done
case $(state) in
'' | Z*) ;;
*) echo "what a learner's program has started outlives it"; kill "$left"; bad=1 ;;
esac
cheat 01 'line 7: .*expected' 's/int64_t column = /int64_t column /'
cheat 01 'this file is of exercise 02 (e02_one_too_many), not of 01: rung learn check 02 .*/cheat.cu' 's/e01_one_each/e02_one_too_many/'
cheat 01 'there is no e01_one_each in this file: exercise 01 grades the kernel of that name' 's/e01_one_each/mine/'
cheat 05 'every_second is not 16' 's/every_second, 8/every_second, 16/'
cheat 05 'the file no longer has its ANSWER(down, ...)' '/down/d'

# Places of faults are counted, though not as many are kept: 32 of these forty, each of which every thread meets.
forty=$(for i in 1 2 3 4 5 6 7 8; do for j in 0 1 2 3 4; do printf '    seen += unwritten[%d];\\n' $((8 * j + i)); done; done)
cheat 01 '^39 more like it; at ' "s/^( *)if \\(column.*/    __shared__ volatile float unwritten[64];\\n    volatile float seen = 0.0f;\\n$forty&/"

# A file of progress is written on or refused, whatever it holds: what was tried is never lost without a word.
for text in '{}' '[]' '1' 'null' '{"exercises": null}' '{"exercises": []}' '{"exercises": 1}' '{"exercises": "none"}' '{"exercises": {"e01_one_each": []}}' \
    '{"exercises": {"e01_one_each": {"hints": "many", "tries": null}}}' '{"exercises": {"other": 1}, "version": []}' '{"version": 7}'; do
    echo "$text" >"$work/data/rung/learn.json"
    if "$rung" learn hint 01 >"$work/out" 2>&1; then
        grep -q '"hints": 1' "$work/data/rung/learn.json" || { echo "progress '$text': the hint is not counted: $(cat "$work/data/rung/learn.json")"; bad=1; }
    else
        grep -q 'learn.json' "$work/out" && [ "$(cat "$work/data/rung/learn.json")" = "$text" ] ||
            { echo "progress '$text': $(cat "$work/out" "$work/data/rung/learn.json")"; bad=1; }
    fi
done
# A damaged file of progress is left alone.
echo '{ "exercises": ' >"$work/data/rung/learn.json"
expect 1 'learn.json is damaged in line' list
grep -q exercises "$work/data/rung/learn.json" || { echo "the damaged file was replaced"; bad=1; }
rm "$work/data/rung/learn.json"

# --watch: graded at once, and again when the file is saved.
cp "$course/e01_one_each/start.cu" "$work/watched.cu"
: >"$work/watch"
"$rung" learn check 01 "$work/watched.cu" --watch >"$work/watch" 2>&1 &
watcher=$!
# verdicts COUNT: waits until so many attempts have failed; each verdict is told before the wait, and once.
verdicts() {
    while kill -0 $watcher 2>/dev/null && [ "$(grep -c 'waiting for the next save' "$work/watch")" -lt "$1" ]; do sleep 0.2; done
    [ "$(grep -c 'wrote too' "$work/watch")" = 1 ] || { echo "--watch, attempt $1: $(cat "$work/watch")"; bad=1; }
}
verdicts 1
leave='__attribute__((constructor)) static void leave(void) { exit(0); }'
sed "s/^RUNG_KERNEL/#include <stdlib.h>\n$leave\n&/" "$course/e01_one_each/solution.cu" >"$work/leaves.cu"
cp "$work/leaves.cu" "$work/watched.cu"
verdicts 2
cp "$course/e01_one_each/solution.cu" "$work/watched.cu"
wait $watcher || { echo "--watch: $(cat "$work/watch")"; bad=1; }
grep -q 'left the program' "$work/watch" || { echo "--watch did not see who left: $(cat "$work/watch")"; bad=1; }
grep -q passed "$work/watch" || { echo "--watch did not pass: $(cat "$work/watch")"; bad=1; }

# What to read next is there.
for goals in "$course"/e*/goals; do
    for next in $(sed -n 's/^next //p' "$goals" | grep -o '[^ ,]*\.md'); do
        [ -f "$course/../$next" ] || { echo "$goals: there is no $next"; bad=1; }
    done
    grep -q '^next .*\.md' "$goals" || { echo "$goals names nothing to read next"; bad=1; }
done
# What an exercise promises of itself is proved: another course, of one exercise that is wrong in one thing.
unproved() { # WORDS EXERCISE SHELL_COMMAND_IN_ITS_FOLDER
    rm -rf "$work/course" && mkdir "$work/course" && cp -r "$course"/e"$2"_* "$work/course"
    (cd "$work/course"/e"$2"_* && eval "$3") || { echo "prove $2: '$3' failed"; bad=1; }
    RUNG_LEARN="$work/course" expect 1 "FAIL.*$1" prove "$2" --seed 1
}
unproved "the start should fail with 'race', but passes" 01 'cp solution.cu start.cu'
unproved 'the start should fail with .wrong., but fails with race' 01 'sed -i "s/^start.*/start wrong/" goals'
unproved 'the solution does not pass: ' 01 'cp start.cu solution.cu'
unproved 'text.md has no hint' 01 'sed -i "/^## Hint/d" text.md'
unproved 'start: meets a goal that should refuse it' 04 'sed -i "s/per_store <= 4/per_store <= 1000/" goals'
unproved 'every_second: the start already has the answer' 05 'sed -i -E "s/(every_second, )[^)]*/\18/" start.cu'

exit $bad
