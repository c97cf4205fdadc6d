#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The checks find each kind of violation, and nothing in a clean tree."""

import tempfile
import unittest
from pathlib import Path

import check_form
import check_layers
import check_links
import check_results
import check_vectors
import check_walks

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
    "src/abi/assemble.hpp": SPDX,
    "src/abi/start.cpp": SPDX + '#include "abi/assemble.hpp"\n',
    "src/abi/entry.cpp": SPDX + 'extern "C" void f();\n#include "net/wire/record.hpp"\n',
    "src/net/json_test.cpp": SPDX + "#include <nlohmann/json.hpp>\n",
    "tools/words/parse.cpp": SPDX + "#include <CLI/CLI.hpp>\n",
    "tools/run/run.hpp": SPDX,
    "tools/run/run.cpp": SPDX + '#include "run.hpp"\n#include "net/net.hpp"\n',
}


OWN = """
0000000000001000 <hiroba_atomic_enter_own>:
    1000:\tmov    (%rsi),%rax
    1003:\tcall   *0x20(%rax)
    1006:\tret
0000000000001010 <hiroba_atomic_leave_own>:
    1010:\tret
0000000000001020 <_ZN6hiroba3dsm4Node13try_enter_ownEPvS2_m>:
    1020:\tjne    1024 <_ZN6hiroba3dsm4Node13try_enter_ownEPvS2_m+0x4>
    1024:\tcall   1040 <helper>
    1029:\tret
0000000000001030 <_ZN6hiroba3dsm4Node13try_leave_ownEPvS2_m>:
    1030:\tret
0000000000001040 <helper>:
    1040:\tmov    %fs:(%rdx),%rbx
    1044:\tret
0000000000001050 <another>:
    1050:\tmovups %xmm0,(%rdi)
    1054:\tret
"""


class Vectors(unittest.TestCase):
    def expect(self, old, new, what):
        self.assertIn(old, OWN)
        found = check_vectors.faults(OWN.replace(old, new, 1))
        self.assertEqual([each[2] for each in found], [what])

    def test_clean_functions_pass(self):
        self.assertEqual(check_vectors.faults(OWN), [])

    def test_a_vector_in_what_is_called_is_found(self):
        self.expect("mov    %fs:(%rdx),%rbx", "movups (%rdx),%xmm12", "a vector register")
        self.expect("mov    %fs:(%rdx),%rbx", "kmovq  (%rdx),%k1", "a vector register")
        self.expect("mov    %fs:(%rdx),%rbx", "call   1050 <another>", "a vector register")

    def test_calls_that_lead_elsewhere_are_found(self):
        self.expect("call   1040 <helper>", "call   2000 <memcpy@plt>", "a function of another library")
        self.expect("call   1040 <helper>", "call   *0x20(%rax)", "a call that cannot be followed")

    def test_functions_that_are_not_there_are_found(self):
        self.assertIn("4 functions wanted", check_vectors.faults("")[0][2])


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

    def test_a_way_up_inside_a_layer_is_found(self):
        engine = '#include "dsm/engine/node.hpp"\n'
        nodes = {**CLEAN, "src/dsm/engine/node.hpp": ""}
        for folder, may in (("block", "protocol, memory"), ("guess", "protocol")):
            found = faults(check_layers, {**nodes, f"src/dsm/{folder}/up.cpp": engine})
            self.assertEqual(len(found), 1, found)
            self.assertIn(f"dsm/{folder} may include only {may}", found[0])
        found = faults(check_layers, {**nodes, "src/dsm/guess/up_test.cpp": engine})
        self.assertEqual(found, [])

    def test_truth_that_rests_on_a_guess_is_found(self):
        guess = {**CLEAN, "src/dsm/guess/spins.hpp": ""}
        found = faults(check_layers, {**guess, "src/dsm/news/in.cpp": '#include "dsm/guess/spins.hpp"\n'})
        self.assertEqual(len(found), 1, found)
        self.assertIn("dsm/news may include only", found[0])

    def test_naming_a_provider_is_found(self):
        self.expect("src/net/net.cpp", '#  include "net/provider/shm/shm.hpp"\n', "only src/net")

    def test_thread_room_of_another_is_found(self):
        room = "constexpr ThreadRoom<ThreadPart, 1> thread_part;\n"
        found = faults(check_layers, {**CLEAN, "src/dsm/part.hpp": room, "src/omp/part.hpp": room})
        self.assertEqual(len(found), 1, found)
        self.assertIn("thread room 1 is that of src/dsm/part.hpp", found[0])

    def test_relative_include_is_found(self):
        self.expect("src/base/near.cpp", '#include "bytes.hpp"\n', "not written")

    def test_angle_brackets_around_our_own_are_found(self):
        self.expect("src/net/own.cpp", "#include <base/bytes.hpp>\n", "in quotes")

    def test_a_library_outside_its_file_is_found(self):
        self.expect("src/dsm/json.cpp", "#include <nlohmann/json.hpp>\n", "only tests")
        self.expect("tools/run/cli.cpp", "#include <CLI/CLI.hpp>\n", "only tools/words/parse.cpp")

    def test_a_way_back_to_the_composition_root_is_found(self):
        self.expect("src/abi/libc/exit.cpp", '#include "abi/assemble.hpp"\n', "composition root")

    def test_missing_header_is_found(self):
        self.expect("src/net/gone.cpp", '#include "base/gone.hpp"\n', "does not exist")

    def test_c_linkage_below_abi_is_found(self):
        self.expect("src/dsm/entry.cpp", 'extern "C" void f();\n', 'extern "C" outside')

    def test_unknown_layer_is_found(self):
        self.expect("src/extra/x.cpp", "", "no layer extra")


