#!/bin/sh
# Runs compute-sanitizer's four tools over the GPU suite, in parallel, and prints a line for each tool and family of kernels.
# Exits with 1 where a tool reports something, a check fails, a run does not end, or a kernel was not run at all.
# usage: lab/sanitize.sh [-j JOBS] [-w SECONDS] [-t TOOL,...] [-f FAMILY,...] [-o FOLDER] [RUNG]
#   JOBS at once (8: they share the GPU by turns), SECONDS for all (900), only these tools or families, logs in FOLDER (a
#   temporary one)
# Cases are just large enough that rings of stages wrap and k is cut into parts, in all transposes, with rows at odd and at
# even addresses; racecheck, many times slower than the others, gets fewer.
set -u
if [ "${1:-}" = --one ]; then # --one NUMBER FOLDER END TOOL FAMILY COMMAND...
    log=$3/$5-$6-$2.log left=$(($4 - $(date +%s))) tool=$5
    [ "$left" -gt 0 ] || exit 0
    shift 6
    case $tool in
    # Wrong calls are part of the suite, so what the driver says to them is no finding.
    memcheck) tool="memcheck --report-api-errors no" ;;
    # Barriers are counted by the instructions that set them up, and lanes set up several. What judges results need not
    # be slowed down too: the other tools look at it.
    racecheck) tool="racecheck --num-cuda-barriers 64 --kernel-name-exclude kernel_substring=lab_" ;;
    synccheck) tool="synccheck --num-cuda-barriers 64" ;;
    esac
    start=$(date +%s)
    # shellcheck disable=SC2086 # several words
    timeout -k 2 "$left" compute-sanitizer --tool $tool --print-limit 5 "$@" >"$log" 2>&1 </dev/null
    echo "exit $? after $(($(date +%s) - start)) s" >>"$log"
    exit 0
fi

jobs=8 seconds=900 tools=memcheck,initcheck,synccheck,racecheck folder=
families=copies,warps,matrix,tiles,lines,ladder,vectors,small,reduce,library
while getopts j:w:t:f:o: option; do
    case $option in
    j) jobs=$OPTARG ;;
    w) seconds=$OPTARG ;;
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

list() { # ROLE PATTERN: kernels, one a line
    "$rung" list --device gpu --role "$1" --format csv | tail -n +2 | cut -d, -f1 | grep -E "$2"
}
kernels() { # FAMILY
    case $1 in
    copies) list production '_(tma|tmak|tmapair|tmashift|tmaslice|markslice)_' ;;
    warps) list production '_(tmawarp|markwarp|lone[a-z]*)_' ;;
    matrix) list production _wgmma_ ;;
    tiles) list production '_(cpasync|crowd|brief)_' ;;
    lines) list production _lines_ ;;
    vectors) list production '_(dot|axpy)_' ;;
    small) list production _small_ ;;
    ladder | reduce) list "$1" . ;;
    esac
}
cases() { # FAMILY TOOL
    case $1 in
    copies | warps)
        echo "NN:132x136x200:row,alpha=-0.5,beta=1;NN:67x131x137:row,pad=1,bias=row,act=relu;NT:131x67x137:row,offset=1"
        echo "TN:132x68x136:row,pad=4,scalars=device,beta=-0.5;TT:67x65x73:row,strided=3,bias=column,act=gelu;NN:36x33x2003:row" ;;
    matrix)
        echo "NN:130x127x520:row,pad=3,beta=1;NT:127x257x200:row,offset=1,bias=row;TN:257x128x324:row"
        echo "TT:128x129x512:row,strided=2;NN:130x256x256:row,data=trap,judge=accuracy;NN:2300x2180x64:row" ;;
    tiles)
        echo "NN:132x68x136:row,beta=1;NT:67x65x137:row,offset=1;TN:131x67x71:row,pad=3;TT:68x132x136:row,pad=4"
        [ "$2" = racecheck ] || echo "NN:67x77x139:row,pad=1,bias=row,act=relu;NT:68x132x136:row,scalars=device,beta=-0.5"
        [ "$2" = racecheck ] || echo "TN:132x68x72:row,strided=3;TT:65x67x73:row,bias=column,act=gelu"
        echo "NN:36x36x2004:row" ;;
    lines)
        echo "NN:132x300x16:row,pad=1,beta=1;NT:67x131x7:row,offset=1;TN:257x129x32:row,pad=3,bias=row,act=relu"
        echo "TT:131x67x1:row,strided=3;NN:300x257x5:row,scalars=device,beta=-0.5" ;;
    vectors)
        echo "NN:70x1x300:row,pad=1;TN:72x1x1300:row,beta=1;NN:1x132x700:row,strided=3,bias=row;TT:36x1x5000:row,act=gelu"
        echo "NT:1x70x3000:row,scalars=device" ;;
    small) echo "NN:7x8x9:row,pad=3,strided=9;NT:16x15x16:row,arrays=6;TN:32x31x35:row,strided=5,beta=1;TT:8x8x8:row,strided=300" ;;
    ladder) echo "NN:131x77x200:row,pad=3,beta=0.5" ;;
    library) echo "NN:2049x1025x32:col;NN:197x64x197:row,strided=40;TT:31x33x10003:row,pad=1;NN:300x260x520:row,data=span40" ;;
    esac | paste -sd ';' -
}
runs() { # TOOL FAMILY: the arguments of each
    case $2 in
    reduce) echo "reduce 65537 --budget-ms 1" ;;
    library)
        for way in "--math strict" "--math accurate" "--math accurate --via host" "--math accurate --via graph"; do
            [ "$1" = racecheck ] && [ "$way" != "${way%via*}" ] && continue # the same kernels
            echo "verify $way --case $(cases library "$1")"
        done
        echo "verify --wrong-calls" ;;
    *) # three kernels each, or six
        [ "$1" = racecheck ] && join=',,\n' || join=',,,,,\n'
        kernels "$2" | paste -sd "$join" - | sed "s/,*$//; s/^/verify --case $(cases "$2" "$1") --kernel /" ;;
    esac
}
for family in $(echo "$families" | tr , ' '); do
    for tool in $(echo "$tools" | tr , ' '); do
        runs "$tool" "$family" | sed "s|^|$folder $(($(date +%s) + seconds)) $tool $family $rung |; s|\$| --device gpu|; s| verify | verify --no-vendor |"
    done
