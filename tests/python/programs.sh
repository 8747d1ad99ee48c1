#!/bin/sh
# The programs whose times docs/results.md sums up run with and without Rung and come to the same: NumPy's, and those of linear algebra over a
# stand-in for SciPy, whose functions hand back what they are given. What is not there is left out by its name.
# usage: programs.sh <source folder> <rung>
set -e
python=${RUNG_PYTHON:-/usr/bin/python3}
$python -c 'import numpy' 2>/dev/null || { echo "left out: no python3-numpy"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/scipy"
touch "$folder/scipy/__init__.py"
cat >"$folder/scipy/linalg.py" <<'TEXT'
def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return lambda a, *more, **named: a
TEXT
export PYTHONPATH="$folder" PYTHONDONTWRITEBYTECODE=1
$python "$1/lab/python/programs.py" --rung "$2" --threads 1 --rounds 1 --budget 0.005 --only numpy,scipy --folder "$folder" --json "$folder/rows" >"$folder/said"
$python - "$1" "$folder" <<'TEXT'
import importlib.util
import json
import sys

spec = importlib.util.spec_from_file_location("programs", sys.argv[1] + "/lab/python/programs.py")
programs = importlib.util.module_from_spec(spec)
spec.loader.exec_module(programs)
rows = {row["program"]: row for row in map(json.loads, open(sys.argv[2] + "/rows"))}
answered = {"einsum_chain", "tensordot_4d", "batched_64", "batched_8", "batched_transposed", "attention", "convolution_by_columns", "perceptron_by_hand"}
said = open(sys.argv[2] + "/said").read()
chosen = [name for name, (group, _, _) in programs.PROGRAMS.items() if group in ("numpy", "scipy")]
assert list(rows) == chosen, (list(rows), chosen)
for name, row in rows.items():
    group, _, wide = programs.PROGRAMS[name]
    if "left_out" in row:
        missing = {"sgemm_of_scipy": "scipy.linalg.blas", "minimize_least_squares": "scipy.optimize"}[name]
        assert row["left_out"].startswith(f"No module named '{missing}'") and f"left out: {row['left_out']}" in said, row
        continue
    assert group == row["group"] and row["without_us"] > 0 and row["with_us"] > 0 and row["ratio"] == row["without_us"] / row["with_us"], row
    assert row["apart"] < 1e-3 and (not wide or row["error_with"] < 1e-3), row
    assert row["calls"] > 0 or name not in answered, row
timed = sum("ratio" in row for row in rows.values())
assert f"{timed} times, geometric mean " in said, said
print(f"{timed} programs run, {len(rows) - timed} are left out")
TEXT
# What programs' own tests come to with and without Rung is held against each other, by a stand-in for Octave that calls a test failed under the
# drop-in; rung may be named by a path that holds from here alone.
mkdir "$folder/bin"
cat >"$folder/bin/octave-cli" <<'TEXT'
#!/bin/sh
[ "$2" = --eval ] || { echo "GNU Octave, a stand-in"; exit; }
echo "  libinterp/corefcn/qr.cc-tst .............. pass   41/41"
case $LD_PRELOAD:$SAME in
*librung_blas*:) echo "  linear-algebra/null.m .................... FAIL    1/12" ;;
*) echo "  linear-algebra/null.m .................... pass   12/12" ;;
esac
TEXT
chmod +x "$folder/bin/octave-cli"
own() { (cd "$(dirname "$rung")" && PATH="$folder/bin:$PATH" SAME=$1 "$source/lab/torch/own_tests.sh" ./rung "$folder/own" octave 60 >"$folder/said" 2>&1); }
source=$(cd "$1" && pwd) rung=$2
own yes && grep -q '2 tests in both runs, 2 with the same outcome' "$folder/said" || { echo "FAILED: own_tests.sh says"; cat "$folder/said"; exit 1; }
own '' && { echo "FAILED: own_tests.sh passes over a test that fails with Rung alone"; exit 1; }
grep -q 'differs: linear-algebra/null.m PASSED -> 1_of_12' "$folder/said" || { echo "FAILED: own_tests.sh says"; cat "$folder/said"; exit 1; }
for lab in python torch; do
    $python "$1/lab/$lab/programs.py" --rung "$2" --only no_such_program >"$folder/said" 2>&1 && { echo "FAILED: lab/$lab/programs.py takes an unknown program"; exit 1; }
    grep -q "no program or group is called no_such_program" "$folder/said" || { echo "FAILED: lab/$lab/programs.py says"; cat "$folder/said"; exit 1; }
done
"$2" run --report -- $python "$1/lab/python/alternating.py" 40 50 >"$folder/said" 2>"$folder/report"
[ "$(grep -cE '^[45]0: f32 [0-9]+\.[0-9]{2}/[0-9]+\.[0-9]{2} in turn [0-9]+\.[0-9]{2}/[0-9]+\.[0-9]{2}$' "$folder/said")" = 2 ] ||
    { echo "FAILED: alternating.py says"; cat "$folder/said"; exit 1; }
# Two sizes, of each 2 + 31 calls alone and as many in turn with FP64, of which none is Rung's.
grep -qE '(^|[^0-9])132 calls answered' "$folder/report" || { echo "FAILED: others than 132 products were answered"; cat "$folder/report"; exit 1; }
