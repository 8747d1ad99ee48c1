#!/bin/sh
# docs/add_a_kernel.md, which chapter 19 of the book repeats, and docs/add_a_tile.md, taken at their word: their files and rows go into one copy of the sources, which must then
# build, list, plan with and verify the new rungs, the new tile and the new family; the edits that change a tile and take one out are made,
# after which the lists that tests read still fit; and the build must refuse a file without a row, a row without a file,
# rows that no body can be compiled for and a tile whose name does not say its sizes.
# What the guides leave as it is comes from the build under test.
# usage: guides.sh SOURCE BUILD CMAKE
set -eu
source=$1 build=$2 cmake=$3
same=$(cd "$(dirname "$0")" && pwd)/same_objects.sh
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
work="$top/a clone" # the lens compiles kernels below a folder whose name has a space, too
mkdir "$work"
(cd "$source" && tar cf - CMakeLists.txt CMakePresets.json CHANGELOG.md cmake include src lab cli shim tools packaging docs tests dev learn python examples results/ladder-build.jsonl) | tar xf - -C "$work"
cd "$work"

# The n-th ```c block of a page.
block() { awk -v wanted="$2" '/^```c$/ { n++; on = 1; next } /^```/ { on = 0 } on && n == wanted' "docs/$1.md"; }

# The n-th ```sh block of a page.
shell() { awk -v wanted="$2" '/^```sh$/ { n++; on = 1; next } /^```/ { on = 0 } on && n == wanted' "docs/$1.md"; }

# refused WHAT SAYS: the build does not configure, and says why.
refused() {
    ! "$cmake" build >log 2>&1 || { echo "$1 was taken"; exit 1; }
    grep -q "$2" log || { cat log; exit 1; }
}

"$cmake" -S . -B build -G Ninja -DRUNG_TESTS=OFF -DRUNG_WERROR=ON -DRUNG_CUDA_ARCHS= -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_EXPORT_COMPILE_COMMANDS=ON -DCMAKE_C_COMPILER_LAUNCHER="$same;take" >log 2>&1 || { cat log; exit 1; }
for n in 1 2; do # the kernel and its row
    [ "$(block book/19-your-own-kernel $n)" = "$(block add_a_kernel $((n + 2)))" ] || { echo "chapter 19 has another kernel than add_a_kernel.md"; exit 1; }
done
block add_a_kernel 1 >src/ladder/cpu/c90_two_rows.c
refused "a file without a row" 'c90_two_rows.c has no row'
block add_a_kernel 2 >>src/ladder/cpu/rows.inc
block add_a_kernel 3 >src/ladder/gpu/l90_two_rows.cu
block add_a_kernel 4 >>src/ladder/gpu/rows.inc
block add_a_tile 1 >>src/cuda/families/small/tiles.inc
block add_a_tile 2 >>src/cuda/families/list.inc
mkdir src/cuda/families/plain
block add_a_tile 3 >src/cuda/families/plain/tile.h
block add_a_tile 4 >src/cuda/families/plain/tiles.inc
block add_a_tile 5 >src/cuda/families/plain/kernel.cu
block add_a_tile 6 >src/cuda/families/plain/launch.c
"$cmake" build >log 2>&1 || { cat log; exit 1; }
"$same" list "$build" "$source" "$work/build" "$work"
RUNG_SAME=$work/build/same RUNG_SAME_FROM=$build "$cmake" --build build --target rung_run >log 2>&1 || { tail -30 log; exit 1; }
rm -rf build/same
for kernel in lab_kernels sm90_crowd_f32_64x32x8_s4; do # and so do kernels for the lens
    row=$(grep "^$kernel " build/lib/rung-lens/kernels.txt) && grep -qxF "$row" "$build/lib/rung-lens/kernels.txt" || continue
    cp -p "$build/lib/rung-lens/$kernel".so "$build/lib/rung-lens/$kernel".d build/lib/rung-lens || :
done

# The rungs.
build/bin/rung list | grep c90_two_rows
build/bin/rung list | grep l90_two_rows
build/bin/rung verify --device cpu --kernel c90_two_rows | grep 'c90_two_rows *pass'

