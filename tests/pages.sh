#!/bin/sh
# Pages say what results, lens, build and sources say; and the check finds a wrong figure, a wrong line of code, and a figure without a source.
# usage: pages.sh SOURCE_DIR BUILD_DIR
source=$1 build=$2 bad=0
command -v python3 >/dev/null || { echo "left out: no python3 (python3-numpy)"; exit 77; }
command -v "${RUNG_LENS_CXX:-g++}" >/dev/null || { echo "left out: no g++ for what the lens says on them (g++)"; exit 77; }
export PYTHONDONTWRITEBYTECODE=1
python3 "$source/tools/pages/pages.py" --check "$build" || bad=1
python3 "$source/tools/pages/pages.py" --check-record "$build" || bad=1
[ $bad = 0 ] || exit 1 # faults are planted into pages that are right

with= # the build whose command is asked, where a page shows what it prints
copy=$(mktemp -d) || exit 1
trap 'rm -rf "$copy"' EXIT
mkdir -p "$copy/docs" "$copy/tools" "$copy/results"
cp -r "$source/docs/." "$copy/docs"
cp -r "$source/tools/pages" "$source/tools/book" "$copy/tools"
cp -r "$source/src" "$source/tests" "$source/learn" "$source/lab" "$source/include" "$copy"
cp "$source"/results/*.jsonl "$source"/results/*.txt "$copy/results"
cp "$source/README.md" "$copy"
expect() { # what was planted, what the check must say
    if python3 "$copy/tools/pages/pages.py" --check ${with:+"$with"} >"$copy/said" 2>&1 || ! grep -q "$2" "$copy/said"; then
        echo "FAILED: $1 was not found; said:"
        cat "$copy/said"
        bad=1
    fi
    cp -r "$source/docs/." "$copy/docs"
}
page=docs/ladder/l10_thread_tile_8x8.md
sed -i 's/ TFLOP\/s\*\* (/1 TFLOP\/s** (/' "$copy/$page"
expect "a wrong figure" "$page is not what its sources give"
echo "It runs at 12.3 TFLOP/s." >>"$copy/$page"
expect "a figure without a source" "$page: a figure without a source"
printf '<!--= tflops("l99") -->1<!--/-->\n' >>"$copy/$page"
expect "a rung that is not there" "'l99' names 0 rungs"
printf '<!-- fill code none -->\n<!-- /fill -->\n' >>"$copy/$page"
expect "an excerpt that is not there" "has 0 lines"
# What cannot be filled stays on its page as it is, for whoever mends it.
cat >"$copy/unfilled" <<'END'
<!--= tflops("l99") -->1<!--/-->
<!--= tflopz("l10") -->2<!--/-->
<!-- fill code none -->
3
<!-- /fill -->
<!-- fill nothing here -->
4
<!-- /fill -->
END
cat "$copy/unfilled" >>"$copy/$page"
python3 "$copy/tools/pages/pages.py" >"$copy/said" 2>&1 && { echo "FAILED: pages that cannot be filled pass"; bad=1; }
tail -n "$(wc -l <"$copy/unfilled")" "$copy/$page" | cmp -s - "$copy/unfilled" || { echo "FAILED: what cannot be filled has changed:"; tail -n 8 "$copy/$page"; bad=1; }
for name in "$copy"/docs/ladder/*.md; do
    cmp -s "$name" "$source/${name#"$copy"/}" || [ "$name" = "$copy/$page" ] || { echo "FAILED: $name was filled otherwise"; bad=1; }
done
cp -r "$source/docs/." "$copy/docs"
sed -i 's/, no bank conflict</, bank conflicts</' "$copy/docs/ladder/img/l05_fewer_registers.svg"
expect "a bank conflict that is not drawn" "docs/ladder/img/l05_fewer_registers.svg: its red is not what it says"
sed -i 's/"waste"/"idle"/' "$copy/docs/ladder/img/l31_tf32x3.svg"
expect "bytes moved in vain that are not drawn" "docs/ladder/img/l31_tf32x3.svg: bytes moved in vain are not what it says"
# Tables of whole files: a wrong count, a file that lacks what its row shows, a row without a file.
sed -i '/^| H200 | [0-9]* |/s/×, [0-9]*, /×, 999, /' "$copy/docs/results.md"
expect "a wrong count of drawn shapes" "docs/results.md is not what its sources give"
sed -i '/^- .strict.: /s/ 0\.[0-9]*×/ 1.93×/' "$copy/docs/results.md"
expect "a peer that is ahead and is said not to be" "docs/results.md is not what its sources give"
sed -i 's/^# strict, graph: /# strict, replayed: /' "$copy/results/unseen-h200.txt"
expect "a way of timing that a file does not have" "unseen-h200.txt has no strict, graph of seed"
sed -i '/^# now: /d' "$copy/results/cpu-unseen-zen1.txt"
expect "a head that a file does not have" "cpu-unseen-zen1.txt has no line that begins with '# now'"
cp "$source"/results/*.txt "$copy/results"
# Of several seeds in a file the first is shown.
printf '<!-- fill seeds X=results/drawn-h200.txt -->\n<!-- /fill -->\n' >>"$copy/docs/results.md"
python3 "$copy/tools/pages/pages.py" >"$copy/said" 2>&1
grep -q '^| X | 2026112980 | 2.08×, 18, 4 | 1.58×, 36, 8 |' "$copy/docs/results.md" || { echo "FAILED: the first seed of a file is not shown:"; tail -n 6 "$copy/docs/results.md"; bad=1; }
cp "$source"/docs/results.md "$copy/docs"
printf '<!-- fill reached H200 -->\n<!-- /fill -->\n' >>"$copy/docs/results.md"
expect "a row without a file" "docs/results.md: reached H200: H200 is no list of NAME=FILE"
# Figures beside cuBLAS are cuBLAS's by name, whoever else was timed.
sed -i 's/"peers": \[{"name": "cublas"/"peers": [{"name": "another", "us": {"median": 1.0}, "ratio": {"median": 0.001}}, {"name": "cublas"/' "$copy"/results/ladder-*-h200.jsonl
grep -q '"name": "another"' "$copy/results/ladder-sizes-h200.jsonl" || { echo "FAILED: no other library was put into the record"; bad=1; }
python3 "$copy/tools/pages/pages.py" --check >"$copy/said" 2>&1
grep 'is not what its sources give' "$copy/said" && { echo "FAILED: figures are another library's"; bad=1; }
cp "$source"/results/*.jsonl "$copy/results"
# Whatever the tool writes it checks, and a check writes nothing.
for made in "$copy"/docs/ladder/img/*.svg "$copy"/docs/book/img/*.svg "$copy/$page"; do echo '<!-- old -->' >>"$made"; done
python3 "$copy/tools/pages/pages.py" --check >"$copy/said" 2>&1 && { echo "FAILED: old pictures pass"; bad=1; }
for folder in docs/ladder/img docs/book/img; do
    grep -q "^.*$folder/.* is not what its sources give" "$copy/said" || { echo "FAILED: an old picture of $folder passes"; bad=1; }
done
for made in "$copy"/docs/ladder/img/*.svg "$copy"/docs/book/img/*.svg "$copy/$page"; do
    tail -n 1 "$made" | grep -q '<!-- old -->' || { echo "FAILED: a check has written ${made#"$copy"/}"; bad=1; }
done
cp -r "$source/docs/." "$copy/docs"
# Of a build by the compiler of the records, here one of stand-ins, all that is recorded is compared: registers, ports, main loops, a listing.
mkdir -p "$copy/built/device/sm_90a" "$copy/cuda"
version=$(sed -n 's/.*"kernel": "l27_written_loop".*"nvcc": "\([^"]*\)".*/\1/p' "$source/results/ladder-build.jsonl")
echo "RUNG_NVCC:FILEPATH=$copy/cuda/nvcc" >"$copy/built/CMakeCache.txt"
echo 'l27_written_loop 1 0 0 0' >"$copy/built/device/sm_90a/resources.txt"
: >"$copy/built/device/sm_90a/l27_written_loop.cubin"
printf '#!/bin/sh\necho "Cuda compilation tools, release 0, V%s"\n' "$version" >"$copy/cuda/nvcc"
cat >"$copy/cuda/cuobjdump" <<'END'
#!/bin/sh
echo "Function : $(basename "$2" .cubin)"
awk 'BEGIN { for (i = 0; i < 512; i++) printf "        /*%04x*/                   FFMA R%d, R1, R2, R3 ;\n", 16 * i, 4 + i % 8; print "        /*2000*/                   BRA 0x0 ;" }'
END
printf '#!/bin/sh\n[ "$1" = list ] && echo nothing || echo "l27_written_loop ffmas 1 instructions 2 cycles 3"\n' >"$copy/built/sass"
chmod +x "$copy/cuda/nvcc" "$copy/cuda/cuobjdump" "$copy/built/sass"
python3 "$copy/tools/pages/pages.py" --check-record "$copy/built" >"$copy/said" 2>&1 && { echo "FAILED: a build that is not the record's passes"; bad=1; }
for record in build ports listing ffmas; do
    grep -q "results/ladder-$record.jsonl: .*run ./dev pages --record" "$copy/said" || { echo "FAILED: another build is not told of for $record:"; cat "$copy/said"; bad=1; }
