#!/bin/sh
# The lens against an H200's counters, saved in results/counters-1024-h200.jsonl, for the FP32 rungs: sectors a request within 1%,
# requests and passes of shared memory within 5%. lens_counters.sh RUNG FILE
rung=$1 saved=$2 out=$(mktemp) || exit 1
trap 'rm -f "$out"' EXIT
kernels=
# Not compared: what docs/lens.md says that the lens does not count as the chip does.
apart=' l19_lone_warps l19_batches l28_thread_tile_12x16 l29_one_kernel '
for kernel in $("$rung" list --format csv | awk -F, '/^l[012][0-9]_/ { print $1 }'); do
    case $apart in *" $kernel "*) continue ;; esac
    if grep -q "\"$kernel\"" "$saved"; then kernels="$kernels $kernel"; else echo "no counters saved of $kernel"; fi
done
# shellcheck disable=SC2086
"$rung" profile $kernels 1024x1024x1024 --counters "$saved" --format csv >"$out" || exit 1
awk -F, '
    { metric = $2; gsub(/"/, "", metric) }
    metric ~ /^sectors per global/ { bar = 0.01 }
    metric ~ /requests|instructions$|sectors$|by address$/ && metric !~ /per / { bar = 0.05 }
    metric !~ /^(sectors per|global (load|store) (requests|sectors)|cp.async|shared (load|store) (instructions|passes by))/ { next }
    $3 + 0 == 0 && $4 + 0 == 0 { next }
    {
        compared++
        seen[$1] = 1
        if (!($5 >= 1 - bar && $5 <= 1 + bar)) { print "FAIL " $0; bad = 1 }
    }
    END {
        for (k in seen) rungs++
        print compared " figures of " rungs " rungs compared"
        exit bad || rungs < 30 || compared < 150
    }' "$out"
