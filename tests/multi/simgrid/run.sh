#!/bin/sh
# Simulated seconds of the MPI path on 16, 64 and 256 ranks, beside docs/scaling.md's model of it.
# usage: run.sh <source folder>. Needs Debian's libsimgrid-dev; exit code 77 without.
command -v smpicc >/dev/null && command -v smpirun >/dev/null || { echo "left out: no smpicc (libsimgrid-dev)"; exit 77; }
here=$1/tests/multi/simgrid
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
smpicc -O2 -I"$1/src" -I"$1/include" "$here/summa.c" "$1/src/multi/mpi/transport.c" -o "$work/summa" || exit 1
seq -f 'n%g' 0 255 >"$work/hosts"
rate=2e11 panel=512
for case in "4 4 8192" "8 8 8192" "16 16 8192" "16 16 16384"; do
    # shellcheck disable=SC2086
    set -- $case
    smpirun -np $(($1 * $2)) -platform "$here/cluster.xml" -hostfile "$work/hosts" \
        --cfg=smpi/simulate-computation:no --cfg=smpi/test:2e-6 --cfg=smpi/grow-injected-times:no --cfg=smpi/display-timing:no --log=root.thres:error \
        "$work/summa" "$1" "$2" "$3" $panel $rate >"$work/out" 2>"$work/err" || { cat "$work/err"; exit 1; }
    # Chains of segments of 1 MiB: the first panel reaches the last rank, then the slower of links and products sets the pace.
    awk -v p="$1" -v n="$3" -v w=$panel -v rate=$rate '{
        bytes = n / p * w * 4; link = 12.5e9; hop = 4e-6; segment = bytes < 1048576 ? bytes : 1048576
        product = 2 * n / p * n / p * w / rate
        pace = 2 * bytes / link + 2 * hop; if (product > pace) pace = product
        model = 2 * bytes / link + (p - 2) * (segment / link + hop) + (n / w - 1) * pace + product
        printf "%4d ranks  n %6d  simulated %.6f s  model %.6f s  ratio %.3f\n", $1, $2, $3, model, $3 / model
        if ($3 / model > 1.5 || $3 / model < 0.67) bad = 1 } END { exit bad }' "$work/out" || bad=1
done
exit ${bad:-0}
