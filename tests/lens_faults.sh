#!/bin/sh
# The lens finds each planted fault, names the right line, finds nothing in sound code, and counts asynchronous copies as an
# H200 did. lens_faults.sh RUNG FOLDER
rung=$1 folder=$2 failed=0 out=$(mktemp) || exit 1
trap 'rm -f "$out" "$out.cu"' EXIT

# look FILE EXIT_CODE TEXT [options]: the output of a run must hold TEXT
look() {
    file=$1 want=$2 text=$3
    shift 3
    "$rung" lens --file "$folder/$file.cu" --tile 16x16 --threads 256 --all "$@" 37x41x45 >"$out" 2>&1
    got=$?
    if [ $got -ne "$want" ] || ! grep -q -- "$text" "$out"; then
        echo "FAIL $file: exit $got, wanted $want and '$text'; it said:"
        cat "$out"
        failed=1
    else
        echo "ok   $file: $(grep -m1 -- "$text" "$out")"
    fi
}

look sound 0 "nothing out of bounds, unwritten, racing or divergent"
look sound 0 "worst error" --beta -0.5 --pad 3
look missing_barrier 1 "line 38: reads shared b_tile .*, which nothing has written"
look missing_second_barrier 1 "line 3[2-6]: writes shared ._tile .*, which thread .* read with no barrier between them: a race"
look off_by_one_read 1 "line 33: reads A\[37\]\[0\] (or A\[36\]\[45\]), but A is 37 x 45"
look off_by_one_write 1 "line 46: writes C\[37\]\[0\] (or C\[36\]\[41\]), but C is 37 x 41"
look off_by_one_column 1 "line 46: writes C\[0\]\[41\], but C is 37 x 41" --pad 3
look atomic_in_padding 1 "line 25: writes C\[0\]\[41\], but C is 37 x 41" --pad 3
look left_out 1 "C\[0\]\[0\] is .*, not .* (off by .* u, allowed 53;"
look edge_left_out 1 "C\[36\]\[0\] was never written"
# All blocks of a small grid run, asked for or not: what nobody wrote is missing.
"$rung" lens --file "$folder/edge_left_out.cu" --tile 16x16 --threads 256 20x20x8 >"$out" 2>&1
[ $? = 1 ] && grep -q 'C\[[0-9]*\]\[[0-9]*\] was never written' "$out" || { echo "FAIL edge_left_out without --all:"; tail -n 1 "$out"; failed=1; }
look wrong_edge 1 "C\[36\]\[40\] is .*, not .* (off by .* u, allowed 53;"
look wrong_stride 1 "line 11: reads B\[45\]\[0\] (or B\[44\]\[41\]), but B is 45 x 41"
look wrong_stride 1 "is not a number: it comes from memory that nobody has written, such as the gaps behind rows of A and B" --pad 3
look transposed 1 "line 25: writes C\[37\]\[0\] (or C\[36\]\[41\]), but C is 37 x 41"
look reads_c 1 "C\[0\]\[0\] was never written" # what it holds is computed from what nobody wrote
look forgets_beta 0 "worst error"
look forgets_beta 1 "C\[0\]\[0\] is .*, not .* (off by .* u, allowed 53;" --beta -0.5
look two_writers 1 "writes byte 0 of C, which block 0 wrote too"
look rows_collide 1 "block (0,2,0), thread 0, .* line 7: writes byte 0 of C, which block (0,1,0) wrote too: nothing says which of them comes first"
look two_writers 1 "C\[0\]\[0\] is .*, not .* (off by .* u, allowed 53;"
look one_less 1 "C\[0\]\[15\] is .*, not .* (off by .* u, allowed 53;"
look not_a_number 1 "C\[18\]\[20\] is not a number: the kernel makes one of numbers, as 0 / 0 does"
look changed_input 1 "operand A was changed"
look swapped_input 1 "operand A was changed"
look errs_50 0 "worst error [45][0-9][.].* u; nothing out of bounds"
look errs_56 1 "off by 5[4-9][.0-9]* u, allowed 53;"
look uninitialised_tile 1 "line 38: reads shared a_tile .*, which nothing has written"
look divergent_barrier 1 "line 14: waits at this barrier while thread 0 waits at the one on line 11: a divergent barrier"
look early_return 1 "threads of the block never reach: they have returned"
look warp_race 1 "line 14: reads shared part .*, which thread .* wrote with no barrier between them: a race"
look two_faults 1 "line 16: reads shared part .*, which nothing has written"
look two_faults 1 "line 16: reads shared part .*, which thread .* wrote with no barrier between them: a race"
look counts 0 "nothing out of bounds, unwritten, racing or divergent"
look late_clear 1 "line 23: updates shared count .*, which thread 0 wrote with no barrier between them: a race"
look early_look 1 "line 23: updates shared count .*, which thread 0 read with no barrier between them: a race"
look two_warps_read 1 "thread 255, .* line 14: writes shared factor .*, which thread 223 read with no barrier between them: a race"
look atomics_unknown 1 "thread 255, .* line 18: reads shared count .*, which thread 254 wrote with no barrier between them: a race"
look atomics_unknown 1 "thread 255, .* line 18: reads shared count .*, which thread 223 wrote with no barrier between them: a race" --beta 1
look atomics_unknown 1 "thread 255, .* line 16: writes shared count .*, which thread 223 wrote too with no barrier between them: a race" --beta 2
look halves 0 "nothing out of bounds, unwritten, racing or divergent"
look halves 1 "thread 0, .* line 17: updates shared count .*, which nothing has written" --alpha 2
look halves 1 "line 1[79]: .* shared count .*, which thread .* with no barrier between them: a race" --alpha 3
look lanes_outside 1 "C\[0\]\[0\] is 1e+09, not"
look others_ways 0 "nothing out of bounds, unwritten, racing or divergent" --shared 1024
look others_ways 1 "which no variable holds" --shared 1020
look others_ways 0 ", 2928 B shared;" --shared 1024 # those of the function count
look parts_meet 0 "nothing out of bounds, unwritten, racing or divergent"
look tensor_factors 0 "nothing out of bounds, unwritten, racing or divergent"
look handed_over 0 "nothing out of bounds, unwritten, racing or divergent"
look early_hand_over 1 "line 3[23]: writes shared ._tile .*, which thread .* read with no barrier between them: a race"
look early_landing 1 "thread 0, .* line 18: reads shared copied .* while a cp.async of thread 0 into it is still under way: no wait before the read$"
look early_copy 1 "thread 1, .* line 20: reads shared copied .* while a cp.async of thread 0 into it is still under way: no wait before the read, or no barrier before the copy"
look landed_late 1 "thread 128, .* line 18: reads shared copied .*, which thread 0 wrote with no barrier between them: a race"
look looks_at_mbarrier 0 "nothing out of bounds, unwritten, racing or divergent" --patience 1
look engines 0 "nothing out of bounds, unwritten, racing or divergent"
look late_fence 0 "nothing out of bounds, unwritten, racing or divergent"
look missing_fence 1 "line 38: reads shared zeros .*, which thread .* wrote with no fence.proxy.async after it"
look missing_copy_fence 1 "line 56: fills shared copied .*, which thread 0 wrote with no fence.proxy.async after it"
look fence_too_early 1 "block (1,0,0), thread 0, .* line 26: fills shared copied .*, which thread 32 wrote with no fence.proxy.async after it"
look untold_fence 1 "line 25: fills shared copied .*, which thread 0 wrote with no fence.proxy.async after it"
look missing_products_wait 1 "line 34: writes shared zeros .*, which a tensor core may still read: nobody has waited for it"
look unpublished_mbarrier 1 "line 56: signals an mbarrier at shared bar .*, with no fence.mbarrier_init after it was initialised"
look anothers_mbarrier 1 "line 56: signals an mbarrier at shared bar .*, with no fence.mbarrier_init after it was initialised"
look unawaited_copy 1 "block (0,0,0), thread 0, .* line 21: fills shared memory, which is another block's once this one ends: nobody waits until it has"
look unread_store 1 "thread 5, .* line 24: stores from shared memory, which is another block's once this one ends: nobody waits until it is read"
look unread_store 1 "; 0 findings" --alpha 2 # it waits
look tells 0 "nothing out of bounds, unwritten, racing or divergent"
look missing_threadfence 1 "line 31: reads byte 0 of C, which block 0 wrote: no __threadfence stands between that and what tells of it"
look another_threads_write 1 "line 31: reads byte 8 of C, which block 0 wrote: no __threadfence stands between"
look early_threadfence 1 "line 31: reads byte 0 of C, which block 0 wrote: no __threadfence stands between"
look late_threadfence 1 "line 31: reads byte 0 of C, which block 0 wrote: no __threadfence stands between"
look fenced_in_another_block 1 "line 17: reads byte 96 of C, which block 1 wrote: no __threadfence stands between"
look tells_by_atomics 0 "nothing out of bounds, unwritten, racing or divergent"
look atomics_in_turn 0 "nothing out of bounds, unwritten, racing or divergent"
look meanings 0 "nothing out of bounds, unwritten, racing or divergent"
look looks_in_turn 0 "nothing out of bounds, unwritten, racing or divergent"
look missing_atomics_fence 1 "line 31: reads byte 0 of C, which block 0 wrote: no __threadfence stands between"
look atomic_on_unfenced 1 "line 31: updates byte 0 of C, which block 0 wrote: no __threadfence stands between"
look added_and_cleared 1 "line 31: updates byte 0 of C, which block 0 wrote: no __threadfence stands between"
look two_alike 1 "block (1,0,0), thread 0, .*: writes byte 0 of C, which block 0 wrote too: nothing says which of them comes first"
look read_ahead 1 "block (2,0,0), thread 0, .*: writes byte 128 of C, which block 1 read: nothing says which of them comes first"
look all_alike 0 "nothing out of bounds, unwritten, racing or divergent"
look missing_fence_of_bulk 1 "line 14: reads byte 0 of C, which block 0 wrote: no __threadfence stands between"
look misaligned_copy 1 "line 18: makes a 16-byte access to shared byte 1032, which is not a multiple of 16"
look misaligned_read 1 "line 15: makes a 16-byte access to shared byte .*, which is not a multiple of 16"
look lost_hand_over 1 "its mbarrier still lacks 1 of 129 arrivals"
look endless_loop 1 "thread 53, .* line 4[0-3]: still runs after .* an endless loop" --patience 1
look awaited_in_vain 1 "thread 7, .* line 8: has looked for .* an endless loop" --patience 1
# What one lane has asked for is counted as it goes on, and the log given back, whatever the lanes after it do.
(ulimit -v 450000; exec "$rung" lens --file "$folder/busy_lane.cu" --tile 16x16 --threads 256 --all 37x41x45) >"$out" 2>&1 || { echo "FAIL busy_lane, in 450 MB of addresses:"; tail -n 2 "$out"; failed=1; }
look endless_reads 1 "endless_reads.cu line [78]: still runs after .* an endless loop" --patience 1
look too_much_shared 1 "300000 bytes of shared memory, but a block has at most 232448" --shared 300000
look sound 1 "302048 bytes of shared memory, but a block has at most 232448" --shared 300000 # its own 2048 count
# The lens's room for mbarriers: all of it, and one more.
"$rung" lens --file "$folder/many_mbarriers.cu" --tile 16x16 --threads 256 16x16x256 >"$out" 2>&1 && grep -q 'nothing out of bounds' "$out" ||
    { echo "FAIL many_mbarriers, 256 of them:"; cat "$out"; failed=1; }
