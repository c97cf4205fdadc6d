# SPDX-License-Identifier: BSD-3-Clause
# What the portable build does otherwise (scripts/portable-tarball.sh): nothing is needed of the host but its C library and
# elfutils. Each program and library brings its C++ library and what an older C library lacks, hidden.
option(HIROBA_PORTABLE "Link for hosts with glibc 2.31 and without libstdc++, fmt and Zydis" OFF)
set(HIROBA_ZYDIS_SOURCE "" CACHE PATH "Source of Zydis, to be linked in (default: the system's library)")

set(HIROBA_ZYDIS Zydis)
if(HIROBA_ZYDIS_SOURCE)
  # The decoder alone, which needs of Zycore only headers.
  file(GLOB zydis_sources ${HIROBA_ZYDIS_SOURCE}/src/*.c)
  list(FILTER zydis_sources EXCLUDE REGEX "/(Formatter|Encoder|Disassembler|Segment)[^/]*\\.c$")
  add_library(hiroba_zydis STATIC ${zydis_sources})
  target_include_directories(hiroba_zydis SYSTEM PUBLIC ${HIROBA_ZYDIS_SOURCE}/include PRIVATE ${HIROBA_ZYDIS_SOURCE}/src)
  target_compile_definitions(hiroba_zydis PUBLIC ZYDIS_STATIC_BUILD ZYCORE_STATIC_BUILD
    ZYDIS_DISABLE_FORMATTER ZYDIS_DISABLE_ENCODER)
  target_compile_options(hiroba_zydis PRIVATE -fvisibility=hidden)
  set(HIROBA_ZYDIS hiroba_zydis)
endif()

# hiroba_make_portable(<targets>): linked so that it runs on older hosts, if that is wanted.
function(hiroba_make_portable)
  if(NOT HIROBA_PORTABLE)
    return()
  endif()
  if(NOT TARGET hiroba_older_glibc)
    add_library(hiroba_older_glibc OBJECT ${PROJECT_SOURCE_DIR}/packaging/older_glibc.cpp)
  endif()
  foreach(target ${ARGN})
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:hiroba_older_glibc>)
    target_link_options(${target} PRIVATE -static-libstdc++ -static-libgcc -Wl,--exclude-libs,ALL)
    target_link_libraries(${target} PRIVATE rt)  # timers, which are in libc since glibc 2.34
  endforeach()
endfunction()
