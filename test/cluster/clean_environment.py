# SPDX-License-Identifier: BSD-3-Clause
"""The environment of a test's program: the caller's without the settings that change what runs."""
import os


def clean_environment(*prefixes):
    """Without hiroba's settings, and without variables of these prefixes. All regions are spread, whatever the clock says,
    unless the caller has them elsewhere: what is proven of nodes is to be so in every run."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HIROBA_", *prefixes))}
    return {**kept, "HIROBA_REGIONS": os.environ.get("HIROBA_REGIONS", "spread")}
