#!/bin/sh
# The machine code of every kernel against its row's limits: share of FFMA in the main loop, no local-memory traffic in it.
# And where loops were written anew (tools/sass): the list of barrier instructions names the new ones.
# usage: machine_code.sh SOURCE_DIR BUILD_DIR [all]     ("all": print every kernel's line, not only those with a limit)
# Needs cuobjdump and nvdisasm (CUDA toolkit; PyPI's triton carries both): exits 77 (skipped) without them.
set -eu
source=$1 build=$2 all=${3:-}
here=$(dirname "$0")
[ -e "$build/device/sm_90a/resources.txt" ] || { echo "left out: the device code was not built (RUNG_CUDA_ARCHS=all)"; exit 77; }
command -v cuobjdump >/dev/null && command -v nvdisasm >/dev/null || {
    echo "left out: no cuobjdump and nvdisasm (CUDA toolkit)"
    exit 77
}

# name limit: from the rows, which may run over several lines.
limits() {
    cat "$source"/src/cuda/families/*/tiles.inc "$source"/src/ladder/gpu/rows.inc | awk '
        /^RUNG_(CUDA|TILE)\(/ { name = $1; sub(/RUNG_(CUDA|TILE)\(/, "", name); sub(/,.*/, "", name) }
        match($0, /\.min_ffma_percent *= *[0-9]+/) { text = substr($0, RSTART, RLENGTH); sub(/.*= */, "", text); print name, text }'
}

failed=0 checked=0
printf '%-40s %6s %5s %6s %9s %7s %6s %6s %6s\n' function instr FFMA share conflicts LDS.128 LDS HGMMA local
check() { # name limit
    loops=0
    lines=$(cuobjdump -sass "$build/device/sm_90a/$1.cubin" 2>/dev/null | awk -f "$here/machine_code.awk")
    while read -r function instructions ffma share conflicts wide narrow hgmma locals; do
        [ -n "$function" ] || continue
        printf '%-40s %6s %5s %6s %9s %7s %6s %6s %6s\n' "$function" "$instructions" "$ffma" "$share" "$conflicts" "$wide" \
            "$narrow" "$hgmma" "$locals"
        if [ "$2" = 0 ] || [ "$ffma" = 0 ]; then continue; fi # packing and finishing kernels have no such loop
        loops=$((loops + 1))
        checked=$((checked + 1))
        if awk -v share="$share" -v limit="$2" 'BEGIN { exit !(share < limit) }'; then
            echo "FAILED: $function: $share% of its main loop is FFMA, its row asks for $2%"
            failed=1
        fi
        if [ "$locals" != 0 ]; then
            echo "FAILED: $function: $locals accesses to local memory in its main loop"
            failed=1
        fi
    done <<LINES
$lines
LINES
    if [ "$2" != 0 ] && [ "$loops" = 0 ]; then
        echo "FAILED: $1: no main loop with 64 FFMA or more was found, its row asks for $2%"
        failed=1
    fi
}

# Function and place of each instruction that arrives at a barrier or waits for one: as listed, and as they are.
listed() {
    cuobjdump -elf "$1" 2>/dev/null | awk '
        /^[.]/ { name = /^[.]nv[.]info[.]/ ? substr($1, 10) : "" }
        name != "" && $6 ~ /^MBARRIER_(ARRIVE|TRY_WAIT_PARITY)$/ { sub(/^0x0*/, "", $1); print name, $1, $6 }' | sort
}
placed() {
    cuobjdump -sass "$1" 2>/dev/null | awk '
        /Function :/ { name = $NF }
        / SYNCS[.](ARRIVE[.]TRANS64[.]A1T0|PHASECHK)/ {
            gsub(/[\/*]/, "", $1); sub(/^0*/, "", $1)
            print name, $1, /PHASECHK/ ? "MBARRIER_TRY_WAIT_PARITY" : "MBARRIER_ARRIVE"
        }' | sort
}

work=$(mktemp) places=$(mktemp)
trap 'rm -f "$work" "$places"' EXIT
for name in $("$here"/tiles_with.sh "$source" all post=RUNG_WRITTEN_LOOP); do
    file=$build/device/sm_90a/$name.cubin
    [ -e "$file" ] || continue
    listed "$file" >"$work"
    placed "$file" >"$places"
    if ! grep -q TRY_WAIT "$work" || ! comm -23 "$work" "$places" | awk '{ print; found = 1 } END { exit found }'; then
        echo "FAILED: $(basename "$file" .cubin) lists barrier instructions where none are"
        failed=1
    fi
done
limits >"$work"
if [ -n "$all" ]; then
    for file in "$build"/device/sm_90a/*.cubin; do
        name=$(basename "$file" .cubin)
        limit=$(awk -v name="$name" '$1 == name { print $2 }' "$work")
        check "$name" "${limit:-0}"
    done
else
    while read -r name limit; do check "$name" "$limit"; done <"$work"
fi
echo "$checked functions with a limit checked"
exit $failed
