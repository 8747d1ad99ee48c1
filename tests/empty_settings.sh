#!/bin/sh
# A setting of the environment that is there and empty is as one that is not there, whichever it is: scripts clear settings so. And a folder
# that is there and empty is as one that is not there. On a machine without a GPU.
# usage: empty_settings.sh RUNG SOURCE_DIR
rung=$1 bad=0 looked=0
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
export RUNG_CACHE_DIR="$work" HOME="$work"
names=$(cd "$2" && grep -rhoE '(getenv|named)\("(RUNG_[A-Z_0-9]+|XDG_CACHE_HOME|TMPDIR)"\)' src lab cli shim | sed 's/.*"\(.*\)".*/\1/' | sort -u)
tell() { # all that four verbs say
    "$rung" explain --device cpu 300x200x100 2>&1
    echo "ended with $?"
    "$rung" verify --device cpu --math strict --case NN:17x19x23:row --format csv 2>&1 | sed "s/,[0-9.e+-]*,$//"
    echo "ended with $?"
    "$rung" lens l02_coalesced 8x9x10 --format csv 2>&1
    echo "ended with $?"
    "$rung" explain --gpu h200 --kernel l23_searched 1024x1024x1024 2>&1
    echo "ended with $?"
    "$rung" doctor 2>&1
    echo "ended with $?"
}
for name in $names; do
    [ "$name" = RUNG_CACHE_DIR ] || unset "$name"
done
"$rung" lens l02_coalesced 8x9x10 >"$work/once" 2>&1 # which may have to be compiled, and says so
tell >"$work/unset"
for name in $names; do
    [ "$name" = RUNG_CACHE_DIR ] && continue # it keeps away what was tuned here
    looked=$((looked + 1))
    (eval "export $name="; tell) >"$work/empty"
    cmp -s "$work/unset" "$work/empty" || { echo "FAILED: with an empty $name:"; diff "$work/unset" "$work/empty" | head -n 5; bad=1; }
done
for name in RUNG_LEARN RUNG_LENS_KERNELS RUNG_DEVICE_IMAGES; do
    mkdir "$work/folder"
    for there in empty none; do
        (eval "export $name=$work/folder"; "$rung" learn; echo "ended with $?"; tell) >"$work/$there" 2>&1
        rm -rf "$work/folder"
    done
    cmp -s "$work/empty" "$work/none" || { echo "FAILED: with an empty folder for $name:"; diff "$work/none" "$work/empty" | head -n 5; bad=1; }
done
echo "$looked settings are as if they were not there where they are empty"
[ $looked -ge 25 ] && [ $bad = 0 ]
