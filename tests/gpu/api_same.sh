#!/bin/sh
# src/cuda/api/cuda.h against the toolkit's cuda.h: api_same.sh OURS THEIRS. Values and fields must be equal.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$1" >"$work/ours"
"$2" >"$work/theirs"
diff "$work/ours" "$work/theirs" || { echo "FAILED: src/cuda/api/cuda.h (<) differs from the toolkit's header (>)"; exit 1; }
echo "$(wc -l <"$work/ours") values, types and fields are the toolkit's"
