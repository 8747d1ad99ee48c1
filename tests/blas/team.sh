#!/bin/sh
# Runs test_team with nothing in the environment that counts threads but OMP_NUM_THREADS.
# usage: team.sh TEST_TEAM CALLER MKL_LAYER
for name in RUNG_NUM_THREADS OPENBLAS_NUM_THREADS MKL_NUM_THREADS BLIS_NUM_THREADS RUNG_DISABLE RUNG_DEVICE; do
    unset $name
done
OMP_NUM_THREADS=3 "$@"