if command -v "${RUNG_LENS_CXX:-g++}" >/dev/null; then # what chapter 19 shows of it
    sed -n '/^\$ rung lens l90_two_rows 128x96x64$/,/^```$/{ /^line/p; /^  [0-9]/p }' docs/book/19-your-own-kernel.md >shown
    build/bin/rung lens l90_two_rows 128x96x64 | cut -c1-71 | sed -n 's/ *$//; /^line/p; /^  [0-9]/p' >said
    [ "$(wc -l <shown)" -eq 6 ] && diff shown said || { echo "chapter 19 shows something else of l90_two_rows"; exit 1; }
fi

# The tile and the family.
tile=sm80_cpasync_f32_16x32x32_s3 plain=sm80_plain_f32_8x32x1_s1
for kernel in $tile $plain; do
    build/bin/rung list | grep -q "$kernel" || { echo "$kernel is not in the list"; exit 1; }
    build/bin/rung explain 60x60x60 --gpu h200 | grep -E "^ +[0-9.]+ +$kernel" || { echo "$kernel was not planned with"; exit 1; }
done
if [ -e build/lib/rung-lens/librung_lens.so ]; then
    cases='NN:17x33x40:row,pad=3,alpha=-0.5,beta=1;NN:16x32x64:row;NN:1x5x0:col'
    for kernel in $tile $plain; do
        RUNG_LIBCUDA=$work/build/lib/rung-lens/librung_lens.so RUNG_CACHE_DIR=$work/cache build/bin/rung verify --device gpu \
            --kernel "$kernel" --case "$cases" --no-vendor >log 2>&1 || { cat log; exit 1; }
        grep "$kernel *pass" log || { cat log; exit 1; }
    done
else
    echo "left out: the new tile and family run, no lens in this build"
fi

# A tile changed and one taken out, by the page's own commands: neither name is left, and nothing else has to know.
old=sm90_crowd_f32_64x32x8_s4 changed=sm90_crowd_f32_64x32x8_s3 gone=sm90_crowd_f32_32x128x8_s4
cases='sm*_crowd_f32_64x32x8_* NN:m+8xn+4x100:row,pad=1,beta=1
sm*_crowd_f32_64x32x8_* TN:mxnx1401:row,pad=1'
on_lens() { RUNG_LIBCUDA=$work/build/lib/rung-lens/librung_lens.so RUNG_CACHE_DIR=$work/cache build/bin/rung verify --device gpu "$@"; }
lens=
[ ! -e build/lib/rung-lens/librung_lens.so ] || lens=1
echo "$cases" >cases
[ -z "$lens" ] || on_lens --bits cases >before 2>log || { cat log; exit 1; }
[ "$(shell add_a_tile 2; shell add_a_tile 3)" != "" ] || { echo "the page has no commands for changing tiles"; exit 1; }
shell add_a_tile 2 >edit
shell add_a_tile 3 >>edit
sh -eu edit
sed -i '/^RUNG_CPU(c90_two_rows/s/[.]role/.align_bytes = 16, .role/' src/ladder/cpu/rows.inc
"$cmake" --build build --target rung_run >log 2>&1 || { tail -30 log; exit 1; }
aligned='explain 16x32x40 --device cpu --layout row --kernel c90_two_rows' # a row may ask for addresses: then the plan refuses others
build/bin/rung $aligned | grep -q 'decision *c90_two_rows' || { echo "c90_two_rows was refused with operands at multiples of 16 bytes"; exit 1; }
for odd in "$aligned --pad 1" "${aligned%% 16x*} 16x32x41${aligned#*x40}" "${aligned%% 16x*} 16x33x40${aligned#*x40}"; do # both operands, A, B
    ! build/bin/rung $odd >log 2>&1 || { echo "c90_two_rows was taken with operands at odd addresses: $odd"; exit 1; }
    grep -q 'multiples of' log || { cat log; exit 1; }
