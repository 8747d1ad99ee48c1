#!/bin/sh
# Who may include what: shim, cli, lab and tests see the public and lab headers only; the core sees backends through
# core/backend.h; kernels see the device mechanisms (GPU) or cpu/ headers (CPU).
# usage: include_rule.sh <source folder>
cd "$1" || exit 1
bad=0

# rule FILES-GLOB-FOLDERS ALLOWED-REGEX: every #include "..." in these folders must match.
rule() {
    folders=$1 allowed=$2
    for folder in $folders; do
        [ -d "$folder" ] || continue
        found=$(grep -rnE --include='*.c' --include='*.h' --include='*.cu' --include='*.inc' '^[[:space:]]*#[[:space:]]*include "' "$folder" |
            grep -vE "include \"($allowed)\"")
        [ -z "$found" ] || { echo "$found" | sed "s|^|not allowed in $folder: |"; bad=1; }
    done
}

public='rung[a-z_]*\.h'
rule shim "$public|core/(plain|wrote)\.h|cpu/(others|team)\.h|[a-z_0-9]+\.(h|inc)"
rule cli "$public|cpu/others\.h|((cli|lab)/)?[a-z_0-9]+\.(h|inc)"
rule lab "$public|(lab/(device/)?)?[a-z_0-9]+\.(h|inc)"
rule tests "$public|multi/(transport|control|clock|multi|mover|timeline)\.h|cli/cli\.h|core/(again|backend|divide|overlap|plain|plan|status|tuned|validate|wrote)\.h|cpu/(features|pool)\.h|cuda/driver/(background|chain|device|driver|images|recorded)\.h|cuda/host/boxes\.h|cuda/families/accurate/recall\.h|(lab/|\.\./|(\.\./)?gpu/|team/)?[a-z_0-9]+\.h|(cuda/)?device/(args|async|f16x3|f16x3_guard|mma|parts|ptx|reduce_args|row_copy|tma|turn)\.h|cuda/families/((large|lone|medium)/args|vector/gather)\.h|cpu/gemm_rules\.h" # stand-ins for a GPU, kernels with planted faults
rule examples "$public"
rule src/multi "$public|(core|multi)/[a-z_0-9]+\.h|cuda/driver/(driver|device)\.h|cpu/(pool|threads)\.h"
rule src/core "$public|core/[a-z_]+\.h|core/all_rows\.inc|(ladder/(cpu|gpu|reduce)|cpu/kernels)/rows\.inc|(plans|tile_rows)\.h|(tiles|tile_checks)\.inc"
rule src/cpu "$public|(core|cpu)/[a-z_0-9/]+\.(h|inc)|cpu/kernels/avx2_f32_6x16\.c" # a family may be another's under other macros
rule src/ladder/cpu "$public|(core|cpu|ladder/cpu)/[a-z_0-9/]+\.(h|inc)"
# A rung may be another rung's body under other macros.
rule learn "device/[a-z_0-9]+\.h"
rule "src/ladder/gpu src/ladder/reduce" "(cuda/)?device/[a-z_0-9]+\.(h|inc)|families/[a-z]+/[a-z_0-9]+\.(h|inc)|[a-z_0-9]+\.inc|ladder/(gpu|reduce)/[a-z_0-9]+\.cu"
rule src/cuda/device "(cuda/)?device/[a-z_0-9]+\.(h|inc)|[a-z_0-9]+\.h"
rule src/cuda/driver "$public|core/[a-z_]+\.(h|inc)|cuda/(device|driver)/[a-z_0-9]+\.(h|inc)|tile_rows\.h"
rule "src/cuda/host src/cuda/ladder" "$public|core/[a-z_]+\.h|(cuda/)?device/[a-z_0-9]+\.h|cuda/(driver|host|ladder|families/accurate)/[a-z_0-9]+\.h|cuda/families/(tile\.h|list\.inc)|cuda/ladder/list\.inc"
rule src/cuda/families "$public|core/[a-z_]+\.h|cuda/(device|driver|host)/[a-z_0-9]+\.h|(cuda/)?families/([a-z]+/)?[a-z_0-9]+\.(h|inc)|device/[a-z_0-9]+\.(h|inc)"
rule src/lens "$public|lens\.h|(cuda/)?device/[a-z_0-9]+\.h|\.\./\.\./\.\./cuda/device/tma\.h" # the lens stands in for a driver: it sees no host code
rule tools/sass "[a-z_]+\.h|\.\./\.\./lab/device/lab_ports\.h" # the patterns that it writes are timed by the lab
rule tools/fit "$public|core/[a-z_]+\.h|cuda/(driver|families)/[a-z_]+\.(h|inc)|lab/shape\.h"

# An .inc file is included many times: it says what it needs of those who include it, and leaves no macro behind.
for file in $(find src/cuda/families src/cuda/device -name '*.inc' ! -name 'tiles.inc' ! -name 'list.inc'); do
    sed '/^#/q' "$file" | grep -q 'Parameters' || { echo "$file does not list its parameters at its top"; bad=1; }
    left=$(awk '/^[[:space:]]*#[[:space:]]*define / { name = $2; sub(/\(.*/, "", name); if ($1 == "#") next; on[name] = 1 }
        /^[[:space:]]*#[[:space:]]*undef / { delete on[$2] }
        END { for (name in on) if (name !~ /_H$/) print name }' "$file" | sort | tr '\n' ' ')
    case $file:$left in *written_loop.inc:"BK TM TN ") left= ;; esac # what it gives where it was given none
    [ -z "$left" ] || { echo "$file leaves these macros behind: $left"; bad=1; }
done
exit $bad