done | awk '{ print NR, $0 }' >"$folder/plan"
xargs -P "$jobs" -L 1 "$0" --one <"$folder/plan"

# ---- the table of results ----
failed=0
for tool in $(echo "$tools" | tr , ' '); do
    : >"$folder/ran-$tool"
    for family in $(echo "$families" | tr , ' '); do
        errors=0 broken=0 spent=0 planned=0
        while read -r number _ _ its_tool its_family _; do
            [ "$its_tool $its_family" = "$tool $family" ] || continue
            log=$folder/$tool-$family-$number.log planned=$((planned + 1))
            [ -e "$log" ] || { broken=$((broken + 1)); echo "FAILED $tool-$family-$number: no time was left"; continue; }
            # racecheck: "2 hazards displayed (136 errors, 1 warnings)"; the others: "ERROR SUMMARY: 3 errors"
            found=$(sed -n 's/.*RACECHECK SUMMARY: .*(\([0-9]*\) errors*, \([0-9]*\) warnings*).*/\1 \2/p
                s/.*ERROR SUMMARY: \([0-9]*\) error.*/\1 0/p' "$log" | tail -n 1)
            end=$(sed -n 's/^exit \([0-9]*\) after \([0-9]*\) s$/\1 \2/p' "$log")
            spent=$((spent + ${end#* }))
            if [ -z "$found" ] || { [ "$found" = "0 0" ] && [ "${end% *}" != 0 ]; }; then
                broken=$((broken + 1))
                echo "FAILED $(basename "$log"): exit ${end% *}: $(grep -E '^(FAIL|rung:|=+ +(Error|Internal))' "$log" | head -n 2 | tr '\n' ' ')"
            elif [ "$found" != "0 0" ]; then
                errors=$((errors + ${found% *} + ${found#* }))
                echo "FOUND $(basename "$log"): $(grep -E '^=+ +(Error|Warning|Invalid|Uninit|Barrier|Race)' "$log" | head -n 2 | tr '\n' ' ')"
            fi
            awk '/ (pass|ok)( |$)/ { print $1 }' "$log" >>"$folder/ran-$tool"
        done <"$folder/plan"
        missing=
        for name in $(kernels "$family"); do
            grep -qx "$name" "$folder/ran-$tool" || missing="$missing $name"
        done
        printf '%-10s %-8s %3d runs %4d s  %d errors%s\n' "$tool" "$family" "$planned" "$spent" "$errors" "${missing:+, never ran:$missing}"
        [ $((errors + broken)) = 0 ] && [ -z "$missing" ] || failed=1
    done
done
exit $failed
