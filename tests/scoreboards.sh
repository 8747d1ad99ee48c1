#!/bin/sh
# Every waiter in the rewritten kernels sees the load before it, every load waits for the barrier before it, every FFMA for the
# loads and copies that have its registers in hand (tools/sass), and one that does not is reported.
# usage: scoreboards.sh SASS BUILD_DIR
set -eu
sass=$1 build=$2 checked=0 here=$(dirname "$0")
work=$(mktemp)
trap 'rm -f "$work"' EXIT
[ -e "$build/device/sm_90a/resources.txt" ] || { echo "left out: the device code was not built (RUNG_CUDA_ARCHS=all)"; exit 77; }
for name in $("$here"/tiles_with.sh "$here/.." all post=RUNG_ORDERED_FFMAS) $("$here"/tiles_with.sh "$here/.." all post=RUNG_WRITTEN_LOOP) \
    $("$here"/tiles_with.sh "$here/.." all post=RUNG_ORDERED_IN_TURNS) $("$here"/tiles_with.sh "$here/.." all post=RUNG_TT_IN_TURNS); do
    "$sass" check "$build/device/sm_90a/$name.cubin"
    checked=$((checked + 1))
done
[ "$checked" -gt 0 ] || { echo "FAILED: no rewritten kernel in $build/device/sm_90a"; exit 1; }

cubins() { # FAMILY FIELD=VALUE...: the code of such tiles; one of them is damaged, the first that can be
    "$here"/tiles_with.sh "$here/.." "$@" | sed "s|.*|$build/device/sm_90a/&.cubin|"
}

# A copy with one stall too short: a two-cycle LDS.128 whose next instruction waits for the LDS's own scoreboard.
command -v python3 >/dev/null || { echo "left out: a damaged kernel, no python3 (python3-numpy)"; exit 0; }
# shellcheck disable=SC2046  # one word a file
python3 - "$work" $(cubins lone) <<'PYTHON'
import struct, sys
for name in sys.argv[2:]:
    data = bytearray(open(name, "rb").read())
    for at in range(0, len(data) - 31, 16):
        low, high, _, following = struct.unpack_from("<4Q", data, at)
        if low & 0xFFF == 0x984 and high >> 41 & 15 == 2 and following >> 52 >> (high >> 46 & 7) & 1:
            struct.pack_into("<Q", data, at + 8, high & ~(15 << 41) | 1 << 41)
            open(sys.argv[1], "wb").write(data)
            sys.exit(0)
sys.exit("FAILED: no load with a waiter right behind it to damage")
PYTHON
if "$sass" check "$work" >/dev/null; then
    echo "FAILED: a waiter that does not see its load was not reported"
    exit 1
fi

# And a load right behind a barrier that holds its warp back for less than six cycles.
# shellcheck disable=SC2046
python3 - "$work" $(cubins medium large_loop=0) <<'PYTHON'
import struct, sys
for name in sys.argv[2:]:
    data = bytearray(open(name, "rb").read())
    words = [struct.unpack_from("<2Q", data, at) for at in range(0, len(data) - 15, 16)]
    load = next(i for i, (low, high) in enumerate(words) if low & 0xFFF == 0x984)
    for i, (low, high) in enumerate(words):
        if low & 0xFFF == 0xB1D and high >> 41 & 15 < 6:
            data[16 * i + 16:16 * i + 32] = data[16 * load:16 * load + 16]
            open(sys.argv[1], "wb").write(data)
            sys.exit(0)
sys.exit("FAILED: no barrier to damage")
PYTHON
if ! "$sass" check "$work" | grep -q 'cycles behind a barrier'; then
    echo "FAILED: a load that does not wait for its barrier was not reported"
    exit 1
fi

# And an FFMA behind a copy that no scoreboard counts, which now writes the copy's address: the next copy that is counted tells
# when this one has read it, and the FFMA does not wait for that.
# shellcheck disable=SC2046
python3 - "$work" $(cubins small crowd=1) <<'PYTHON'
import struct, sys
for name in sys.argv[2:]:
    data = bytearray(open(name, "rb").read())
    words = [struct.unpack_from("<2Q", data, at) for at in range(0, len(data) - 15, 16)]
    for i, (low, high) in enumerate(words):
        after, waits = words[i + 1] if i + 1 < len(words) else (0, 0)
        if low & 0xFFF == 0xFAE and high >> 49 & 7 == 7 and after & 0xFFFF == 0x7223 and not waits >> 52 & 63:
            struct.pack_into("<Q", data, 16 * i + 16, after & ~(255 << 16) | (low >> 24 & 255) << 16)
            open(sys.argv[1], "wb").write(data)
            sys.exit(0)
sys.exit("FAILED: no copy with an FFMA behind it to damage")
PYTHON
if ! "$sass" check "$work" | grep -q 'still has in hand'; then
    echo "FAILED: an FFMA that writes what a copy may still read was not reported"
    exit 1
fi
echo "$checked kernels, every waiter sees its load, every load its barrier, every FFMA what has its registers; damaged ones are reported"
