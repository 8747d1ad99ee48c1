#!/bin/sh
# Every command of the book that needs no GPU, typed as the book prints it: each must end with 0. Left out are lines that say "on a GPU",
# NVIDIA's programs, the kernel of chapter 19, which the test guides writes and compares, and rung climb, which takes its time and is
# run by the test cli. What the book shows of a command's output is compared by the test pages; what a run of a minute prints, here: the two
# errors of chapter 13, and the bits of chapter 14 on one, two and four ranks, where mpirun is installed.
# usage: book_commands.sh SOURCE BUILD
set -u
source=$1 build=$2
[ -e "$build/lib/rung-lens/librung_lens.so" ] || { echo "left out: no lens in this build"; exit 77; }
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/build"
ln -s "$build" "$work/build/release"
cp -r "$source/results" "$work/results" # a command may write there
cd "$work" || exit 1
for chapter in "$source"/docs/book/[0-9]*.md; do
    echo "unset RUNG_LIBCUDA"
    awk '/^```/ { inside = $0 == "```sh" } inside && /^(build\/release\/bin\/rung|export) / && !/on a GPU|l90_|rung climb/' "$chapter"
done >commands
ran=0 bad=0
while IFS= read -r line; do
    case $line in
    unset* | export*) eval "$line" && continue ;;
    esac
    ran=$((ran + 1))
    if ! sh -c "$line" </dev/null >said 2>&1; then
        echo "FAILED: $line"
        tail -n 5 said
        bad=1
    fi
    case $line in
    *l3[45]_f16x3*) # the kernel, its result and the error, as the chapter shows them
        grep "^l3[45]_f16x3" said | cut -c1-79 >row
        [ -s row ] && grep -qFf row "$source/docs/book/13-tensor-cores.md" || { echo "FAILED: chapter 13 shows another error"; cat said; bad=1; }
        ;;
    esac
done <commands
line=$(sed -n 's/^mpirun --oversubscribe -n 4 \(build[^#]*[^# ]\) *#.*/\1/p' "$source/docs/book/14-several-gpus.md")
if command -v mpirun >/dev/null && [ -e "$build/lib/librung_mpi.so" ]; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    for ranks in 1 2 4; do
        ran=$((ran + 1))
        sh -c "mpirun --oversubscribe -n $ranks $line --format csv" </dev/null 2>said | awk -F, 'END { print $(NF - 1) }' >>bits
    done
    [ "$(sort -u bits | grep -c '^[0-9a-f]\{16\}$')" -eq 1 ] && [ "$(sort -u bits | wc -l)" -eq 1 ] || { echo "FAILED: other bits on other ranks:"; cat bits said; bad=1; }
else
    echo "left out: chapter 14's command (openmpi-bin)"
fi
echo "$ran commands"
[ "$ran" -ge 30 ] || bad=1
exit $bad
