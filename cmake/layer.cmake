# SPDX-License-Identifier: BSD-3-Clause
# One static library and one test program per layer; tests lie beside the code as *_test.cpp.
find_package(Threads REQUIRED)

add_library(hiroba_options INTERFACE)
# A compiler newer than those that were tried may warn of what is not there, and ends no build by it.
set(tried TRUE)
if((CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 15)
    OR (CMAKE_CXX_COMPILER_ID MATCHES Clang AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 22))
  set(tried FALSE)
endif()
option(HIROBA_WARNINGS_END_BUILDS "Take warnings of a compiler that was tried for errors, as CI does" OFF)
set(HIROBA_WERROR "")
if(HIROBA_WARNINGS_END_BUILDS AND tried)
  set(HIROBA_WERROR -Werror)
endif()
target_compile_options(hiroba_options INTERFACE
  $<$<COMPILE_LANGUAGE:C,CXX>:-Wall;-Wextra;${HIROBA_WERROR};-fno-plt;-fno-stack-protector;-fvisibility=hidden;-ftls-model=initial-exec>
  # gcc copies up to 8 KiB of a length it does not know with `rep movs`, which takes 10 ns to begin.
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-mmemcpy-strategy=libcall:-1:noalign;-mmemset-strategy=libcall:-1:noalign>
  $<$<COMPILE_LANGUAGE:CXX>:-fvisibility-inlines-hidden>)
# gcc 12 sees overlapping copies in `"text" + string` that are not there (gcc bug 105651).
target_compile_options(hiroba_options INTERFACE
  $<$<AND:$<COMPILE_LANG_AND_ID:CXX,GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>)
target_include_directories(hiroba_options INTERFACE
  ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
target_link_libraries(hiroba_options INTERFACE Threads::Threads ${CMAKE_DL_LIBS})
if(HIROBA_SANITIZE)
  target_compile_options(hiroba_options INTERFACE
    $<$<COMPILE_LANGUAGE:C,CXX>:-fsanitize=${HIROBA_SANITIZE};-fno-sanitize-recover=all;-fno-omit-frame-pointer>)
  target_link_options(hiroba_options INTERFACE -fsanitize=${HIROBA_SANITIZE})
  if(HIROBA_SANITIZE MATCHES thread)
    # gcc's thread sanitizer knows no fences and says so at each; what it then reports is judged by hand.
    target_compile_options(hiroba_options INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-tsan>)
  endif()
endif()

# Builds every layer's test program and nothing else; `ctest -L unit` runs them.
add_custom_target(unit_tests)
include(${CMAKE_CURRENT_LIST_DIR}/tests.cmake)
# Programs with a bug planted, which tests run: apart, as they say nothing about what is built.
add_custom_target(planted)
# Those that only the nightly tests run.
add_custom_target(planted_at_night)

# hiroba_layer(<name> [DEPENDS <layers>] [LIBRARIES <libraries>] [NOT_UNDER_THREAD <cases>] [EXCLUDE <pattern>])
# Defines hiroba_<name> from src/<name>/**, and test_<name> from the tests in there. NOT_UNDER_THREAD: as of
# hiroba_gtest. EXCLUDE: sources that this build does without.
function(hiroba_layer name)
  cmake_parse_arguments(layer "" "EXCLUDE" "DEPENDS;LIBRARIES;NOT_UNDER_THREAD" ${ARGN})
  set(root ${PROJECT_SOURCE_DIR}/src/${name})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${root}/*.cpp ${root}/*.hpp ${root}/*.S)
  file(GLOB_RECURSE tests CONFIGURE_DEPENDS ${root}/*_test.cpp)
  if(tests)
    list(REMOVE_ITEM sources ${tests})
  endif()
  if(layer_EXCLUDE)
    list(FILTER sources EXCLUDE REGEX ${layer_EXCLUDE})
  endif()
  add_library(hiroba_${name} STATIC ${sources})
  set_target_properties(hiroba_${name} PROPERTIES LINKER_LANGUAGE CXX)
  list(TRANSFORM layer_DEPENDS PREPEND hiroba_)
  target_link_libraries(hiroba_${name} PUBLIC hiroba_options ${layer_DEPENDS} ${layer_LIBRARIES})
  hiroba_precompile(hiroba_${name} AS hiroba_base)
  if(tests AND HIROBA_TESTS)
    add_executable(test_${name} ${tests})
    target_link_libraries(test_${name} PRIVATE hiroba_${name} hiroba_testing)
    hiroba_precompile(test_${name} AS test_base MORE ${HIROBA_PRECOMPILED_FOR_TESTS})
    hiroba_gtest(test_${name} LABELS unit fast NOT_UNDER_THREAD ${layer_NOT_UNDER_THREAD})
    add_dependencies(unit_tests test_${name})
  endif()
endfunction()
