#!/bin/sh
# ./dev on machines that this one is not: stand-ins for apt-get, dpkg-query, id, cmake and ctest play a package that cannot be had, no
# network, no root, packages that appear later, no Debian. usage: dev.sh SOURCE_DIR
set -u
source=$1 failed=0
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
real_path=$PATH
unset CI # what it changes is tried below

# Makes a machine: its own copy of what ./dev reads, and a PATH with common tools and stand-ins only.
machine() { # UID PACKAGE...: what is installed from the start
    rm -rf "${work:?}/tree" "${work:?}/bin" "${work:?}/state"
    mkdir -p "$work/tree/packaging" "$work/tree/tests" "$work/bin" "$work/state"
    cp "$source/dev" "$source/CMakePresets.json" "$work/tree"
    cp "$source"/packaging/*.txt "$work/tree/packaging"
    cp "$source/tests/table.sh" "$work/tree/tests"
    for tool in sh awk sed grep cat tr cp rm mkdir ls stat cksum cmp dirname basename sort mktemp wc touch head chmod env seq tail sleep; do
        ln -s "$(PATH=$real_path command -v $tool)" "$work/bin/$tool"
    done
    echo "$1" >"$work/state/uid"
    shift
    : >"$work/state/unavailable"
    : >"$work/state/log"
    : >"$work/state/installed"
    stand_ins
    for package in "$@"; do has "$package"; done
}

has() { # PACKAGE: appears
    echo "$1" >>"$work/state/installed"
    case $1 in
    cmake) cp "$work/state/cmake" "$work/bin/cmake" ;;
    ninja-build) printf '#!/bin/sh\n' >"$work/bin/ninja" && chmod +x "$work/bin/ninja" ;;
    gcc) printf '#!/bin/sh\n' >"$work/bin/cc" && chmod +x "$work/bin/cc" ;;
    esac
}

stand_ins() {
    export STATE="$work/state" BIN="$work/bin"
    cat >"$work/bin/id" <<'TOOL'
#!/bin/sh
cat "$STATE/uid"
TOOL
    cat >"$work/bin/nproc" <<'TOOL'
#!/bin/sh
echo 2
TOOL
    cat >"$work/bin/dpkg-query" <<'TOOL'
#!/bin/sh
shift 2
for package in "$@"; do
    grep -qxF "$package" "$STATE/installed" || { missing=1; continue; }
    echo "$package 1 installed"
done
exit ${missing:-0}
TOOL
    cat >"$work/bin/apt-get" <<'TOOL'
#!/bin/sh
echo "apt-get $*" >>"$STATE/log"
[ "$(cat "$STATE/uid")" = 0 ] || { echo "are you root?" >&2; exit 100; }
[ ! -e "$STATE/no-network" ] || { echo "could not resolve the mirror" >&2; exit 100; }
[ "$1" = install ] || exit 0
if [ -e "$STATE/slow" ]; then
    printf '%s\n' "0 upgraded, 7 newly installed, 0 to remove and 0 not upgraded." "Get:1 a" "Get:2 b" "Unpacking a (1) ..."
    until grep -q "of 7 packages" "$STATE/../out"; do sleep 0.1; done
fi
for word in "$@"; do
    case $word in install | -*) continue ;; esac
    if grep -qxF "$word" "$STATE/unavailable"; then echo "no candidate for $word" >&2; exit 100; fi
done
for word in "$@"; do
    case $word in
    install | -*) continue ;;
    cmake) cp "$STATE/cmake" "$BIN/cmake" ;;
    ninja-build) printf '#!/bin/sh\n' >"$BIN/ninja" && chmod +x "$BIN/ninja" ;;
    gcc) printf '#!/bin/sh\n' >"$BIN/cc" && chmod +x "$BIN/cc" ;;
    esac
    echo "$word" >>"$STATE/installed"
done
TOOL
    cat >"$work/state/cmake" <<'TOOL'
#!/bin/sh
echo "cmake $*" >>"$STATE/log"
case $1 in
--preset)
    mkdir -p "build/$2/bin"
    if grep -qxF libjansson-dev "$STATE/installed"; then
        echo RUNG_HAVE_JANSSON >"build/$2/build.ninja"
    else
        echo "-- Report: left out, no jansson found (libjansson-dev)"
        echo >"build/$2/build.ninja"
    fi
    [ "$2" != asan ] || echo "-- Lens: left out, a sanitizer" ;;
--build)
    printf '#!/bin/sh\necho "rung $*" >>"$STATE/log"\necho a table\n[ "$4" ] || [ "$2" != --report ] || echo "charts: $3" >&2\n' >"$2/bin/rung"
    chmod +x "$2/bin/rung" ;;
esac
TOOL
    cat >"$work/bin/ctest" <<'TOOL'
#!/bin/sh
echo "ctest $*" >>"$STATE/log"
grep -l "^PPid:[[:space:]]*$PPID\$" /proc/[0-9]*/status 2>/dev/null | wc -l >"$STATE/beside" # it is one of them
case " $* " in
*" --print-labels "*)
    printf '  %s\n' "All Labels:" release/limit release/test_bits
    case "$*" in *asan.fuzz*) echo "  asan/all" ;; esac
    exit ;;
