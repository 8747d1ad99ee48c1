#!/bin/sh
# threadpoolctl sees and limits Rung, under a Python that has it (3.2 or later) and NumPy.
# usage: threads.sh <source folder> <folder of librung.so>
export RUNG_LIBRARY_DIR="$2" PYTHONPATH="$1/python" PYTHONDONTWRITEBYTECODE=1
for python in "${VIRTUAL_ENV:-/nonexistent}/bin/python3" /usr/bin/python3; do
  if [ -x "$python" ] && "$python" -c 'import numpy; from threadpoolctl import register' 2>/dev/null; then
    exec "$python" "$1/tests/python/test_threads.py"
  fi
done
echo "left out: no threadpoolctl 3.2 or later beside NumPy (pip install threadpoolctl numpy, in a virtual environment)"
exit 77
