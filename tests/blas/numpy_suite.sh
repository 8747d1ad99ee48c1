#!/bin/sh
# Runs NumPy's own tests of everything that ends in sgemm, with the drop-in preloaded. usage: numpy_suite.sh <librung_blas.so>
lib=$1 python=/usr/bin/python3
numpy=$($python -c 'import numpy, pytest, hypothesis; print(numpy.__path__[0])' 2>/dev/null) || { echo "left out: no NumPy with pytest and hypothesis (python3-numpy python3-pytest python3-hypothesis)"; exit 77; }
LD_DEBUG=bindings LD_PRELOAD=$lib $python -c 'import numpy; a = numpy.ones((9, 9), "f"); assert (a @ a == 9).all()' 2>&1 |
    grep -q "to $lib .*symbol .cblas_sgemm'" || { echo "NumPy's matmul did not reach $lib"; exit 1; }
work=$(mktemp -d) # python -m looks for modules here first
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
export OPENBLAS_NUM_THREADS=1 # LAPACK's threads wait for each other busily
core=$numpy/_core # from NumPy 2 on
[ -d "$core/tests" ] || core=$numpy/core
# huge_vectordot wants 32 GiB and calls no sgemm.
LD_PRELOAD=$lib $python -B -m pytest -q -p no:cacheprovider "$core/tests/test_einsum.py" "$numpy/linalg/tests/test_linalg.py" \
    "$core/tests/test_multiarray.py" "$core/tests/test_numeric.py" \
    -k '(einsum or linalg or MatMul or matmul or dot or Dot or inner) and not huge_vectordot'
