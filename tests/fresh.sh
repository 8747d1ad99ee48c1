#!/bin/sh
# Times the first ten minutes: a fresh clone in an empty Debian 12 root, ./dev verbs one after another. Needs root.
# usage: fresh.sh [-c CUDA_FOLDER] [-i] [-p PACKAGE_CACHE] [-n NICENESS] [-w FOLDER] ROOT.tar VERB...
#   ROOT.tar: debootstrap --variant=minbase bookworm root && tar cf ROOT.tar -C root .
#   -c: a toolkit to stand at /usr/local/cuda   -i: the list's packages are installed by hand before   -p: .deb files that need no download   -w: where the root is unpacked
# Prints for each verb its exit code, wall and CPU seconds, and when the first line of results came; keeps its output in FOLDER.
set -eu
cuda= by_hand= cache= nice=0 work=
while getopts c:ip:n:w: option; do
    case $option in
    c) cuda=$OPTARG ;;
    i) by_hand=1 ;;
    p) cache=$OPTARG ;;
    n) nice=$OPTARG ;;
    w) work=$OPTARG ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
tar=$1 source=$(git -C "$(dirname "$0")" rev-parse --show-toplevel)
shift
[ -n "$work" ] || work=$(mktemp -d)
root=$work/root
mkdir -p "$root"
tar xf "$tar" -C "$root"
cleanup() {
    for mount in proc sys dev usr/local/cuda; do ! mountpoint -q "$root/$mount" || umount -l "$root/$mount"; done
}
trap cleanup EXIT
trap 'exit 1' INT TERM
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
# Devices of its own: whoever removes the root while something holds it must not remove the machine's.
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for device in "null 1 3" "zero 1 5" "full 1 7" "random 1 8" "urandom 1 9" "tty 5 0"; do
    # shellcheck disable=SC2086
    set -- $device "$@"
    mknod -m 666 "$root/dev/$1" c "$2" "$3"
    shift 3
done
mkdir "$root/dev/shm" "$root/dev/pts"
chmod 1777 "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=666 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
for number in 0 1 2; do ln -s "/proc/self/fd/$number" "$root/dev/$(echo stdin stdout stderr | cut -d' ' -f$((number + 1)))"; done
cp /etc/resolv.conf "$root/etc/resolv.conf"
# As on any installed machine: without it each start of MPI waits seconds for a name server to say who this is.
printf '127.0.0.1 localhost\n127.0.1.1 %s\n' "$(hostname)" >"$root/etc/hosts"
if [ -n "$cuda" ]; then
    mkdir -p "$root/usr/local/cuda"
    mount --bind "$cuda" "$root/usr/local/cuda"
    mount -o remount,bind,ro "$root/usr/local/cuda"
fi
[ -z "$cache" ] || cp -ln "$cache"/*.deb "$root/var/cache/apt/archives/"
git -c advice.detachedHead=false clone -q "file://$source" "$root/root/rung"
if [ -n "$by_hand" ]; then
    # shellcheck disable=SC2046
    env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive nice -n "$nice" chroot "$root" \
        sh -c 'apt-get update -qq && apt-get install -qq -y --no-install-recommends "$@"' sh \
        $(sed -n '/^\[book\]/q; s/^\([a-z0-9][a-z0-9.+-]*\).*/\1/p' "$source/packaging/debian-12.txt") >"$work/packages.log" 2>&1
fi
printf '%-28s %5s %8s %8s %11s\n' verb exit wall_s cpu_s first_line
for verb in "$@"; do
    log=$work/$(echo "$verb" | tr ' ' _).log
    start=$(date +%s.%N)
    cat >"$root/root/go" <<GO
#!/bin/bash
cd /root/rung
TIMEFORMAT='cpu %U %S'
time ./dev $verb
echo "exit \$?"
GO
    env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root CI="${CI:-}" RUNG_JOBS="${RUNG_JOBS:-}" nice -n "$nice" chroot "$root" \
        bash /root/go 2>&1 </dev/null | while IFS= read -r line; do printf '%s %s\n' "$(date +%s.%N)" "$line"; done >"$log"
    end=$(date +%s.%N)
    awk -v verb="$verb" -v start="$start" -v end="$end" '
        $2 == "cpu" { cpu = $3 + $4 }
        $2 == "exit" { code = $3 }
        !first && / (pass|ok) / { first = $1 - start }
        END { printf "%-28s %5s %8.0f %8.0f %11s\n", verb, code, end - start, cpu, first ? sprintf("%.0f", first) : "-" }' "$log"
    grep -v -e ' cpu ' -e ' exit ' "$log" | tail -n 2 | cut -d' ' -f2-
done
