# SPDX-License-Identifier: BSD-3-Clause
"""Recipe for Spack: copy this folder, and zydis beside it, into a repository's packages/, or point Spack at a checkout
with `spack dev-build hiroba@main`."""

from spack.package import *


class Hiroba(CMakePackage):
    """Runs ordinary, unmodified OpenMP programs over several processes and hosts as one shared
    memory, and offers the layers below to builders of runtimes."""

    license("BSD-3-Clause")

    version("main", branch="main")

    variant("tests", default=False, description="Build the tests")
    variant("examples", default=False, description="Build the examples")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("fmt@9:")
    depends_on("cli11@2.1:", type="build")
    depends_on("elfutils")
    depends_on("zydis@4:")
    depends_on("googletest", when="+tests", type="build")
    depends_on("nlohmann-json", when="+tests", type="build")
    depends_on("python@3:", when="+tests", type="build")

    conflicts("%gcc@:11", msg="hiroba needs g++ 12")
    conflicts("%clang@:13", msg="hiroba needs clang 14")
    conflicts("platform=darwin")
    conflicts("target=aarch64:")
    generator("ninja")

    def cmake_args(self):
        return [
            self.define_from_variant("HIROBA_TESTS", "tests"),
            self.define_from_variant("HIROBA_EXAMPLES", "examples"),
        ]
