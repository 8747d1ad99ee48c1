#!/bin/sh
# Manual pages and completions, made from what there is: each verb's own help, and the headers with their comments.
# usage: pages.sh <rung> <folder of headers> <folder to write into>
set -eu
rung=$1 headers=$2 out=$3
version=$("$rung" version | awk '{ print $2 }')
date=$(sed -n "s/^## $version (\(.*\))$/\1/p" "$headers/../CHANGELOG.md") # of this release
rm -rf "$out/man" "$out/completions"
mkdir -p "$out/man/man1" "$out/man/man3" "$out/completions/bash-completion/completions" \
    "$out/completions/zsh/vendor-completions" "$out/completions/fish/vendor_completions.d"
verbs=$("$rung" help | awk '/^  [a-z]/ { print $1 }')

# Text as troff: backslashes, hyphens that are typed, dots and quotes at a line's start.
troff() {
    sed -e 's/\\/\\e/g' -e 's/-/\\-/g' -e "s/^\([.']\)/\\\\\&\1/"
}

# man1: rung.1 from the overview, rung-VERB.1 from the verb's help.
{
    printf '.TH RUNG 1 "%s" "rung %s" "Rung"\n.SH NAME\nrung \\- single\\-precision matrix products: a ladder of kernels and its lab\n' "$date" "$version"
    printf '.SH SYNOPSIS\n.B rung\n.I VERB\n[options]\n.SH DESCRIPTION\n'
    "$rung" help | sed -n '1p' | sed 's/^rung [^:]*: //' | troff
    printf '.SH VERBS\n'
    "$rung" help | awk '/^  [a-z]/ { verb = $1; sub(/^ +[a-z]+ +/, ""); printf ".TP\n.BR rung\\-%s (1)\n%s\n", verb, $0 }' | sed 's/\([^\\]\)-/\1\\-/g'
    printf '.SH EXIT STATUS\n0 pass, 1 fail, 2 usage;\n.B rung run\nends as its program does, or with 126 or 127 where that cannot be started.\n'
} >"$out/man/man1/rung.1"
for verb in $verbs; do
    "$rung" help "$verb" >"$out/help"
    {
        printf '.TH RUNG\\-%s 1 "%s" "rung %s" "Rung"\n.SH NAME\n' "$(echo "$verb" | tr a-z A-Z)" "$date" "$version"
        if [ "$verb" = help ]; then
            printf 'rung\\-help \\- what a verb does and takes\n.SH SYNOPSIS\nrung help [VERB]\n'
        else
            sed -n '1s/^rung \([a-z]*\): /rung-\1 - /p' "$out/help" | troff | sed '1s/ \\- / \\- /'
            printf '.SH SYNOPSIS\n.nf\n'
            awk '/^usage: / { on = 1; sub(/^usage: /, "") } on && /^$/ { exit } on { sub(/^ +/, ""); print }' "$out/help" | troff
            printf '.fi\n.SH OPTIONS\n'
            awk '/^options:/ { on = 1; next } on && /^  -/ {
                    text = $0; sub(/^  /, "", text); at = match(text, /  +| [^-A-Z ,]/)
                    printf ".TP\n\\fB%s\\fR\n%s\n", substr(text, 1, at - 1), substr(text, at) }' "$out/help" |
                sed -e 's/\([^\\]\)-/\1\\-/g' -e 's/\([^\\]\)-/\1\\-/g' -e 's/^ *//'
        fi
        printf '.SH SEE ALSO\n.BR rung (1)\n'
    } >"$out/man/man1/rung-$verb.1"
done

# man3: a page a header, its comments as they stand; each function's name leads to it.
for header in rung rung_multi rung_catalog; do
    {
        printf '.TH %s 3 "%s" "rung %s" "Rung"\n.SH NAME\n' "$(echo $header.h | tr a-z A-Z)" "$date" "$version"
        printf '%s.h \\- ' $header
        sed -n '1s/^\/\* *\(.*[^*\/ ]\) *\(\*\/\)*$/\1/p' "$headers/$header.h" | troff
        printf '.SH SYNOPSIS\n.B #include <%s.h>\n.SH DECLARATIONS\n.nf\n' $header
        grep -v '^#ifndef\|^#endif\|^#if\|^#else\|^#define RUNG_[A-Z_]*H$\|^extern "C"\|^#define RUNG_API\|^#include' "$headers/$header.h" |
            sed -e 's/^RUNG_API //' | troff
        printf '.fi\n'
    } >"$out/man/man3/$header.h.3"
    sed -n 's/^RUNG_API [^(]*[ *]\(rung_[a-z0-9_]*\)(.*/\1/p' "$headers/$header.h" | while read -r function; do
        echo ".so man3/$header.h.3" >"$out/man/man3/$function.3"
    done
done

