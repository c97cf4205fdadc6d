#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The checks find each kind of violation, and nothing in a clean tree."""

import tempfile
import unittest
from pathlib import Path

import check_form
import check_layers

SPDX = "// SPDX-License-Identifier: BSD-3-Clause\n// Role: one.\n"


def faults(check, files):
    """What `check` finds in a tree of these files: path -> text."""
    with tempfile.TemporaryDirectory() as folder:
        for path, text in files.items():
            full = Path(folder) / path
            full.parent.mkdir(parents=True, exist_ok=True)
            full.write_text(text)
        return [f"{path}:{number}: {text}" for path, number, text in check.faults(Path(folder))]


CLEAN = {
    "src/base/bytes.hpp": SPDX,
    "src/net/net.hpp": SPDX + '#include "base/bytes.hpp"\n#include <vector>\n',
    "src/net/wire/record.hpp": SPDX,
    "src/net/provider/shm/shm.hpp": SPDX,
    "src/net/provider/shm/shm.cpp": SPDX + '#include "net/provider/shm/shm.hpp"\n',
    "src/net/provider/registry.cpp": SPDX + '#include "net/provider/shm/shm.hpp"\n',
    "src/dsm/dsm.cpp": SPDX + '#include "net/net.hpp"\n',
    "src/dsm/dsm_test.cpp": SPDX + '#include "net/wire/record.hpp"\n',
    "src/omp/switch.S": SPDX,
    "src/omp/switch.cpp": SPDX + 'extern "C" void f();\n',
    "src/dsm/libc.cpp": SPDX + 'extern "C" int __sigaction(int);\n',
    "src/abi/entry.cpp": SPDX + 'extern "C" void f();\n#include "net/wire/record.hpp"\n',
    "src/net/json_test.cpp": SPDX + "#include <nlohmann/json.hpp>\n",
    "tools/words/parse.cpp": SPDX + "#include <CLI/CLI.hpp>\n",
    "tools/run/run.hpp": SPDX,
    "tools/run/run.cpp": SPDX + '#include "run.hpp"\n#include "net/net.hpp"\n',
}


class Layers(unittest.TestCase):
    def expect(self, path, text, expected):
        found = faults(check_layers, {**CLEAN, path: text})
        self.assertEqual(len(found), 1, found)
        self.assertIn(expected, found[0])
        self.assertTrue(found[0].startswith(path), found[0])

    def test_clean_tree_passes(self):
        self.assertEqual(faults(check_layers, CLEAN), [])

    def test_upward_include_is_found(self):
        self.expect("src/base/up.cpp", '#include "net/net.hpp"\n', "base may include only base")

    def test_include_past_a_face_is_found(self):
        self.expect("src/dsm/in.cpp", '#include "net/wire/record.hpp"\n', "inside net")

    def test_naming_a_provider_is_found(self):
        self.expect("src/net/net.cpp", '#  include "net/provider/shm/shm.hpp"\n', "only src/net")

    def test_relative_include_is_found(self):
        self.expect("src/base/near.cpp", '#include "bytes.hpp"\n', "not written")

    def test_angle_brackets_around_our_own_are_found(self):
        self.expect("src/net/own.cpp", "#include <base/bytes.hpp>\n", "in quotes")

    def test_a_library_outside_its_file_is_found(self):
        self.expect("src/dsm/json.cpp", "#include <nlohmann/json.hpp>\n", "only tests")
        self.expect("tools/run/cli.cpp", "#include <CLI/CLI.hpp>\n", "only tools/words/parse.cpp")

    def test_missing_header_is_found(self):
        self.expect("src/net/gone.cpp", '#include "base/gone.hpp"\n', "does not exist")

    def test_c_linkage_below_abi_is_found(self):
        self.expect("src/dsm/entry.cpp", 'extern "C" void f();\n', 'extern "C" outside')

    def test_unknown_layer_is_found(self):
        self.expect("src/extra/x.cpp", "", "no layer extra")


class Form(unittest.TestCase):
    def expect(self, path, text, expected):
        found = faults(check_form, {**CLEAN, path: text})
        self.assertEqual(len(found), 1, found)
        self.assertIn(expected, found[0])

    def test_clean_tree_passes(self):
        short = SPDX + "void f() {\n" + "    g();\n" * 68 + "}\n"
        self.assertEqual(faults(check_form, {**CLEAN, "src/base/f.cpp": short}), [])

    def test_missing_licence_line_is_found(self):
        self.expect("src/base/x.cpp", "int x;\n", "SPDX")
        self.expect("scripts/x.sh", "#!/bin/sh\necho\n", "SPDX")

    def test_missing_role_is_found(self):
        self.expect("src/base/x.cpp", SPDX.splitlines()[0] + "\nint x;\n", "role")

    def test_long_file_is_found(self):
        self.expect("src/base/x.cpp", SPDX + "int x;\n" * 599, "601 lines")

    def test_long_function_is_found(self):
        text = SPDX + "int C::f(int a) noexcept {\n" + "    g();\n" * 69 + "}\n"
        self.expect("src/base/x.cpp", text, "function of 71 lines")

    def test_long_method_in_a_class_is_found(self):
        text = SPDX + "class C {\n    void f() {\n" + "        g();\n" * 69 + "    }\n};\n"
        self.expect("src/base/x.hpp", text, "function of 71 lines")

    def test_empty_names_are_found(self):
        self.expect("src/base/string_utils.hpp", SPDX, "'utils'")
        self.expect("src/base/old/x.hpp", SPDX, "'old'")

    def test_unfinished_work_is_found(self):
        self.expect("src/base/x.cpp", SPDX + "// TO" "DO: more\n", "later work")
        self.expect("src/base/x.cpp", SPDX + "// Enough for" " now.\n", "later work")


if __name__ == "__main__":
    unittest.main()
