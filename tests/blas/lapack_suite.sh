#!/bin/sh
# Runs LAPACK's linear-equation suite for single precision, unmodified; the drop-in answers its sgemm_.
# usage: lapack_suite.sh <librung_blas.so> <folder of liblapack-test> <folder of the reference BLAS>
lib=$1 data=$2 blas=$3
[ -x "$data/xlintsts" ] || { echo "left out: no xlintsts (liblapack-test)"; exit 77; }
out=$(LD_DEBUG=bindings LD_LIBRARY_PATH=$blas LD_PRELOAD=$lib "$data/xlintsts" <"$data/stest.in" 2>"${TMPDIR:-/tmp}/bindings.$$")
bound=$(grep -c "to $lib .*symbol .sgemm_'" "${TMPDIR:-/tmp}/bindings.$$")
rm -f "${TMPDIR:-/tmp}/bindings.$$"
passed=$(echo "$out" | grep -c 'passed the threshold')
echo "$passed groups of routines passed; sgemm_ bound to the drop-in from $bound objects"
echo "$out" | grep -iE 'failed|\*\*\*' && exit 1
echo "$out" | grep -q 'End of tests' && [ "$passed" -ge 20 ] && [ "$bound" -ge 1 ]
