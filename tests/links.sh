#!/bin/sh
# Every relative link and every results/ file that a document names must exist; a table is one; the changelog is in order; the settings
# of the environment have their table. usage: links.sh <source folder>
cd "$1" || exit 1
bad=0
list=$(mktemp)
trap 'rm -f "$list" "$list.differs"' EXIT
# A table has a head, a line of dashes, and as many cells in each row. After an empty line rows are a table of their own, or bare text.
tables() {
    awk '/^```/ { fence = !fence }
        fence || !/^[|]/ { if (rows == 1) print FILENAME ":" FNR - 1 ": a row of no table"; rows = 0; next }
        { line = $0; gsub(/`[^`]*`/, "", line); cells = gsub(/[|]/, "", line); rows++ }
        rows == 1 { head = cells }
        rows == 2 && !/^[|]( *:?-+:? *[|])+ *$/ { print FILENAME ":" FNR ": no line of dashes under a head" }
        rows > 1 && cells != head { print FILENAME ":" FNR ": " cells - 1 " cells under a head of " head - 1 }' "$@"
}

for page in *.md */README.md docs/*.md docs/*/*.md src/*/*.md src/*/*/README.md src/cuda/families/*/README.md tools/*/README.md; do
    [ -e "$page" ] || continue
    folder=$(dirname "$page")
    for target in $(grep -oE '\]\([^)#: ]+' "$page" | sed 's/^](//'); do
        [ -e "$folder/$target" ] || { echo "$page: no $target"; bad=1; }
    done
    said=$(tables "$page")
    [ -z "$said" ] || { echo "$said"; bad=1; }
    for target in $(grep -oE 'results/[a-z0-9_.-]+\.(jsonl|json|txt|csv)' "$page" | sort -u); do
        [ -e "$target" ] || { echo "$page: no $target"; bad=1; }
    done
done

# The variables that programs, libraries and scripts read are those of docs/install.md's tables.
{
    grep -rhoE '"RUNG_[A-Z_0-9]+"' src lab cli shim --include='*.c' --include='*.h'
    grep -hoE 'environ[^=]*"RUNG_[A-Z_0-9]+"' -r python packaging --include='*.py'
    grep -hoE '[$]([{]|ENV[{])?RUNG_[A-Z_0-9]+' dev packaging/*.sh src/lens/*.sh
    grep -hoE '[$]ENV[{]RUNG_[A-Z_0-9]+' -r CMakeLists.txt cmake src lab cli shim --include=CMakeLists.txt --include='*.cmake'
} | grep -oE 'RUNG_[A-Z_0-9]+' | sort -u >"$list"
sed -n '/^## Environment/,/^## /p' docs/install.md | grep -oE '`RUNG_[A-Z_0-9]+`' | tr -d '`' | sort -u | diff "$list" - >"$list.differs" || {
    sed -n 's/^< \(.*\)/docs\/install.md: no word of \1, which is read/p; s/^> \(.*\)/docs\/install.md: nothing reads \1/p' "$list.differs"
    bad=1
}
[ "$(wc -l <"$list")" -ge 45 ] || { echo "few variables are read: $(tr '\n' ' ' <"$list")"; bad=1; }

# The changelog: a date for each release, each line under the heading of its kind, none twice.
awk '/^## / { if ($0 !~ /^## [0-9]+\.[0-9]+\.[0-9]+ \(20[0-9][0-9]-[0-9][0-9]-[0-9][0-9]\)$/) { print "CHANGELOG.md: no release and date: " $0; bad = 1 } }
    /^### / { kind = $2 }
    /^- / { if ($2 != kind ":") { print "CHANGELOG.md: under " kind ": " $0; bad = 1 }
            if (seen[$0]++) { print "CHANGELOG.md: twice: " $0; bad = 1 } }
    END { exit bad }' CHANGELOG.md || bad=1
exit $bad
