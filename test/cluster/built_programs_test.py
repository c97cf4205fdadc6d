#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A program of the tests is compiled anew when anything has changed that it was compiled from, and only then."""
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from built_programs import compiled  # noqa: E402


class BuiltPrograms(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.source, self.header = self.folder / "one.c", self.folder / "status of it.h"
        self.source.write_text('#include "status of it.h"\nint main(void) { return STATUS + ADDED; }\n')
        self.header.write_text("#define STATUS 3\n")
        self.target = self.folder / "built" / "one"
        self.command = ["gcc", "-DADDED=1", self.source]
        compiled(self.command, self.target)

    def status(self):
        return subprocess.run([self.target], check=False).returncode

    def compiled_anew(self, command=None):
        before = self.target.stat().st_ino, self.target.stat().st_mtime_ns
        compiled(command or self.command, self.target)
        return before != (self.target.stat().st_ino, self.target.stat().st_mtime_ns)

    def test_nothing_has_changed(self):
        self.assertEqual(self.status(), 4)
        self.assertFalse(self.compiled_anew())

    def test_a_header_has_changed_and_looks_older(self):
        self.header.write_text("#define STATUS 5\n")
        os.utime(self.header, (1, 1))
        self.assertTrue(self.compiled_anew())
        self.assertEqual(self.status(), 6)

    def test_the_source_has_changed(self):
        self.source.write_text("int main(void) { return 9; }\n")
        self.assertTrue(self.compiled_anew())
        self.assertEqual(self.status(), 9)

    def test_the_command_has_changed(self):
        self.assertTrue(self.compiled_anew(["gcc", "-DADDED=2", self.source]))
        self.assertEqual(self.status(), 5)

    def test_the_compiler_is_another(self):
        compiler = self.folder / "compiler"
        compiler.write_text('#!/bin/sh\nexec gcc "$@"\n')
        compiler.chmod(0o755)
        self.assertTrue(self.compiled_anew([compiler, "-DADDED=1", self.source]))
        compiler.write_text('#!/bin/sh\nexec gcc -DADDED=7 "$@"\n')
        self.assertTrue(self.compiled_anew([compiler, "-DADDED=1", self.source]))

    def test_the_program_or_its_record_is_gone(self):
        self.target.unlink()
        compiled(self.command, self.target)
        self.assertEqual(self.status(), 4)
        Path(f"{self.target}.built").write_text("{")
        self.assertTrue(self.compiled_anew())

    def test_what_the_compiler_says_ends_the_process_and_leaves_no_program(self):
        self.source.write_text("int main(void) { return missing; }\n")
        with self.assertRaisesRegex(SystemExit, "missing"):
            compiled(self.command, self.target)
        with self.assertRaises(SystemExit):
            compiled(self.command, self.target)


if __name__ == "__main__":
    unittest.main()
