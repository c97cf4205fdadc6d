# SPDX-License-Identifier: BSD-3-Clause
"""Recipe for Spack of the x86 decoder that hiroba needs, for repositories that have none: copy it
beside hiroba's."""

from spack.package import *


class Zydis(CMakePackage):
    """Decodes x86 and x86-64 instructions."""

    homepage = "https://zydis.re"
    git = "https://github.com/zyantific/zydis.git"

    license("MIT")

    # Zycore, which it is made of, is a submodule.
    version("4.0.0", tag="v4.0.0", submodules=True)

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.12:", type="build")

    def cmake_args(self):
        return [
            self.define("ZYDIS_BUILD_SHARED_LIB", True),
            self.define("ZYDIS_BUILD_TOOLS", False),
            self.define("ZYDIS_BUILD_EXAMPLES", False),
        ]
