#!/bin/sh
# rung profile: what it takes from ncu's table, here a made one: a sum's launches are added, and percentages are the longest launch's,
# whether it comes first or last. The CPU's rungs are told from their counts. And the H200's counters of the sums agree with the lens.
# usage: profile.sh RUNG LENS SOURCE_DIR LOST_DRIVER WHOLE_DRIVER
rung=$1 lens=$2 source=$3 lost=$4 whole=$5 bad=0
made=$(mktemp -d) || exit 1
trap 'rm -rf "$made"' EXIT
ln -s "$lens" "$made/libcuda.so.1" # a driver, so that counters are asked for
cat >"$made/ncu" <<'TEXT'
#!/bin/sh
case "$*" in *"profile --launch r02_shared,r03_several_per_thread 65536"*) ;; *) echo "==ERROR== asked for: $*"; exit 1 ;; esac
cat <<'CSV'
"ID","Kernel Name","gpu__time_duration.sum","smsp__inst_executed.sum","smsp__issue_active.avg.pct_of_peak_sustained_active","smsp__inst_executed.sum.per_second","of_smsp__inst_executed.sum"
"","","ns","inst","%","inst/s","inst"
"0","r02_shared","1,000,000","100","50.5","777","778"
"1","r02_shared","10,000","5","7.5","777","778"
"2","r03_several_per_thread","10,000","6","8.5","777","778"
"3","r03_several_per_thread","900,000","90","40.5","777","778"
"4","another_kernel","5,000,000","1000","90.5","777","778"
CSV
TEXT
chmod +x "$made/ncu"
LD_LIBRARY_PATH=$made RUNG_NCU=$made/ncu "$rung" profile r02_shared r03_several_per_thread 2^16 --format csv -o "$made/out.jsonl" >"$made/csv" 2>"$made/said" || bad=1
expect() { # a line of the table begins so
    grep -q "^$1" "$made/csv" || { echo "FAILED: no line $1 in:"; cat "$made/csv" "$made/said"; bad=1; }
}
expect 'r02_shared,"time, us",1010,'
expect 'r02_shared,instructions of warps,105,'
expect 'r02_shared,"issue slots used, %",50.5,'
expect 'r03_several_per_thread,"time, us",910,'
expect 'r03_several_per_thread,"issue slots used, %",40.5,'
grep -q '"kernel": "r02_shared", "n": 65536, "counter"' "$made/out.jsonl" || { echo "FAILED: the record is:"; cat "$made/out.jsonl"; bad=1; }
"$rung" profile r02_shared 2^16 --counters "$made/out.jsonl" --format csv >"$made/csv" 2>"$made/said" || bad=1
expect 'r02_shared,instructions of warps,105,'
"$rung" profile r02_shared 2^17 --counters "$made/out.jsonl" >/dev/null 2>&1 && { echo "FAILED: counters of 2^16 floats stood for 2^17"; bad=1; }

# An ncu on the PATH that does not know a metric is asked again without it; it says more than fits into the first 64 KiB, which a log keeps.
mkdir "$made/path"
cat >"$made/path/ncu" <<'TEXT'
#!/bin/sh
case "$*" in *smsp__issue_active.avg.pct_of_peak_sustained_active*)
    echo "==ERROR== Failed to find metric smsp__issue_active.avg.pct_of_peak_sustained_active"
    exit 1 ;;
esac
seq 20000 | sed 's/^/==PROF== /'
cat <<'CSV'
"ID","Kernel Name","gpu__time_duration.sum","smsp__inst_executed.sum"
"","","ns","inst"
"0","r02_shared","7,000","70"
CSV
TEXT
chmod +x "$made/path/ncu"
LD_LIBRARY_PATH=$made PATH="/nowhere:$made/path:$PATH" RUNG_NCU_LOG=$made/log "$rung" profile r02_shared 2^16 --format csv >"$made/csv" 2>"$made/said" || bad=1
expect 'r02_shared,"time, us",7,'
expect 'r02_shared,instructions of warps,70,'
! grep '^r02_shared,"issue slots used, %",[0-9]' "$made/csv" || { echo "FAILED: a metric that ncu does not know has a figure"; bad=1; }
[ "$(grep -c '^==PROF== ' "$made/log")" = 20000 ] || { echo "FAILED: the log has not all that ncu said"; bad=1; }

