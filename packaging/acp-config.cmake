# SPDX-License-Identifier: BSD-3-Clause
# find_package(acp): hiroba::acp.
include(CMakeFindDependencyMacro)
find_dependency(hiroba COMPONENTS acp PATHS ${CMAKE_CURRENT_LIST_DIR}/.. NO_DEFAULT_PATH)
