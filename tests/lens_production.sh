#!/bin/sh
# The production kernels and their launchers without a GPU: the CUDA backend driven by the lens, which answers the
# driver's calls and runs the kernels on the CPU. A few cases a kernel, at its tile's edges: padding, misalignment, all
# transposes, parts of k, batches, device scalars, bias and activation; for fp16x3 also what its guard refuses.
# usage: lens_production.sh RUNG LIBRUNG_LENS PART PARTS: every PARTS-th kernel from the PART-th (0 ...) on.
# RUNG_ONLY_KERNELS=_crowd_: of those, the kernels whose names contain that.
set -u
rung=$1 part=$3 parts=$4 here=$(dirname "$0") only=${RUNG_ONLY_KERNELS:-}
export RUNG_LIBCUDA=$2 RUNG_LENS_FINDINGS=fail RUNG_LENS_KEPT=fail # reads out of bounds, races and the like fail the case
[ -e "$RUNG_LIBCUDA" ] || { echo "left out: no lens in this build"; exit 77; }
work=$(mktemp)
trap 'rm -f "$work" "$work.cases"' EXIT
passed=0 refused=0 failed=0 piece=0

tiles() { # FAMILY FIELD=VALUE...: the tiles with these values
    "$here"/tiles_with.sh "$here/.." "$@"
}

first() { # the first such tile alone
    "$here"/tiles_with.sh -1 "$here/.." "$@" || exit 1
}

mine() { # each kernel's cases, and each further group of them, are a piece; this part has this one
    piece=$((piece + 1))
    [ $((piece % parts)) = "$part" ]
}

wanted() { # KERNEL
    case $1 in *"$only"*) ;; *) return 1 ;; esac
}

try() { # KERNEL CASE
    wanted "$1" || return 0
    "$rung" verify --device gpu --kernel "$1" --no-vendor --verbose --case "$2" >"$work" 2>&1
    case $(grep -E '^(ok|-|FAIL) ' "$work" | head -n 1) in
    ok*) passed=$((passed + 1)); ! grep 'were not given back' "$work" || { failed=$((failed + 1)); echo "FAILED: $1 $2"; } ;;
    -*) refused=$((refused + 1)) ;;
    *) failed=$((failed + 1)); echo "FAILED: $1 $2"; tail -n 3 "$work" ;;
    esac
}

few() { # MULTIPROCESSORS KERNEL CASE: as on a GPU of so many
    export RUNG_LENS_SMS="$1"
    try "$2" "$3"
    unset RUNG_LENS_SMS
}

parted() { # KERNEL MULTIPROCESSORS SHAPE: the planner cuts some of its tiles, and they come out right
    wanted "$1" || return 0
    RUNG_LENS_SMS="$2" "$rung" explain "$3" --device gpu --kernel "$1" >"$work" 2>&1
    grep -Eq ' [1-9][0-9]* of them cut over' "$work" || { failed=$((failed + 1)); echo "FAILED: $1 $3: no tile is cut"; }
    few "$2" "$1" "NN:$3:row,beta=0.5"
}

clusters() { # KERNEL SHAPE CASE: the planner gives each tile's k to the two blocks of a cluster
    wanted "$1" || return 0
    "$rung" explain "$2" --device gpu --kernel "$1" >"$work" 2>&1
    grep -q 'k shared by the warps of two blocks' "$work" || { failed=$((failed + 1)); echo "FAILED: $1 $2: no clusters"; }
    try "$1" "$3"
}

gathers() { # KERNEL SHAPE CASE: on a GPU of three multiprocessors the vector's elements are brought together first
    wanted "$1" || return 0
    RUNG_LENS_SMS=3 "$rung" explain "$2" --device gpu --kernel "$1" >"$work" 2>&1
    grep -q 'the vector gathered first' "$work" || { failed=$((failed + 1)); echo "FAILED: $1 $2: the vector is not gathered"; }
    few 3 "$1" "$3"
}