done
build/bin/rung list | grep -q "$changed" || { echo "$changed is not in the list"; exit 1; }
for name in $old $gone; do
    ! build/bin/rung list | grep "$name" || { echo "$name is still in the list"; exit 1; }
    ! grep -rF "$name" src cmake cli lab tools tests --include='*.[ch]' --include='*.sh' --include='*.txt' --include='*.inc' --include='*.py' --exclude=guides.sh --exclude-dir=transcripts ||
        { echo "$name stands in more places than its row"; exit 1; }
done
if [ -n "$lens" ]; then
    sed "s/$old/$changed/" before >kept
    [ "$(grep -c "^$changed" kept)" = 2 ] && on_lens --bits kept >/dev/null 2>log || { cat log; exit 1; }
    on_lens --kernel $changed --case 'NN:17x33x40:row;TT:64x33x70:row,beta=0.5' --no-vendor >log 2>&1 || { cat log; exit 1; }
fi
tests/bits.sh build/bin/rung lab
tests/faults/stand.sh >log 2>&1 || { cat log; exit 1; }
tail -n 1 log

rm src/ladder/cpu/c90_two_rows.c
refused "a row without a file" 'lists c90_two_rows, but there is no'
block add_a_kernel 1 | sed 's/c90_two_rows(/c90_two(/' >src/ladder/cpu/c90_two_rows.c
refused "a file with another kernel" 'c90_two_rows.c has no kernel c90_two_rows'
block add_a_kernel 1 >src/ladder/cpu/c90_two_rows.c
cp src/ladder/cpu/rows.inc kept
sed -i '/^RUNG_CPU(c90_two_rows/s/c01_naive/c01_naiv/' src/ladder/cpu/rows.inc
refused "a rung after one that is not there" 'a rung follows c01_naiv '
cp kept src/ladder/cpu/rows.inc
cp src/ladder/gpu/rows.inc kept
sed -i '/"l02_coalesced", [.]bm = 64/s/[.]bm = 64/.bm = 32/' src/ladder/gpu/rows.inc
refused "a row with a smaller tile than its file" 'l90_two_rows has [.]bm = 32, but'
grep -q 'l90_two_rows[.]cu has BM = 64' log || { cat log; exit 1; }
cp kept src/ladder/gpu/rows.inc
# Rows that no body can be compiled for, or only one that computes wrongly or never ends, and a row too few: the host's part of the build says what is
# legal. Several rows have their edits at once, and each is told.
illegal() { # family, an edit of its rows, what the build says
    rows=src/cuda/families/$1/tiles.inc legal=src/cuda/families/$1/legal
    [ -e "$legal" ] || cp "$rows" "$legal"
    cp "$rows" kept
    sed -i "$2" "$rows"
    ! cmp -s kept "$rows" || { echo "$2 changes no row of $1"; exit 1; }
    printf '%s\n' "$1: $2" "$3" >>edits
}
told() { # the build names what all edits since the last time have made
    "$cmake" build >log 2>&1 || { cat log; exit 1; }
    ! ninja -C build src/CMakeFiles/rung.dir/core/catalog.c.o >log 2>&1 || { cat edits; echo "these edits were taken"; exit 1; }
    grep 'static assertion failed' log >asserted
    while IFS= read -r edit && IFS= read -r says; do
        grep -qF -- "$says" asserted || { cat log; echo "$edit was taken"; exit 1; }
    done <edits
    rm edits
    for family in src/cuda/families/*/legal; do mv "$family" "${family%legal}tiles.inc"; done
}
illegal medium 's/tmawarp_f32_64x64x64_s3, .groups = 4/tmawarp_f32_64x64x48_s3, .groups = 3/' '64x64x48_s3: .groups is 1, 2, 4 or 8'
illegal medium 's/tmawarp_f32_128x128x16/tmawarp_f32_128x96x16/' '128x96x16_s6: BM and BN are 64 or 128'
illegal medium 's/tmawarp_f32_64x128x32_s4/tmawarp_f32_64x128x32_s2/' "64x128x32_s2: a group"
illegal small 's/_crowd_f32_64x64x8_/_crowd_f32_64x64x16_/' '64x64x16_s4: a crowd'
illegal small 's/\.lanes_x = 32/.lanes_x = 24/' '.lanes_x divides BN / .tn'
illegal small 's/_cpasync_f32_64x128x16_s4/_cpasync_f32_64x128x16_s1/' '64x128x16_s1: at least two stages'
illegal small 's/_small_f32_16x16x16_/_small_f32_16x16x8_/' 'with .batch BM, BN and BK are alike'
illegal lone 's/_48x64x16_s3, .tm = 12/_48x64x16_s3, .tm = 8/' "a warp"
illegal lone '0,/{[.]share = [0-9.]*, /s//{/' '.cost has a .share above 0'
illegal lines 's/_lines_f32_128x128x8_/_lines_f32_96x128x8_/' '96x128x8_s4: BM is a multiple of 128'
illegal vector 's/_axpy_f32_64x1x128_/_axpy_f32_96x1x128_/' 'without .k_innermost BM is 32'
illegal pairs 's/tmapair_f32_64x256x16_/tmapair_f32_64x512x16_/' 'BM * BN 16384'
illegal large 's/tmak_f32_256x128x16_/tmak_f32_128x128x16_/' 'BM x BN is 128 x 256 or 256 x 128'
illegal accurate 's/_f16x3_128x128x32_/_f16x3_128x64x32_/' 'BM and BN are 128'
told
illegal medium '/_markslice_/,/^$/d' 'medium/tiles.inc: accurate mode needs'
illegal small '/ \.in_order = 1/,/^$/d' 'small/tiles.inc: accurate mode needs'
illegal small 's/_cpasync_f32_64x128x16_s4/_cpasync_f32_64x128x8_s4/' '64x128x8_s4: BK is a multiple of 16'
illegal small 's/_crowd_f32_64x64x8_s4/_crowd_f32_64x64x8_s1/' '64x64x8_s1: at least two stages'
illegal small 's/[.]resident = 16/.resident = 100/' 'a multiprocessor holds 2048 threads'
illegal lone 's/_8x128x16_s3, .tm = 8/_4x128x16_s3, .tm = 4/' 'BM and BN are multiples of 8'
illegal vector 's/_32x1x128_s1, .k_innermost = 1, .apart = 1, .rows = 4, .steps = 1, .warps = 8/_256x1x128_s1, .k_innermost = 1, .apart = 1, .rows = 4, .steps = 1, .warps = 64/' 'at most 32 .warps'
illegal large 's/_tma_f32_128x256x16_s8/_tma_f32_128x256x16_s3/' '128x256x16_s3: at least four stages'
illegal accurate 's/_f16x3_128x128x32_s6/_f16x3_128x128x32_s7/' '128x128x32_s7: a block has at most'
told
illegal medium 's/[.]marked = 1/.marked = 2/' '.marked and .large_loop are 0 or 1'
illegal small '0,/, [.]resident = 2/s///' ': .resident is 1 or more'
illegal small '0,/[.]k_at_once = 2/s//.k_at_once = 8/' '.k_at_once is 2 or 4'
illegal small 's/_16x16x128_s4, .tm = 4, .tn = 4/_16x16x128_s4, .tm = 16, .tn = 16/' 'a block has whole warps'
illegal lone 's/_lonewarp_f32_8x128x16_s3/_lonewarp_f32_8x128x16_s1/' '8x128x16_s1: at least two stages'
illegal lone '0,/[.]fourths = 0/s//.fourths = 1/' '.fourths is only with .copied'
illegal accurate 's/_f16x3_128x128x32_s6/_f16x3_128x128x32_s2/' '128x128x32_s2: at least three stages'
told
illegal accurate 's/[.]tf32 = 1/.tf32 = 2/' '.tf32 is 0 or 1'
illegal accurate '0,/[.]cluster = 2/s//.cluster = 4/' '.cluster is 2'
illegal large '0,/[.]step_cycles = [0-9.]*/s//.step_cycles = 0/' '.cost has .step_cycles above 0'
illegal large 's/_tma_f32_256x128x16_s8/_tma_f32_256x128x32_s4/' '256x128x32_s4: BK is 16'
illegal large '/_tmak_/s/[.]min_ffma_percent = 94/.min_ffma_percent = 101/' 'tmak_f32_256x128x16_s8: .min_ffma_percent is 100 or less'
illegal lines 's/_lines_f32_128x128x8_s4/_lines_f32_128x128x12_s4/' 'BK is 4, 8 or 16'
illegal lone 's/_lonecopy_f32_40x64x16_s3, .tm = 20/_lonecopy_f32_40x64x16_s3, .tm = 10/' '.tm and .tn are multiples of 4'
illegal lone '0,/[.]whole_steps = 1/s//.whole_steps = 2/' '.copied, .fourths and .whole_steps are 0 or 1'
illegal medium '0,/[.]full_us = [0-9.]*/s//.full_us = 0/' '.cost has .full_us above 0'
illegal medium 's/_tmawarp_f32_64x128x32_s4/_tmawarp_f32_64x128x48_s4/' '64x128x48_s4: BK is 16 times'
illegal pairs '0,/[.]min_ffma_percent = 94/s//.min_ffma_percent = 101/' 'tmapair_f32_128x128x16_s4: .min_ffma_percent is 100 or less'
illegal pairs 's/[.]shifted = 1/.shifted = 2/' '.shifted is 0 or 1'
illegal pairs 's/_tmapair_f32_64x256x16_/_tmapair_f32_64x256x8_/' '64x256x8_s4: BK is 16'
illegal accurate 's/_f16x3_128x128x32_/_f16x3_128x128x64_/' '_f16x3_128x128x64_s6: BK is 32'
illegal vector '0,/[.]bytes_per_us = [0-9.e+]*/s//.bytes_per_us = 0/' '.cost has .bytes_per_us above 0'
illegal vector 's/_axpy_f32_64x1x128_s1, .warps = 8/_axpy_f32_64x1x128_s1, .warps = 4/' 'without .k_innermost BM times BK is 1024'
illegal vector '0,/[.]apart = 1/s//.apart = 2/' '.k_innermost and .apart are 0 or 1'
illegal small '0,/[.]slices = 8/s//.slices = 0/' '.slices is 1 or more'
illegal small 's/_brief_f32_32x16x32_s8, .brief = 1, .tm = 2, .tn = 4, .slices = 1, .lanes_x = 4/_brief_f32_32x16x32_s8, .brief = 1, .tm = 2, .tn = 4, .slices = 1, .lanes_x = 2/' 'with .brief .lanes_x is 4, 8 or 16'
told
illegal accurate 's/_f16x3_128x128x32_/_f16x3_128x128x16_/' 'BK is 32'
illegal large 's/[.]a_k_innermost = 1, .post/.a_k_innermost = 2, .post/' '.a_k_innermost is 0 or 1'
illegal large 's/_tma_f32_256x128x16_s8/_tma_f32_256x128x8_s8/' '256x128x8_s8: BK is 16'
illegal lone 's/_lonewarp_f32_32x64x16_s3/_lonewarp_f32_32x64x48_s3/' 'BK is 16; of a tile of 16 lanes 16 or 32'
illegal lone 's/_lonecopy_f32_16x96x16_s3, .tm = 4/_lonecopy_f32_16x96x16_s3, .tm = 12/' '16x96x16_s3: .tm divides BM, and .tn BN'
illegal medium '0,/[.]alone_us = [0-9.]*/s//.alone_us = 0/' '.cost has .alone_us above 0'
illegal medium '0,/[.]min_ffma_percent = 87/s//.min_ffma_percent = 101/' 'tmawarp_f32_128x128x16_s6: .min_ffma_percent is 100 or less'
illegal pairs 's/_tmapair_f32_64x256x16_/_tmapair_f32_64x256x32_/' '64x256x32_s4: BK is 16'
illegal vector '0,/[.]rows = 4/s//.rows = 6/' 'with .k_innermost .rows is 4 or 8'
illegal vector 's/[.]rows = 8, .steps = 1/.rows = 8, .steps = 5/' 'with .k_innermost .steps is 1 to 4'
illegal vector 's/_dot_f32_4x1x512_/_dot_f32_8x1x512_/' 'with .k_innermost BM is .rows'
illegal vector 's/_axpy_f32_256x1x32_s1, .warps = 8/_axpy_f32_256x1x32_s1, .warps = 0/' 'BN is 1, .warps and .resident are 1 or more'
illegal small '0,/[.]tm = 8, [.]tn = 4, [.]slices = 8/s//.tm = 6, .tn = 4, .slices = 8/' '.tm and .tn are multiples of 4; with .brief .tm may be 2'
illegal small '0,/[.]crowd = 1/s//.crowd = 2/' '.crowd, .batch, .brief and .in_order are 0 or 1'
illegal small '0,/[.]brief = 1, [.]tm = 2, [.]tn = 4, [.]slices = 1/s//.brief = 1, .tm = 2, .tn = 4, .slices = 2/' 'with .brief .slices is 1 and .in_order 0'
illegal small 's/[.]lanes_x = 1,/.lanes_x = 3,/' '.lanes_x is 1, 2, 4, 8, 16 or 32'
illegal small 's/_cpasync_f32_16x16x128_s4/_cpasync_f32_16x16x96_s4/' '16x16x96_s4: BK is a multiple of 4 times .slices'
illegal small 's/_cpasync_f32_80x64x32_s3, .tm = 20/_cpasync_f32_80x64x32_s3, .tm = 12/' '80x64x32_s3: .tm divides BM, and .tn BN'
told
! grep -q 'division by zero' log || { cat log; exit 1; }

echo 'RUNG_TILE(sm80_plain_f32_big, .idea = "no sizes in its name")' >>src/cuda/families/plain/tiles.inc
refused "a tile without sizes in its name" 'sm80_plain_f32_big'
block add_a_tile 4 >src/cuda/families/plain/tiles.inc
cp src/cuda/families/small/tiles.inc kept
sed -i '0,/[.]slices = /s//.slice = /' src/cuda/families/small/tiles.inc
refused "a misspelt field" '[.]slice$'
cp kept src/cuda/families/small/tiles.inc
# What the build would read in another way than the compiler.
unread() { # WHAT EDIT SAYS
    sed -i "$2" src/cuda/families/small/tiles.inc
    ! cmp -s kept src/cuda/families/small/tiles.inc || { echo "$2 changes no row"; exit 1; }
    refused "$1" "$3"
    cp kept src/cuda/families/small/tiles.inc
}
unread "a number below 0" '0,/[.]tm = 8/s//.tm = -8/' "'-8'"
unread "no comma between fields" '0,/[.]tm = 8,/s//.tm = 8/' comma
unread "a field twice" '0,/[.]tm = 8/s//.tm = 8, .tm = 8/' twice
unread "a misspelt .post" '0,/[.]crowd = 1/s//.crowd = RUNG_CROWD/' RUNG_CROWD
unread "a row behind //" 's,^RUNG_TILE(sm90_crowd_f32_64x64x8_s4,// &,' delete
unread "a row between #if and #endif" 's/^RUNG_TILE(sm90_crowd_f32_64x64x8_s4/#ifdef RUNG_OTHER\n&/' delete
unread "another architecture" 's/sm80_cpasync_f32_64x128x16_s4/sm86_cpasync_f32_64x128x16_s4/' sm86_cpasync_f32_64x128x16_s4
cp src/cuda/families/lines/tiles.inc lines
sed -i '/^RUNG_TILE/,$d' src/cuda/families/lines/tiles.inc
refused "a family without tiles" 'lines/tiles.inc has no row'
cp lines src/cuda/families/lines/tiles.inc
sed -i 's/[.]tm = 8, [.]tn = 4/.tm=8, .tn =4/' src/cuda/families/small/tiles.inc # blanks are as in C
"$cmake" build >log 2>&1 || { cat log; exit 1; }
ninja -C build src/CMakeFiles/rung.dir/core/catalog.c.o >log 2>&1 || { cat log; exit 1; }
cp kept src/cuda/families/small/tiles.inc
block add_a_tile 1 >>src/cuda/families/small/tiles.inc
refused "a tile that stands twice" sm80_cpasync_f32_16x32x32_s3
