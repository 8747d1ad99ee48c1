#!/bin/sh
# The completions in the shells they are for: verbs, options, an option's values, names of kernels. Typed, as far as the shell allows.
# usage: completion.sh <rung> <folder of the completions>
set -eu
rung=$1 made=$2
PATH=$(dirname "$rung"):$PATH
export PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0

# expect SHELL TYPED WANTED GOT
expect() {
    case " $(echo "$4" | tr '\n\t' '  ') " in *" $3 "*) ;; *) echo "$1: '$2' offers $(echo "$4" | head -c 300), not $3"; bad=1 ;; esac
}
# each TRY: what every shell is asked; TRY TYPED WANTED
each() {
    "$1" "verif" verify
    "$1" "bench --ma" --math
    "$1" "bench --math " accurate
    "$1" "list --role pro" production
    "$1" "bench --kernel c06" c06_simd_tile
    "$1" "explain l01" l01_naive
    "$1" "help cl" climb
    "$1" "run --only cu" cublas
    "$1" "explain --data spi" spike
}

in_bash() {
    got=$(bash -c '. "$1"; line="rung $2"; read -ra COMP_WORDS <<<"$line"; case $line in *" ") COMP_WORDS+=("");; esac
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _rung; printf "%s\n" "${COMPREPLY[@]}"' - "$made/bash-completion/completions/rung" "$1")
    expect bash "$1" "$2" "$got"
}
each in_bash
in_bash "bench --math = acc" accurate # as bash cuts --math=acc

# In bash the tabulator completes a line that leaves one choice.
in_zsh() {
    case $1 in *" ") typed="${1}acc" ;; *) typed=$1 ;; esac
    got=$(zsh -f "$work/type.zsh" "rung $typed" </dev/null 2>&1)
    expect zsh "$typed" "$2" "$got"
}
if command -v zsh >/dev/null; then
    cat >"$work/type.zsh" <<ZSH
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "fpath=($made/zsh/vendor-completions \$fpath); autoload -Uz compinit; compinit -u -D; bindkey -e; print rea''dy"
zpty -r -m shell out '*ready*'
zpty -w -n shell "\$1"\$'\t\C-aprint -r -- g""ot \C-eend\n'
zpty -r -m shell out '*got *end*'
print -r -- "\${\${out##*got }%%end*}"
zpty -d shell
ZSH
    each in_zsh
else
    echo "left out: completion in zsh, no zsh (zsh)"
fi

in_fish() {
    got=$(HOME=$work fish --no-config -c 'source $argv[1]; complete -C "rung $argv[2]"' "$made/fish/vendor_completions.d/rung.fish" "$1" | cut -f 1)
    expect fish "$1" "$2" "$got"
}
if command -v fish >/dev/null; then
    each in_fish
else
    echo "left out: completion in fish, no fish (fish)"
fi

# The manual pages: what mandoc and man warn of, but for the length of lines and links between pages, which are as they should be.
pages=$made/../man
if command -v mandoc >/dev/null; then
    (cd "$pages" && mandoc -T lint -W warning man1/*.1 man3/*.h.3) >"$work/lint" || { cat "$work/lint"; bad=1; }
else
    echo "left out: the manual pages' lint, no mandoc (mandoc)"
fi
exit $bad
