#!/bin/sh
# Runs programs' own tests of products and linear algebra, with and without the drop-in. It makes one list of every test and its
# outcome, prints what differs, and exits with 1 when something does. On a machine with a GPU PyTorch's operator samples and CuPy's tests:
#   own_tests.sh RUNG FOLDER torch [SECONDS] [PROCESSES]
#   own_tests.sh RUNG FOLDER CUPY-SOURCE [SECONDS] [PROCESSES]    CuPy's source tree, of the version that is installed
# On a CPU Octave's and those of Python's modules that are installed with their tests:
#   own_tests.sh RUNG FOLDER octave [SECONDS]
#   own_tests.sh RUNG FOLDER MODULE,... [SECONDS] [PROCESSES]     numpy, or scipy.linalg,scipy.sparse.linalg
# FOLDER gets the lists as they grow, and list-SUITE.txt: a line a test with how many of its parameters had
# which outcome. What SECONDS cut short is left out of both. PyTorch's samples need its test module expecttest, pytest needs pytest-xdist.
set -u
rung=$(command -v "$1") && rung=$(realpath "$rung") || { echo "no program: $1" >&2; exit 2; }
mkdir -p "$2" && folder=$(cd "$2" && pwd) || exit 2
suite=$3 seconds=${4:-600} processes=${5:-6}
here=$(cd "$(dirname "$0")" && pwd)
# The processes share the cores and the memory: none of them needs threads, and tests of NumPy's that want many GB are left out of both runs.
export CUPY_CACHE_DIR="$folder/cache" PYTHONHASHSEED=0 PYTHONUNBUFFERED=1 OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 NPY_AVAILABLE_MEM=1GB

samples() { # samples NAME COMMAND...: a list of "test outcome" a process
    name=$1
    shift
    part=0
    while [ $part -lt "$processes" ]; do
        timeout -k 2 "$seconds" "$@" python3 "$here/opinfo.py" $part/"$processes" >"$folder/$name.torch.$part" 2>"$folder/$name.torch.$part.err" || echo "ended with $?" >"$folder/$name.torch.cut" &
        part=$((part + 1))
    done
    wait
    cat "$folder/$name.torch."*[0-9] | sort >"$folder/$name.torch"
}

tests() { # tests NAME COMMAND...: the same from pytest's lines
    name=$1
    shift
    cd "$tree" || exit 2
    # shellcheck disable=SC2086
    timeout -k 2 "$seconds" "$@" python3 -m pytest -v --tb=no -p no:cacheprovider -n "$processes" --dist load $files >"$folder/$name.$suite.out" 2>&1
    code=$?
    [ $code -le 1 ] || echo "ended with $code" >"$folder/$name.$suite.cut"
    sed -n 's/^\[gw[0-9]*\] *\[ *[0-9]*%\] \([A-Z]*\) \(.*[^ ]\) *$/\2 \1/p' "$folder/$name.$suite.out" | sort >"$folder/$name.$suite"
}

octaves() { # octaves NAME COMMAND...: the same from the table of Octave's suite, a line a file; how many of its tests passed is the outcome
    name=$1
    shift
    mkdir -p "$folder/$name.in" && cd "$folder/$name.in" || exit 2
    timeout -k 2 "$seconds" "$@" octave-cli --norc --eval "
        built = __octave_config_info__('octtestsdir'); scripts = __octave_config_info__('fcnfiledir');
        folders = strcat([scripts '/'], {'linear-algebra', 'general', 'sparse', 'polynomial', 'signal', 'statistics', 'specfun', 'special-matrix', 'optimization'});
        __run_test_suite__([{[built '/liboctave']}, folders, {[built '/libinterp/dldfcn'], [built '/libinterp/corefcn']}], {[built '/fixed']})" >"$folder/$name.octave.out" 2>&1 || echo "ended with $?" >"$folder/$name.octave.cut"
    sed -n 's/^  \([^ ]*\) \.* \(pass\|PASS\|FAIL\) *\([0-9]*\)[^0-9]*\([0-9]*\).*/\1 \3_of_\4/p' "$folder/$name.octave.out" | sed 's/ \([0-9]*\)_of_\1$/ PASSED/' | sort >"$folder/$name.octave"
}

[ ! -d "$suite/tests" ] || { tree=$(cd "$suite/tests" && pwd) && suite=cupy; }
# `product` is one product, which says whether the library is reached.
case $suite in
torch)
    run=samples modules="torch numpy" product="import torch as x; x.eye(64, device='cuda') @ x.ones((64, 64), device='cuda')"
    ;;
octave)
    run=octaves
    ;;
cupy)
    run=tests modules="cupy numpy" product="import cupy as x; x.eye(64, dtype='f') @ x.ones((64, 64), dtype='f')"
    files="cupy_tests/math_tests/test_matmul.py cupy_tests/test_cublas.py cupy_tests/cuda_tests/test_cublas.py cupy_tests/linalg_tests"
    ;;
*)
    run=tests tree=$folder files="--pyargs $(echo "$suite" | tr , ' ')"
    modules="$(echo "$suite,numpy" | tr , '\n' | sed 's/\..*//' | sort -u)" product="import numpy as x; x.eye(64, dtype='f') @ x.ones((64, 64), 'f')"
    ;;
esac
rm -f "$folder/without.$suite.cut" "$folder/with.$suite.cut" "$folder/$suite.report"
$run without &
$run with "$rung" run -- &
wait
case $suite in
octave) "$rung" run --report-file "$folder/$suite.report" -- octave-cli --norc --eval "ones(64, 'single') * ones(64, 'single');" ;;
*) "$rung" run --report-file "$folder/$suite.report" -- python3 -c "$product" ;;
esac
awk -v suite=$suite '
    FNR == 1 { side++ }
    { name = $0; sub(/ [^ ]*$/, "", name); outcome = substr($0, length(name) + 2) }
    side == 1 { without[name] = outcome; next }
    name in without {
        both++
        if (without[name] != outcome) { differ[name] = without[name] " -> " outcome; next }
        same++
        count[outcome]++
        gsub(/_param_[0-9]+_{[^}]*}+|\[.*\]/, "", name)
        if (!lines[name " " outcome]++) line[++kept] = name " " outcome
    }
    END {
        printf "# %d tests in both runs, %d with the same outcome; ", both, same
        for (o in count) printf "%d %s, ", count[o], o
        print "outcomes that differ:", both - same
        for (n in differ) print "differs:", n, differ[n]
        for (i = 1; i <= kept; i++) print lines[line[i]], line[i]
        exit both == 0 || both != same
    }' "$folder/without.$suite" "$folder/with.$suite" >"$folder/list-$suite.body"
failed=$?
{
    # shellcheck disable=SC2086
    case $suite in
    octave) octave-cli --version | sed -n '1s/^/# /p' ;;
    *) python3 -c "import importlib, sys; print('#', *(f'{name} {importlib.import_module(name).__version__}' for name in sys.argv[1:]))" $modules ;;
    esac
    nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | sed 's/^/# /'
    sed -n '/^model name/{s/.*: /# /p;q}' /proc/cpuinfo
    echo "# reached: $(sed -n '1s/.*: //p' "$folder/$suite.report")"
    echo "# tests: $(wc -l <"$folder/without.$suite") without the drop-in, $(wc -l <"$folder/with.$suite") with it" \
        "$(cat "$folder/without.$suite.cut" "$folder/with.$suite.cut" 2>/dev/null | sort -u | tr '\n' ' ')"
    cat "$folder/list-$suite.body"
} >"$folder/list-$suite.txt"
grep '^#\|^differs' "$folder/list-$suite.txt" | head -40
exit $failed
