#!/bin/sh
# The Python module's tests under Debian's Python. usage: run.sh <source folder> <folder of librung.so>
/usr/bin/python3 -c 'import numpy' 2>/dev/null || { echo "left out: no NumPy (python3-numpy)"; exit 77; }
RUNG_LIBRARY_DIR=$2 PYTHONPATH=$1/python PYTHONDONTWRITEBYTECODE=1 exec /usr/bin/python3 "$1/tests/python/test_matmul.py"
