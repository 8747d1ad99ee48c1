#!/bin/sh
# The walk of docs/architecture.md: each step "`file:line` `code`" names a line that holds this code, or one within five of it, so
# that not every edit above it is an edit of the page. And each row of "Where is ...?" names a word that its file has.
# usage: walk.sh SOURCE_DIR [--write]      (--write: puts the line numbers right)
set -eu
cd "$1"
page=docs/architecture.md bad=0 steps=0
list=$(mktemp)
trap 'rm -f "$list"' EXIT
sed -n 's/^[0-9]*\. `\([^`:]*\):\([0-9]*\)` `\([^`]*\)`.*/\1	\2	\3/p' $page >"$list"
tab=$(printf '\t')
while IFS="$tab" read -r file line code; do
    steps=$((steps + 1))
    from=$((line > 5 ? line - 5 : 1)) to=$((line + 5))
    [ "${2:-}" = --write ] && from=$line to=$line
    if sed -n "$from,${to}p" "$file" | grep -qF -- "$code"; then continue; fi
    now=$(grep -nF -- "$code" "$file" | head -n 1 | cut -d: -f1)
    if [ -n "$now" ] && [ "${2:-}" = --write ]; then
        old="\`$file:$line\` \`$code\`" new="\`$file:$now\` \`$code\`" awk '
            { at = index($0, ENVIRON["old"]) }
            at { $0 = substr($0, 1, at - 1) ENVIRON["new"] substr($0, at + length(ENVIRON["old"])) }
            { print }' $page >"$list.page" && cat "$list.page" >$page && rm "$list.page"
    else
        echo "$page: $file:$line does not hold: $code (line ${now:-none} does; walk.sh . --write puts it right)"
        bad=1
    fi
done <"$list"
[ "$steps" -ge 12 ] || { echo "$page has no walk"; exit 1; }

rows=0
sed -n 's/^| [^|]* | \[[^]]*\](\.\.\/\([^)]*\)) | `\([^`]*\)` |$/\1	\2/p' $page >"$list"
while IFS="$tab" read -r file name; do
    rows=$((rows + 1))
    grep -qF -- "$name" "$file" || { echo "$page: $file has no '$name'"; bad=1; }
done <"$list"
[ "$rows" -ge 20 ] || { echo "$page has $rows rows of what stands where"; bad=1; }
exit $bad
