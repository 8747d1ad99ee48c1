# The loop of each tile's sums in a disassembly of a CPU kernel (objdump -d --no-show-raw-insn): it does two steps of k, or `steps` where A
# lies by rows, so it has as many FMAs for each vector of sums (a single row may do four steps), and none of its vectors lies on the stack; that of the tile `held` has at most `most` instructions a step. parts=1: loops that put the last vector together from parts of it may have more, and that vector on the stack. Prints what is wrong; verbose=1: each loop's instructions as well.
function finish(   i, j, k, t, best, joined, fmas, stack, loads, inner, hot) {
    if (name !~ /^tile_by_/) return
    split(substr(name, match(name, /[0-9]+x/)), size, "x")
    turn = name ~ /^tile_by_row_/ ? steps : 2
    want = turn * size[1] * size[2]
    tiles++
    hot = 0
    for (i = 1; i <= jumps; i++) {
        inner = 1
        for (j = 1; j <= jumps; j++)
            if (j != i && from[j] >= from[i] && to[j] <= to[i] && (from[j] > from[i] || to[j] < to[i])) inner = 0
        if (!inner) continue
        fmas = 0; stack = 0; loads = 0; all = 0; joined = 0
        for (k = from[i]; k <= to[i]; k++) {
            if (text[k] !~ /^prefetch/) all++ # what a tile asks for is not counted
            if (text[k] ~ /^v?(fmadd|mulps)/) fmas++ # without FMA each begins with a product
            if (text[k] ~ /^v(insert|mov(q|ss))/) joined++
            if (text[k] ~ /\(%r[sb]p/ && text[k] ~ /%[xyz]mm/) { stack++; line = text[k] }
            if (text[k] ~ /\(.*%r/ && text[k] !~ /prefetch|^lea/) loads++
        }
        if (fmas != want && !(size[1] == 1 && fmas == 4 * size[2])) continue
        hot = 1
        if (parts && joined) continue
        if (verbose) printf "%s: %d instructions, %d FMAs, %d other memory operands\n", name, all, fmas, loads
        if (held && name ~ held "$" && all > most * turn) { print name ": " all " instructions, " most * turn " at most"; bad++ }
        if (stack) { print name ": the loop of its sums keeps a vector on the stack: " line; bad++ }
    }
    if (!hot) { print name ": no loop of " turn " steps with " want " FMAs"; bad++ }
}
/^[0-9a-f]+ <.*>:$/ { finish(); name = substr($2, 2, length($2) - 3); n = jumps = 0; delete at; next }
/^ *[0-9a-f]+:\t/ {
    split($0, part, "\t")
    address = part[1]; gsub(/[ :]/, "", address)
    n++
    text[n] = part[2]; at[address] = n
    if (part[2] ~ /^j/) { split(part[2], word, " "); if (word[2] in at) { jumps++; from[jumps] = at[word[2]]; to[jumps] = n } }
}
END { finish(); print tiles " tiles, " bad + 0 " wrong"; exit bad > 0 || !tiles }