done
# What is recorded of that build is what the check then asks about, each in its own file.
python3 "$copy/tools/pages/pages.py" --record "$copy/built" none >"$copy/said" 2>&1 && python3 "$copy/tools/pages/pages.py" --check-record "$copy/built" >"$copy/said" 2>&1 ||
    { echo "FAILED: a build that was just recorded is another one:"; cat "$copy/said"; bad=1; }
cp "$source"/results/*.jsonl "$copy/results"
# What a CPU's rung asks of the caches is counted under a stand-in for valgrind, which runs the program: the rung's own lines, beside what was counted before.
mkdir "$copy/bin"
cat >"$copy/bin/valgrind" <<'END'
#!/bin/sh
echo "$*" >"$(dirname "$0")/asked"
for word; do case $word in --cachegrind-out-file=*) out=${word#*=} ;; esac; done
"$word" || exit
cat >"$out" <<'LINES'
events: Ir I1mr ILmr Dr D1mr DLmr Dw D1mw DLmw
fl=/nowhere/main.c
9 1000 0 0 1000 1000 1000 1000 1000 1000
fl=/nowhere/c01_naive.c
fn=c01_naive
12 100 7 7 40 5 2 10 3 1
13 10 0 0 4 1 1 1 2 0
fl=/nowhere/stdlib.c
14 1000 0 0 1000 1000 1000 1000 1000 1000
LINES
END
chmod +x "$copy/bin/valgrind"
for twice in 1 2; do # what is counted again takes the place of what was there
    PATH="$copy/bin:$PATH" python3 "$copy/tools/pages/cpu_counts.py" --record "$build" 8 c01_naive 2>"$copy/said" || { echo "FAILED: a CPU's rung could not be counted:"; cat "$copy/said"; bad=1; }
done
grep -q -e '--cache-sim=yes --I1=32768,8,64 --D1=32768,8,64 --LL=1048576,8,64' "$copy/bin/asked" || { echo "FAILED: other caches were asked about:"; cat "$copy/bin/asked"; bad=1; }
counts=$copy/results/ladder-cpu-counts.jsonl
grep -qF '"kernel": "c01_naive", "m": 8, "n": 8, "k": 8, "command": "tools/pages/cpu_counts.py build/release 8", "instructions": 110, "reads": 44, "writes": 11, "l1_misses": 11, "l2_misses": 4}' "$counts" &&
    grep -vF '"m": 8,' "$counts" | cmp -s - "$source/results/ladder-cpu-counts.jsonl" && [ "$(wc -l <"$counts")" = "$(($(wc -l <"$source/results/ladder-cpu-counts.jsonl") + 1))" ] ||
    { echo "FAILED: of a CPU's rung something else is counted:"; diff "$source/results/ladder-cpu-counts.jsonl" "$counts"; bad=1; }
if [ -n "$(find "$build" -name librung_lens.so)" ]; then
    with=$build
    sed -i '/ 20  global load 4 B  *A /s/32\.00/31.00/' "$copy/docs/book/18-the-lens.md"
    expect "a count that the lens does not print" "docs/book/18-the-lens.md is not what its sources give"
fi
exit $bad
