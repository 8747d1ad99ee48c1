#!/bin/sh
# The wheel of this build in a fresh environment with no compiler and no CUDA on its path: imported, multiplied with, run.
# usage: wheel.sh <source folder> <build folder>
set -eu
python=/usr/bin/python3
$python -c 'import numpy, venv, ensurepip' 2>/dev/null || { echo "left out: no python3-numpy or python3-venv"; exit 77; }
work=$(mktemp -d)
trap '/bin/rm -rf "$work"' EXIT
wheel=$(RUNG_WHEEL_BUILD=$2 $python "$1/packaging/build_backend.py" "$work/dist" 2>"$work/log") || { cat "$work/log"; exit 1; }
size=$(stat -c %s "$wheel")
[ "$size" -lt 15728640 ] || { echo "the wheel has $size bytes, more than 15 MiB"; exit 1; }
case $wheel in *manylinux_2_*) ;; *) echo "$wheel has no manylinux tag"; exit 1 ;; esac
# The source package has its metadata and every file that is kept.
if git -C "$1" rev-parse >/dev/null 2>&1; then
    sources=$($python "$1/packaging/build_backend.py" --sdist "$work/dist")
    tar tzf "$sources" | sed 's|^[^/]*/||' | sort >"$work/packed"
    { git -C "$1" ls-files; echo PKG-INFO; } | sort | diff - "$work/packed" || { echo "$sources holds other files than the sources"; exit 1; }
fi
# Without the tools of a build it ends with a sentence that names them, and with no traceback.
mkdir "$work/none"
! PATH="$work/none" CC=no-such-compiler RUNG_WHEEL_BUILD='' $python "$1/packaging/build_backend.py" "$work/dist" 2>"$work/log" || { echo "a wheel without tools"; exit 1; }
[ "$(wc -l <"$work/log")" = 1 ] && grep -q 'not on PATH: cmake, ninja or make, C compiler. On Debian' "$work/log" || { cat "$work/log"; exit 1; }
$python -m venv --system-site-packages "$work/env" # NumPy comes from the system
"$work/env/bin/pip" install -q --no-index "$wheel"
cd "$work"
unset RUNG_LIBRARY_DIR PYTHONPATH LD_LIBRARY_PATH LD_PRELOAD || true
PATH=$work/env/bin
export PATH
RUNG_LIBRARY_DIR='' python3 - "$1/python/rung" <<'PYTHON' # an empty name is none
import numpy as np, rung, glob, os, sys
a = np.random.default_rng(1).standard_normal((70, 80)).astype("f4")
assert np.allclose(rung.matmul(a, a.T), a @ a.T, atol=1e-4)
assert os.path.dirname(rung.__file__).startswith(os.environ["PATH"][:-4]), rung.__file__
assert os.path.exists(os.path.join(os.path.dirname(rung.__file__), "include", "rung.h"))
assert not (lost := set(os.listdir(sys.argv[1])) - set(os.listdir(os.path.dirname(rung.__file__))) - {"__pycache__"}), lost
assert glob.glob(os.path.join(os.path.dirname(os.path.dirname(rung.__file__)), "rung-*.dist-info", "LICENSE")), "no licence"
print("wheel", rung.__version__)
PYTHON
rung version
python3 -m rung explain 64x64x64 --device cpu
rung run --report-file report -- python3 -c 'import numpy as np; a = np.ones((40, 40), "f4"); print((a @ a)[0, 0])'
/usr/bin/grep 'calls* answered' report
