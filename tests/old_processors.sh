#!/bin/sh
# Runs the library on processors that lack what this one has, each emulated: it picks a kernel that they can run, and the results hold. An
# instruction that a processor does not know ends the program with SIGILL. usage: old_processors.sh <rung>
rung=$1
command -v qemu-x86_64 >/dev/null && [ "$(uname -m)" = x86_64 ] || { echo "left out: qemu-x86_64 emulates older processors (qemu-user)"; exit 77; }
unset RUNG_CPU_FEATURES RUNG_CPU_PLAN OPENBLAS_CORETYPE # what is set for this processor others may lack
cases='NN:65x70x33:row;TT:35x70x20:col;NT:7x130x9:row;TN:1x9x40:row;NN:9x1x300:col;NT:70x1x1:row;NN:160x150x170:row,alpha=-0.5,beta=1,data=normal'
# Few rows, few columns, and both operands packed: here blocks and steps differ between processors whose hardware follows the rows of an
# operand from memory (Intel's, Zen 3) and others, whatever instructions they have. B of the first two is larger than a share of L3. Emulated
# these take minutes on some machines; planned as on those processors they take a second.
rows='NN:1x3000x800:row;NN:3x3000x800:row,pad=1,beta=0.5;NN:7x2100x1040:row;NN:300x24x500:row,beta=-0.5;NN:380x24x6000:row;NT:9x3x2000:row;NN:110x310x450:row,pad=1'
bad=0

verify() { # processor, cases, how many
    qemu-x86_64 -cpu "$1" "$rung" verify --device cpu --math strict --case "$2" >"$log" 2>&1 || { echo "$1: exit code $?"; grep -v TCG "$log"; bad=1; }
    grep -q "pass  *$3  *0  *0" "$log" || { echo "$1: not all cases passed"; grep -v TCG "$log"; bad=1; }
}

on() { # processor, kernel it must get
    found=$(qemu-x86_64 -cpu "$1" "$rung" explain --device cpu 300x300x300 2>/dev/null | sed -n 's/^decision *\([a-z0-9]*\)_.*/\1/p')
    [ "$found" = "$2" ] || { echo "$1: the kernel is '$found', expected $2"; bad=1; }
    verify "$1" "$cases" 7
}

log=$(mktemp) && trap 'rm -f "$log"' EXIT
on core2duo portable    # 2006: no AVX
on SandyBridge avx      # 2011: AVX, no FMA
on Haswell avx2
for lacking in avx2 fma; do on "Haswell,-$lacking" avx; done # as some of AMD's and of VIA's do, and what a hypervisor hides
on qemu64 portable      # no processor that there is: an OpenBLAS takes it for one with more instructions, ends by SIGILL, and is left out
verify EPYC-Rome "$cases" 7
for plan in zen1 zen3 zen5 emerald; do
    RUNG_CPU_PLAN=$plan "$rung" verify --device cpu --math strict --case "$rows" >"$log" 2>&1 && grep -q 'pass  *7  *0  *0' "$log" ||
        { echo "planned as on a $plan: not all cases passed"; cat "$log"; bad=1; }
done

# What the lens compiled here with FMA is refused, not run, where there is none.
if readelf -sW "${rung%/bin/rung}/lib/rung-lens/l01_naive.so" 2>/dev/null | grep -q rung_lens_fma; then
    qemu-x86_64 -cpu core2duo "$rung" lens l01_naive 8x8x8 >"$log" 2>&1
    [ $? = 1 ] && grep -q 'FMA, which this one lacks' "$log" || { echo "core2duo: an object for FMA is run"; cat "$log"; bad=1; }
fi
exit $bad
