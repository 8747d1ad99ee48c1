# Reads `cuobjdump -sass` and prints, for each function, its main loop: the loop with the largest share of FFMA among those
# with at least 64 (or, where there is none, of HGMMA). Columns: function, instructions, FFMA, share in percent, conflicts
# (FFMA whose three sources are different registers of one bank, none from the reuse cache), 16-byte and other shared
# loads, HGMMA, accesses to local memory in that loop (spills elsewhere are the business of ptxas's figures).

function number(hex,    value, i) {
    value = 0
    for (i = 1; i <= length(hex); i++)
        value = value * 16 + index("0123456789abcdef", tolower(substr(hex, i, 1))) - 1
    return value
}

function conflict(text,    operands, i, parts, seen, banks, reg) {
    delete seen
    split(text, operands, ",")
    for (i = 2; i <= 4; i++) {
        if (operands[i] ~ /reuse|RZ|c\[|[.]F|0x/)
            return 0
        if (!match(operands[i], /R[0-9]+/))
            return 0
        reg = substr(operands[i], RSTART + 1, RLENGTH - 1) + 0
        if (reg in seen)
            return 0
        seen[reg] = 1
        banks += reg % 2
    }
    return banks == 0 || banks == 3
}

function finish(    i, j, spills, best, share, total, ffma, hgmma, conflicts, wide, narrow, b_ffma, line) {
    if (name == "" || count == 0)
        return
    best = -1
    line = sprintf("%s 0 0 0 0 0 0 0 0", name)
    for (i = 0; i < count; i++) {
        if (!(i in target) || target[i] > address[i] || !(target[i] in at))
            continue
        total = ffma = hgmma = conflicts = wide = narrow = spills = 0
        for (j = at[target[i]]; j <= i; j++) {
            total++
            if (opcode[j] ~ /^FFMA/) { ffma++; conflicts += bad[j] }
            if (opcode[j] ~ /^HGMMA/) hgmma++
            if (opcode[j] ~ /^(LDL|STL)/) spills++
            if (opcode[j] ~ /^LDS.*128/) wide++
            else if (opcode[j] ~ /^LDS/) narrow++
        }
        if (ffma < 64 && hgmma == 0)
            continue
        share = ffma >= 64 ? 100 * ffma / total : 100 * hgmma / total - 100
        if (share > best || best == -1) {
            best = share
            line = sprintf("%s %d %d %.1f %d %d %d %d %d", name, total, ffma, ffma * 100 / total, conflicts, wide, narrow,
                           hgmma, spills)
        }
    }
    print line
}

/Function :/ {
    finish()
    name = $NF
    count = 0
    delete address; delete opcode; delete target; delete at; delete bad
    next
}

/^[ \t]*\/\*[0-9a-f]+\*\/[ \t]+[@A-Z{]/ {
    text = $0
    match(text, /\/\*[0-9a-f]+\*\//)
    address[count] = number(substr(text, RSTART + 2, RLENGTH - 4))
    at[address[count]] = count
    sub(/^[ \t]*\/\*[0-9a-f]+\*\/[ \t]+/, "", text)
    sub(/^\{ */, "", text)
    sub(/^@!?U?P[0-9T]+ +/, "", text)
    sub(/;.*/, "", text)
    word = text
    sub(/[ \t].*/, "", word)
    opcode[count] = word
    if (word ~ /^FFMA/)
        bad[count] = conflict(text)
    if (word ~ /^BRA/ && match(text, /0x[0-9a-f]+/))
        target[count] = number(substr(text, RSTART + 2, RLENGTH - 2))
    count++
}

END { finish() }
