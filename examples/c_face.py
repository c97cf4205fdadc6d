#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""One-sided access from Python: cffi reads hiroba.h as it is, and no compiler is needed.

Run: hiroba run --spmd -n 3 python3 c_face.py INCLUDE_FOLDER LIBRARY_FOLDER
Each rank puts a piece of an array of doubles, with a signal, into its neighbour's memory, and all add up what came by an
atomic on rank 0.
"""

import re
import sys
from pathlib import Path

import cffi


def declarations(folder):
    """hiroba.h without what is the preprocessor's."""
    text = (Path(folder) / "hiroba" / "hiroba.h").read_text()
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    text = re.sub(r"#ifdef __cplusplus.*?#endif", "", text, flags=re.S)
    return re.sub(r"^#.*$", "", text, flags=re.M).replace("HIROBA_API ", "")


ffi = cffi.FFI()
ffi.cdef(declarations(sys.argv[1]))
lib = ffi.dlopen(str(Path(sys.argv[2]) / "libhiroba_net.so"))


def check(code):
    if code != lib.HIROBA_OK:
        sys.exit(ffi.string(lib.hiroba_last_error()).decode())


def main():
    handle = ffi.new("hiroba_net **")
    check(lib.hiroba_net_open(handle))
    net = handle[0]
    rank, ranks = lib.hiroba_net_rank(net), lib.hiroba_net_ranks(net)
    memory = ffi.new("hiroba_memory *")
    count = 1000
    check(lib.hiroba_net_allocate(net, 8 * (count + 2), memory))
    check(lib.hiroba_net_connect(net))

    signal, total, first = 0, 8, 16  # offsets in every rank's memory
    mine = ffi.new("double[]", [rank + i / count for i in range(count)])
    neighbour = (rank + 1) % ranks
    check(lib.hiroba_net_put_signal(net, neighbour, memory[0], first, mine, 8 * count, signal, lib.HIROBA_ADD, 1))
    check(lib.hiroba_net_wait_word(net, memory[0], signal, lib.HIROBA_EQUAL, 1, 2**64 - 1, ffi.NULL))

    here = ffi.cast("double *", lib.hiroba_net_local(net, memory[0])) + first // 8
    came = sum(ffi.unpack(here, count))
    check(lib.hiroba_net_atomic_double(net, 0, memory[0], total, lib.HIROBA_ADD, came, ffi.NULL))
    lib.hiroba_net_barrier(net)

    found = ffi.new("double *")
    check(lib.hiroba_net_get(net, 0, memory[0], total, found, 8))
    wanted = count * ranks * (ranks - 1) / 2 + ranks * (count - 1) / 2
    good = abs(found[0] - wanted) < 1e-6
    if rank == 0:
        print(f"{ranks} ranks in Python over {ffi.string(lib.hiroba_net_provider(net)).decode()}, total {found[0]:.1f}: "
              f"VERIFICATION {'SUCCESSFUL' if good else 'FAILED'}", flush=True)
    lib.hiroba_net_close(net)
    return 0 if good else 1


sys.exit(main())
