#!/bin/sh
# compute-sanitizer's four tools over the GPU suite, in parallel: a line a tool and family of kernels. Exit 1 where a tool
# reports something, a check fails, a run does not end, or a kernel was not run at all.
# usage: lab/sanitize.sh [-j JOBS] [-l SECONDS] [-t TOOL,...] [-f FAMILY,...] [-o FOLDER] [RUNG]
#   JOBS at once (4: they share the GPU, whose turns are what they wait for), SECONDS for each (600), only these tools or
#   families, logs in FOLDER (a temporary one)
# Cases are just large enough that every ring of stages wraps and k is cut into parts, in all transposes, with rows at odd
# and at even addresses.
set -u
if [ "${1:-}" = --one ]; then # --one NUMBER FOLDER SECONDS TOOL FAMILY COMMAND...
    log=$3/$5-$6-$2.log limit=$4 tool=$5
    shift 6
    case $tool in
    # Wrong calls are part of the suite: what the driver says to them is no finding.
    memcheck) tool="memcheck --report-api-errors no" ;;
    # Barriers are counted by the instructions that set them up, and lanes set up several. What judges results need not
    # be slowed down too: the other tools look at it.
    racecheck) tool="racecheck --num-cuda-barriers 64 --kernel-name-exclude kernel_substring=lab_" ;;
    synccheck) tool="synccheck --num-cuda-barriers 64" ;;
    esac
    start=$(date +%s)
    # shellcheck disable=SC2086 # several words
    timeout -k 5 "$limit" compute-sanitizer --tool $tool --print-limit 5 "$@" >"$log" 2>&1 </dev/null
    echo "exit $? after $(($(date +%s) - start)) s" >>"$log"
    exit 0
fi

jobs=4 limit=600 tools=racecheck,memcheck,initcheck,synccheck folder=
families=copies,warps,tiles,small,vectors,matrix,ladder,reduce,library
while getopts j:l:t:f:o: option; do
    case $option in
    j) jobs=$OPTARG ;;
    l) limit=$OPTARG ;;
    t) tools=$OPTARG ;;
    f) families=$OPTARG ;;
    o) folder=$OPTARG ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
