# SPDX-License-Identifier: BSD-3-Clause
# One static library and one test program per layer; tests lie beside the code as *_test.cpp.
find_package(Threads REQUIRED)
if(HIROBA_TESTS)
  find_package(GTest REQUIRED)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  include(GoogleTest)
endif()

add_library(hiroba_options INTERFACE)
target_compile_options(hiroba_options INTERFACE
  $<$<COMPILE_LANGUAGE:C,CXX>:-Wall;-Wextra;-Werror;-fno-plt;-fvisibility=hidden;-ftls-model=initial-exec>
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
# Programs with a bug planted, which tests run: apart, as they say nothing about what is built.
add_custom_target(planted)

# hiroba_layer(<name> [DEPENDS <layers>] [LIBRARIES <libraries>])
# Defines hiroba_<name> from src/<name>/**, and test_<name> from the tests in there.
function(hiroba_layer name)
  cmake_parse_arguments(layer "" "" "DEPENDS;LIBRARIES" ${ARGN})
  set(root ${PROJECT_SOURCE_DIR}/src/${name})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${root}/*.cpp ${root}/*.hpp ${root}/*.S)
  file(GLOB_RECURSE tests CONFIGURE_DEPENDS ${root}/*_test.cpp)
  if(tests)
    list(REMOVE_ITEM sources ${tests})
  endif()
  add_library(hiroba_${name} STATIC ${sources})
  set_target_properties(hiroba_${name} PROPERTIES LINKER_LANGUAGE CXX)
  list(TRANSFORM layer_DEPENDS PREPEND hiroba_)
  target_link_libraries(hiroba_${name} PUBLIC hiroba_options ${layer_DEPENDS} ${layer_LIBRARIES})
  if(tests AND HIROBA_TESTS)
    add_executable(test_${name} ${tests})
    target_link_libraries(test_${name} PRIVATE hiroba_${name} GTest::gtest GTest::gtest_main)
    gtest_discover_tests(test_${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
      PROPERTIES TIMEOUT 120 LABELS unit)
    add_dependencies(unit_tests test_${name})
  endif()
endfunction()
