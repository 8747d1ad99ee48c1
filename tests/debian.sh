#!/bin/sh
# Installs the Debian packages in a clean root by apt, tries them and removes them; nothing of them may be left. Needs root.
# usage: debian.sh ROOT.tar FOLDER_OF_DEBS
#   ROOT.tar: debootstrap --variant=minbase bookworm root && tar cf ROOT.tar -C root .
set -eu
tar=$1 debs=$2
work=$(mktemp -d)
root=$work/root
cleanup() {
    for mount in proc dev; do ! mountpoint -q "$root/$mount" || umount "$root/$mount"; done
    rm -rf --one-file-system "$work"
}
trap cleanup EXIT
mkdir "$root"
tar xf "$tar" -C "$root"
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
cp /etc/resolv.conf "$root/etc/resolv.conf"
mkdir "$root/debs"
cp "$debs"/librung0_*.deb "$debs"/librung-dev_*.deb "$debs"/rung_*.deb "$debs"/rung-doc_*.deb "$debs"/python3-rung_*.deb "$root/debs/"
cat >"$root/try" <<'TRY'
set -eu
export DEBIAN_FRONTEND=noninteractive LC_ALL=C
apt-get update -qq
apt-get install -qq -y --no-install-recommends /debs/*.deb python3-numpy gcc libc6-dev pkg-config >/dev/null
rung version
rung verify --device cpu --quick --math strict
python3 -c 'import numpy as np, rung; a = np.ones((40, 50), "f4"); assert (rung.matmul(a, a.T) == 50).all(); print("rung", rung.__version__)'
rung run --report -- python3 -c 'import numpy as np; a = np.ones((40, 40), "f4"); a @ a' 2>&1 | grep '1 call answered'
LD_PRELOAD=librung_blas.so RUNG_REPORT=stderr python3 -c 'import numpy as np; a = np.ones((40, 40), "f4"); a @ a' 2>&1 | grep '1 call answered'
printf '#include <rung.h>\nint main(void) { rung_context *c; return rung_context_create(&c, 0) != RUNG_SUCCESS; }\n' >/x.c
gcc /x.c -o /x $(pkg-config --cflags --libs rung)
/x
apt-get purge -qq -y librung0 librung-dev rung rung-doc python3-rung >/dev/null
left=$(find / -xdev \( -name 'librung*' -o -name rung -o -name 'rung.*' \) -not -path '/debs/*' -not -path '/proc/*' -not -path '/var/lib/apt/*')
[ -z "$left" ] || { echo "left: $left"; exit 1; }
echo "installed, tried, removed"
TRY
env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root chroot "$root" sh /try