same() { # KERNEL CASE OTHER: a call gives the same bits after other products, refused and not, on the same stream
    wanted "$1" || return 0
    printf '%s\n' "$1 $2" "$1 $3" "$1 ${2%,data=*}" "$1 $2" >"$work.cases"
    bits=$("$rung" verify --device gpu --bits "$work.cases" 2>"$work" | sed -n '1p;4p' | awk '{ print $NF }')
    first=${bits%%[!0-9a-f]*}
    [ ${#first} = 16 ] && [ "$bits" = "$first
$first" ] && passed=$((passed + 1)) && return
    failed=$((failed + 1)); echo "FAILED: $1 $2: the bits are $bits"; tail -n 3 "$work"
}

exact() { # KERNEL CASE MOST: the largest error, as a share of its bound; tensor cores truncate under the lens as Hopper's do
    wanted "$1" || return 0
    share=$("$rung" verify --device gpu --kernel "$1" --no-vendor --case "$2" --format csv 2>"$work" | awk -F, '
        NR == 1 { for (i = 1; i <= NF; i++) if ($i == "of_bound") at = i } NR == 2 { print $at }')
    awk -v share="${share:-1}" -v most="$3" 'BEGIN { exit !(share > 0 && share <= most) }' && passed=$((passed + 1)) && return
    failed=$((failed + 1)); echo "FAILED: $1 $2: its error is $share of its bound, $3 are allowed"; tail -n 3 "$work"
}

sliced() { # KERNEL M N: a lone warp whose row gives 16 of its lanes all results
    per=$(sed -n "s/^RUNG_TILE($1,.*[.]tm = \([0-9]*\), [.]tn = \([0-9]*\),.*/\1 * \2/p" "$here"/../src/cuda/families/lone/tiles.inc)
    [ -n "$per" ] && [ $(($2 * $3 / ($per))) = 16 ]
}

# Large tiles and fast mode's have cases of their own below.
kernels=$("$rung" list --device gpu --role production --format csv | awk -F, -v others="$({ tiles large; tiles accurate tf32=1; } | tr '\n' ' ')" '
    BEGIN { split(others, list, " "); for (i in list) other[list[i]] = 1 }
    NR > 1 && !($1 in other) { print $1 "," $5 }')
[ -n "$kernels" ] || { echo "FAILED: the catalog lists no such kernel"; exit 1; }
for row in $kernels; do
    mine || continue
    name=${row%%,*} tile=${row##*,}
    m=${tile%%x*} rest=${tile#*x}
    n=${rest%%x*} k=${rest#*x}
    kind=$name
    ! sliced "$name" "$m" "$n" || kind=${name}_sliced
    case $kind in
    *_small_*)
        try "$name" "NN:$((m - 1))x${n}x$((k - 1)):row,pad=3,alpha=-0.5,beta=1,strided=5"
        try "$name" "NT:${m}x${n}x${k}:row,strided=9"
        try "$name" "TN:${m}x$((n - 1))x$((k + 3)):row,beta=-0.5,arrays=6,offset=1"
        try "$name" "TT:${m}x${n}x${k}:row,strided=4,scalars=device,beta=0.5,bias=row,act=relu,added=special" ;;
    *_lines_*) # rows that begin anywhere in a line: edges, batches, the longest k; and more blocks than leave shared memory to spare
        try "$name" "NN:$((m + 8))x$((n + 4))x9:row,pad=1,alpha=-0.5,beta=1"
        try "$name" "NT:$((m - 1))x$((2 * n + 1))x32:row,offset=1,strided=3,scalars=device,act=relu"
        try "$name" "TN:$((m + 1))x33x23:row,pad=3,beta=-0.5,bias=row"
        try "$name" "TT:5x$((n - 31))x1:row,arrays=2,offset=3,bias=column,act=gelu"
        few 1 "$name" "NN:$((4 * m + 88))x$((5 * n + 60))x9:row,beta=1" ;;
    *_axpy_*) # edges of rows and of k, a vector whose elements lie apart, batches; the last three with parts of k, more than sixteen of them
        try "$name" "TN:$((m + 7))x1x$((3 * k + 5)):row,pad=3,alpha=-0.5,beta=1"
        try "$name" "NN:1x$((m - 1))x$((k + 1)):row,strided=3,offset=1,beta=-0.5,bias=row"
        try "$name" "NN:1x$((2 * m + 33))x$((k - 1)):row,arrays=2,act=relu"
        try "$name" "TT:33x1x$((4 * k + 6)):row,bias=column,act=gelu"
        try "$name" "TN:$((m - 31))x1x$((128 * k + 3)):row,scalars=device,beta=-0.5"
        few 3 "$name" "NN:1x$((m + 1))x$((5 * k)):row,strided=2,beta=1" ;;
    *_dot_*)
        try "$name" "NN:70x1x300:row,pad=1"
        try "$name" "TN:70x1x300:row,beta=1"
        try "$name" "NN:1x70x300:row,pad=3"
        try "$name" "NT:1x70x300:row,alpha=-0.5"
        try "$name" "TT:33x1x1030:row,bias=column,act=gelu"
        try "$name" "NN:130x1x2000:row,scalars=device,beta=-0.5"
        gathers "$name" 1x40x9001+8 "NN:40x1x9001:row,pad=8,beta=0.5,bias=row"
        few 3 "$name" "TT:1x130x905:row,pad=8,strided=3"
        few 3 "$name" "NN:40x1x9001:row,pad=8,shared_b=3" # one vector for the batch: it is gathered once
        few 3 "$name" "TT:1x40x9001:row,pad=8,shared_b=3" ;; # one matrix for the batch: each vector is gathered
    *_tmawarp_* | *_tmaslice_* | *_markwarp_* | *_markslice_*)
        try "$name" "NT:$((m + 4))x$((n + 4))x$((5 * k + 132)):row,pad=4,alpha=-0.5,beta=1"
        try "$name" "TN:$((m + 3))x$((n + 8))x$((k + 4)):row,offset=1,beta=-0.5,bias=row"
        try "$name" "TT:$((m - 1))x$((n + 1))x$((2 * k)):row,strided=2,scalars=device,beta=0.5,bias=column,act=relu,added=special"
        try "$name" "NN:$((2 * m + 5))x${n}x$((20 * k + 3)):row,bias=column,act=gelu"
        try "$name" "NN:${m}x${n}x$((8 * k)):row,beta=0.5" # one tile in two parts: a cluster, where the tile has such
        case $tile in # so many parts that several blocks add a tile's
        64x64x128) try "$name" "NN:${m}x${n}x16384:row,pad=4,strided=2" ;;
        64x64x*) try "$name" "NN:${m}x${n}x6656:row,pad=4,strided=2" ;;
        *) try "$name" "NN:${m}x${n}x$((64 * k)):row,pad=4,strided=2" ;;
        esac
        # Tiles without steps, two a block: a warp that fills a ring sees the end of each.
        few 3 "$name" "NN:$((2 * m + 2))x$((3 * n + 8))x0:row,beta=0.5"
        # On few multiprocessors some tiles are whole and others cut, in blocks beside them.
        parted "$name" 3 "$((2 * m - 4))x$((2 * n))x784" ;;
    *_wgmma_f16x3_*) # operands along k, across k, both; each case runs twice, the second time on what the first left zero
        try "$name" "NN:$((m + 2))x$((n - 1))x$((2 * k + 10)):row,pad=3,alpha=-0.5,beta=1"
        try "$name" "NT:$((m - 1))x$((2 * n + 1))x$((3 * k + 1)):row,offset=1,bias=row,act=relu"
        try "$name" "TN:$((2 * m + 1))x${n}x$((10 * k + 4)):row,beta=-0.5,bias=column"
        try "$name" "TT:${m}x$((n + 1))x$((4 * k)):row,arrays=2,scalars=device,act=gelu"
        try "$name" "NN:$((m + 2))x$((2 * n))x$((8 * k)):row,data=trap,judge=accuracy"
        # A chain over all of k errs 0.62 of the bound, sums promoted every 64 along k 0.15.
        exact "$name" "NN:${m}x${n}x1024:row,data=positive,judge=accuracy" 0.3
        try "$name" "TN:$((m + 2))x$((2 * n))x$((8 * k)):row,data=span40,judge=accuracy"
        # What is refused by other forms than trap's: B with k innermost; few blocks of many; fewer tiles than a round of blocks, cut along k.
        try "$name" "NT:$((m + 3))x$((2 * n + 4))x$((8 * k)):row,pad=4,data=span100,beta=0.5"
        try "$name" "TT:$((m - 4))x$((n + 8))x$((4 * k)):row,data=special,bias=row,act=relu"
        # Rows at odd addresses: copied where any block is refused. Blocks of which a part lies in C.
        try "$name" "NN:$((m + 1))x$((n + 3))x$((4 * k + 5)):row,data=span100"
        try "$name" "TT:$((m / 2 + 3))x$((n + 66))x$((4 * k + 1)):row,offset=1,data=spike,beta=0.5"
        few 3 "$name" "NN:$((4 * m + 8))x$((2 * n + 4))x128:row" # a cluster has more tiles than there is room for headers
        few 3 "$name" "NN:${m}x${n}x1280:row,data=span100"
        few 3 "$name" "NT:${m}x${n}x1280:row,data=spike,beta=-0.5"
        same "$name" "NN:$((m + 2))x$((2 * n))x$((8 * k)):row,data=span40" "NN:${m}x$((3 * n))x$((4 * k)):row,data=special" ;;
    *_tmapair_*) # C by the copy engine, clipped at its edges, and with what beta, bias or an activation add
        try "$name" "NN:$((m + 8))x$((n + 4))x100:row,pad=4,alpha=-0.5,beta=1"
        try "$name" "TN:$((m + 4))x$((n + 12))x48:row,strided=3,beta=-0.5,bias=row"
        try "$name" "NN:$((m + 4))x$((2 * n + 4))x64:row,strided=3"
        try "$name" "TN:$((2 * m + 4))x$((n + 4))x36:row,pad=4,alpha=2,scalars=device"
        try "$name" "NN:$((m / 2 + 3))x$((n + 2))x34:row,pad=2"
        try "$name" "TN:$((m + 4))x$((n + 4))x20:row,act=relu" ;;
    *_tmashift_*) # rows that all start differently, two ways or alike; ends of rows; batches apart by odd strides
        try "$name" "NN:$((m + 8))x$((n + 4))x100:row,pad=1,alpha=-0.5,beta=1"
        try "$name" "NT:$((m + 3))x$((n + 5))x35:row,pad=2,offset=1,strided=2,scalars=device,act=relu"
        try "$name" "TN:$((m - 1))x$((n + 3))x45:row,strided=3,beta=-0.5,bias=row"
        try "$name" "TT:$((m + 1))x$((n - 1))x33:row,strided=2,offset=3,bias=column,act=gelu"
        try "$name" "TN:4x5x83:row,strided=2"
        try "$name" "NN:$((m + 9))x4x64:row,pad=3"
        try "$name" "TN:3x5x83:row" # no fourth row that starts alike: refused
        try "$name" "NN:$((m + 9))x64x3:row,pad=3" ;;
    *_lonecopy_*) # operands at any address: k shared by a block's warps, and a tile a warp
        try "$name" "NN:$((m + 8))x$((n + 4))x100:row,pad=1,alpha=-0.5,beta=1"
        try "$name" "NT:$((m + 3))x$((n + 5))x67:row,offset=1,strided=5,scalars=device,act=relu"
        try "$name" "TN:$((2 * m - 1))x$((n + 7))x45:row,strided=3,beta=-0.5,bias=row"
        try "$name" "TT:$((2 * m - 3))x$((2 * n))x$((n + m + 1)):row,strided=2,offset=3,bias=column,act=gelu"
        try "$name" "TN:${m}x${n}x2101:row,pad=1"
        try "$name" "TN:$((2 * m))x$((n + 8))x48:row,strided=2" # rows at multiples of 16 bytes, of 8 bytes
        try "$name" "TN:$((m + 2))x$((2 * n))x40:row,pad=2"
        try "$name" "NT:5x3x33:row,strided=9"
        try "$name" "NN:${m}x${n}x23:row,pad=1,strided=2" ;; # half of the last step left out
    *_crowd_*) # operands at any address, many small blocks: edges, parts of k, few k, batches, aligned ones too
        try "$name" "NN:$((m + 8))x$((n + 4))x100:row,pad=1,alpha=-0.5,beta=1"
        try "$name" "NT:$((m + 3))x$((n + 5))x67:row,offset=1,strided=5,scalars=device,act=relu"
        try "$name" "TN:$((2 * m - 1))x$((n + 7))x45:row,strided=3,beta=-0.5,bias=row"
        try "$name" "TT:$((m - 3))x$((2 * n - 1))x$((n + 9)):row,arrays=2,offset=3,bias=column,act=gelu"
        try "$name" "TN:${m}x${n}x1401:row,pad=1"
        try "$name" "NN:$((m - 1))x$((n + 1))x700:row,beta=0.5"
        try "$name" "TN:$((m + 2))x$((2 * n))x7:row,pad=2"
        try "$name" "NT:5x3x1:row,strided=9"
        try "$name" "TT:${m}x${n}x40:row" ;;
    *_brief_*) # all of k at once: edges, the longest k, few k, batches, operands and C at odd addresses
        try "$name" "NN:$((m + 8))x$((n + 4))x100:row,pad=4,alpha=-0.5,beta=1"
        try "$name" "NT:$((m + 3))x$((n + 5))x67:row,offset=1,strided=5,scalars=device,act=relu"
        try "$name" "TN:$((2 * m - 1))x$((n + 7))x45:row,strided=3,beta=-0.5,bias=row"
        try "$name" "TT:$((m - 3))x$((2 * n - 1))x$((k + 9)):row,strided=2,offset=3,bias=column,act=gelu"
        try "$name" "NT:$((m + 4))x$((n - 4))x$((8 * k)):row,strided=4"
        try "$name" "TN:$((m - 1))x$((n + 1))x200:row,beta=0.5"
        try "$name" "TT:${m}x${n}x5:row"
        try "$name" "NN:5x3x1:row,strided=9" ;;
    *_lonefour_*) # every fourth k a warp; B with k outermost, rows that start all differently, two ways or alike
        try "$name" "NN:$((m + 8))x$((n + 4))x300:row,pad=1,alpha=-0.5,beta=1"
        try "$name" "TN:$((2 * m - 1))x$((n + 7))x309:row,offset=3,strided=3,beta=-0.5,bias=row"
        try "$name" "NN:$((m + 3))x$((2 * n - 8))x271:row,offset=1,strided=5,scalars=device,act=relu"
        try "$name" "TN:${m}x${n}x1101:row,pad=2"
        try "$name" "NN:${m}x$((n - 4))x256:row"
        few 6 "$name" "NN:$((m + 3))x$((2 * n))x261:row,pad=1" ;; # a tile a block, beside others' tiles
    *_sliced) # a warp's lanes take two slices of k: blocks in clusters of two, alone, and with parts in memory
        try "$name" "NN:$((m + 8))x$((n + 4))x530:row,pad=4,alpha=-0.5,beta=1"
        try "$name" "NT:$((m + 3))x$((n + 5))x560:row,strided=3,scalars=device,act=relu"
        clusters "$name" "${m}x$((n - 4))x512:TNx7" "TN:${m}x$((n - 4))x512:row,strided=7"
        few 9 "$name" "TN:${m}x$((n - 4))x512:row,strided=7,beta=-0.5,bias=row"
        try "$name" "TT:$((m - 4))x$((n + 4))x1030:row,strided=2,bias=column,act=gelu"
        try "$name" "TN:${m}x${n}x4130:row"
        try "$name" "NN:$((m + 8))x$((n + 4))x2180:row,beta=1"
        try "$name" "NT:$((m + 9))x$((n + 5))x570:row" ;; # operands copied first
    *_lonewarp_*) # rows at multiples of 16 bytes: k shared by a block's warps, and a tile a warp
        try "$name" "NN:$((m + 8))x$((n + 4))x100:row,pad=4,alpha=-0.5,beta=1"
        try "$name" "NT:$((m + 3))x$((n + 5))x64:row,strided=5,scalars=device,act=relu"
        try "$name" "TN:$((2 * m))x$((n + 8))x48:row,strided=3,beta=-0.5,bias=row"
        try "$name" "TT:$((2 * m - 4))x$((2 * n))x$((n + m)):row,strided=2,bias=column,act=gelu"
        try "$name" "TN:${m}x${n}x4130:row"
        try "$name" "NN:$((m + 8))x$((n + 4))x2180:row,beta=1"
        few 1 "$name" "NN:${m}x${n}x36:row,strided=9,beta=-0.5" # a tile a warp
        try "$name" "NT:$((m + 9))x$((n + 5))x70:row,strided=3" ;; # operands copied first
    *)
        try "$name" "NT:$((m + 4))x$((n + 4))x$((3 * k)):row,pad=4,alpha=-0.5,beta=1"
        try "$name" "TN:$((m + 3))x$((n + 8))x$((k + 4)):row,offset=1,beta=-0.5,bias=row"
        try "$name" "TT:${m}x${n}x$((2 * k)):row,strided=2,scalars=device,beta=0.5,bias=column,act=relu,added=special"
        try "$name" "NN:${m}x${n}x$((20 * k)):row" ;;
    esac
