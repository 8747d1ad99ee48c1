#!/bin/sh
# No function is longer than 80 lines, its head and braces included, but for a reason in the comment above it, which says
# "Over 80 lines:". A function's body begins with a brace alone at the start of a line, as clang-format lays it out.
# usage: function_length.sh SOURCE_DIR
cd "$1" || exit 1
find src lab cli shim tools examples include learn python tests -type f \( -name '*.c' -o -name '*.h' -o -name '*.inc' -o -name '*.cu' \) |
    sort | xargs awk '
    FNR == 1 { head = reason = 0 }
    /^\/\*/ { reason = 0 }
    /Over 80 lines:/ { reason = 1 }
    /^[A-Za-z_].*[^;{]$/ && !open { if (!head) head = FNR }
    /^[ \t]*$|;$|^[#}]/ && !open { head = 0 }
    /^\{$/ { open = head ? head : FNR; name = FILENAME ":" open; functions++ }
    /^\}$/ && open {
        if (FNR - open + 1 > 80 && !reason) { print name ": a function of " FNR - open + 1 " lines"; bad = 1 }
        open = head = reason = 0
    }
    END { if (functions < 1000) { print "only " functions " functions: were the sources found?"; bad = 1 } exit bad }'
