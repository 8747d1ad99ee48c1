#!/bin/sh
# The Python module's tests and the Python examples under Debian's Python. usage: run.sh <source folder> <folder of librung.so>
set -e
/usr/bin/python3 -c 'import numpy' 2>/dev/null || { echo "skipped: no python3-numpy"; exit 77; }
export RUNG_LIBRARY_DIR="$2" PYTHONPATH="$1/python" PYTHONDONTWRITEBYTECODE=1
/usr/bin/python3 "$1/tests/python/test_matmul.py"
/usr/bin/python3 "$1/examples/numpy_product.py"
! /usr/bin/python3 -c 'import torch' 2>/dev/null || /usr/bin/python3 "$1/examples/torch_product.py"