class Links(unittest.TestCase):
    def test_what_leads_nowhere_is_found_and_nothing_else(self):
        pages = {
            "README.md": "# A b\n[to](docs/x.md#c-d) [here](#a-b) [out](https://a.b/c) `[not](a.link)`\n",
            "docs/x.md": '# C `D`!\n<a name="e"></a>\n[up](../README.md#a-b) [e](#e)\n',
        }
        self.assertEqual(faults(check_links, pages), [])
        pages["docs/y.md"] = "# Alone\n"
        found = faults(check_links, pages)
        self.assertEqual(len(found), 1, found)
        self.assertIn("docs/y.md:1: no way of links", found[0])
        pages["docs/x.md"] += "[y](y.md)\n"
        pages["docs/y.md"] = "[gone](z.md)\n\n[no](x.md#f) [nor](#here)\n"
        found = faults(check_links, pages)
        self.assertEqual(len(found), 3, found)
        self.assertIn("docs/y.md:1: there is no z.md", found[0])
        self.assertIn("docs/y.md:3: x.md has no heading #f", found[1])


class Walks(unittest.TestCase):
    FILES = {"src/omp/a.cpp": "int A::f() {\n    return g();\n}\n",
             "tools/b.hpp": "inline int g() { return 1; }\nint h() {\n}\n"}
    ROWS = "| `A::f` | omp/a.cpp | x |\n| `g` | tools/b.hpp | y |\n"

    def found(self, rows, counts):
        with tempfile.TemporaryDirectory() as folder:
            for path, text in self.FILES.items():
                (Path(folder) / path).parent.mkdir(parents=True, exist_ok=True)
                (Path(folder) / path).write_text(text)
            page = f"# Walks\n## One\n<!-- count -->\n**{counts} files.**\n\n{rows}"
            return [text for _, text in check_walks.faults(Path(folder), page)]

    def test_a_right_walk_passes(self):
        self.assertEqual(self.found(self.ROWS, "2 steps in 2"), [])

    def test_a_step_that_no_step_above_calls_is_found(self):
        rows = self.ROWS + "| `h` | tools/b.hpp | z |\n"
        self.assertEqual(self.found(rows, "3 steps in 2"), ["no step above calls h"])
        self.assertEqual(self.found(rows.replace("| `h`", "| ⇒ `h`"), "3 steps in 2"), [])

    def test_a_step_that_does_not_say_what_it_does_is_found(self):
        rows = self.ROWS.replace("| y |", "| |")
        self.assertEqual(self.found(rows, "2 steps in 2"), ["the row of g does not say what it does"])

    def test_stale_rows_are_found(self):
        rows = self.ROWS.replace("A::f", "A::h").replace("tools/b", "tools/c")
        self.assertEqual(self.found(rows, "2 steps in 2"),
                         ["omp/a.cpp has no A::h", "there is no tools/c.hpp"])
        declared = self.ROWS.replace("`g`", "`A::g`")
        self.assertEqual(self.found(declared.replace("tools/b.hpp", "omp/a.cpp"), "2 steps in 1"),
                         ["omp/a.cpp has no A::g"])
        self.assertEqual(len(self.found(self.ROWS, "3 steps in 2")), 1)
        self.assertEqual(self.found("", "0 steps in 0"), ["no walk"])


