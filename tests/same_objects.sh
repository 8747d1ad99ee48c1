#!/bin/sh
# Spares a test that builds Rung a second time what the build that is tested has compiled: an object is taken over where the compiler would be
# told the same and would read the same. Folders' names count for nothing: no object has them.
# usage: same_objects.sh list BUILD SOURCE OTHER_BUILD OTHER_SOURCE [PREFIX]   writes OTHER_BUILD/same, a rule of make for each such object.
#        OTHER_BUILD is configured, with compile commands; PREFIX stands before its objects' names, where Rung is a part of another project.
#        same_objects.sh take CC ... -MF RULE -o OBJECT -c FILE   is its CMAKE_C_COMPILER_LAUNCHER, with RUNG_SAME=OTHER_BUILD/same,
#        RUNG_SAME_FROM=BUILD and RUNG_SAME_PREFIX=PREFIX. Each object is taken once: what has changed since then is compiled.
set -eu
verb=$1
shift
if [ "$verb" = take ]; then
    for word; do
        case ${last:-} in
        -MF) rule=$word ;;
        -o) object=$word ;;
        esac
        last=$word
    done
    same=${RUNG_SAME:-/dev/null}/$(printf %s "${object:-}" | tr / :)
    if [ -f "$same" ] && cp "$RUNG_SAME_FROM/${object#"${RUNG_SAME_PREFIX:-}"}" "$object"; then
        mv "$same" "$rule"
        exit
    fi
    exec "$@"
fi

build=$1 source=$2 other_build=$3 other=$4 prefix=${5:-}
rm -rf "$other_build/same"
mkdir "$other_build/same"
[ -f "$build/.ninja_deps" ] && [ -f "$build/compile_commands.json" ] || exit 0
cd "$other_build/same"

# What the compiler is told, with these names in place of folders'.
told() { # BUILD SOURCE PREFIX
    awk -v build="$1" -v source="$2" -v prefix="$3" '
        function put(name, word,   at) { while (at = index($0, name)) $0 = substr($0, 1, at - 1) word substr($0, at + length(name)) }
        /^ *"command": / {
            put("\\\"", "")
            put(build, "<build>")
            put(source, "<source>")
            put("-o " prefix, "-o=")
            print
        }' "$1/compile_commands.json" | sort
}
told "$build" "$source" "" >commands
told "$other_build" "$other" "$prefix" | comm -12 commands - | sed 's/.* -o=\([^ ]*\) .*/\1/' >objects

# What it read: whatever lies in the two folders must be the same there, and no newer than the build.
ninja -C "$build" -t deps | awk -v build="$build/" '
    /^    / {
        file = substr($0, 5)
        if (file !~ /^\//) file = build file
        while (sub("/[^/]+/[.][.]/", "/", file)) continue
        $0 = "    " file
    }
    { print }' >deps
sed -n 's/^    //p' deps | sort -u | while IFS= read -r file; do
    case $file in
    "$build"/*) there=$other_build/${file#"$build"/} ;;
    "$source"/*) there=$other/${file#"$source"/} ;;
    *) continue ;;
    esac
    cmp -s "$file" "$there" && [ ! "$file" -nt "$build/.ninja_log" ] || printf '%s\n' "$file"
done >changed

awk -v build="$build/" -v source="$source/" -v other_build="$other_build/" -v other="$other/" -v prefix="$prefix" '
    FILENAME == "objects" { wanted[$0] = 1; next }
    FILENAME == "changed" { changed[$0] = 1; next }
    function close_rule() {
        if (object != "" && good) {
            gsub("/", ":", name)
            print rule >name
            close(name)
        }
        object = ""
    }
    /^[^ ].*: #deps / {
        close_rule()
        object = $0
        sub(/: #deps .*/, "", object)
        good = (object in wanted) && /VALID/
        name = prefix object
        rule = name ":"
    }
    /^    / && good {
        file = substr($0, 5)
        if (file in changed) good = 0
        if (index(file, build) == 1) file = other_build substr(file, length(build) + 1)
        else if (index(file, source) == 1) file = other substr(file, length(source) + 1)
        gsub(" ", "\\ ", file)
        rule = rule " " file
    }
    END { close_rule() }' objects changed deps