# Where there are no counters their reason is told, and the exit code is 1.
refused() { # WHAT_NCU_SAYS WORDS
    printf '#!/bin/sh\necho "%s"\nexit 9\n' "$1" >"$made/path/ncu"
    LD_LIBRARY_PATH=$made PATH="$made/path:$PATH" "$rung" profile r02_shared 2^16 >/dev/null 2>"$made/said"
    [ $? = 1 ] && grep -q "no counters: .*$2" "$made/said" || { echo "FAILED: ncu said '$1', and rung:"; cat "$made/said"; bad=1; }
}
refused '==ERROR== ERR_NVGPUCTRPERM - no permission' 'the driver keeps the counters to administrators'
refused '==ERROR== LibraryNotLoaded' 'ncu cannot reach the counters on this machine'
refused '==ERROR== out of luck' 'ncu ended with 9 and no figures: out of luck'

# A kernel that fails on the GPU is told by name, whether it is a product's or a sum's; those after it are launched as well.
failed() { # KERNEL SIZE
    RUNG_LIBCUDA=$lost "$rung" profile --launch "$1" "$2" 2>"$made/said"
    [ $? = 1 ] || { echo "FAILED: $1 failed, and the exit code does not say so"; bad=1; }
    for kernel in $(echo "$1" | tr , ' '); do
        grep -q "$kernel: device error: cuStreamSynchronize failed: CUDA_ERROR_ILLEGAL_ADDRESS" "$made/said" || { echo "FAILED: $kernel failed, and this was said:"; cat "$made/said"; bad=1; }
    done
}
failed r02_shared 4096
failed l01_naive,l02_coalesced 16x16x16
RUNG_LIBCUDA=$lens "$rung" profile --launch l01_naive 16x16x16 || { echo "FAILED: a kernel that does not fail is said to"; bad=1; }

# What ncu watches has whole operands, of the sizes asked for, and a result of them: nobody else looks at it.
launched() { # KERNEL SIZE FLOATS_OF_EACH_PIECE...
    kernel=$1 size=$2
    shift 2
    RUNG_LIBCUDA=$whole "$rung" profile --launch "$kernel" "$size" 2>"$made/said" || bad=1
    for floats; do echo "memory: $floats floats, of which nothing has written 0"; done | sort >"$made/wanted"
    grep ^memory "$made/said" | sort | comm -13 - "$made/wanted" | grep -q . && { echo "FAILED: $kernel of $size has not memory of $* floats, all written:"; cat "$made/said"; bad=1; }
}
launched l01_naive 16x80x24 384 1920 1280
launched l10_thread_tile_8x8,l02_coalesced 33x70x9 297 630 2310 297 630 2310
launched r02_shared 5000 5000 1

"$rung" profile c05_packing 1024x1024x1024 --counters "$source/results/ladder-cpu-counts.jsonl" --format csv >"$made/csv" || bad=1
expect 'c05_packing,instructions,1204368222,1.1216'
expect 'c05_packing,misses of L1,9834750,'

# Requests of loads and stores, of global and shared memory, that the hardware counted at 2^20.
"$rung" profile --ladder 2^20 --counters "$source/results/ladder-counters-sums-h200.jsonl" --format csv >"$made/csv" || bad=1
awk -F, '
    { metric = $2; gsub(/"/, "", metric) }
    metric !~ /^(sectors per global|global (load|store) (requests|sectors)|shared (load|store) (instructions|passes by))/ { next }
    $3 + 0 == 0 && $4 + 0 == 0 { next }
    { compared++; if (!($5 >= 0.99 && $5 <= 1.01)) { print "FAILED: " $0; bad = 1 } }
    END { print compared " figures of the sums compared"; exit bad || compared < 40 }' "$made/csv" || bad=1
exit $bad
