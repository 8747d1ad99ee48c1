#!/bin/sh
# Planted faults: each file of tests/faults is a small mistake that the suite must catch. Applies one after another to a copy of
# the sources, builds, runs the test that must fail, takes it back. usage: faults.sh SOURCE_DIR BUILD_FOLDER [NAME...]
# A file NAME.fault begins with "what: SENTENCE" and "test: REGEX" (of ctest, "tsan." and "asan." for those trees), then a patch.
# Prints caught or MISSED for each; exit 1 where one was missed or no longer applies. BUILD_FOLDER is kept for the next time.
set -u
source=$1 work=$2 missed=0 caught=0
shift 2
mkdir -p "$work/tree"
(cd "$source" && git ls-files | tar cf - -T -) | tar xf - -C "$work/tree" || exit 1 # what git does not know is no part of it
cd "$work/tree" || exit 1

preset() { case $1 in tsan.*) echo tsan ;; asan.*) echo asan ;; *) echo release ;; esac; }
make_tree() { # PRESET
    [ -f "build/$1/build.ninja" ] || cmake --preset "$1" >"$work/log" 2>&1 || return 1
    cmake --build "build/$1" >"$work/log" 2>&1
}

names=$*
[ -n "$names" ] || names=$(ls "$source/tests/faults" | sed -n 's/\.fault$//p')
for name in $names; do
    file=$source/tests/faults/$name.fault
    what=$(sed -n 's/^what: //p' "$file") test=$(sed -n 's/^test: //p' "$file")
    tree=$(preset "$test")
    make_tree "$tree" || { echo "the sources do not build:"; tail -n 5 "$work/log"; exit 1; }
    if ! patch -p1 -s -F 3 --no-backup-if-mismatch <"$file" >"$work/log" 2>&1; then
        verdict="MISSED (does not apply)" missed=$((missed + 1))
        (cd "$source" && git ls-files | tar cf - -T -) | tar xf - -C "$work/tree"
    else
        if ! make_tree "$tree"; then
            verdict="caught (by the compiler)" caught=$((caught + 1))
        elif RUNG_FAULTS=1 timeout 600 ctest --test-dir "build/$tree" -R "^($test)\$" --no-tests=error --timeout 300 >"$work/log" 2>&1; then
            verdict=MISSED missed=$((missed + 1))
        else
            verdict=caught caught=$((caught + 1))
        fi
        patch -p1 -s -R -F 3 --no-backup-if-mismatch <"$file" >/dev/null || exit 1
    fi
    printf '%-26s %-30s %-24s %s\n' "$verdict" "$name" "$test" "$what"
done
echo "$caught caught, $missed missed"
[ $missed = 0 ]
