#!/bin/sh
# The Python module's tests and the Python examples under Debian's Python, or RUNG_PYTHON; PyTorch's and JAX's where it has them.
# usage: run.sh <source folder> <folder of librung.so>
set -e
python=${RUNG_PYTHON:-/usr/bin/python3}
$python -c 'import numpy' 2>/dev/null || { echo "left out: no python3-numpy"; exit 77; }
export RUNG_LIBRARY_DIR="$2" PYTHONPATH="$1/python" PYTHONDONTWRITEBYTECODE=1
$python "$1/tests/python/test_matmul.py"
$python "$1/examples/numpy_product.py"
# A BLAS that NumPy has loaded for itself is found when the drop-in hands on.
if [ -e "$2/librung_blas.so" ]; then
    LD_PRELOAD="$2/librung_blas.so" RUNG_DISABLE=1 $python -c 'import numpy as np; a = np.ones((40, 40), "f4"); assert (a @ a == 40).all()'
fi
# The hints are whole: nothing untyped is used, and the wrong line is found wrong (an ignore that is not needed is an error).
if $python -c 'import mypy' 2>/dev/null; then
    $python -m mypy --strict --cache-dir=/dev/null "$1/tests/python/typed.py"
else
    echo "mypy is not there: left out"
fi
for library in torch jax; do
    if $python -c "import $library" 2>/dev/null; then
        $python "$1/tests/python/test_$library.py"
        $python "$1/examples/${library}_product.py"
    else
        echo "left out: products of $library, no $library"
    fi
done