"$rung" lens --file "$folder/many_mbarriers.cu" --tile 16x16 --threads 256 16x16x257 >"$out" 2>&1
[ $? = 1 ] && grep -q 'initialises more than 256 mbarriers' "$out" || { echo "FAIL many_mbarriers, 257 of them:"; cat "$out"; failed=1; }
# A file may have 255 shared variables, and others_ways has more than seventy.
awk 'BEGIN { print "#include \"device/args.h\"\nRUNG_KERNEL(256) many(const __grid_constant__ rung_args g)\n{"
    for (i = 0; i < 256; i++) print "    __shared__ volatile int m" i "[1];\n    m" i "[0] = (int)g.alpha;"
    print "}" }' >"$out.cu"
"$rung" lens --file "$out.cu" --symbol many --tile 16x16 --threads 256 16x16x16 >"$out" 2>&1
[ $? = 1 ] && grep -q 'many has 256 __shared__ variables: the lens knows 255 of a file at most' "$out" || { echo "FAIL many, 256 variables:"; cat "$out"; failed=1; }
# What has come by one mbarrier says nothing of what comes by another one, however far apart they lie.
for last in 1 2 7 8 9 16 32 63; do
    "$rung" lens --file "$folder/first_of_two.cu" --tile 16x16 --threads 256 16x16x$last >"$out" 2>&1 && grep -q 'nothing out of bounds' "$out" ||
        { echo "FAIL first_of_two, both awaited, $last:"; tail -n 2 "$out"; failed=1; }
    "$rung" lens --file "$folder/first_of_two.cu" --tile 16x16 --threads 256 16x17x$last >"$out" 2>&1
    [ $? = 1 ] && grep -q 'reads shared copied .*, which a bulk copy wrote' "$out" || { echo "FAIL first_of_two, $last:"; tail -n 2 "$out"; failed=1; }
