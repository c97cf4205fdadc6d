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

# hiroba_weigh_tests()
# Says of each test of the tree how much of a processor it computes with, in hundredths. Where ctest is given
# build/cores.json (`make check`) it starts no more at once than one test that computes all the time for each processor
# and one, and beside them what waits; else nothing changes. The rows come from test/loads.txt. To be called last: the
# folder test/weights, which ctest reads last, has it read what this writes. Tests of the cluster are also told not to spin.
function(hiroba_weigh_tests)
  cmake_host_system_information(RESULT cores QUERY NUMBER_OF_LOGICAL_CORES)
  math(EXPR slots "(${cores} + 1) * 100")
  file(WRITE ${CMAKE_BINARY_DIR}/cores.json
    "{\"version\": {\"major\": 1, \"minor\": 0}, \"local\": [{\"cores\": [{\"id\": \"all\", \"slots\": ${slots}}]}]}\n")
  set(table ${PROJECT_SOURCE_DIR}/test/loads.txt)
  set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${table})
  file(STRINGS ${table} rows REGEX "^[^#]")
  foreach(row ${rows})
    separate_arguments(words UNIX_COMMAND "${row}")
    list(GET words 0 name)
    list(GET words 1 load_of_${name})
    list(GET words 2 cost_of_${name})
  endforeach()
  set(folders ${PROJECT_SOURCE_DIR})
  set(text "# Written by hiroba_weigh_tests().\n")
  while(folders)
    list(POP_FRONT folders folder)
    get_property(inner DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
    list(APPEND folders ${inner})
    get_property(tests DIRECTORY ${folder} PROPERTY TESTS)
    foreach(test ${tests})
      set(load 100)
      set(cost "")
      if(DEFINED load_of_${test})
        set(load ${load_of_${test}})
        set(cost " COST ${cost_of_${test}}")
      endif()
      # More nodes than one that compute count as one processor: hundreds of tests are like that.
      if(load GREATER 100)
        set(load 100)
      endif()
      # Beside other tests gcc's runtime, in bare runs, would spin for most of its time.
      set(spins "")
      if(test MATCHES "^cluster\\.")
        set(spins " ENVIRONMENT_MODIFICATION GOMP_SPINCOUNT=set:1000")
      endif()
      string(APPEND text
        "set_tests_properties([=[${test}]=] PROPERTIES RESOURCE_GROUPS cores:${load}${cost}${spins})\n")
    endforeach()
  endwhile()
  file(WRITE ${CMAKE_BINARY_DIR}/test_loads.cmake "${text}")
endfunction()
