#!/bin/sh
# A stranger's ways to Rung, each in a clean Debian 12 root with nothing else installed: pip, sdist, cmake, preload, apt. As root.
# usage: strangers.sh [-d FOLDER_OF_DEBS] [-w WHEEL] ROOT.tar [WAY...]
#   ROOT.tar: debootstrap --variant=minbase bookworm root && tar cf ROOT.tar -C root .
#   -w: the wheel to install; without it pip builds one from the sources     -d: the packages, for the way apt
set -eu
debs="" wheel=""
while getopts d:w: option; do
    case $option in
    d) debs=$(cd "$OPTARG" && pwd) ;;
    w) wheel=$OPTARG ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
tar=$1 source=$(git -C "$(dirname "$0")" rev-parse --show-toplevel)
shift
[ $# -gt 0 ] || set -- pip sdist cmake preload apt
work=$(mktemp -d)
root=$work/root
unmount() {
    for mount in proc dev; do ! mountpoint -q "$root/$mount" || umount "$root/$mount"; done
}
cleanup() {
    unmount
    rm -rf --one-file-system "$work"
}
trap cleanup EXIT
trap 'exit 1' INT TERM

# enter SCRIPT: runs it in a new root that holds the sources at /rung.
enter() {
    mkdir "$root"
    tar xf "$tar" -C "$root"
    mount -t proc proc "$root/proc"
    mount --bind /dev "$root/dev"
    cp /etc/resolv.conf "$root/etc/resolv.conf"
    [ ! -f /etc/pip.conf ] || cp /etc/pip.conf "$root/etc/"
    [ -z "${PIP_CERT:-}" ] || cp "$PIP_CERT" "$root/certificates" # of a mirror with one of its own
    git clone -q "file://$source" "$root/rung"
    [ -z "$wheel" ] || cp "$wheel" "$root/"
    [ "$way" != sdist ] || python3 "$source/packaging/build_backend.py" --sdist "$root/sdist"
    {
        echo 'set -eu; export DEBIAN_FRONTEND=noninteractive LC_ALL=C'
        echo 'get() { apt-get install -qq -y --no-install-recommends "$@" >/dev/null 2>&1 || { echo "apt-get install $* failed"; exit 1; }; }'
        echo 'apt-get update -qq'
        echo "$1"
    } >"$root/go"
    env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root RUNG_JOBS="${RUNG_JOBS:-2}" \
        ${PIP_CERT:+PIP_CERT=/certificates} chroot "$root" sh /go </dev/null || return 1
    unmount
    rm -rf --one-file-system "$root"
}

# A wheel needs Python alone; without one pip builds it, which takes the tools of a build.
pip='
ls /*.whl >/dev/null 2>&1 && get python3-venv || get python3-venv cmake ninja-build gcc g++ libc6-dev libjansson-dev
python3 -m venv /env
/env/bin/pip install -q --disable-pip-version-check numpy
if ls /*.whl >/dev/null 2>&1; then /env/bin/pip install -q --disable-pip-version-check --no-index /*.whl
else /env/bin/pip install -q --disable-pip-version-check /rung; fi
cd /
/env/bin/rung version
/env/bin/python -c "import numpy as np, rung; a = np.ones((40, 50), \"f4\"); assert (rung.matmul(a, a.T) == 50).all()"
/env/bin/rung verify --device cpu --quick --math strict | tail -n 1
/env/bin/rung learn | tail -n 1
/env/bin/pip uninstall -q -y rung
[ ! -e /env/bin/rung ]'

# The source package is enough: there is no clone and no git. The wheel made of it keeps what its tag promises.
sdist='
rm -r /rung
get python3-venv cmake ninja-build gcc g++ libc6-dev libjansson-dev
python3 -m venv /env
/env/bin/pip wheel -q --disable-pip-version-check --no-deps -w /out /sdist/*.tar.gz
/env/bin/pip install -q --disable-pip-version-check numpy auditwheel /out/*.whl
tag=$(basename /out/*.whl .whl | sed "s/.*-none-//")
/env/bin/auditwheel show /out/*.whl | tr "\n" " " | grep "platform tag: \"$tag\"" >/dev/null || { echo "auditwheel does not confirm $tag"; exit 1; }
cd /
/env/bin/python -m rung verify --device cpu --quick --math strict | tail -n 1
/env/bin/python -c "import numpy as np, rung; a = np.ones((40, 50), \"f4\"); assert (rung.matmul(a, a.T) == 50).all()"
/env/bin/rung lens l01_naive 16x16x16 | tail -n 1'

cmake='
get cmake ninja-build gcc libc6-dev pkg-config
cmake -S /rung -B /build -G Ninja -DRUNG_TESTS=OFF -DCMAKE_BUILD_TYPE=Release >/dev/null
cmake --build /build >/dev/null
cmake --install /build --prefix /root/.local >/dev/null
printf "cmake_minimum_required(VERSION 3.22)\nproject(mine C)\nfind_package(rung REQUIRED)\nadd_executable(mine /rung/examples/product.c)\ntarget_link_libraries(mine rung::rung)\n" >/root/CMakeLists.txt
cmake -S /root -B /root/build -G Ninja -DCMAKE_PREFIX_PATH=/root/.local >/dev/null
cmake --build /root/build >/dev/null
/root/build/mine
export PKG_CONFIG_PATH=/root/.local/lib/pkgconfig:/root/.local/lib/x86_64-linux-gnu/pkgconfig
cc /rung/examples/product.c -o /root/mine $(pkg-config --cflags --libs rung) -Wl,-rpath,$(pkg-config --variable=libdir rung)
/root/mine >/dev/null
cmake --build /build --target uninstall >/dev/null
[ -z "$(find /root/.local -type f)" ]'

# Nothing is installed: a program of somebody else, with its own BLAS, takes the drop-in from the build folder.
preload='
get cmake ninja-build gcc libc6-dev python3-numpy
cmake -S /rung -B /build -G Ninja -DRUNG_TESTS=OFF -DCMAKE_BUILD_TYPE=Release >/dev/null
cmake --build /build >/dev/null
product="import numpy as np; a = np.ones((40, 40), \"f4\"); assert (a @ a == 40).all()"
LD_PRELOAD=/build/lib/librung_blas.so RUNG_REPORT=stderr python3 -c "$product" 2>&1 | grep "1 call answered"
/build/bin/rung run --report -- python3 -c "$product" 2>&1 | grep "1 call answered"
RUNG_DISABLE=1 LD_PRELOAD=/build/lib/librung_blas.so python3 -c "$product"'

status=0
for way in "$@"; do
    start=$(date +%s)
    case $way in
    pip) enter "$pip" ;;
    sdist) enter "$sdist" ;;
    cmake) enter "$cmake" ;;
    preload) enter "$preload" ;;
    apt) [ -n "$debs" ] && "$(dirname "$0")/debian.sh" "$tar" "$debs" ;;
    *) echo "no way is called $way: pip, sdist, cmake, preload or apt"; exit 2 ;;
    esac >"$work/log" 2>&1 && result=ok || { result=FAILED; status=1; unmount; rm -rf --one-file-system "$root"; }
    printf '%-8s %-6s %4d s  %s\n' "$way" $result $(($(date +%s) - start)) "$(tail -n 1 "$work/log")"
    [ $result = ok ] || tail -n 20 "$work/log"
done
exit $status