done
# A fault of each other kind, by its number in kinds.cu.
kind() { look kinds 1 "thread $2, kinds.cu line [0-9]*: $3" --alpha "$1"; }
kind 1 1 'writes shared few .*, which thread 0 wrote too with no barrier between them: a race'
kind 2 0 'reads shared memory at byte .*, which no variable holds'
kind 3 0 'writes past the end of shared few (8 bytes)'
kind 4 0 'updates shared few .*, which nothing has written'
kind 5 1 'updates shared few .*, which thread 0 wrote with no barrier between them: a race'
kind 6 1 'calls a warp operation whose mask 0x00000001 leaves out its own lane 1'
kind 7 0 'executes __trap()'
kind 8 0 'uses an mbarrier at shared bar .* that was never initialised'
kind 9 2 'arrives at an mbarrier once more than its 2 expected arrivals'
kind 10 0 'starts a bulk copy of 8 bytes that is not aligned to 16'
kind 11 0 'reads 4 bytes before A'
kind 12 0 'makes a 8-byte access to address .*, which is not a multiple of 8'
kind 13 0 'reads address 0x1000, which is in no allocation'
kind 14 0 'waits for ever at barrier 1: not all of its threads come'
kind 15 16 'waits for lanes of mask 0xffffffff that never come to this warp operation'
kind 16 0 'makes a 8-byte access to shared byte .*, which is not a multiple of 8'
kind 17 0 'reads [0-9]* bytes before shared '
kind 18 0 'reads shared memory at byte 2000.*, which no variable holds'
kind 19 0 'needs more than 92 KiB for its local arrays and calls, which is all that the lens has for a thread'
kind 20 0 'needs more than 92 KiB for its local arrays and calls, which is all that the lens has for a thread'
kind 21 0 'comes to barrier 16 for 256 threads: a block has barriers 0 to 15, which count whole warps of 32'
kind 22 0 'comes to barrier 1 for 48 threads: a block has barriers 0 to 15, which count whole warps of 32'
kind 23 0 'makes a 8-byte access to shared byte .*, which is not a multiple of 8'
kind 24 0 'reaches with an mbarrier shared memory at byte .*, which no variable holds'
kind 25 1 'uses an mbarrier at shared bar .*, which thread 0 initialised with no barrier between them'
kind 26 0 'writes shared memory at byte .*, which no variable holds'
kind 27 0 'copies 8 bytes by an asynchronous copy that has room for 4'
kind 28 0 'fills shared memory at byte .*, which no variable holds'
kind 29 0 'starts a bulk copy of 16 bytes to blocks of mask 0x2, in a cluster of 1'
kind 30 0 'reads byte 0 of the shared memory of block 17 of a cluster of 1'
kind 31 0 "reads address .*, which is in no allocation: a null pointer, as a kernel gets that takes other parameters than its launcher's one struct"
kind 32 0 'reads A\[37\]\[0\] (or A\[36\]\[45\]), but A is 37 x 45'
kind 33 0 'makes a 16-byte copy from address .*, which is not a multiple of 16'
kind 34 3 'fails its assert(t != 3)'
kind 35 0 'divides a whole number by zero, or by -1 where the result is too large: a GPU gives any number there'
kind 37 16 'comes to __shfl_down_sync while lanes of the same mask 0xffffffff wait at __shfl_up_sync: on a GPU nobody knows what they get'
kind 38 16 'comes to __ballot_sync while lanes of the same mask 0xffffffff wait at __shfl_sync'
kind 39 1 'comes to __syncwarp while lanes of the same mask 0xffffffff wait at __any_sync'
# A launch of more threads than the kernel says is one that a GPU refuses; fewer are none. Each kernel of a file has its own bound.
bound() { # EXIT_CODE WORDS FILE SYMBOL THREADS TILE
    "$rung" lens --file "$folder/$3.cu" --symbol "$4" --threads "$5" --tile "$6" 37x41x45 >"$out" 2>&1
    got=$?
    [ $got = "$1" ] && grep -q -- "$2" "$out" || { echo "FAIL $4 with $5 threads: exit $got, wanted $1 and '$2'; it said:"; cat "$out"; failed=1; }
}
refused() { echo "$1: blocks of $2 threads, but its RUNG_KERNEL($3), or __launch_bounds__, allows no more than $3: a GPU refuses such a launch"; }
bound 1 "$(refused sound 288 256)" sound sound 288 16x16
bound 1 "$(refused of_64 96 64)" bounds_of_each of_64 96 8x8
bound 1 "$(refused of_128 129 128)" bounds_of_each of_128 129 8x8
for kernel in 'of_64 64' 'of_any 64' 'of_any 1024' 'of_128 64' 'of_128 128'; do
    # shellcheck disable=SC2086
    bound 0 'nothing out of bounds' bounds_of_each $kernel 8x8
