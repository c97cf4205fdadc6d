#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""HIROBA_ENCRYPT: what goes between two hosts (network namespaces) is recorded off the wire and looked through
for the program's memory; programs are right under it, also those that use OpenSSL themselves; what cannot be
had is refused by one line. Exits with 77 where namespaces or OpenSSL cannot be had.

    encryption_runs.py --hiroba build/bin/hiroba --examples build/examples
"""
import argparse
import ctypes
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import host_nets  # noqa: E402
from hosts_bench import Bench, differences, example, expect  # noqa: E402

SKIPPED = 77
MARK = b"no stranger reads this line of text"
MAGIC = (0x04627268).to_bytes(4, "little")
LIBRARY = "libcrypto.so.3"

# Node 0 writes the mark all over an array, which every node reads; then the other way round.
MARKED = r"""
#include <omp.h>
#include <stdio.h>
#include <string.h>
#define MARK "%s"
static char text[1 << 18], copies[2][1 << 18];
int main(void) {
    int wrong = 0;
    for (int i = 0; i + sizeof MARK <= sizeof text; i += sizeof MARK) memcpy(text + i, MARK, sizeof MARK);
#pragma omp parallel reduction(+ : wrong)
    {
        char* const copy = copies[omp_get_thread_num() %% 2];
        memcpy(copy, text, sizeof text);
        wrong += memcmp(copy, text, sizeof text) != 0;
    }
    wrong += memcmp(copies[0], text, sizeof text) != 0 || memcmp(copies[1], text, sizeof text) != 0;
    printf("threads differ %%d\n", wrong);
    return wrong;
}
""" % MARK.decode()

# A program of OpenSSL: its own copy computes on all nodes, in memory that all share.
DIGESTS = r"""
#include <dlfcn.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>
typedef unsigned char* (*Digest)(const unsigned char*, unsigned long, unsigned char*);
static unsigned char digests[64][32];
static char maps[1 << 16];
int main(int argc, char** argv) {
    void* const library = dlopen("libcrypto.so.3", RTLD_NOW);
    const Digest digest = library ? (Digest)dlsym(library, "SHA256") : 0;
    if (!digest) return 3;
#pragma omp parallel for schedule(static, 1)
    for (int i = 0; i < 64; ++i) digest((const unsigned char*)&i, sizeof i, digests[i]);
    for (int i = 0; i < 64; ++i) {
        for (int k = 0; k < 32; ++k) printf("%02x", digests[i][k]);
        puts("");
    }
    return 0;
}
"""

MAPS = r"""
#include <stdio.h>
#include <string.h>
int main(void) {
    char line[512];
    int found = 0;
    FILE* const maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps)) found |= strstr(line, "libcrypto") != 0;
    printf("libcrypto %d\n", found);
    return 0;
}
"""


class Wire:
    """Records what passes a device of a namespace, for as long as it lasts."""

    def __init__(self, namespace, device):
        self.packets = []
        self._socket = None
        opener = threading.Thread(target=self._open, args=(namespace, device))  # a namespace is a thread's
        opener.start()
        opener.join()
        self._socket.settimeout(0.2)
        self._goes_on = True
        self._reader = threading.Thread(target=self._read)

    def _open(self, namespace, device):
        with open(f"/run/netns/{namespace}", encoding="utf-8") as entrance:
            if ctypes.CDLL(None).setns(entrance.fileno(), 0x40000000) != 0:
                return
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        self._socket.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE
        self._socket.bind((device, 0))

    def _read(self):
        while True:  # also what lies there unread at the end
            try:
                self.packets.append(self._socket.recv(1 << 17))
            except TimeoutError:
                if not self._goes_on:
                    return

    def __enter__(self):
        self._reader.start()
        return self

    def __exit__(self, *_):
        self._goes_on = False
        self._reader.join()
        self._socket.close()

    def shows(self, text):
        return sum(text in packet for packet in self.packets)


def wire(bench):
    """The mark is on the wire without encryption, and nowhere with it."""
    program = str(bench.compile("marked", MARKED))
    for word, shown in (("off", True), ("on", False)):
        with Wire(bench.hosts.home, "port1") as recorded:
            done = bench.run(bench.command(bench.spread(1, 1), "-t", "1", program), HIROBA_ENCRYPT=word)
        if done.returncode != 0 or done.stdout != b"threads differ 0\n":
            yield f"{word}: status {done.returncode}, {done.stdout!r} {done.stderr[-300:]!r}"
        if recorded.shows(MAGIC) < 100:
            yield f"{word}: {recorded.shows(MAGIC)} datagrams of {len(recorded.packets)} packets recorded"
        if (recorded.shows(MARK) > 10) != shown or (recorded.shows(MARK[:16]) > 0) != shown:
            yield f"{word}: {recorded.shows(MARK)} of {len(recorded.packets)} packets show the program's memory"


def right(bench):
    """Programs compute what they did, also where datagrams get lost, doubled and overtaken."""
    yield from example(bench, "heat", ["64", "20"], bench.spread(2, 1), 3, HIROBA_ENCRYPT="on")
    bad = {"HIROBA_UDP_LOSS": "5", "HIROBA_UDP_DUPLICATE": "10", "HIROBA_UDP_REORDER": "10"}
    yield from example(bench, "cg", [], bench.spread(1, 1), 2, HIROBA_ENCRYPT="on", **bad)


def others(bench):
    """A program of OpenSSL has its own copy of it; one that has none gets none where nothing is encrypted."""
    program = str(bench.compile("digests", DIGESTS))
    bare = bench.run([program], OMP_NUM_THREADS="2")
    got = bench.run(bench.command(bench.spread(1, 1), "-t", "1", program), HIROBA_ENCRYPT="on", HIROBA_STATS="1")
    yield from differences(bench, bare, got, 2)
    for word, found in (("off", b"libcrypto 0\n"), ("on", b"libcrypto 1\n")):
        done = bench.run(bench.command(bench.spread(1, 1), "-t", "1", str(bench.compile("maps", MAPS))),
                         HIROBA_ENCRYPT=word)
        if done.returncode != 0 or done.stdout != found:
            yield f"{word}: status {done.returncode}, {done.stdout!r}, wanted {found!r}"


def refusals(bench):
    """What cannot be encrypted is not run: one line, status 78, before the program."""
    for provider in ("ucx", "shm+ucx", "verbs", "shm+verbs"):
        done = bench.run([bench.hiroba, "run", "-n", "2", "-t", "1", "echo", "ran"], HIROBA_ENCRYPT="on",
                         HIROBA_PROVIDER=provider)
        yield from expect(bench, done, 78, rf"HIROBA_ENCRYPT=on: provider {re.escape(provider)} does not encrypt")
        if done.stdout:
            yield f"{provider}: {done.stdout!r}"
    # A host whose library is a broken file.
    paths = [path.resolve() for path in pathlib.Path("/").glob("usr/lib*/**/" + LIBRARY)]
    (bench.folder / "broken").write_bytes(b"")
    hide = " && ".join(f"mount --bind {bench.folder}/broken {path}" for path in paths)
    command = [bench.hiroba, "run", "-n", "2", "-t", "1", "echo", "ran"]
    done = bench.run(["unshare", "-m", "sh", "-c", f"{hide} && exec \"$@\"", "sh", *command], HIROBA_ENCRYPT="on",
                     HIROBA_PROVIDER="udp")
    told = rf"hiroba\[\d@\S+\]: HIROBA_ENCRYPT=on: .*{LIBRARY}.* cannot be loaded: .*\. Install OpenSSL 3"
    lines = [line for line in done.stderr.decode().splitlines() if "ended with status 78" not in line]
    # Each node of the host says so, unless another's death was faster.
    if done.returncode != 78 or not 1 <= len(lines) <= 2 or not all(re.match(told, line) for line in lines):
        yield f"without the library: status {done.returncode}, {lines}"
    if done.stdout:
        yield f"without the library: {done.stdout!r}"
    done = bench.run(command, HIROBA_ENCRYPT="perhaps")
    yield from expect(bench, done, 64, "HIROBA_ENCRYPT")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hiroba", required=True, type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("--examples", type=lambda path: pathlib.Path(path).resolve(), required=True)
    parser.add_argument("--only")
    options = parser.parse_args()
    if why := host_nets.why_missing():
        print(f"skipped: {why}")
        return SKIPPED
    try:
        ctypes.CDLL(LIBRARY)
    except OSError as error:
        print(f"skipped: {error}")
        return SKIPPED
    failed = 0
    with tempfile.TemporaryDirectory(prefix="encryption") as folder, host_nets.Hosts(2) as hosts:
        bench = Bench(options, hosts, pathlib.Path(folder))
        for case in (wire, right, others, refusals):
            if options.only in (None, case.__name__):
                for text in case(bench):
                    print(f"FAILED {case.__name__}: {text}", flush=True)
                    failed += 1
    print("FAILED" if failed else "passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
