#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Installs hiroba from a build tree into an empty folder, moves it elsewhere, and uses it as its
users would: commands, man pages, completion; programs built against it by pkg-config and by
find_package, with each compiler given, and run on several nodes.

Usage: installed_tree.py --cmake CMAKE --build BUILD --source ROOT [--compilers gcc,clang] [--each] [NAME...]
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

OPTIONS = None
CXX = {"gcc": "g++", "clang": "clang++"}
# Each example: its component, pkg-config's name, its source, how it is run, and over what.
BOTH = ("shm", "udp", "sim")  # sim: on simulated nodes, a tenth of whose packets is lost
EXAMPLES = [
    ("dsm", "hiroba_dsm", "spmd_sum.cpp", ["--spmd"], [], ("shm",)),
    ("gas", "hiroba_gas", "gas_table.cpp", ["--spmd"], ["8", "2000"], ("shm",)),
    ("acp", "acp", "acp_ring.c", [], [], ("shm",)),
    ("net", "hiroba_net", "net_histogram.cpp", ["--spmd"], ["2000", "2"], BOTH),
    ("net", "hiroba_net", "net_heat.cpp", ["--spmd"], ["100", "50"], BOTH),
    ("net", "hiroba_net", "net_farm.cpp", ["--spmd"], ["7"], BOTH),
    ("kick", "hiroba_kick", "kick_pingpong.cpp", ["--spmd"], ["1000"], BOTH),
    ("kick", "hiroba_kick", "kick_sieve.cpp", ["--spmd"], ["2000"], BOTH),
    ("kick", "hiroba_kick", "kick_plate.cpp", ["--spmd"], ["16", "50"], BOTH),
    ("tasks", "hiroba_tasks", "tasks_uts.cpp", ["--spmd"], ["small"], BOTH),
    ("c", "hiroba_c", "c_ring.c", ["--spmd"], [], BOTH),
]
COMPONENTS = list(dict.fromkeys(example[0] for example in EXAMPLES))
ONE_OF_EACH = list({example[0]: example for example in reversed(EXAMPLES)}.values())
SUM = """
#include <stdio.h>
int main(void) {
    double sum = 0;
    #pragma omp parallel for reduction(+ : sum)
    for (long i = 1; i <= 1000000; ++i) sum += 1.0 / ((double)i * (double)i);
    printf("pi^2/6 = %.5f\\n", sum);
}
"""


def call(*words, status=0, **more):
    """What the command printed, both streams; fails if it ended otherwise than expected."""
    done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=300, **more)
    if done.returncode != status:
        raise AssertionError(f"status {done.returncode}: {' '.join(map(str, words))}\n{done.stdout}")
    return done.stdout


def environment(**more):
    return {**os.environ, **{name: str(value) for name, value in more.items()}}