rung=${1:-rung}
command -v compute-sanitizer >/dev/null || { echo "needs compute-sanitizer (CUDA toolkit) on the PATH" >&2; exit 2; }
command -v "$rung" >/dev/null || { echo "no $rung" >&2; exit 2; }
[ -n "$folder" ] || { folder=$(mktemp -d) && trap 'rm -rf "$folder"' EXIT; }
mkdir -p "$folder"
rm -f "$folder"/*-*.log

list() { # ROLE PATTERN: kernels, comma-separated
    "$rung" list --device gpu --role "$1" --format csv | tail -n +2 | cut -d, -f1 | grep -E "$2" | paste -sd, -
}
kernels() { # FAMILY
    case $1 in
    copies) list production '_(tma|tmak|tmapair|tmashift)_' ;;
    warps) list production '_(tmawarp|lonewarp)_' ;;
    tiles) list production _cpasync_ ;;
    small) list production _small_ ;;
    vectors) list production '_(dot|axpy)_' ;;
    matrix) list production _wgmma_ ;;
    ladder) list ladder . ;;
    reduce) list reduce . ;;
    esac
}
cases() { # FAMILY
    case $1 in
    copies | warps | tiles)
        printf %s "NN:132x136x200:row,alpha=-0.5,beta=1;NN:131x77x200:row,pad=1,bias=row,act=relu;NT:131x133x200:row,offset=1;" \
            "TN:132x260x200:row,pad=4,scalars=device,beta=-0.5;TN:131x77x200:row,pad=1;TT:67x131x200:row,pad=3,bias=column,act=gelu;" \
            "NT:65x64x72:row,strided=3;TT:68x64x2052:row;NN:35x33x3003:row" ;;
    small) echo "NN:7x8x9:row,pad=3,strided=9;NT:16x15x16:row,arrays=6;TN:32x31x35:row,strided=5,beta=1;TT:8x8x8:row,strided=300" ;;
    vectors)
        printf %s "NN:70x1x300:row,pad=1;TN:72x1x1300:row,beta=1;NN:1x132x700:row,strided=3,bias=row;TT:36x1x5000:row,act=gelu;" \
            "NT:1x70x3000:row,scalars=device" ;;
    matrix)
        printf %s "NN:130x127x520:row,pad=3,beta=1;NT:127x257x200:row,offset=1,bias=row;TN:257x128x324:row;" \
            "TT:128x129x512:row,strided=2;NN:130x256x256:row,data=trap,judge=accuracy;NN:2300x2180x64:row" ;;
    ladder) echo "NN:131x77x67:row,pad=3,beta=0.5;NN:132x260x300:row" ;;
    library) echo "NN:2049x1025x32:col;NN:197x64x197:row,strided=40;TT:31x33x10003:row,pad=1;NN:300x260x520:row,data=span40" ;;
    esac
}
job() { # TOOL FAMILY ARGUMENTS
    echo "$folder $limit $1 $2 $rung $3 --device gpu"
}
plan() {
    for tool in $(echo "$tools" | tr , ' '); do
        for family in $(echo "$families" | tr , ' '); do
            case $tool-$family in
            *-reduce) job "$tool" reduce "reduce 65537 --budget-ms 1" ;;
            *-library)
                for math in strict accurate; do
                    job "$tool" library "verify --no-vendor --math $math --case $(cases library)"
                done
                [ "$tool" = racecheck ] && continue # those are the same kernels
                job "$tool" library "verify --no-vendor --math accurate --via host --case $(cases library)"
                job "$tool" library "verify --no-vendor --math accurate --via graph --case $(cases library)"
                job "$tool" library "verify --no-vendor --wrong-calls" ;;
            *) # sixteen kernels a run
                kernels "$family" | tr , '\n' | paste -sd ',,,,,,,,,,,,,,,\n' - | while read -r some; do
                    job "$tool" "$family" "verify --no-vendor --case $(cases "$family") --kernel $some"
                done ;;
            esac
        done
    done
}
plan | awk '{ print NR, $0 }' >"$folder/plan"
xargs -P "$jobs" -L 1 "$0" --one <"$folder/plan"

# ---- what came of it ----
failed=0
for tool in $(echo "$tools" | tr , ' '); do
    : >"$folder/ran-$tool"
    for family in $(echo "$families" | tr , ' '); do
        set -- "$folder/$tool-$family"-*.log
        errors=0 broken=0 seconds=0
        for log; do
            [ -e "$log" ] || { broken=$((broken + 1)); continue; }
            # racecheck: "2 hazards displayed (136 errors, 1 warnings)"; the others: "ERROR SUMMARY: 3 errors"
            found=$(sed -n 's/.*RACECHECK SUMMARY: .*(\([0-9]*\) errors, \([0-9]*\) warnings).*/\1 \2/p; s/.*ERROR SUMMARY: \([0-9]*\) error.*/\1 0/p' "$log" | tail -n 1)
            end=$(sed -n 's/^exit \([0-9]*\) after \([0-9]*\) s$/\1 \2/p' "$log")
            seconds=$((seconds + ${end#* }))
            if [ -z "$found" ] || { [ "$found" = "0 0" ] && [ "${end% *}" != 0 ]; }; then
                broken=$((broken + 1))
                echo "FAILED $(basename "$log"): exit ${end% *}: $(grep -E '^(FAIL|rung:|=+ +(Error|Internal))' "$log" | head -n 2 | tr '\n' ' ')"
            else
                errors=$((errors + ${found% *} + ${found#* }))
                [ "$found" = "0 0" ] || echo "FOUND $(basename "$log"): $(grep -E '^=+ (Error|Warning|Invalid|Uninit|Barrier|Race)' "$log" | head -n 2 | tr '\n' ' ')"
            fi
        done
        awk '/ (pass|ok)( |$)/ { print $1 }' "$@" 2>/dev/null | sort -u >>"$folder/ran-$tool"
        missing=
        for name in $(kernels "$family" | tr , ' '); do
            grep -qx "$name" "$folder/ran-$tool" || missing="$missing $name"
        done
        printf '%-10s %-8s %3d runs %4d s  %d errors%s\n' "$tool" "$family" $# "$seconds" "$errors" "${missing:+, never ran:$missing}"
        [ $((errors + broken)) = 0 ] && [ -z "$missing" ] || failed=1
    done
done
exit $failed
