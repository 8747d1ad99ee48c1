#!/bin/sh
# Every command of the book that needs no GPU, typed as the book prints it: each must end with 0. Left out are lines that say "on a GPU",
# other programs, the kernel of chapter 19, which the test add_a_kernel writes, and rung climb, which takes its time and is run by the
# test cli. What chapter 13 says of two errors is compared.
# usage: book_commands.sh SOURCE BUILD
set -u
source=$1 build=$2
[ -e "$build/lib/rung-lens/librung_lens.so" ] || { echo "left out: no lens in this build"; exit 77; }
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/build"
ln -s "$build" "$work/build/release"
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
    *l34_f16x3_chain*) grep -q ' 107\.86 ' said || { echo "FAILED: chapter 13 says 107.86 u of l34"; cat said; bad=1; } ;;
    *l35_f16x3_promoted*) grep -q ' 7\.01 ' said || { echo "FAILED: chapter 13 says 7.01 u of l35"; cat said; bad=1; } ;;
    esac
done <commands
echo "$ran commands"
[ "$ran" -ge 30 ] || bad=1
exit $bad
