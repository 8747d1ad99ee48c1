#!/bin/sh
# Checks which CPUs Rung uses where fewer are allowed than there are: by affinity, and by a control group's quota, version 2 and
# 1, shown by files of our own over /sys/fs/cgroup in a mount namespace where that can be had.
set -eu
rung=$1
unset RUNG_NUM_THREADS OMP_NUM_THREADS

expect() { # WHAT WANTED [PREFIX...]
    what=$1 wanted=$2
    shift 2
    got=$("$@" "$rung" doctor --format csv 2>/dev/null | sed -n 's/.*Rung uses \([0-9]*\) thread.*/\1/p')
    [ "$got" = "$wanted" ] || { echo "$what: Rung uses '$got' threads, not $wanted"; exit 1; }
    echo "$what: $got"
}

quotas() {
    cores=$(nproc)
    mount -t tmpfs none /sys/fs/cgroup
    expect "no limit" "$cores" env
    echo "100000 100000" >/sys/fs/cgroup/cpu.max
    expect "version 2, one CPU" 1 env
    echo "150000 100000" >/sys/fs/cgroup/cpu.max
    expect "version 2, one CPU and a half" 2 env
    echo "max 100000" >/sys/fs/cgroup/cpu.max
    expect "version 2, no limit" "$cores" env
    rm /sys/fs/cgroup/cpu.max
    mkdir -p /sys/fs/cgroup/cpu
    echo 100000 >/sys/fs/cgroup/cpu/cpu.cfs_quota_us
    echo 100000 >/sys/fs/cgroup/cpu/cpu.cfs_period_us
    expect "version 1, one CPU" 1 env
    echo -1 >/sys/fs/cgroup/cpu/cpu.cfs_quota_us
    expect "version 1, no limit" "$cores" env
    # A group in groups: the tightest of their limits counts, wherever it stands. The process's own group is shown by a file of ours.
    rm -r /sys/fs/cgroup/cpu
    mkdir -p /sys/fs/cgroup/a/b
    echo 0::/a/b >/sys/fs/cgroup/own
    for tight in /sys/fs/cgroup/a /sys/fs/cgroup/a/b; do
        echo "$((cores * 100000)) 100000" | tee /sys/fs/cgroup/a/cpu.max >/sys/fs/cgroup/a/b/cpu.max
        echo "100000 100000" >$tight/cpu.max
        # shellcheck disable=SC2016
        expect "version 2, one CPU in ${tight#/sys/fs/cgroup}" 1 sh -c 'mount --bind /sys/fs/cgroup/own /proc/$$/cgroup && exec "$@"' sh
    done
}

if [ "${2:-}" = inside ]; then
    quotas
    exit 0
fi
[ "$(nproc)" -ge 2 ] || { echo "left out: one CPU only, nothing to show"; exit 77; }
expect "affinity to one CPU" 1 taskset -c "$(taskset -cp $$ | sed 's/.*: *//; s/[-,].*//')"
if unshare -m true 2>/dev/null; then
    unshare -m "$0" "$rung" inside
else
    echo "no mount namespace to be had: quotas not shown"
fi
