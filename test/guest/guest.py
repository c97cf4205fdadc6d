#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs hiroba in a guest: an emulated machine with Debian's stock kernel and this host's files.

Beds (--bed): soft_roce: provider verbs over an RDMA device in software (rdma_rxe); stock_kernel:
programs on Linux 6.1 under both fault engines; shell: a script of one's own (--script).

The machine is emulated, so times there are figures of nothing but each other. One run takes a core.
Needs qemu-system-x86, busybox-static, cpio, dpkg, apt: see --folder for what it leaves.
"""

import argparse
import ctypes
import mmap
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import beds
import image

COMMANDS = [("qemu-system-x86_64", "qemu-system-x86"), ("busybox", "busybox-static"),
            ("cpio", "cpio"), ("dpkg-deb", "dpkg")]
EXIT_ENVIRONMENT = 78
NOT_UP = -1
BOOTS = 3


def counter_khz():
    """How fast the processor's counter goes, which the guest reads too. A guest that is kept from
    its timer while it finds out by itself believes in a slower one, and its clock runs ahead."""
    code = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(bytes.fromhex("0f31" "48c1e220" "4809d0" "c3"))  # rdtsc; both halves into rax; ret
    count = ctypes.CFUNCTYPE(ctypes.c_uint64)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
    ticks, began = count(), time.monotonic_ns()
    time.sleep(0.25)
    return round((count() - ticks) * 1e6 / (time.monotonic_ns() - began))


def run(kernel, files, script, seconds, memory_mib, processors):
    """Runs `script` in the guest; returns its exit status, None when the time was over, NOT_UP when
    the guest ended by itself: on a busy machine its kernel may miss the first ticks of its clock."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "command").write_text(script)
        together = Path(folder, "initrd")
        together.write_bytes(files.read_bytes() + image.archive(folder, "command"))
        # Without "fast short copies" the guest's kernel copies aligned words whole, as devices do.
        words = ["qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max,-erms,-fsrm",
                 "-smp", str(processors), "-m", str(memory_mib), "-nodefaults", "-display", "none",
                 "-serial", "stdio", "-no-reboot",
                 "-device", "isa-debug-exit,iobase=0xf4,iosize=4",
                 "-virtfs", "local,path=/,mount_tag=host,security_model=none,readonly=on,"
                            "multidevs=remap",
                 "-kernel", str(kernel), "-initrd", str(together),
                 # A busy host may keep the guest from its first ticks, and for seconds later on.
                 "-append", "console=ttyS0 quiet panic=-1 mitigations=off nokaslr tsc=reliable clocksource=tsc "
                      f"tsc_early_khz={counter_khz()} no_timer_check rcupdate.rcu_cpu_stall_suppress=1 nosoftlockup"]
        try:
            ended = subprocess.run(words, stdin=subprocess.DEVNULL, timeout=seconds,
                                   preexec_fn=lambda: os.nice(5))
        except subprocess.TimeoutExpired:
            return None
    # The device turns a status into 2 * status + 1; anything else is qemu's own.
    return ended.returncode >> 1 if ended.returncode & 1 else NOT_UP


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--bed", choices=[*beds.BEDS, "shell"], required=True)
    parser.add_argument("--only", default="", help="one part of the bed: " + ", ".join(
        f"{name}: {' '.join(parts)}" for name, parts in beds.BEDS.items()))
    parser.add_argument("--build", type=Path, default=Path("build"), help="hiroba's build folder")
    parser.add_argument("--programs", type=Path, help="folder of kernels ep.S, cg.S, ... to run too")
    parser.add_argument("--nodes", type=int, nargs="+", default=[2, 4], help="that kernels run on")
    parser.add_argument("--script", type=Path, help="for --bed shell")
    parser.add_argument("--kernel-of", default="", metavar="SUITE",
                        help="another release of Debian whose kernel boots, as bullseye (5.10)")
    parser.add_argument("--folder", type=Path, help="of the images; default: guest in the build")
    parser.add_argument("--seconds", type=int, default=1800, help="for each part")
    parser.add_argument("--memory", type=int, default=3072, help="MiB")
    parser.add_argument("--processors", type=int, default=2)
    given = parser.parse_args()
    if missing := image.needed(COMMANDS):
        print(f"guest: {missing}", file=sys.stderr)
        return EXIT_ENVIRONMENT
    build = given.build.resolve()
    folder = (given.folder or build / "guest").resolve()
    folder.mkdir(parents=True, exist_ok=True)
    kernel, files = image.build(folder, given.kernel_of)
    if given.bed == "shell":
        parts = {"script": given.script.read_text()}
    else:
        parts = beds.scripts(given.bed, given.only, build, given.programs, given.nodes,
                             given.seconds)
    failed = []
    for name, script in parts.items():
        before = time.monotonic()
        print(f"--- {given.bed} {name}", flush=True)
        for _ in range(BOOTS):
            status = run(kernel, files, script, given.seconds, given.memory, given.processors)
            if status != NOT_UP:
                break
        how = {None: "time is over", NOT_UP: "the guest is not up"}.get(status, f"status {status}")
        print(f"--- {given.bed} {name}: {how}, {time.monotonic() - before:.0f} s", flush=True)
        if status != 0:
            failed.append(name)
    if failed:
        print(f"guest: failed: {' '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