*" -N "*)
    printf '  Test %s\n' "  #7: bits" " #31: fuzz_cpu" "#208: asan.fuzz_cpu"
    echo "Total Tests: 3"
    exit ;;
esac
[ -z "${NONE:-}" ] || { echo "no tests were run" && exit 8; }
while [ $# -gt 1 ]; do [ "$1" != --output-junit ] || out=$2; shift; done
cat >"$out" <<XML
<testsuite name="x">
	<testcase name="one" classname="one" time="0.1" status="run">
		<system-out>a figure
left out: its page, no browser
</system-out>
	</testcase>
	<testcase name="two" classname="two" time="0.1" status="${TWO:-run}">
		<failure message=""/>
		<system-out>it broke</system-out>
	</testcase>
	<testcase name="three" classname="three" time="0" status="notrun">
		<skipped message="SKIP_RETURN_CODE=77"/>
		<system-out>left out: no GPU</system-out>
	</testcase>
</testsuite>
XML
[ "${TWO:-run}" = run ]
TOOL
    chmod +x "$work"/bin/* "$work/state/cmake"
}

# look NAME EXIT_CODE LAST_LINE_PATTERN ARGUMENT...: runs ./dev; its output stays in $work/out
look() {
    name=$1 want=$2 last=$3
    shift 3
    (cd "$work/tree" && PATH=$work/bin ./dev "$@") >"$work/out" 2>&1 </dev/null
    got=$?
    if [ $got -eq "$want" ] && tail -n 1 "$work/out" | grep -qE -e "$last"; then
        echo "ok   $name"
    else
        echo "FAIL $name: exit $got, wanted $want and a last line like '$last'; it said:"
        cat "$work/out"
        failed=1
    fi
}
says() { grep -qE -e "$1" "$work/out" || { echo "FAIL $name: it does not say '$1', but:"; cat "$work/out"; failed=1; }; }
logged() { grep -qE -e "$1" "$work/state/log" || { echo "FAIL $name: nothing like '$1' was called, but:"; cat "$work/state/log"; failed=1; }; }
not_logged() { ! grep -qE -e "$1" "$work/state/log" || { echo "FAIL $name: '$1' was called:"; cat "$work/state/log"; failed=1; }; }
forget() { : >"$work/state/log"; }

tools="cmake ninja-build gcc libc6-dev"
everything=$(sed -n 's/^\([a-z0-9][a-z0-9.+-]*\).*/\1/p' "$source/packaging/debian-12.txt")

machine 0
look "a bare machine, root" 0 "^charts: /.*/build/report.html$" run
[ "$(grep -c report.html "$work/out")" = 1 ] || { echo "FAIL $name: it names its report more than once"; cat "$work/out"; failed=1; }
logged "^apt-get install .* libjansson-dev"
logged "^cmake --build build/release .*--target rung_run$"
logged "^rung climb --report /.*/build/report.html$"
forget
look "again" 0 "^charts: /" run
not_logged "apt-get|--preset"
[ "$(sed -n '/^cmake/{p;q}' "$work/state/log")" = "cmake --build build/release --target build.ninja" ] ||
    { echo "FAIL: a change of the project's CMake files is not looked for first"; cat "$work/state/log"; failed=1; }

machine 0
touch "$work/state/slow"
printf '#!/bin/sh\nexec "%s" 0.1\n' "$(command -v sleep)" >"$work/state/sleep" && chmod +x "$work/state/sleep"
mv "$work/state/sleep" "$work/bin/sleep"
look "packages that take long" 0 "^charts: /" run
says "^  of 7 packages 2 are fetched, 1 unpacked, 0 ready$"

machine 0
echo libblis4-pthread >"$work/state/unavailable"
look "a package that cannot be had" 0 "^charts: /" run
says "Not to be had: libblis4-pthread .*; apt-get: no candidate for libblis4-pthread"
grep -qx g++ "$work/state/installed" || { echo "FAIL: it keeps other packages away"; failed=1; }
says "Going on without: libblis4-pthread"
forget
look "which is asked for once" 0 "^charts: /" run
not_logged "apt-get"
look "the help of run makes no report" 0 "a table" run --help
forget
look "the help of test builds nothing" 0 "RUNG_JOBS how many compile at once" test --help
not_logged "cmake|ctest"

machine 0
echo libjansson-dev >"$work/state/unavailable"
look "no jansson: a table and no report" 0 "No report was made: libjansson-dev" run
says "^a table$"
logged "^rung climb$"

# shellcheck disable=SC2086
machine 0 $tools
touch "$work/state/no-network"
look "no network, compiler there" 0 "No report" run
says "is there a network"
says "Going on without: .*g\+\+"
forget
rm "$work/state/no-network"
look "which is not asked for again" 0 "No report" run
not_logged "apt-get"
look "until setup does" 0 "" setup
look "the network is back" 0 "^charts: /" run
machine 0
touch "$work/state/no-network"
look "no network, no compiler" 1 "Without cmake ninja-build gcc libc6-dev nothing can be built" run

# shellcheck disable=SC2086
machine 1000 $tools
look "no root, compiler there" 0 "No report" run
says "^  apt-get update && apt-get install --no-install-recommends .*libjansson-dev"
not_logged "apt-get"
forget
has libjansson-dev
touch "$work/tree/build/release/CMakeCache.txt"
look "a package that appears later" 0 "^charts: /" run
logged "^cmake --preset release"
[ ! -e "$work/tree/build/release/CMakeCache.txt" ] || { echo "FAIL: what was found before is taken for granted"; failed=1; }
not_logged "apt-get"

# Compilers and toolkits that a configuration was made with come, go, or are other ones at the same path.
tool() { mkdir -p "$(dirname "$1")" && printf '#!/bin/sh\n# %s\n' "$2" >"$1" && chmod +x "$1"; } # PATH VERSION
configures_again() { # NAME
    forget
    look "$1" 0 "^charts: /" run
    logged "^cmake --preset release"
}
look "nothing new" 0 "^charts: /" run
tool "$work/bin/cc" 12.2.0
configures_again "a compiler in another one's place"
tool "$work/bin/nvcc" 13.0
configures_again "a toolkit that appears later"
tool "$work/bin/nvcc" 13.10
configures_again "a toolkit in another one's place"
rm "$work/bin/nvcc"
configures_again "a toolkit that is gone"
tool "$work/tree/.cuda/lib/python3.11/site-packages/nvidia/cu13/bin/nvcc" 13.0
configures_again "a toolkit that ./dev setup --cuda put there"
export CUDA_HOME="$work/state/toolkit"
look "CUDA_HOME without a toolkit" 0 "^charts: /" run
tool "$CUDA_HOME/bin/nvcc" 13.0
configures_again "a toolkit that appears in CUDA_HOME"
unset CUDA_HOME
configures_again "CUDA_HOME is gone"
export RUNG_CUDA_ARCHS=80
configures_again "device code for a chip is asked for"
export RUNG_CUDA_ARCHS="80;90a"
configures_again "device code for another chip is asked for"
unset RUNG_CUDA_ARCHS
configures_again "no chip is asked for any more"
forget
printf '#!/bin/sh\necho 9.0\n' >"$work/bin/nvidia-smi" && chmod +x "$work/bin/nvidia-smi"
look "a GPU that appears later" 0 "^charts: /" run
logged "^cmake --preset release"
forget
printf '#!/bin/sh\necho 8.0\n' >"$work/bin/nvidia-smi"
look "another GPU in its place" 0 "^charts: /" run
logged "^cmake --preset release"
forget
rm "$work/bin/nvidia-smi"
look "a GPU that is gone" 0 "^charts: /" run
logged "^cmake --preset release"
forget
look "nothing new" 0 "^charts: /" run
not_logged "--preset"
mv "$work/tree" "$work/moved" && ln -s moved "$work/tree"
configures_again "a tree that was moved with what it had built"
rm -rf "$work/moved"

# shellcheck disable=SC2086
machine 1000 $tools
cat >"$work/bin/sudo" <<'TOOL'
#!/bin/sh
[ ! -e "$STATE/password" ] || { echo "a password is required" >&2; exit 1; }
[ "$1" != -n ] || shift
echo 0 >"$STATE/uid"
"$@"
code=$?
echo 1000 >"$STATE/uid"
exit $code
TOOL
chmod +x "$work/bin/sudo"
touch "$work/state/password"
look "sudo that asks for a password, and nobody to give it" 0 "No report" run
not_logged "apt-get"
rm "$work/state/password" "$work/tree/build/.setup-asked"
look "sudo" 0 "^charts: /" run
logged "^apt-get install .* libjansson-dev"
machine 1000
look "no root, no compiler" 1 "nothing can be built" run
says "Install it as root"

machine 0
rm "$work/bin/apt-get" "$work/bin/dpkg-query"
look "not Debian" 1 "^libjansson-dev|^[a-z]" run
says "^This is not Debian"

# shellcheck disable=SC2086
machine 1000 $everything
look "test alone" 0 "three: no GPU$" test
grep -v -e "--target build.ninja" "$work/state/log" >"$work/alone"
says "^passed    2$"
says "^left out  [0-9]"
says "^          one, in part: its page, no browser$"
forget
look "the tests' names" 0 "^Total Tests: 3$" test -N
logged "^ctest .* -N$"
not_logged "^cmake --build .*(-j|--target [^b])"
look "run, then" 0 "^charts: /" run
rm -f "$work/tree/build/"*/bin/rung
forget
look "test after run" 0 "three: no GPU$" test
grep -v -e "--target build.ninja" "$work/state/log" >"$work/others"
grep -v -e --preset "$work/alone" | diff - "$work/others" || { echo "FAIL: after run other things are tested"; failed=1; }
forget
look "the long tests too" 0 "three: no GPU$" test --exhaustive -R fuzz
logged "^ctest .* -C Exhaustive -R fuzz$"
forget
look "tests by name" 0 "three: no GPU$" test fuzz_cpu bits -j 1
logged '^ctest .* -R \^\(fuzz_cpu\|bits\)\$ --no-tests=error -j 1$'
logged "^cmake --build build/release -j 2 --target limit test_bits$"
not_logged "build/asan|build/tsan|rung_everything"
forget
look "one of a tree with sanitizers" 0 "three: no GPU$" test asan.fuzz_cpu
logged "^cmake --build build/asan -j 2 --target all$"
not_logged "build/tsan|rung_everything"
forget
look "a name that no test has" 2 "^No test is called 'fuzz': ./dev test -N names them all$" test bits fuzz
not_logged "^cmake --build .*(-j|--target [^b])"
forget
look "ten times beside busy loops" 0 "three: no GPU$" test --busy 10 -R fuzz
logged "^ctest .* --repeat until-fail:10 -R fuzz$"
[ "$(cat "$work/state/beside")" -eq 3 ] || { echo "FAIL: beside the tests run $(cat "$work/state/beside") processes, not two loops and ctest"; failed=1; }
forget
look "some of them by name" 0 "three: no GPU$" test --busy 3 fuzz_cpu bits
logged '^ctest .* --repeat until-fail:3 -R \^\(fuzz_cpu\|bits\)\$ --no-tests=error$'
look "no number of times" 2 "needs a number" test --busy often
export TWO=fail
look "a test fails" 1 "three: no GPU$|^The machine has .* tries again" test
says "^failed    1$"
says "^          two "
unset TWO
export NONE=1
look "no test was run: no table, the last one's neither" 8 "^no tests were run$" test
unset NONE

grep -vx libjansson-dev "$work/state/installed" >"$work/less" && cp "$work/less" "$work/state/installed"
look "a part is left out" 0 "three: no GPU$" test
says "^          Report: no jansson found"
[ "$(grep 'left out, ' "$work/out" | tr '\n' '|')" = "Report: left out, no jansson found (libjansson-dev)|asan: Lens: left out, a sanitizer|" ] ||
    { echo "FAIL $name: it says more than once what is left out, or not in which tree:"; cat "$work/out"; failed=1; }
export CI=true
look "which CI does not let pass" 1 "^FAILED: " test
says "^FAILED: Report was left out, and libjansson-dev is a package of the list"
unset CI
# Sources are brought into form, or it is told which are not: a stand-in for clang-format has spaces at the end of a line for its fault, and
# ends as clang-format does, which a warning alone does not fail.
printf '#!/bin/sh\nprintf "%%s\\n" neat.c crooked.c\n' >"$work/bin/git"
cat >"$work/bin/clang-format" <<'TOOL'
#!/bin/sh
ends=0 error=0 dry=0 writes=0
for word in "$@"; do
    case $word in
    -Werror) error=1 ;;
    --dry-run) dry=1 ;;
    -i) writes=1 ;;
    *)
        grep -q ' $' "$word" || continue
        [ $dry = 0 ] || { echo "$word:1: code should be clang-formatted" >&2; ends=$((ends | error)); }
        [ $writes = 0 ] || [ $dry = 1 ] || sed -i 's/ *$//' "$word"
        ;;
    esac