done
# Large tiles, operands and C at odd addresses: one operand copied as needed, the other first, turned, both orders of C;
# tiles that few and many blocks share, with parts of their own and of two tiles.
for name in $(tiles large); do
    if mine; then
        try "$name" "NN:127x255x16:row,pad=3,alpha=-0.5,beta=1"
        try "$name" "TT:129x257x33:row,pad=1,beta=-0.5,bias=row,act=gelu"
        try "$name" "NN:35x33x303:row,strided=3,beta=-0.5"
        try "$name" "NN:5x300x410:row"
        try "$name" "NN:130x3x410:row,pad=1"
    fi
    if mine; then
        try "$name" "NT:257x129x530:row,beta=1"
        try "$name" "NN:130x130x330:row,pad=2,beta=0.5,bias=row"
        try "$name" "NT:70x130x90:row,strided=2,pad=2,bias=column"
    fi
done
for name in $(tiles large a_k_innermost=0); do
    if mine; then
        try "$name" "TN:130x70x41:row,pad=1,scalars=device"
        try "$name" "TN:300x129x133:row"
    fi
    # For each k % 4, B, A or both are read as they lie and the other one is turned or packed; with a few k beyond whole steps, and without.
    if mine; then
        try "$name" "NN:77x301x515:row,pad=1"
        try "$name" "TN:77x65x515:row,pad=1,strided=2" # a batch is not cut so
        try "$name" "TN:131x261x577:row,pad=1,beta=0.5,bias=row"
        try "$name" "TT:131x253x578:row,offset=3,pad=3,act=relu"
    fi
