#!/bin/sh
# Manual pages and completions, made from what there is: each verb's own help, and the headers with their comments.
# usage: pages.sh <rung> <folder of headers> <folder to write into>
set -eu
rung=$1 headers=$2 out=$3
version=$("$rung" version | awk '{ print $2 }')
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
    printf '.TH RUNG 1 "" "rung %s" "Rung"\n.SH NAME\nrung \\- single\\-precision matrix products: a ladder of kernels and its lab\n' "$version"
    printf '.SH SYNOPSIS\n.B rung\n.I VERB\n[options]\n.SH DESCRIPTION\n'
    "$rung" help | sed -n '1p' | sed 's/^rung [^:]*: //' | troff
    printf '.SH VERBS\n'
    "$rung" help | awk '/^  [a-z]/ { verb = $1; sub(/^ +[a-z]+ +/, ""); printf ".TP\n.BR rung\\-%s (1)\n%s\n", verb, $0 }' | sed 's/\([^\\]\)-/\1\\-/g'
    printf '.SH EXIT STATUS\n0 pass, 1 fail, 2 usage; \n.B rung run\nends as its program does, or with 126 or 127 where that cannot be started.\n'
} >"$out/man/man1/rung.1"
for verb in $verbs; do
    "$rung" help "$verb" >"$out/help"
    {
        printf '.TH RUNG\\-%s 1 "" "rung %s" "Rung"\n.SH NAME\n' "$(echo "$verb" | tr a-z A-Z)" "$version"
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
        printf '.TH %s 3 "" "rung %s" "Rung"\n.SH NAME\n' "$(echo $header.h | tr a-z A-Z)" "$version"
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

# Completions: verbs, then the verb's options; files after that.
bash=$out/completions/bash-completion/completions/rung
zsh=$out/completions/zsh/vendor-completions/_rung
fish=$out/completions/fish/vendor_completions.d/rung.fish
options() { "$rung" help "$1" | awk '/^options:/ { on = 1; next } on && /^  -/' ; }
words() { options "$1" | grep -oE '(^|[ ,])--?[a-zA-Z][a-z-]*' | tr -d ' ,' | sort -u | tr '\n' ' '; }
{
    printf '# bash completion for rung; made from its help\n_rung() {\n    local word=${COMP_WORDS[COMP_CWORD]} words=\n    case ${COMP_WORDS[1]} in\n'
    for verb in $verbs; do
        [ "$verb" = help ] || printf '    %s) words="%s" ;;\n' "$verb" "$(words "$verb")"
    done
    printf '    help) words="%s" ;;\n    esac\n    [ "$COMP_CWORD" -gt 1 ] || words="%s"\n' "$(echo $verbs)" "$(echo $verbs)"
    printf '    COMPREPLY=($(compgen -W "$words" -- "$word"))\n}\ncomplete -o default -F _rung rung\n'
} >"$bash"
{
    printf '#compdef rung\n# zsh completion for rung; made from its help\nlocal -a verbs words\nverbs=(\n'
    "$rung" help | awk -v q="'" '/^  [a-z]/ { verb = $1; sub(/^ +[a-z]+ +/, ""); gsub(/:/, "\\:"); gsub(q, q "\\" q q); printf "    %s%s:%s%s\n", q, verb, $0, q }'
    printf ')\nif (( CURRENT == 2 )); then\n    _describe verb verbs\n    return\nfi\ncase $words[2] in\n' | sed 's/\$words\[2\]/${words[2]}/'
    for verb in $verbs; do
        [ "$verb" = help ] || printf '%s) compadd -- %s ;;\n' "$verb" "$(words "$verb")"
    done
    printf 'esac\n_files\n'
} | sed 's/^local -a verbs words/local -a verbs/' >"$zsh"
{
    printf '# fish completion for rung; made from its help\n'
    "$rung" help | awk -v q="'" '/^  [a-z]/ { verb = $1; sub(/^ +[a-z]+ +/, ""); gsub(q, "\\" q); printf "complete -c rung -f -n __fish_use_subcommand -a %s -d %s%s%s\n", verb, q, $0, q }'
    for verb in $verbs; do
        [ "$verb" != help ] || continue
        for word in $(words "$verb"); do
            case $word in
            --*) printf 'complete -c rung -n "__fish_seen_subcommand_from %s" -l %s\n' "$verb" "${word#--}" ;;
            *) printf 'complete -c rung -n "__fish_seen_subcommand_from %s" -s %s\n' "$verb" "${word#-}" ;;
            esac
        done
    done
} >"$fish"
rm -f "$out/help"