done
exit $ends
TOOL
chmod +x "$work/bin/git" "$work/bin/clang-format"
ln -s "$(PATH=$real_path command -v xargs)" "$work/bin/xargs"
printf 'int x;\n' >"$work/tree/neat.c"
printf 'int x;  \n' >"$work/tree/crooked.c"
look "a source that is not in form" 123 "^crooked.c:1: code should be clang-formatted$" format --check
grep -q ' $' "$work/tree/crooked.c" || { echo "FAIL: --check writes"; failed=1; }
for how in '' --check; do # the first brings them into form
    # shellcheck disable=SC2086
    (cd "$work/tree" && PATH=$work/bin ./dev format $how) >"$work/out" 2>&1 </dev/null && [ ! -s "$work/out" ] ||
        { echo "FAIL: ./dev format $how: exit $?; it said:"; cat "$work/out"; failed=1; }
done
rm "$work/bin/clang-format"
look "no clang-format" 1 "^clang-format is not installed: apt-get install clang-format$" format --check
# Each package of the list is one that Debian 12 has, where this is one and its lists are there.
if grep -qs '^VERSION_ID="12"' /etc/os-release && command -v apt-cache >/dev/null && apt-cache show cmake >/dev/null 2>&1; then
    # shellcheck disable=SC2086
    apt-cache show --no-all-versions $everything 2>/dev/null | sed -n 's/^Package: //p' | sort -u >"$work/there"
    for package in $everything; do
        grep -qxF "$package" "$work/there" || { echo "FAIL: Debian 12 has no package $package"; failed=1; }
    done
fi
exit $failed