done
for name in $(tiles large a_k_innermost=1); do
    if mine; then
        try "$name" "NN:35x33x3003:row"
    fi
done

# Fast mode's tile, judged by what one pass of rounded operands may err: both ways that an operand may lie, edges, panels of C.
for name in $(tiles accurate tf32=1); do
    if mine; then
        try "$name" "NN:130x129x100:row"
        try "$name" "TN:131x130x70:row,pad=1,beta=0.5"
        try "$name" "NT:70x140x200:row,offset=1,bias=row,act=relu"
        try "$name" "TT:129x65x67:row,arrays=2,data=positive"
        few 3 "$name" "NN:300x300x200:row,workspace=600"
        # On few multiprocessors a block turns several pieces of k, at the end of k fewer; captured, the images have no more room than they asked for.
        export RUNG_LENS_CAPTURING=1
        few 2 "$name" "NN:5x259x643:row"
        few 2 "$name" "TT:259x5x643:row"
        unset RUNG_LENS_CAPTURING
    fi
done

# Accurate mode's tile stores C a line at a time where rows lie at odd addresses, at multiples of 8 bytes, or are of an odd length: with alpha alone, by one factor for
# each row and column, whose scales differ here; and where the scales are too far from 1 for that.
for name in $(tiles accurate tf32=0); do
    if mine; then
        try "$name" "NN:131x133x66:row,offset=1,data=normal"
        try "$name" "NT:70x134x70:row,alpha=-0.5,data=normal"
        try "$name" "TN:140x301x300:row,cpad=3"
        try "$name" "TT:131x129x100:row,offset=3,data=scaled"
    fi
