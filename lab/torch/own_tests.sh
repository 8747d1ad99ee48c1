#!/bin/sh
# PyTorch's operator samples and CuPy's own tests of products and linear algebra, with and without the drop-in, on a machine
# with a GPU: one list of every test and its outcome, and what differs. Exit 1 when something does.
#   own_tests.sh RUNG CUPY-SOURCE LIST [WORKERS]     CUPY-SOURCE: CuPy's source tree, of the version that is installed
set -u
rung=$1 source=$2 list=$3 workers=${4:-6}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CUPY_CACHE_DIR="$work/cache" PYTHONHASHSEED=0

samples() { # samples NAME COMMAND...
    name=$1
    shift
    timeout 300 "$@" python3 "$here/opinfo.py" >"$work/$name.torch" 2>"$work/$name.torch.err"
    echo $? >"$work/$name.torch.code"
}

tests() { # tests NAME COMMAND...: CuPy's, those that call cuBLAS first
    name=$1
    shift
    cd "$source/tests" || exit 2
    timeout 300 "$@" python3 -m pytest -v --tb=no -p no:cacheprovider -p no:randomly -n "$workers" --dist worksteal \
        cupy_tests/math_tests/test_matmul.py cupy_tests/test_cublas.py cupy_tests/cuda_tests/test_cublas.py \
        cupy_tests/linalg_tests >"$work/$name.out" 2>&1
    code=$?
    [ $code -le 1 ] || tail -n 5 "$work/$name.out" >&2
    sed -n 's/^\[gw[0-9]*\] *\[ *[0-9]*%\] \([A-Z]*\) \(.*\)$/\2 \1/p' "$work/$name.out" | sed 's/ *$//' | sort >"$work/$name.cupy"
    tail -n 1 "$work/$name.out" >"$work/$name.cupy.last"
    echo $code >"$work/$name.cupy.code"
}

samples without & samples with "$rung" run --report-file "$work/torch.report" -- &
tests without & tests with "$rung" run -- &
wait
# The workers of a run would write over each other's report: one product says whether CuPy is reached.
"$rung" run --report-file "$work/cupy.report" -- python3 -c 'import cupy; a = cupy.ones((64, 64), "f"); (a @ a).get()'

{
    python3 -c 'import torch, cupy, numpy; print("# PyTorch", torch.__version__, "CuPy", cupy.__version__, "NumPy", numpy.__version__, torch.cuda.get_device_name())'
    echo "# own_tests.sh: operator samples of PyTorch's OpInfo database (lab/torch/opinfo.py), CuPy's own tests"
    for suite in torch cupy; do
        echo "# $suite: $(wc -l <"$work/without.$suite") without the drop-in (exit $(cat "$work/without.$suite.code")), $(wc -l <"$work/with.$suite") with it (exit $(cat "$work/with.$suite.code")), $(comm -12 "$work/without.$suite" "$work/with.$suite" 2>/dev/null | wc -l) the same"
        echo "# $suite: the drop-in's report: $(sed -n '1s/.*: //p' "$work/$suite.report" 2>/dev/null)"
        awk '{ n[$NF] += 1 } END { for (o in n) printf "# %s: %d %s\n", suite, n[o], o }' suite=$suite "$work/without.$suite" | sort
    done
    tail -q -n 1 "$work/without.cupy.last" "$work/with.cupy.last" | sed 's/^/# cupy: /'
    for suite in torch cupy; do
        diff "$work/without.$suite" "$work/with.$suite" | sed -n 's/^[<]/differs, without: /p; s/^[>]/differs, with:    /p'
        sed "s/^/$suite /" "$work/without.$suite"
    done
} >"$list"
sed -n '/^#/p; /^differs/p' "$list" | head -60
for suite in torch cupy; do
    [ -s "$work/without.$suite" ] && cmp -s "$work/without.$suite" "$work/with.$suite" || failed=1
done
exit ${failed:-0}
