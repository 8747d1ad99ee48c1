#!/bin/sh
# Compiles one CUDA C file for the lens: lens_cc.sh SOURCE.cu OUT.so [-I...]. On failure the first error goes to OUT.why,
# and with RUNG_LENS_STRICT set the script fails too. RUNG_LENS_CXX names the compiler (g++ 10 or later).
set -u
source=$1 out=$2
shift 2
here=$(dirname "$0")
cxx=${RUNG_LENS_CXX:-g++}
base=${out%.so}
rm -f "$out" "$base.why"

give_up() {
    grep -m1 -E 'error|Error|undefined' "$base.log" | sed 's/^.*error: //' >"$base.why" 2>/dev/null
    [ -s "$base.why" ] || echo "$cxx failed" >"$base.why"
    rm -f "$base.o" "$base.stub.o" "$base.log" "$out"
    echo "lens: $(basename "$source") left out: $(cat "$base.why")" >&2
    [ -z "${RUNG_LENS_STRICT:-}" ] && exit 0
    exit 1
}

# -fsanitize=thread calls a hook for every load and store that is not to a register or an own local variable; no pass may
# split, join, repeat or drop accesses or barriers on the way (-fno-tree-sra keeps a float4 one access).
"$cxx" -x c++ -std=gnu++17 -O1 -gdwarf-4 -fPIC -w -fsanitize=thread --param tsan-instrument-func-entry-exit=0 \
    -fno-tree-sra -fno-ipa-sra -fno-tree-vectorize -fno-store-merging -fno-tree-loop-distribute-patterns \
    -fno-plt -fno-unroll-loops -fno-crossjumping -fno-tree-tail-merge -fno-strict-aliasing -fno-math-errno -ffp-contract=off -fno-extern-tls-init -fno-exceptions \
    -fno-rtti -fno-threadsafe-statics -fvisibility=default ${RUNG_LENS_CXXFLAGS:-} -DRUNG_LENS=1 \
    -I"$here/cuda" "$@" -include rung_lens_cuda.h -MD -MF "$base.d" -MT "$base.stamp" -c "$source" -o "$base.o" >"$base.log" 2>&1 || give_up

# extern __shared__ arrays get their memory here, as large as a block may ask for.
{
    echo '#define DYNAMIC __attribute__((visibility("default"), aligned(1024)))'
    echo 'DYNAMIC __thread unsigned char rung_lens_anchor[16];'
    readelf -sW "$base.o" | awk '$4 == "TLS" && $7 == "UND" { print "DYNAMIC __thread unsigned char " $8 "[232448];" }'
} | "$cxx" -x c -O1 -fPIC -c - -o "$base.stub.o" >"$base.log" 2>&1 || give_up
"$cxx" -shared -o "$base.new" "$base.o" "$base.stub.o" >"$base.log" 2>&1 || give_up
mv "$base.new" "$out"
rm -f "$base.o" "$base.stub.o" "$base.log"