class Results(unittest.TestCase):
    def test_a_page_with_other_figures_than_the_file_is_found(self):
        page = "<!-- results: programs.csv -->\n<!-- end -->\n"
        rows = "program,time,date,commit,machine\na,1 s,d1,c1,m\na,2 s,d2,c2,m\n"
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            (root / "docs/results").mkdir(parents=True)
            (root / "docs/results/programs.csv").write_text(rows)
            for name in check_results.PAGES:
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(page)
            self.assertEqual(len(list(check_results.faults(root))), len(check_results.PAGES))
            text = check_results.renewed(root, page)
            self.assertIn("| a | 2 s | d2 | c2 |", text)
            self.assertNotIn("1 s", text)
            for name in check_results.PAGES:
                (root / name).write_text(check_results.renewed(root, page))
            self.assertEqual(list(check_results.faults(root)), [])

    def test_a_table_may_have_some_of_the_programs(self):
        rows = [{"program": name, "date": "d", "commit": "c", "machine": "m"} for name in "abc"]
        text = check_results.table_of(rows, True, "c; a")
        self.assertIn("| c |\n| a |\n", text)
        self.assertNotIn("| b |", text)

    def test_a_table_may_have_a_row_for_each_group(self):
        rows = [{"program": name, "ours": "", "theirs": "", "times": times, "date": "d", "commit": "c", "machine": "m"}
                for name, times in [("A x", "9"), ("A x", "1"), ("A y", "2"), ("A z", "4"), ("b", "8"), ("c", "6")]]
        text = check_results.grouped_table_of(rows, "A;\nnobody")
        self.assertIn("| A | 3 | 2 | 1 (x) | 4 (z) |\n| others | 2 | 7 | 6 (c) | 8 (b) |\n", text)
        self.assertNotIn("nobody", text)
        self.assertIn("| all | 5 | 4 | 1 (A x) | 8 (b) |\n", check_results.grouped_table_of(rows, None))
        rows[-1]["times"] = "over 25"
        self.assertIn("| all | 5 | 4 | 1 (A x) | over 25 (c) |\n", check_results.grouped_table_of(rows, None))


