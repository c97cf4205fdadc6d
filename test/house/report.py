# SPDX-License-Identifier: BSD-3-Clause
"""What the checks of the house have in common."""


def report(faults):
    """Prints each (path, line, text). Returns the exit status: 1 if there was one."""
    count = 0
    for path, line, text in faults:
        print(f"{path}:{line}: {text}")
        count += 1
    return 1 if count else 0
