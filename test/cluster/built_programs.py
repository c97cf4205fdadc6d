# SPDX-License-Identifier: BSD-3-Clause
"""Programs of the tests that are compiled once for many runs of the tests.

A program beside its record FILE.built stands as long as the record does: the same words of the command, the same compiler and the
same files, all headers of the system included, each with its size and time. Whatever else is compiled anew.
"""
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path


def state_of(files):
    """Size and time of each file; None of one that is not there."""
    told = {}
    for file in files:
        path = Path(file)
        told[str(file)] = [path.stat().st_size, path.stat().st_mtime_ns] if path.exists() else None
    return told


def stands(target, command):
    try:
        record = json.loads(Path(f"{target}.built").read_text())
    except (OSError, ValueError):
        return False
    return target.exists() and record["command"] == command and record["files"] == state_of(record["files"])


def compiled(command, target):
    """Compiles and links `target` by `command`, which names everything but the output, unless it stands as it would be.

    Ends this process with what the compiler said if it fails."""
    command = [str(word) for word in command]
    if stands(target, command):
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    dependencies, unfinished = Path(f"{target}.d"), Path(f"{target}.unfinished")
    dependencies.unlink(missing_ok=True)
    # gfortran says what it includes only where it runs the preprocessor.
    told = [] if any(word.endswith(".f90") for word in command) else ["-MD", "-MF", str(dependencies)]
    done = subprocess.run([*command, *told, "-o", str(unfinished)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace", check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: status {done.returncode}\n{done.stdout}")
    unfinished.rename(target)
    files = {Path(shutil.which(command[0])).resolve()} | {word for word in command if Path(word).is_file()}
    if dependencies.exists():
        text = dependencies.read_text().replace("\\\n", " ").split(":", 1)[1]
        files |= {name.replace("\\ ", " ") for name in re.findall(r"(?:\\ |\S)+", text)}
    Path(f"{target}.built").write_text(json.dumps({"command": command, "files": state_of(sorted(map(str, files)))}))