class Form(unittest.TestCase):
    def expect(self, path, text, expected):
        found = faults(check_form, {**CLEAN, path: text})
        self.assertEqual(len(found), 1, found)
        self.assertIn(expected, found[0])

    def test_clean_tree_passes(self):
        short = SPDX + "void f() {\n" + "    g();\n" * 68 + "}\n"
        self.assertEqual(faults(check_form, {**CLEAN, "src/base/f.cpp": short}), [])

    def test_long_line_of_a_page_is_found(self):
        self.expect("docs/layers/x.md", "a\n" + "b" * 161 + "\n", "docs/layers/x.md:2: a line of 161 characters")
        self.assertEqual(faults(check_form, {**CLEAN, "docs/x.md": "b" * 160, "docs/guide/y.md": "b" * 161}), [])

    def test_class_of_too_many_fields_is_found(self):
        def text(fields):
            inner = "    struct Inner {\n        int a, b;\n    };\n    void f(int a, int b);\n"
            return SPDX + "class Big {\n" + inner + fields + "};\n"

        rows = "    std::map<int, int> a_{}, b_{1};\n    std::atomic<int> c_[2] = {};\n" * 8
        one = "    void (*told_)(int) = nullptr;\n"
        self.assertEqual(faults(check_form, {**CLEAN, "src/base/b.hpp": text(rows + one)}), [])
        self.expect("src/base/b.hpp", text(rows + one + "    int d_, e_;\n"), "27 data members")
        two = "    decltype(&::open) open_;\n"
        self.expect("src/base/b.hpp", text(rows + one + two), "26 data members")
        head = "class Big final : public Face,\n                  private Inner {\n"
        long = text(rows + one + two).replace("class Big {\n", "class Ahead;\n" + head)
        self.expect("src/base/b.hpp", long, "b.hpp:4: 'Big' has 26 data members")

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

    def test_an_algorithm_that_allocates_unseen_is_found(self):
        self.expect("src/dsm/x.hpp", SPDX + "void f() { std::inplace_merge(a, b, c); }\n", "allocates")
        clean = {"src/dsm/x.hpp": SPDX + "// Not std::stable_sort.\n", "src/dsm/x_test.cpp": "std::stable_sort(a, b);\n"}
        self.assertEqual(faults(check_form, {**CLEAN, **{k: SPDX + t for k, t in clean.items()}}), [])

    def test_comment_without_a_subject_is_found(self):
        for line in ("// Whoever polls takes it.", "int x;  // nobody reads it", "// It ends. Somebody sees that.",
                     "int x;  ///< whoever asks"):
            self.expect("src/base/x.cpp", SPDX + "int y;\n" + line + "\n", "nobody in particular")
        text = SPDX + "int y;\n// A thread sleeps until it is woken by\n// somebody.\n// The thread that polls takes it.\n"
        self.assertEqual(faults(check_form, {**CLEAN, "src/base/x.cpp": text}), [])

    def test_comment_that_begins_without_its_subject_is_found(self):
        for begin in ("Who polls takes it.", "/ Of the page, at most.", "They wait.", "/ Whose it is."):
            self.expect("src/base/x.cpp", SPDX + "int y;\n//" + " " * (begin[0] != "/") + begin + "\n", "without its subject")
        text = SPDX + "int y;\n// The pages\n// Of course.\nint z;  // of the page\n"
        self.assertEqual(faults(check_form, {**CLEAN, "src/base/x.cpp": text}), [])

    def test_a_type_defined_twice_is_found(self):
        def text(name):
            return SPDX + f"namespace hiroba::net {{\nclass Ahead;\nstruct {name} {{\n    int x;\n}};\n}}  // namespace hiroba::net\n"

        one = {**CLEAN, "src/net/one.hpp": text("Slot"), "src/net/two.hpp": text("Place")}
        self.assertEqual(faults(check_form, one), [])
        found = faults(check_form, {**one, "tools/three.hpp": text("Slot")})
        self.assertEqual(len(found), 1, found)
        self.assertIn("three.hpp:5: hiroba::net::Slot is also defined in src/net/one.hpp", found[0])

    def test_too_many_words_of_pages_are_found(self):
        page = "a word\n" * (check_form.PAGES_WORDS_MAX // 4)
        self.assertEqual(faults(check_form, {**CLEAN, "docs/one.md": page, "docs/guide/two.md": page}), [])
        table = "<!-- results: x.csv -->\n" + page * 4 + "<!-- end -->\n"
        self.assertEqual(faults(check_form, {**CLEAN, "docs/one.md": table}), [])
        self.expect("docs/one.md", page + page + "and another", "words in all")

    def test_empty_names_are_found(self):
        self.expect("src/base/string_utils.hpp", SPDX, "'utils'")
        self.expect("src/base/old/x.hpp", SPDX, "'old'")

    def test_unfinished_work_is_found(self):
        self.expect("src/base/x.cpp", SPDX + "// TO" "DO: more\n", "later work")
        self.expect("src/base/x.cpp", SPDX + "// Enough for" " now.\n", "later work")


if __name__ == "__main__":
    unittest.main()
