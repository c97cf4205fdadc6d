#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks every #include of src/ and tools/ against the layers: omp -> dsm -> gas -> net -> base,
acp -> gas, tasks -> the faces; and inside a layer against the order of its folders.

Also: only src/abi has extern "C" (and files with assembly beside them), only the provider
registry names a provider, and libraries of others stay where LIBRARIES says. Usage: check_layers.py <root of the tree>
"""

import re
import sys
from pathlib import Path

from report import report

# What a layer may include: itself and those below. `tools` and `abi` stand above all.
BELOW = {
    "base": ["base", "hiroba"],  # Ids and requests are compiled into programs.
    "net": ["net", "base", "hiroba"],
    "gas": ["gas", "net", "base", "hiroba"],  # Its face is compiled into programs.
    "acp": ["acp", "gas", "net", "base"],
    "tasks": ["tasks", "hiroba"],  # It uses net as programs do.
    "dsm": ["dsm", "gas", "net", "base"],
    "omp": ["omp", "dsm", "gas", "net", "base"],
    "abi": ["abi", "acp", "omp", "dsm", "gas", "net", "base", "hiroba"],
    "tools": ["tools", "acp", "omp", "dsm", "gas", "net", "base", "hiroba"],
}

# What a layer shows to those above it. All of `base` is a face. Tests may look inside.
FACES = {
    "net": [
        "net/all_memory.hpp",
        "net/async.hpp",
        "net/collectives.hpp",
        "net/later_memory.hpp", "net/questions.hpp", "net/served_memory.hpp", "net/teams.hpp",
        "net/loss_watch.hpp",
        "net/message_kind.hpp",
        "net/net.hpp",
        "net/bootstrap/job.hpp", "net/bootstrap/joined_job.hpp",
        "net/bootstrap/process_manager.hpp", "net/bootstrap/keeper.hpp",
        "net/kick/kick.hpp",
        "net/bootstrap/control_packet.hpp",  # The launcher speaks the other end of it.
        "net/bootstrap/device.hpp", "net/bootstrap/port_range.hpp",
        "net/bootstrap/host_link.hpp",  # Between the launcher and its agents.
        "net/provider/this_host.hpp",
        "net/provider/apply_atomic.hpp",
        "net/provider/provider.hpp",
        "net/provider/secrecy.hpp",
        "net/wire/authenticator.hpp",  # A floor of `hiroba perf` computes the same.
    ],
    "gas": [
        "gas/gas.hpp",
        "gas/delegate.hpp",
        "gas/global_memory.hpp",
        "gas/messages.hpp",
        "gas/relocatable/relocatable_space.hpp",
    ],
    "acp": ["acp/node.hpp", "acp/data/call.hpp", "acp/data/sequence.hpp", "acp/data/list.hpp", "acp/data/buckets.hpp"],
    "dsm": [
        "dsm/dsm.hpp",
        "dsm/messages.hpp",
        "dsm/heap/heap.hpp",
        "dsm/memory/address_map.hpp",
        "dsm/memory/fault_engine.hpp",
        "dsm/memory/uffd_calls.hpp",  # Requests to the kernel, which a floor is made of.
        "dsm/memory/kernel_calls.hpp",  # Not of the shared memory: system calls without libc.
        "dsm/sync/interruptions.hpp",
        "dsm/sync/news_barrier.hpp",
        "dsm/sync/lock_table.hpp",
        "dsm/sync/background_flusher.hpp",
        "dsm/sync/sync_table.hpp",
    ],
}

# What a folder of a layer may include beside itself and the files that lie in the layer's own folder.
# `guess` is seen by the engine alone: nothing that is kept of a block or told to others rests on a guess.
INSIDE = {
    "dsm": {
        "protocol": [],
        "memory": ["protocol"],
        "guess": ["protocol"],
        "block": ["protocol", "memory"],
        "counts": ["protocol", "block"],
        "news": ["protocol", "memory", "block", "counts"],
        "races": ["protocol", "memory", "block", "counts", "news"],
        "engine": ["protocol", "memory", "guess", "block", "counts", "news", "races"],
        "heap": ["protocol", "memory"],
        "sync": ["protocol", "heap"],
    },
}

# Libraries of others, and where the product may include them; tests may anywhere. What is slow to
# compile stays behind one file.
LIBRARIES = {
    "CLI": ("tools/words/parse.cpp",),
    "nlohmann": (),
    "Zydis": ("src/omp/atomic/",),
    "fmt": ("tools/",),
    "simgrid": ("tools/predict/simgrid/",),
}

# What puts a node together, and who may include it: what reads world() must not lead back there.
ROOT = ("abi/assemble.hpp", ("src/abi/start.cpp", "src/abi/assemble.cpp"))

PROVIDER = re.compile(r"net/provider/(\w+)/")
REGISTRY = "src/net/provider/registry.cpp"
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')
EXTERN_C = re.compile(r'^\s*(?:\[\[[^\]]*\]\]\s*)?extern\s+"C"')
C_LIBRARY_NAME = re.compile(r'extern\s+"C"[^(]*\b__\w+\s*\(')
THREAD_ROOM = re.compile(r"\bThreadRoom<\w+, *(\d+)>")
SUFFIXES = {".cpp", ".hpp", ".c", ".h", ".S", ".inc"}


def layer_of(path):
    """The layer a file of the tree belongs to."""
    return path.parts[1] if path.parts[0] == "src" else path.parts[0]


def include_fault(root, path, target):
    """What is wrong with `path` including "target", or None."""
    layer = layer_of(path)
    if layer == "tools" and (root / path.parent / target).is_file():
        return None  # A tool's own files, beside each other.
    provider = PROVIDER.match(target)
    is_test = path.stem.endswith("_test") or layer == "tools" and "test" in str(path)
    if provider and not is_test and str(path) != REGISTRY:
        if not str(path).startswith(f"src/net/provider/{provider[1]}/"):
            return f"only {REGISTRY} names the provider {provider[1]}"
    if target == ROOT[0] and str(path) not in ROOT[1]:
        return f"only {', '.join(ROOT[1])} may include the composition root"
    other = target.split("/")[0]
    if other not in BELOW and other != "hiroba":
        return 'is not written "layer/path.hpp"'
    if other not in BELOW[layer]:
        return f"{layer} may include only {', '.join(BELOW[layer])}"
    if other == layer and not is_test:
        fault = inside_fault(layer, path, target)
        if fault:
            return fault
    if other != layer and layer != "abi" and not is_test:
        if other in FACES and target not in FACES[other]:
            return f"is inside {other}; its faces are {', '.join(FACES[other])}"
    base = root / ("include" if other == "hiroba" else "" if other == "tools" else "src")
    return None if (base / target).is_file() else "does not exist"


def inside_fault(layer, path, target):
    """What is wrong with a file of `layer` including another of it by the order of its folders, or None."""
    folders = INSIDE.get(layer)
    if folders is None or len(path.parts) < 4 or target.count("/") < 2:
        return None
    folder, included = path.parts[2], target.split("/")[1]
    if folder == "test_parts" or folder == included:
        return None
    if folder not in folders:
        return f"{layer} has no folder {folder} in the order of its folders"
    if included not in folders[folder]:
        return f"{layer}/{folder} may include only {', '.join(folders[folder]) or 'its own folder'}"
    return None


def library_fault(path, target):
    """What is wrong with `path` including <target> of another project, or None."""
    is_test = path.stem.endswith("_test") or "test" in str(path.parent)
    places = LIBRARIES.get(target.split("/")[0])
    if places is None or is_test or str(path).startswith(places):
        return None
    return f"only {', '.join(places) or 'tests'} may include it"


def may_have_c_linkage(full, path):
    """Assembly has no mangled names, so whoever lies beside it may speak C to it."""
    return layer_of(path) == "abi" or any(full.parent.glob("*.S"))


def faults(root):
    """Every violation as (path, line number, text)."""
    rooms = {}
    for folder in ("src", "tools"):
        for full in sorted((root / folder).rglob("*")):
            path = full.relative_to(root)
            if full.suffix not in SUFFIXES or not full.is_file():
                continue
            if layer_of(path) not in BELOW:
                yield path, 1, f"src/ has no layer {layer_of(path)}"
                continue
            for number, line in enumerate(full.read_text().splitlines(), 1):
                include = INCLUDE.match(line)
                if include and include[1] == '"':
                    fault = include_fault(root, path, include[2])
                    if fault:
                        yield path, number, f'"{include[2]}": {fault}'
                elif include and (root / "src" / include[2]).is_file():
                    yield path, number, f"<{include[2]}>: our own headers are written in quotes"
                elif include:
                    fault = library_fault(path, include[2])
                    if fault:
                        yield path, number, f"<{include[2]}>: {fault}"
                # What a layer keeps of each thread (base/thread_room.hpp).
                room = THREAD_ROOM.search(line)
                if room and not path.stem.endswith("_test") and rooms.setdefault(room[1], path) != path:
                    yield path, number, f"thread room {room[1]} is that of {rooms[room[1]]}"
                # A reserved name is the C library's: declared here, not defined.
                ours = EXTERN_C.match(line) and not C_LIBRARY_NAME.search(line)
                if ours and not may_have_c_linkage(full, path):
                    yield path, number, 'extern "C" outside src/abi'


def main():
    return report(faults(Path(sys.argv[1])))


if __name__ == "__main__":
    sys.exit(main())
