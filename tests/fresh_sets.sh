#!/bin/sh
# What ./dev test runs does not depend on what was done before: in empty Debian 12 roots (tests/fresh.sh) the names of the tests are asked for
# alone, after ./dev run, and after all packages were installed by hand; without a CUDA toolkit, and with one. As root.
# usage: fresh_sets.sh [-c CUDA_FOLDER] ROOT.tar [FOLDER]
# Prints how many tests each has and what differs from the first of its kind; exit 1 where something does.
set -eu
cuda=
[ "${1:-}" != -c ] || { cuda=$2; shift 2; }
tar=$1 work=${2:-$(mktemp -d)} here=$(dirname "$0") differ=0

# names KIND ORDER ARGUMENT...: of fresh.sh
names() {
    set=$work/$1.$2 first=$work/$1.alone.txt kind=$1 order=$2
    shift 2
    "$here/fresh.sh" -w "$set" "$@" >"$set.out" || { cat "$set.out"; exit 1; }
    sed -n 's/.*Test *#[0-9]*: //p' "$set/test_-N.log" >"$set.txt"
    rm -rf --one-file-system "${set:?}/root"
    printf '%-8s %-9s %4d tests\n' "$kind" "$order" "$(wc -l <"$set.txt")"
    [ -s "$set.txt" ] && diff "$first" "$set.txt" || differ=1
}

mkdir -p "$work"
for kind in without ${cuda:+with}; do
    [ $kind = with ] && toolkit="-c $cuda" || toolkit=
    # shellcheck disable=SC2086
    {
        names $kind alone $toolkit "$tar" "test -N"
        names $kind after-run $toolkit "$tar" "run --size 64" "test -N"
        names $kind by-hand $toolkit -i "$tar" "test -N"
    }
done
exit $differ
