# SPDX-License-Identifier: BSD-3-Clause
# Precompiled headers: the C++ library's, which are half of what the compiler works on in most files here. Nothing rests
# on them: each file includes what it uses, which the builds without them show (clang's, the sanitizers').
#
# Off where a compiler cache is the launcher: it passes by files that use them.
set(precompile ON)
if(CMAKE_CXX_COMPILER_LAUNCHER OR HIROBA_SANITIZE OR NOT CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  set(precompile OFF)
endif()
option(HIROBA_PRECOMPILED "Precompile the headers of the C++ library" ${precompile})

set(HIROBA_PRECOMPILED_HEADERS <algorithm> <array> <atomic> <cstdint> <cstring> <functional> <memory> <mutex> <optional>
  <span> <string> <string_view> <thread> <utility> <vector>)

# Those of test programs besides: GTest is most of what the compiler reads for them.
set(HIROBA_PRECOMPILED_FOR_TESTS <gtest/gtest.h> <map> <unordered_map>)

# hiroba_precompile(<target> [AS <other>] [MORE <headers>])
# AS: with the headers that were precompiled for that target, whose options must be the same; for that target itself, and
# without AS, they are precompiled, with those of MORE.
function(hiroba_precompile target)
  cmake_parse_arguments(precompile "" "AS" "MORE" ${ARGN})
  if(NOT HIROBA_PRECOMPILED)
    return()
  endif()
  # gcc 12 sees overflows of "text" + string that are not there (gcc bug 105651), and where <string> is precompiled
  # it tells of them. The builds without precompiled headers keep these warnings.
  target_compile_options(${target} PRIVATE
    $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-array-bounds;-Wno-stringop-overflow;-Wno-stringop-overread>)
  if(precompile_AS AND NOT precompile_AS STREQUAL target)
    target_precompile_headers(${target} REUSE_FROM ${precompile_AS})
  else()
    target_precompile_headers(${target} PRIVATE ${HIROBA_PRECOMPILED_HEADERS} ${precompile_MORE})
  endif()
endfunction()