done

# Of a long k a tile has so many parts that a block adds several chunks of them, one after the other, in the same shared memory.
for name in $(first small slices=1 crowd=0) $(first small crowd=1); do
    if mine; then
        try "$name" "NN:64x128x1120:row"
        try "$name" "NN:64x64x1120:row,cpad=1"
    fi
done

# Without products C is scaled, whatever alpha is, and an alpha of 0 on the device leaves nothing of NaN and Inf in A and B, whether a tile's k
# is whole or in parts: a tile of each kind.
for name in $(first large) $(first medium) $(first pairs) $(first lone) $(first small) $(first small crowd=1) $(first small brief=1) $(first small batch=1) \
    $(first vector k_innermost=0); do
    if mine; then
        try "$name" "NN:1x12x0:row,alpha=inf"
        try "$name" "NN:1x12x0:row,alpha=inf,beta=0.5,scalars=device"
        few 8 "$name" "NN:1x8x700:row,alpha=0,scalars=device,data=special,seed=5" # of this seed the row of A has one
    fi
done

# A few rows and columns over whole tiles are cut off C (lens_peeled.sh computes such products).
if mine; then
    "$rung" explain --device gpu 4097x4097x4097 >"$work"
    if grep -q ' 1 x 4097 below by' "$work" && grep -q ' 4096 x 1 to the right by' "$work"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1)); echo "FAILED: 4097x4097x4097 is not cut"; head -n 6 "$work"
    fi
    "$rung" explain --device gpu 2052x1025x192 >"$work"
    grep -q ' 1 x 2052 below by' "$work" || { failed=$((failed + 1)); echo "FAILED: 2052x1025x192 is not cut"; }
fi

echo "$passed passed, $failed failed, $refused refused"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ] && { [ -n "$only" ] || [ $((passed * parts)) -gt 240 ]; }