done
# What the compiler says first is told, whatever the file is called, and PTX in a file with its way round.
compile() { # WORDS SED: a kernel file of the name error.cu is refused with these words
    place=$(mktemp -d) && sed "$2" "$folder/others_parameters.cu" >"$place/my_error_kernel.cu"
    "$rung" lens --file "$place/my_error_kernel.cu" --tile 16x16 --threads 256 37x41x45 >"$out" 2>&1
    got=$?
    rm -rf "$place"
    [ $got = 2 ] && grep -q -- "$1" "$out" || { echo "FAIL compile '$2': exit $got, wanted '$1'; it said:"; cat "$out"; failed=1; }
}
compile 'my_error_kernel.cu line 9: .*nothing_of_the_kind' 's/float sum = 0.0f/float sum = nothing_of_the_kind/'
compile 'its asm() is no code of this processor.s: the lens knows PTX as the functions of device/ptx.h, device/tma.h and device/async.h' 's/float sum = 0.0f/asm volatile("bar.warp.sync 0xffffffff;"); &/'
# A warpgroup has four warps.
"$rung" lens --file "$folder/engines.cu" --tile 16x16 --threads 224 37x41x45 >"$out" 2>&1
[ $? = 1 ] && grep -q 'thread 128, .* multiplies with a warpgroup that lacks threads: it has 128, and the block 224' "$out" || { echo "FAIL engines with 224 threads:"; tail -n 3 "$out"; failed=1; }
# Patience without end is none that ends at once.
"$rung" lens --file "$folder/kinds.cu" --tile 16x16 --threads 256 --alpha 36 --patience 1099511627776 16x16x16 >"$out" 2>&1
! grep 'endless loop' "$out" && grep -q '1 of 1 blocks ran' "$out" || { echo "FAIL kinds 36, with patience"; failed=1; }
# A kernel that writes nothing is told, also where some blocks stand for all; and what it lacks.
for size in 37x41x45 1024x1024x64; do
    for scalars in '' '--beta -0.5'; do
        # shellcheck disable=SC2086
        "$rung" lens --file "$folder/others_parameters.cu" --tile 16x16 --threads 256 $size $scalars >"$out" 2>&1
        got=$?
        words="C\[0\]\[0\] was never written, nor an operand touched: does the kernel take one parameter, 'const __grid_constant__ rung_args g'?"
        [ $got = 1 ] && grep -q -- "$words" "$out" || { echo "FAIL others_parameters at $size $scalars: exit $got; it said:"; tail -n 3 "$out"; failed=1; }
        ! grep -q 'does the kernel?' "$out" || { echo "FAIL others_parameters: its tile is doubted, too"; failed=1; }
    done
