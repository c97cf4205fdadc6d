# SPDX-License-Identifier: BSD-3-Clause
"""Makes a kernel and an initial file system of Debian's packages; nothing of the host is changed.

The kernel is the stock one of linux-image-amd64 (6.1 in Debian 12). What it needs besides is put
into the file system: the modules for Soft-RoCE and for the host's files, rdma-core and perftest.
"""

import lzma
import shutil
import struct
import subprocess
from pathlib import Path

PACKAGES = ["ibverbs-utils", "ibverbs-providers", "libibverbs1", "rdma-core", "perftest",
            "rdmacm-utils", "librdmacm1", "libibumad3", "libpci3"]
KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
MODULES = ["virtio_pci", "virtio_net", "9p", "9pnet_virtio", "overlay", "veth", "dummy",
           "sch_netem", "ib_uverbs", "crc32_generic", "rdma_rxe"]


def output(*words, **more):
    return subprocess.run(words, check=True, capture_output=True, **more).stdout


def needed(commands):
    """The first missing command with its package, or None."""
    for command, package in commands:
        if shutil.which(command) is None:
            return f"{command} is missing: apt-get install {package}"
    return None


def apt_of(suite, folder):
    """Options with which apt knows the packages of another release of Debian, and nothing else;
    its lists lie in `folder`. Empty for this one's."""
    if not suite:
        return []
    here = folder / f"apt_{suite}"
    for name in ("lists/partial", "cache/archives/partial"):
        (here / name).mkdir(parents=True, exist_ok=True)
    mirror = next(word.rstrip("/") for line in output("apt-get", "indextargets", text=True).splitlines()
                  if line.startswith("Repo-URI:") and "/debian/" in line + "/"
                  for word in line.split()[1:])
    (here / "sources").write_text(f"deb [signed-by={KEYS}] {mirror} {suite} main\n")
    options = [f"Dir::Etc::sourcelist={here}/sources", "Dir::Etc::sourceparts=-",
               f"Dir::State::lists={here}/lists", f"Dir::Cache={here}/cache", "APT::Sandbox::User=root"]
    words = [word for option in options for word in ("-o", option)]
    output("apt-get", "-qq", *words, "update")
    return words


def kernel_package(apt):
    for line in output("apt-cache", *apt, "depends", "linux-image-amd64", text=True).splitlines():
        words = line.split()
        if words[:1] == ["Depends:"] and words[1].startswith("linux-image-"):
            return words[1]
    raise SystemExit("guest: apt-cache knows no kernel behind linux-image-amd64; apt-get update")


def unpack_kernel(packed, to):
    """The ELF file in a bzImage (Documentation/x86/boot.rst): qemu starts it without firmware."""
    image = packed.read_bytes()
    setup_sectors = image[497] or 4
    offset, length = struct.unpack_from("<II", image, 584)
    payload = image[(setup_sectors + 1) * 512 + offset:][:length - 4]
    to.write_bytes(lzma.decompress(payload))


def modules_in_order(folder):
    """Files of MODULES and of what they need, each after what it needs."""
    def within(file):  # one depmod writes names from the root, another from the folder
        return file[file.index("kernel/"):]

    needs = {}
    for line in (folder / "modules.dep").read_text().splitlines():
        name, _, rest = line.partition(":")
        needs[within(name)] = [within(file) for file in rest.split()]
    order = []
    for wanted in MODULES:
        for name in needs:
            if Path(name).name.startswith(wanted + ".ko"):
                order += [file for file in [*reversed(needs[name]), name] if file not in order]
    return order


def build(folder, suite=""):
    """Returns (kernel, initial file system) in `folder`; builds them where they are not there.

    The kernel is that of the release `suite` of Debian; all else is this host's. It
    stays packed, for the firmware: without that Debian 11's did not come up."""
    behind = f".{suite}" if suite else ""
    kernel = folder / (f"vmlinuz{behind}" if suite else "vmlinux")
    files = folder / f"initrd{behind}"
    if kernel.exists() and files.exists():
        return kernel, files
    work = folder / "work"
    shutil.rmtree(work, ignore_errors=True)
    (work / "deb").mkdir(parents=True)
    apt = apt_of(suite, folder)
    image = kernel_package(apt)
    output("apt-get", "-qq", "-o", "APT::Sandbox::User=root", *apt, "download", image, cwd=work / "deb")
    output("apt-get", "-qq", "-o", "APT::Sandbox::User=root", "download", *PACKAGES,
           cwd=work / "deb")
    root, packed = work / "root", work / "kernel"
    for name in "bin proc sys dev m h n tmp x".split():
        (root / name).mkdir(parents=True)
    for package in (work / "deb").iterdir():
        output("dpkg-deb", "-x", package, packed if package.name.startswith(image) else root / "x")
    for name in ("bin", "sbin", "lib"):  # the host's are links into /usr
        if (root / "x" / name).is_dir():
            shutil.copytree(root / "x" / name, root / "x/usr" / name, symlinks=True,
                            dirs_exist_ok=True)
            shutil.rmtree(root / "x" / name)
    release = image.removeprefix("linux-image-")
    modules = packed / "lib/modules" / release
    output("busybox", "depmod", "-b", packed, release)
    order = modules_in_order(modules)
    for name in order:
        shutil.copy(modules / name, root / "m")
    (root / "m/order").write_text("".join(Path(name).name + "\n" for name in order))
    shutil.copy(shutil.which("busybox"), root / "bin/busybox")
    shutil.copy(Path(__file__).with_name("init.sh"), root / "init")
    (root / "init").chmod(0o755)
    (shutil.copy if suite else unpack_kernel)(packed / f"boot/vmlinuz-{release}", kernel)
    files.write_bytes(archive(root, "."))
    shutil.rmtree(work)
    return kernel, files


def archive(folder, *names):
    """A cpio archive of what lies there."""
    names = output("find", *names, "-print0", cwd=folder)
    return output("cpio", "-o", "-0", "-H", "newc", "--quiet", cwd=folder, input=names)