class InstalledTree(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = Path(tempfile.mkdtemp(prefix="installed"))
        cls.addClassCleanup(shutil.rmtree, cls.place)
        call(OPTIONS.cmake, "--install", OPTIONS.build, "--prefix", cls.place / "first")
        cls.prefix = cls.place / "moved" / "here"
        cls.prefix.parent.mkdir()
        (cls.place / "first").rename(cls.prefix)
        cls.hiroba = cls.prefix / "bin" / "hiroba"
        cls.pc_folder = next(cls.prefix.rglob("acp.pc")).parent
        cls.library_folder = cls.pc_folder.parent

    def write(self, name, text):
        path = self.place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def flags(self, package, *which):
        text = call("pkg-config", *which, package, env=environment(PKG_CONFIG_PATH=self.pc_folder))
        return text.split()

    def run_example(self, example, program, providers=("shm",)):
        _, _, _, launch, words, _ = example
        for provider in providers:
            if provider == "sim":
                said = call(self.hiroba, "sim", "-n", "3", "--loss", "10", program, *words,
                            env=environment(LD_LIBRARY_PATH=self.library_folder))
                self.assertIn("VERIFICATION SUCCESSFUL", said)
                continue
            said = call(self.hiroba, "run", *launch, "-n", "2", program, *words,
                        env=environment(LD_LIBRARY_PATH=self.library_folder,
                                        HIROBA_PROVIDER=provider))
            self.assertIn("VERIFICATION SUCCESSFUL", said)

    def test_an_openmp_program_runs_on_four_nodes(self):
        source = self.write("sum.c", SUM)
        program = self.place / "a.out"
        call("gcc", "-O2", "-fopenmp", source, "-o", program)
        said = call(self.hiroba, "run", "-n", "4", "--threads", "1", program,
                    env=environment(HIROBA_STATS=1))
        self.assertIn("pi^2/6 = 1.64493", said)
        regions = re.search(r"parallel_regions((?: +\d+)+)", said)
        self.assertTrue(regions and "0" not in regions[1].split()[:4], said)

    def test_the_other_commands_work(self):
        self.assertIn('"build_type"', call(self.hiroba, "info", "--json"))
        self.assertIn("put_latency", call(self.hiroba, "perf", "put_latency", "--milliseconds", "2"))

    def test_openmp_is_measured_by_the_installed_program(self):
        if not (OPTIONS.build / "bin/hiroba-perf-openmp").exists():
            self.skipTest("not built: the C compiler is not gcc")
        self.assertTrue((self.prefix / "libexec/hiroba/hiroba-perf-openmp").exists())
        said = call(self.hiroba, "perf", "openmp", "--only", "single", "--milliseconds", "2", "--provider", "shm",
                    env=environment(OMP_WAIT_POLICY="passive"))
        self.assertRegex(said, r"openmp over shm: 2 nodes(.|\n)*single +[0-9.]")

    def test_gdb_finds_its_settings_beside_the_runtime(self):
        runtime = next(self.prefix.glob("lib*/**/libhiroba.so"))
        self.assertIn("handle SIGSEGV nostop", runtime.with_name("libhiroba.so-gdb.gdb").read_text())

    def test_predictions_are_made_by_the_installed_program(self):
        if not (OPTIONS.build / "bin/hiroba-predict").exists():
            self.skipTest("not built: there is no SimGrid")
        self.assertTrue((self.prefix / "libexec/hiroba/hiroba-predict").exists())
        self.assertIn("--what-if", call(self.hiroba, "predict", "--help"))

    def test_a_command_reached_by_a_link_finds_its_runtime(self):
        source = self.write("one.c", "int main(void) { return 7; }\n")
        program = self.place / "one"
        call("gcc", "-fopenmp", source, "-o", program)
        link = self.place / "link" / "hiroba"
        link.parent.mkdir()
        link.symlink_to(self.hiroba)
        call(link, "run", "-n", "2", program, status=7, cwd="/")

    def test_pkg_config_builds_programs(self):
        # One of each component and by one compiler, unless asked for more: find_package (below) takes the other.
        for example in EXAMPLES if OPTIONS.each else ONE_OF_EACH:
            _, package, source, *_ = example
            for compiler in OPTIONS.compilers if OPTIONS.each else OPTIONS.compilers[:1]:
                with self.subTest(source=source, compiler=compiler):
                    compile_it = CXX[compiler] if source.endswith(".cpp") else compiler
                    program = self.place / f"pc_{Path(source).stem}_{compiler}"
                    # The standard comes from pkg-config.
                    call(compile_it, "-Wall", "-Wextra", "-Werror",
                         OPTIONS.source / "examples" / source,
                         *self.flags(package, "--cflags", "--libs"), "-o", program)
                    # What goes over the wire does not depend on who compiled the program; where
                    # its variables lie, which the simulator exchanges, does.
                    self.run_example(example, program, [provider for provider in example[5]
                                                        if compiler == "gcc" or provider != "udp"])

    def test_find_package_builds_programs(self):
        # What differs from pkg-config's are the properties of a component's target.
        examples = ONE_OF_EACH
        targets = "\n".join(
            f"add_executable(use_{Path(source).stem} {OPTIONS.source}/examples/{source})\n"
            f"target_link_libraries(use_{Path(source).stem} PRIVATE hiroba::{component})"
            for component, _, source, *_ in examples)
        self.write("project/CMakeLists.txt",
                   "cmake_minimum_required(VERSION 3.16)\nproject(user LANGUAGES C CXX)\n"
                   f"find_package(hiroba 0.1 REQUIRED COMPONENTS {' '.join(COMPONENTS)})\n"
                   "if(NOT EXISTS \"${HIROBA_COMMAND}\")\n  message(FATAL_ERROR no command)\nendif()\n"
                   + targets)
        # By one compiler: what each makes of the headers is seen by pkg-config's flags. The tutorials' projects are
        # configured for cmake's own choice.
        compiler = OPTIONS.compilers[-1]
        build = self.place / f"project_{compiler}"
        call(OPTIONS.cmake, "-S", self.place / "project", "-B", build, f"-DCMAKE_PREFIX_PATH={self.prefix}",
             f"-DCMAKE_C_COMPILER={compiler}", f"-DCMAKE_CXX_COMPILER={CXX[compiler]}")
        call(OPTIONS.cmake, "--build", build)
        for example in examples:
            self.run_example(example, build / f"use_{Path(example[2]).stem}",
                             [provider for provider in example[5] if provider != "udp"])

    def test_tutorials_do_what_they_say(self):
        """Each program on each page, by the page's own lines, prints what the page says behind it."""
        for page in sorted((OPTIONS.source / "docs" / "tutorials").glob("*.md")):
            text = page.read_text()
            for program in re.finditer(r"```(?:cpp|c)\n((?://|/\*) (\w+)\.(cpp|c)\b.*?)```", text, re.S):
                session = re.compile(r"```console\n(.*?)```", re.S).search(text, program.end())
                self.assertIsNotNone(session, f"{page.name}: {program[2]}")
                with self.subTest(page=page.name, program=program[2]):
                    self.run_tutorial(text, program, session)

    def run_tutorial(self, text, program, session):
        source = self.write(f"{program[2]}.{program[3]}", program[1])
        compile_it, run_it, *wanted = session[1].strip().splitlines()
        script = f"cd {source.parent}\n{compile_it[2:]}\n{run_it[2:]}\n"
        said = call("bash", "-euc", script, env=environment(
            PATH=f"{self.hiroba.parent}:{os.environ['PATH']}",
            PKG_CONFIG_PATH=self.pc_folder, LD_LIBRARY_PATH=self.library_folder))
        self.assertEqual(sorted(said.splitlines()), sorted(wanted))
        project = re.search(r"```cmake\n(cmake_minimum_required.*?)```", text, re.S)
        if project is not None and f"add_executable({program[2]} " in project[1]:
            source.with_name("CMakeLists.txt").write_text(project[1])
            build = source.parent / f"build_{program[2]}"
            call(OPTIONS.cmake, "-S", source.parent, "-B", build,
                 f"-DCMAKE_PREFIX_PATH={self.prefix}")
            call(OPTIONS.cmake, "--build", build)
            words = run_it[2:].split()[1:-1]
            said = call(self.hiroba, *words, "--provider", "udp", build / program[2],
                        env=environment(LD_LIBRARY_PATH=self.library_folder))
            self.assertEqual(sorted(said.splitlines()), sorted(wanted))
        for session in re.findall(rf"```console\n\$ (hiroba sim [^\n]*\b{program[2]}\n.*?)```", text, re.S):
            run_it, *wanted = session.strip().splitlines()
            said = call("bash", "-euc", f"cd {source.parent}\n{run_it}", env=environment(
                PATH=f"{self.hiroba.parent}:{os.environ['PATH']}",
                LD_LIBRARY_PATH=self.library_folder))
            self.assertEqual(sorted(said.splitlines()), sorted(wanted))

    def test_further_blocks_of_tutorials_give_right_answers(self):
        """test/install/blocks has a program for each page, with every line of the page's blocks in it."""
        package = {"net": "hiroba_net", "kick": "hiroba_kick", "gas": "hiroba_gas", "acp": "acp"}
        for source in sorted((OPTIONS.source / "test" / "install" / "blocks").glob("*.c*")):
            page = (OPTIONS.source / "docs" / "tutorials" / f"{source.stem}.md").read_text()
            program = [line.strip() for line in source.read_text().splitlines()]
            blocks = [block for block in re.findall(r"```(?:cpp|c)\n(.*?)```", page, re.S)
                      if not re.match(r"(?://|/\*) \w+\.c", block)]
            self.assertTrue(blocks, source.name)
            for block in blocks:
                rest = iter(program)
                for line in block.splitlines():
                    self.assertTrue(line.strip() == "..." or line.strip() in rest,
                                    f"{source.name} does not have, in the order of the page: {line}")
            # By one compiler, as above.
            for compiler in OPTIONS.compilers if OPTIONS.each else OPTIONS.compilers[:1]:
                with self.subTest(page=source.name, compiler=compiler):
                    compile_it = CXX[compiler] if source.suffix == ".cpp" else compiler
                    built = self.place / f"blocks_{source.stem}_{compiler}"
                    call(compile_it, "-O2", "-Wall", "-Wextra", "-Werror", source,
                         *self.flags(package[source.stem], "--cflags", "--libs"), "-o", built)
                    launch = [] if source.suffix == ".c" else ["--spmd"]
                    runs = [["run", "--provider", provider, *launch, "-n", "3", built] for provider in ("shm", "udp")]
                    if source.stem in ("net", "kick"):
                        runs.append(["sim", "-n", "3", "--loss", "10", built])
                    if source.stem == "net":
                        runs += [[*words, "many"] for words in runs]
                    for words in runs:
                        said = call(self.hiroba, *words, env=environment(LD_LIBRARY_PATH=self.library_folder))
                        self.assertEqual(said.split(), ["right"] * 3, words)

    def test_a_component_on_another_brings_it_along(self):
        self.configure("find_package(hiroba REQUIRED COMPONENTS kick)\n"
                       "add_library(user INTERFACE)\ntarget_link_libraries(user INTERFACE hiroba::kick)\n"
                       "if(NOT TARGET hiroba::net)\n  message(FATAL_ERROR no net)\nendif()", 0)

    def test_installed_headers_include_no_other(self):
        """Each compiles alone, all together by the other compiler, strictly; what they include was installed."""
        headers = [header.relative_to(self.prefix / "include")
                   for header in sorted((self.prefix / "include").rglob("*.hpp"))]
        self.assertGreater(len(headers), 5)
        for name in headers:
            self.compile_strictly("g++", name.stem, [name])
        for compiler in OPTIONS.compilers[1:]:
            self.compile_strictly(CXX[compiler], f"all_by_{compiler}", headers)

    def compile_strictly(self, compiler, name, headers):
        source = self.write(f"alone/{name}.cpp",
                            "".join(f'#include "{header}"\n' for header in headers) + "int main() {}\n")
        included = source.with_suffix(".d")
        call(compiler, "-std=c++20", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror", "-fsyntax-only",
             "-MD", "-MF", included, source, "-I", self.prefix / "include")
        said = included.read_text()
        for header in headers:
            self.assertIn(str(self.prefix / "include" / header), said)
        self.assertNotIn(str(OPTIONS.source), said)

    def test_pages_and_examples_that_headers_name_are_installed(self):
        place = self.prefix / "share" / "doc" / "hiroba"
        named = 0
        for header in sorted((self.prefix / "include").rglob("*.h*")):
            for name in re.findall(r"\b(?:docs|examples)/[\w/*.-]*\w", header.read_text()):
                named += 1
                self.assertTrue(list(place.glob(name)), f"{header.name} names {name}")
        self.assertGreater(named, 5)
        for page in sorted((place / "docs" / "tutorials").glob("*.md")):
            prose = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.S)
            for link in re.findall(r"\]\(([\w./-]+)", prose):
                self.assertTrue((page.parent / link).exists(), f"{page.name} links to {link}")

    def configure(self, find, status):
        folder = Path(tempfile.mkdtemp(dir=self.place))
        (folder / "CMakeLists.txt").write_text(
            f"cmake_minimum_required(VERSION 3.16)\nproject(user LANGUAGES CXX)\n{find}\n")
        return call(OPTIONS.cmake, "-S", folder, "-B", folder / "build",
                    f"-DCMAKE_PREFIX_PATH={self.prefix}", status=status)

    def test_packages_refuse_what_they_do_not_have(self):
        self.assertIn("99", self.configure("find_package(hiroba 99 REQUIRED)", 1))
        said = self.configure("find_package(hiroba REQUIRED COMPONENTS dsm teleport)", 1)
        self.assertIn("teleport", said)

    def test_the_package_of_acp_alone_is_still_there(self):
        self.configure("find_package(acp REQUIRED)\nget_target_property(x hiroba::acp LOCATION)", 0)

    def test_an_older_standard_is_refused_with_one_line(self):
        for header in ("dsm", "gas", "net", "kick"):
            source = self.write("old.cpp", f'#include "hiroba/{header}.hpp"\nint main() {{}}\n')
            said = call("g++", "-std=c++17", "-fsyntax-only", "-fmax-errors=1", source,
                        "-I", self.prefix / "include", status=1)
            self.assertIn("C++20", said)

    def test_no_file_knows_where_it_was_built(self):
        for path in self.prefix.rglob("*"):
            if not path.is_file() or path.is_symlink():
                continue
            content = path.read_bytes()
            for wrong in (str(OPTIONS.build), str(self.place / "first")):
                self.assertNotIn(wrong.encode(), content, str(path))

    def test_libraries_have_names_with_a_version_and_no_path(self):
        for name in ("libhiroba_dsm", "libhiroba_net", "libhiroba_gas", "libacp"):
            said = call("readelf", "-d", self.library_folder / f"{name}.so")
            self.assertRegex(said, rf"SONAME.*\[{name}\.so\.\d+\]")
            self.assertNotRegex(said, "RPATH|RUNPATH")

    def test_the_runtime_is_where_no_loader_looks(self):
        (runtime,) = self.prefix.rglob("libhiroba.so")
        self.assertEqual(runtime.parent.name, "hiroba")
        self.assertEqual((runtime.parent / "libgomp.so.1").resolve(), runtime.resolve())
        for name in ("libomp.so.5", "libomp.so", "libiomp5.so"):
            said = call("readelf", "-d", runtime.parent / name)
            self.assertRegex(said, rf"SONAME.*\[{re.escape(name)}\]")
            self.assertRegex(said, r"NEEDED.*\[libgomp\.so\.1\]")
            self.assertNotRegex(said, "RPATH|RUNPATH")
        for name in ("libgomp.so.1", "libomp.so.5", "libomp.so", "libiomp5.so"):
            self.assertFalse((self.library_folder / name).exists())

    def test_links_of_the_installed_pages_lead_somewhere(self):
        call(sys.executable, "-B", OPTIONS.source / "test/house/check_links.py", self.prefix / "share/doc/hiroba")

    def test_destdir_holds_everything(self):
        stage = self.place / "stage"
        call(OPTIONS.cmake, "--install", OPTIONS.build, "--prefix", "/opt/hiroba",
             env=environment(DESTDIR=stage))
        staged = {str(path.relative_to(stage / "opt/hiroba")) for path in stage.rglob("*")
                  if not path.is_dir()}
        moved = {str(path.relative_to(self.prefix)) for path in self.prefix.rglob("*")
                 if not path.is_dir()}
        self.assertEqual(staged, moved)
        self.assertFalse(Path("/opt/hiroba").exists())

    def test_manual_pages_name_every_option_and_setting(self):
        helped = call(self.hiroba, "--help")
        for command in ["run", "info", "perf", "stacks"]:
            self.assertIn(command, helped)
            page = (self.prefix / f"share/man/man1/hiroba-{command}.1").read_text()
            for option in re.findall(r"^  (?:-\w,)?(--[\w-]+)", call(self.hiroba, command, "--help"),
                                     re.MULTILINE):
                if option not in ("--help", "--version"):
                    self.assertIn(option.replace("-", "\\-"), page)
        settings = (self.prefix / "share/man/man7/hiroba-settings.7").read_text()
        for name in re.findall(r"^(HIROBA_\w+)=", call(self.hiroba, "info", "-c"), re.MULTILINE):
            self.assertIn(name, settings)

    @unittest.skipUnless(shutil.which("groff"), "no groff")
    def test_manual_pages_are_clean_roff(self):
        for page in sorted(self.prefix.rglob("man/man*/*")):
            self.assertEqual(call("groff", "-ww", "-man", "-Tutf8", "-z", page), "", str(page))

    def completed(self, *words):
        line = " ".join(f"'{word}'" for word in words)
        script = (f"source {self.prefix}/share/bash-completion/completions/hiroba\n"
                  f"COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _hiroba\n"
                  "printf '%s\\n' \"${COMPREPLY[@]}\"")
        return call("bash", "-uc", script, cwd=self.prefix).split()

    def test_bash_completes_words(self):
        self.assertIn("run", self.completed("hiroba", ""))
        self.assertEqual(self.completed("hiroba", "st"), ["stacks"])
        self.assertEqual(self.completed("hiroba", "run", "--sp"), ["--spmd"])
        self.assertEqual(self.completed("hiroba", "run", "-n", "2", "--thr"), ["--threads"])
        self.assertEqual(self.completed("hiroba", "run", "--provider", "shm+"), ["shm+ucx", "shm+verbs"])
        self.assertEqual(self.completed("hiroba", "perf", "--offload", "n"), ["never"])
        self.assertIn("share", self.completed("hiroba", "run", "--hostfile", "sha"))
        self.assertIn("share", self.completed("hiroba", "run", "-n", "2", "./a.out", "sha"))
        self.assertEqual(self.completed("hiroba", "run", "-n", "2", "./a.out", "--sp"), [])

    @unittest.skipUnless(shutil.which("zsh"), "no zsh")
    def test_zsh_accepts_its_function(self):
        call("zsh", "-n", self.prefix / "share/zsh/site-functions/_hiroba")


def main():
    global OPTIONS
    parser = argparse.ArgumentParser()
    parser.add_argument("--cmake", default="cmake")
    parser.add_argument("--build", type=lambda text: Path(text).resolve(), required=True)
    parser.add_argument("--source", type=lambda text: Path(text).resolve(), required=True)
    parser.add_argument("--compilers", default="gcc")
    parser.add_argument("--each", action="store_true", help="every example and block by every compiler")
    parser.add_argument("names", nargs="*")
    OPTIONS = parser.parse_args()
    OPTIONS.compilers = [each for each in OPTIONS.compilers.split(",") if shutil.which(CXX[each])]
    unittest.main(argv=[sys.argv[0], *OPTIONS.names])


if __name__ == "__main__":
    main()
