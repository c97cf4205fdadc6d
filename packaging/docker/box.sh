#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# A box of the cluster: one key, made by whichever box comes first and shared by the volume /keys,
# opens all of them to each other and to nobody else. The daemon stays in front.
set -eu
mkdir -p /keys /root/.ssh
chmod 700 /root/.ssh
if mkdir /keys/making 2>/dev/null; then
    ssh-keygen -q -t ed25519 -N '' -f /keys/new
    mv /keys/new.pub /keys/id.pub
    mv /keys/new /keys/id
fi
while [ ! -e /keys/id ]; do sleep 0.1; done
cp /keys/id /root/.ssh/id_ed25519
cp /keys/id.pub /root/.ssh/authorized_keys
chmod 600 /root/.ssh/id_ed25519 /root/.ssh/authorized_keys
ssh-keygen -q -A
# Boxes are made anew each time, and their host keys with them.
printf 'Host box1 box2 box3\n  StrictHostKeyChecking no\n  UserKnownHostsFile /dev/null\n  LogLevel ERROR\n' \
    >/root/.ssh/config
exec /usr/sbin/sshd -D -e
