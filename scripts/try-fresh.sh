#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Does what somebody does who has just found hiroba, in a fresh Debian root that debootstrap makes, with the last commit:
# an ordinary user clones, says `make`, runs the README's example on four nodes, changes a file of dsm, installs below
# $HOME and uses that; root makes the Debian packages, and try-packages.sh installs, uses and removes them. Prints wall
# and processor seconds of each step. As root, on Debian; downloads. Keeps the root in FOLDER for the next time.
# Usage: try-fresh.sh [FOLDER]      DEBIAN_SUITE=bookworm DEBIAN_MIRROR=http://deb.debian.org/debian STEPS="user deb"
set -euo pipefail
cd "$(dirname "$0")/.."
suite=${DEBIAN_SUITE:-bookworm} mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
mkdir -p "${1:-build-fresh}"
place=$(realpath "${1:-build-fresh}")

if [[ ${2:-} != inside ]]; then
    [[ $(id -u) -eq 0 ]] || { echo "try-fresh: debootstrap takes root" >&2; exit 78; }
    scripts/install-packages.sh debootstrap
    if [[ ! -e $place/$suite/made ]]; then
        rm -rf "${place:?}/$suite"
        debootstrap --variant=minbase --include=make,git,ca-certificates "$suite" "$place/$suite" "$mirror" >"$place/log"
        touch "$place/$suite/made"
    fi
    exec unshare --mount --pid --fork "$0" "$place" inside
fi

root=$place/root
rm -rf "$root"
cp -a "$place/$suite" "$root"
git bundle create -q "$root/hiroba.bundle" HEAD
mount --bind "$root" "$root"  # try-packages.sh makes a namespace inside, which takes a mount
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
cp /etc/resolv.conf "$root/etc/"

cat >"$root/as-user.sh" <<'END'
set -euo pipefail
TIMEFORMAT='%R s, processor %U + %S s'
step() { echo "--- $*"; }
cd
step clone
time git -c advice.detachedHead=false clone -q /hiroba.bundle hiroba
cd hiroba
step make
time make >/tmp/make.log
step "the README's example on four nodes"
sed -n '/^```c$/,/^```$/p' README.md | sed '1d;$d' >~/sum.c
gcc -O3 -fopenmp ~/sum.c -o ~/a.out
example() {
    HIROBA_STATS=1 "$1" run -n 4 ~/a.out >~/out 2>~/stats
    grep -x 'pi^2/6 = 1.644934057' ~/out
    awk '/^parallel_regions / { for (i = 2; i <= 5; ++i) if ($i < 1) exit 1; print; found = 1 } END { exit !found }' ~/stats
}
time example build/bin/hiroba
step "one file of dsm changed, and make"
echo '// changed' >>src/dsm/heap/heap.cpp
time make >>/tmp/make.log
step "installed below HOME, used, removed"
find ~ -not -path "$HOME/hiroba*" | sort >/tmp/before
time make install "prefix=$HOME/.local" >>/tmp/make.log
example ~/.local/bin/hiroba
configs=$(dirname "$(find ~/.local -name hiroba_dsm.pc)")
g++ examples/spmd_sum.cpp $(PKG_CONFIG_PATH=$configs pkg-config --cflags --libs hiroba_dsm) -Wl,-rpath,"$(dirname "$configs")" -o ~/spmd_sum
~/.local/bin/hiroba run --spmd -n 2 ~/spmd_sum | grep 'VERIFICATION SUCCESSFUL'
rm ~/spmd_sum
xargs -d '\n' rm <build/install_manifest.txt
find ~/.local -depth -type d -empty -delete
find ~ -not -path "$HOME/hiroba*" | sort | diff /tmp/before - && echo 'removed without a trace'
END

cat >"$root/as-root.sh" <<'END'
set -euo pipefail
TIMEFORMAT='%R s, processor %U + %S s'
export DEBIAN_FRONTEND=noninteractive
cd /root
git -c advice.detachedHead=false clone -q /hiroba.bundle hiroba
cd hiroba
echo '--- packages that a build needs'
time { scripts/install-packages.sh build && apt-get install -y -qq --no-install-recommends pkg-config; } >/tmp/apt.log 2>&1
useradd --create-home --shell /bin/bash newcomer
if [[ $STEPS == *user* ]]; then
    runuser -l newcomer -c 'bash /as-user.sh'
fi
if [[ $STEPS == *deb* ]]; then
    echo '--- make deb'
    time make deb >/tmp/deb.log 2>&1
    apt-get install -y -qq --no-install-recommends man-db >>/tmp/apt.log 2>&1
    echo '--- the packages installed, used, removed'
    time scripts/try-packages.sh
fi
END
# Nothing of the caller's environment, which may name compilers and launchers that are not there.
chroot "$root" /usr/bin/env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin STEPS="${STEPS:-user deb}" bash /as-root.sh
