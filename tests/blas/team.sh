#!/bin/sh
# Runs test_team with nothing in the environment that counts threads but OMP_NUM_THREADS; then with Rung's own variable, which wins over it; and looks
# whether the drop-in keeps OpenBLAS's workers from spinning, where the user has not said how long they may.
# usage: team.sh TEST_TEAM CALLER MKL_LAYER OTHER_LAYER
for name in RUNG_NUM_THREADS OPENBLAS_NUM_THREADS MKL_NUM_THREADS BLIS_NUM_THREADS RUNG_DISABLE RUNG_DEVICE; do
    unset $name
done
failed=0
unset OPENBLAS_THREAD_TIMEOUT
OMP_NUM_THREADS=3 "$@" || failed=1
OMP_NUM_THREADS=1 RUNG_NUM_THREADS=2 "$@" told || failed=1
[ "$(getconf _NPROCESSORS_ONLN)" -ge 8 ] && spins=24 || spins=22
[ "$(OMP_NUM_THREADS=3 "$1" timeout)" = $spins ] || { echo "FAILED: OPENBLAS_THREAD_TIMEOUT is not set to $spins"; failed=1; }
[ "$(OPENBLAS_THREAD_TIMEOUT=9 "$1" timeout)" = 9 ] || { echo "FAILED: the user's OPENBLAS_THREAD_TIMEOUT is lost"; failed=1; }
[ "$(RUNG_DISABLE=1 "$1" timeout)" = none ] || { echo "FAILED: OPENBLAS_THREAD_TIMEOUT is set although Rung is disabled"; failed=1; }
# Beside an MKL whose OpenMP the program has not loaded, none is loaded for it, although one could be found.
found=$(mktemp -d)
trap 'rm -rf "$found"' EXIT
cp "$2" "$found/libiomp5.so"
LD_LIBRARY_PATH=$found:${LD_LIBRARY_PATH:-} OMP_NUM_THREADS=3 "$@" absent || { echo "FAILED: an OpenMP was loaded that nobody had asked for"; failed=1; }
exit $failed
