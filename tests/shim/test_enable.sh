#!/bin/sh
# rung_cublas_enable in a process that has loaded cuBLAS before: see program_enable.c. Each plugin has two slots to change, one in each of its
# tables; the other one's are read-only once it is loaded. The first time one of them cannot be changed. The call afterwards goes through the drop-in, which hands it on (no GPU).
# usage: test_enable.sh LIB_DIR PROGRAM FAKE_DIR PLUGIN...
set -eu
lib=$1 program=$2 fake_dir=$3
shift 3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export RUNG_LIBCUDA=/nonexistent/libcuda.so LD_LIBRARY_PATH="$fake_dir"
for plugin in "$@"; do
    rm -f "$work/report"
    said=$(RUNG_REPORT=$work/report "$program" "$plugin" "$lib/librung_cublas.so" "$fake_dir/libcublas.so.13") || { echo "FAILED: $plugin: $said"; exit 1; }
    [ "$said" = "1 slot changed then" ] || { echo "FAILED: $plugin: $said"; exit 1; }
    grep -q "0 calls answered, 1 handed on" "$work/report" || { echo "FAILED: $plugin: $(cat "$work/report")"; exit 1; }
done
echo "$# plugins changed"
