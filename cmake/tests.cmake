# SPDX-License-Identifier: BSD-3-Clause
# What all tests share: GTest, limits, and how the cases of a program become tests of ctest.
# Wall time after which a test hangs. What it may compute is limited by processor time, which other
# work on the machine does not use up (docs/testing.md), so this one is far away.
set(HIROBA_TEST_SECONDS 600)

if(NOT HIROBA_TESTS)
  return()
endif()
find_package(GTest REQUIRED)
find_package(Python3 REQUIRED COMPONENTS Interpreter)
include(GoogleTest)
option(HIROBA_TEST_CASES "One test of ctest for each case of a program, instead of one for all" OFF)

# GTest for a test program, whose own sources need not be fast: compiled at -O1 in half the time.
add_library(hiroba_testing INTERFACE)
target_link_libraries(hiroba_testing INTERFACE GTest::gtest GTest::gtest_main)
if(NOT HIROBA_SANITIZE)
  target_compile_options(hiroba_testing INTERFACE $<$<CONFIG:Release>:-O1>)
endif()

# hiroba_gtest(<program> [NAME <name>] [FILTER <pattern>] [LABELS <labels>] [NOT_UNDER_THREAD <patterns>])
# Adds the cases of a program, or those that match, as one test: most last no longer than a process
# takes to start. NOT_UNDER_THREAD: cases that the thread sanitizer cannot follow; say why beside them.
function(hiroba_gtest program)
  cmake_parse_arguments(test "" "NAME;FILTER" "LABELS;NOT_UNDER_THREAD" ${ARGN})
  if(NOT test_NAME)
    string(REGEX REPLACE "^test_" "unit." test_NAME ${program})
  endif()
  if(NOT test_FILTER)
    set(test_FILTER "*")
  endif()
  if(test_NOT_UNDER_THREAD AND HIROBA_SANITIZE MATCHES thread)
    list(JOIN test_NOT_UNDER_THREAD ":" without)
    string(APPEND test_FILTER "-${without}")
  endif()
  if(HIROBA_TEST_CASES)
    gtest_discover_tests(${program} TEST_FILTER "${test_FILTER}" DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
      TEST_LIST ${test_NAME}_cases PROPERTIES TIMEOUT ${HIROBA_TEST_SECONDS} LABELS "${test_LABELS}")
  else()
    add_test(NAME ${test_NAME} COMMAND ${program} "--gtest_filter=${test_FILTER}" --gtest_brief=1)
    set_tests_properties(${test_NAME} PROPERTIES TIMEOUT ${HIROBA_TEST_SECONDS} LABELS "${test_LABELS}"
      FAIL_REGULAR_EXPRESSION "] 0 tests from")  # a filter that fits nothing
  endif()
endfunction()
