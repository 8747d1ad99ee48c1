#!/bin/sh
# Compiles one CUDA C file for the lens: lens_cc.sh SOURCE.cu OUT.so [FLAG...]. What it read stands in OUT.d. On failure the
# first error goes to OUT.why. RUNG_LENS_CXX names the compiler (g++ 10 or later).
set -u
export LC_ALL=C # what the compiler says is read below
source=$1 out=$2
shift 2
here=$(cd "$(dirname "$0")" && pwd)
cxx=${RUNG_LENS_CXX:-g++}
base=${out%.so}
work=$base.$$ # several may compile the same file at once: what is ready is renamed
trap 'rm -f "$work".*' EXIT
trap 'exit 1' HUP INT TERM
rm -f "$base.why"

give_up() {
    grep -m1 -E '[Ee]rror: |undefined' "$work.log" | sed -E 's|^([^ ]*/)?([^/ ]+):([0-9]+):[0-9]+: (fatal )?error: |\2 line \3: |' >"$work.why" 2>/dev/null
    # What the assembler does not know is PTX, most likely.
    grep -q 'Assembler messages' "$work.log" && echo "its asm() is no code of this processor's: the lens knows PTX as the functions of device/ptx.h, device/tma.h and device/async.h" >"$work.why"
    command -v "$cxx" >/dev/null || echo "there is no $cxx (apt-get install g++)" >"$work.why"
    [ -s "$work.why" ] || echo "$cxx failed" >"$work.why"
    mv "$work.why" "$base.why"
    rm -f "$out"
    echo "lens: $(basename "$source") left out: $(cat "$base.why")" >&2
    [ -n "${RUNG_LENS_LENIENT:-}" ] && exit 0 # a build of all kernels goes on
    exit 1
}

# A multiply-add is an instruction where this processor has it, not a call of libm; elsewhere such an object is refused (symbols.c).
fma=
! grep -qw fma /proc/cpuinfo || fma=-mfma
# With --coverage among the flags it counts which lines run, in files beside OUT (./dev test --coverage).
cover=
case " $* " in *" --coverage "*) cover=--coverage && set -- "$@" -dumpbase "$base" ;; esac

# -fsanitize=thread calls a hook for every load and store that is not to a register or an own local variable; no pass may
# split, join, repeat or drop accesses or barriers on the way (-fno-tree-sra keeps a float4 one access). Of the debug information lines are
# wanted, not where variables are.
"$cxx" -x c++ -std=gnu++17 -O1 -gdwarf-4 -fno-var-tracking -fPIC -w -fsanitize=thread --param tsan-instrument-func-entry-exit=0 --param tsan-distinguish-volatile=1 \
    -fno-tree-sra -fno-ipa-sra -fno-tree-vectorize -fno-store-merging -fno-tree-loop-distribute-patterns \
    -fno-plt -fstack-clash-protection -fno-unroll-loops -fno-crossjumping -fno-tree-tail-merge -fno-strict-aliasing -fno-math-errno -ffp-contract=off -fno-extern-tls-init -fno-exceptions \
    -fno-rtti -fno-threadsafe-statics -fvisibility=default -DRUNG_LENS=1 -I"$here/cuda" -I"$here/../cuda" -I"$here/../cuda/api" \
    -I"$here/.." -I"$here/../../include" $fma "$@" -include rung_lens_cuda.h -MMD -MF "$work.d" -MQ "$base.stamp" \
    -c "$source" -o "$work.o" >"$work.log" 2>&1 || give_up
printf '%s: %s\n' "$base.stamp" "$here/lens_cc.sh" | sed 's/\([^:]\) /\1\\ /g' >>"$work.d"

# extern __shared__ arrays get their memory here, as large as a block may ask for. On a GPU all of them begin at one place, and so here.
array() { printf '.globl %s\n.type %s, @object\n.size %s, %d\n%s:\n' "$1" "$1" "$1" "$2" "$1"; }
{
    echo '.section .tbss,"awT",@nobits'
    echo '.balign 1024'
    array rung_lens_anchor 16
    echo '.zero 16'
    dynamic=$(readelf -sW "$work.o" | awk '$4 == "TLS" && $7 == "UND" { print $8 }')
    [ -z "$dynamic" ] || echo '.balign 1024'
    for name in $dynamic; do array "$name" 232448; done
    [ -z "$dynamic" ] || echo '.zero 232448'
    [ -z "$fma" ] || printf '.section .rodata\n.globl rung_lens_fma\nrung_lens_fma: .byte 1\n'
    echo '.section .note.GNU-stack,"",@progbits'
} | "$cxx" -shared $cover -o "$work.so" "$work.o" -x assembler - >"$work.log" 2>&1 || give_up
mv "$work.d" "$base.d"
mv "$work.so" "$out"