# Completions: verbs; then the verb's options, an option's values where the help lists them, names of kernels; files after that.
bash=$out/completions/bash-completion/completions/rung
zsh=$out/completions/zsh/vendor-completions/_rung
fish=$out/completions/fish/vendor_completions.d/rung.fish
kernels="rung list --format csv 2>/dev/null | sed -e 1d -e 's/,.*//'"
options() { "$rung" help "$1" | awk '/^options:/ { on = 1; next } on && /^  -/' ; }
words() { options "$1" | grep -oE '(^|[ ,])--?[a-zA-Z][a-z-]*' | tr -d ' ,' | sort -u | tr '\n' ' '; }
takes_kernels() { "$rung" help "$1" | sed '/^options:/q' | grep -qw 'KERNEL'; } # as words of their own
# "OPTION VALUE..." for each option whose help is nothing but a choice, as in: strict (default), accurate or fast
choices() {
    options "$1" | awk '$2 == "NAME" || $1 == "--device" {
        name = $1; sub(/^ *--[a-z-]+ [A-Z]+ +/, ""); gsub(/ *\([^)]*\)/, ""); sub(/( \.\.\.)?;.*/, ""); gsub(/, | or /, "|")
        if (/[|]/ && !/ /) { gsub(/[|]/, " "); print name, $0 } }'
}
{
    printf '# bash completion for rung; made from its help\n_rung() {\n'
    printf '    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} words= kernels=\n'
    printf '    [ "$word" != = ] || word=\n    [ "$before" != = ] || before=${COMP_WORDS[COMP_CWORD - 2]}\n'
    printf '    case ${COMP_WORDS[1]} in\n'
    for verb in $verbs; do
        [ "$verb" = help ] || printf '    %s) words="%s"%s ;;\n' "$verb" "$(words "$verb")" "$(takes_kernels "$verb" && echo ' kernels=1')"
    done
    printf '    help) words="%s" ;;\n    esac\n    case ${COMP_WORDS[1]}:$before in\n    *:--kernel) words= kernels=1 ;;\n' "$(echo $verbs)"
    for verb in $verbs; do
        choices "$verb" | while read -r option values; do printf '    %s:%s) words="%s" kernels= ;;\n' "$verb" "$option" "$values"; done
    done
    printf '    esac\n    [ "$COMP_CWORD" -gt 1 ] || words="%s" kernels=\n' "$(echo $verbs)"
    printf '    [ -z "$kernels" ] || words="$words $(%s)"\n' "$kernels"
    printf '    COMPREPLY=($(compgen -W "$words" -- "$word"))\n}\ncomplete -o default -F _rung rung\n'
} >"$bash"
{
    printf '#compdef rung\n# zsh completion for rung; made from its help\nlocal -a verbs kernels\nverbs=(\n'
    "$rung" help | awk -v q="'" '/^  [a-z]/ { verb = $1; sub(/^ +[a-z]+ +/, ""); gsub(/:/, "\\:"); gsub(q, q "\\" q q); printf "    %s%s:%s%s\n", q, verb, $0, q }'
    printf ')\nif (( CURRENT == 2 )); then\n    _describe verb verbs\n    return\nfi\n'
    printf 'kernels=(${(f)"$(%s)"})\ncase ${words[2]}:${words[CURRENT-1]} in\n*:--kernel) compadd -- $kernels; return ;;\n' "$kernels"
    for verb in $verbs; do
        choices "$verb" | while read -r option values; do printf '%s:%s) compadd -- %s; return ;;\n' "$verb" "$option" "$values"; done
    done
    printf 'esac\ncase ${words[2]} in\n'
    for verb in $verbs; do
        [ "$verb" = help ] || printf '%s) compadd -- %s%s ;;\n' "$verb" "$(words "$verb")" "$(takes_kernels "$verb" && echo '$kernels')"
    done
    printf 'help) _describe verb verbs; return ;;\nesac\n_files\n'
} >"$zsh"
{
    printf '# fish completion for rung; made from its help\nfunction __rung_kernels\n    %s\nend\n' "$kernels"
    "$rung" help | awk -v q="'" '/^  [a-z]/ { verb = $1; sub(/^ +[a-z]+ +/, ""); gsub(q, "\\" q); printf "complete -c rung -f -n __fish_use_subcommand -a %s -d %s%s%s\n", verb, q, $0, q }'
    printf 'complete -c rung -f -n "__fish_seen_subcommand_from help" -a "%s"\n' "$(echo $verbs)"
    for verb in $verbs; do
        [ "$verb" != help ] || continue
        when="__fish_seen_subcommand_from $verb"
        ! takes_kernels "$verb" || printf 'complete -c rung -n "%s" -a "(__rung_kernels)"\n' "$when"
        choices "$verb" >"$out/help"
        for word in $(words "$verb"); do
            values=$(sed -n "s/^$word //p" "$out/help")
            case $word in
            --kernel) printf 'complete -c rung -n "%s" -l kernel -x -a "(__rung_kernels)"\n' "$when" ;;
            --*) printf 'complete -c rung -n "%s" -l %s%s\n' "$when" "${word#--}" "${values:+ -x -a \"$values\"}" ;;
            *) printf 'complete -c rung -n "%s" -s %s\n' "$when" "${word#-}" ;;
            esac
        done
    done
} >"$fish"
rm -f "$out/help"
