#!/bin/sh
# Runs PyTorch's operator samples and CuPy's own tests of products and linear algebra, with and without the drop-in, on a machine
# with a GPU. It makes one list of every test and its outcome, prints what differs, and exits with 1 when something does.
#   own_tests.sh RUNG FOLDER torch [SECONDS] [PROCESSES]
#   own_tests.sh RUNG FOLDER CUPY-SOURCE [SECONDS] [PROCESSES]    CuPy's source tree, of the version that is installed
# FOLDER gets the lists as they grow, and list-torch.txt or list-cupy.txt: a line a test with how many of its parameters had
# which outcome. What SECONDS cut short is left out of both. PyTorch's samples need its test module expecttest.
set -u
rung=$1 folder=$(cd "$2" && pwd) suite=$3 seconds=${4:-600} processes=${5:-6}
here=$(cd "$(dirname "$0")" && pwd)
# The processes share the cores: none of them needs threads.
export CUPY_CACHE_DIR="$folder/cache" PYTHONHASHSEED=0 PYTHONUNBUFFERED=1 OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1

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
    cd "$suite/tests" || exit 2
    timeout -k 2 "$seconds" "$@" python3 -m pytest -v --tb=no -p no:cacheprovider -n "$processes" --dist worksteal \
        cupy_tests/math_tests/test_matmul.py cupy_tests/test_cublas.py cupy_tests/cuda_tests/test_cublas.py \
        cupy_tests/linalg_tests >"$folder/$name.out" 2>&1
    code=$?
    [ $code -le 1 ] || echo "ended with $code" >"$folder/$name.cupy.cut"
    sed -n 's/^\[gw[0-9]*\] *\[ *[0-9]*%\] \([A-Z]*\) \(.*[^ ]\) *$/\2 \1/p' "$folder/$name.out" | sort >"$folder/$name.cupy"
}

case $suite in
torch)
    samples without &
    samples with "$rung" run --report-file "$folder/torch.report" -- &
    ;;
*)
    tests without &
    tests with "$rung" run -- &
    ;;
esac
wait
[ "$suite" = torch ] || suite=cupy
# One product says whether the library is reached.
"$rung" run --report-file "$folder/$suite.report" -- python3 -c "import $suite as x; x.eye(64, **({'device': 'cuda'} if '$suite' == 'torch' else {'dtype': 'f'})) @ x.ones((64, 64), **({'device': 'cuda'} if '$suite' == 'torch' else {'dtype': 'f'}))"
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
    python3 -c "import $suite, numpy; print('# $suite', $suite.__version__, 'NumPy', numpy.__version__)"
    nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | sed 's/^/# /'
    echo "# reached: $(sed -n '1s/.*: //p' "$folder/$suite.report")"
    echo "# tests: $(wc -l <"$folder/without.$suite") without the drop-in, $(wc -l <"$folder/with.$suite") with it" \
        "$(cat "$folder/without.$suite.cut" "$folder/with.$suite.cut" 2>/dev/null | sort -u | tr '\n' ' ')"
    cat "$folder/list-$suite.body"
} >"$folder/list-$suite.txt"
grep '^#\|^differs' "$folder/list-$suite.txt" | head -40
exit $failed
