#!/bin/busybox sh
# SPDX-License-Identifier: BSD-3-Clause
# The guest's first process: loads the modules, mounts the host's files read-only under what may be
# written, runs /command there and hands its exit status to qemu's debug device.
b=/bin/busybox
$b mount -t proc none /proc
$b mount -t sysfs none /sys
$b mount -t devtmpfs none /dev
while read -r module; do $b insmod "/m/$module" || echo "insmod $module failed"; done </m/order
$b mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,cache=loose,ro host /h || echo "no files of the host"
$b mount -t tmpfs -o size=75% none /tmp
$b mkdir -p /tmp/u /tmp/w
# The packages of the image lie over the host's.
$b mount -t overlay -o lowerdir=/x:/h,upperdir=/tmp/u,workdir=/tmp/w none /n || echo "no overlay"
for d in proc sys dev; do
    $b mkdir -p /n/$d
    $b mount --rbind /$d /n/$d
done
$b mkdir -p /n/dev/pts /n/dev/shm
$b mount -t devpts none /n/dev/pts
for d in dev/shm tmp run; do $b mount -t tmpfs none /n/$d; done
$b ip link set lo up
$b hostname guest
$b cp /command /n/tmp/command
ulimit -l unlimited
PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb $b chroot /n /bin/bash /tmp/command
status=$?
[ $status -gt 126 ] && status=126
$b sync
$b printf "\\$($b printf %03o $status)" | $b dd of=/dev/port bs=1 seek=244 2>/dev/null
$b poweroff -f