done
# Where C stays as it was by right, all is well.
"$rung" lens --file "$folder/sound.cu" --tile 16x16 --threads 256 1024x1024x16 --alpha 0 --beta 1 >"$out" 2>&1 || { echo "FAIL sound, alpha 0 and beta 1:"; tail -n 3 "$out"; failed=1; }

# Each copy's line ends with the sectors and passes that the hardware counted for it.
"$rung" lens --file "$folder/copies.cu" --tile 32x32 --threads 32 --all 32x32x1024 --format csv >"$out" 2>&1 || failed=1
if awk -F, '/cp.async/ && match($0, /\/\* [0-9]+ [0-9]+ \*\//) {
        split(substr($0, RSTART, RLENGTH), want, " ")
        got = $2 ~ /^global/ ? $6 : $8
        if (got != ($2 ~ /^global/ ? want[2] : want[3])) { print "FAIL copies: counted " got " in " $0; bad = 1 }
        seen++
    }
    END { exit bad || seen != 44 }' "$out"; then
    echo "ok   copies: sectors and passes of 22 patterns"
else
    echo "FAIL copies"
    failed=1
fi
# Lines are counted and shown as they stand, however long one before them is.
long=$(mktemp -d) || exit 1
trap 'rm -rf "$out" "$long"' EXIT
{ printf '/* %05000d */\n' 0; cat "$folder/tile16.h"; } >"$long/tile16.h" && cp "$folder/sound.cu" "$long"
"$rung" lens --file "$long/sound.cu" --tile 16x16 --threads 256 --all 37x41x45 --format json --svg "$long/sound.svg" >"$out" 2>&1 || failed=1
if python3 - "$out" "$long/tile16.h" "$long/sound.svg" <<'PYTHON'; then
import html, json, sys
rows = [json.loads(line) for line in open(sys.argv[1]) if line.startswith('{"line"')]
lines = open(sys.argv[2]).read().splitlines()
drawn = html.unescape(open(sys.argv[3]).read())
sys.exit(not rows or any(r["source"] != lines[r["line"] - 1].strip() for r in rows) or not all(r["source"][:80] in drawn for r in rows))
PYTHON
    echo "ok   sound: lines behind a long one"
else
    echo "FAIL sound, behind a long line:" && cat "$out"
    failed=1
fi
# A production kernel loads ahead what it may not use, which is no finding; a rung may not.
tile=$("$(dirname "$0")/tiles_with.sh" -1 "$(dirname "$0")/.." small crowd=0 slices=2) || exit 1
if "$rung" lens --check "$tile" l02_coalesced >"$out" 2>&1; then
    echo "ok   $tile: loads ahead"
else
    echo "FAIL $tile: a finding where it loads ahead:" && cat "$out"
    failed=1
fi
exit $failed
