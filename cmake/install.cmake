# SPDX-License-Identifier: BSD-3-Clause
# Where things are installed. What is installed can be moved as a whole: commands find the runtime, and packages
# their files, from where they lie themselves.
#
# Components: `commands` (with the runtime they preload, manual pages and completion), `libraries` (what programs
# linked with one need to run), `predict` (what needs SimGrid), `development` (headers, CMake packages, pkg-config, pages and examples).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# The runtime has libgomp's name, so it must lie where no loader looks by itself.
set(HIROBA_RUNTIME_DIR ${CMAKE_INSTALL_LIBDIR}/hiroba)
set(HIROBA_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/hiroba)
file(RELATIVE_PATH HIROBA_RUNTIME_FROM_BIN
  ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR}/hiroba)
# Programs that only commands start.
set(HIROBA_PROGRAMS_DIR ${CMAKE_INSTALL_LIBEXECDIR}/hiroba)
file(RELATIVE_PATH HIROBA_PROGRAMS_FROM_BIN
  ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBEXECDIR}/hiroba)
file(RELATIVE_PATH HIROBA_PREFIX_FROM_PC
  ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" HIROBA_PREFIX_FROM_PC "${HIROBA_PREFIX_FROM_PC}")

# hiroba_public_library(<target> <component> <name> [ON <component> <package> ...] DESCRIPTION <text> [CFLAGS <flags>] HEADERS <files>)
# A library programs link with: find_package(hiroba COMPONENTS <component>) gives hiroba::<component>, pkg-config
# <name> the same. Headers lie below include/ as installed. All have one ABI version: docs/versions.md.
function(hiroba_public_library target component name)
  cmake_parse_arguments(library "" "DESCRIPTION;CFLAGS" "ON;HEADERS" ${ARGN})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name} EXPORT_NAME ${component}
    VERSION ${HIROBA_ABI}.0 SOVERSION ${HIROBA_ABI})
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  if(NOT component STREQUAL "acp")
    target_compile_features(${target} PUBLIC cxx_std_20)
    set(library_CFLAGS " -std=c++20")
  endif()
  add_library(hiroba::${component} ALIAS ${target})
  set_property(GLOBAL APPEND PROPERTY HIROBA_COMPONENTS ${component})

  # What lies in programs themselves (an archive) needs what they link with besides.
  set(library_BINARY -l${name})
  while(library_ON)
    list(POP_FRONT library_ON below package)
    string(APPEND library_BINARY " -l${package}")
    set_property(GLOBAL APPEND PROPERTY HIROBA_COMPONENTS_ON "${component}=${below}")
    target_link_libraries(${target} PUBLIC hiroba::${below})
  endwhile()
  install(TARGETS ${target} EXPORT hiroba-${component}
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT libraries NAMELINK_COMPONENT development
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
  hiroba_install_component(${component} ${library_HEADERS})
  hiroba_install_pkg_config(${name})
endfunction()

# hiroba_public_headers(<component> <name> ON <component> <package> ... DESCRIPTION <text> [PLAIN] HEADERS <files>)
# A component that is headers over others' libraries. PLAIN: for programs of other languages than C++; those libraries are
# linked that a program needs.
function(hiroba_public_headers component name)
  cmake_parse_arguments(library "PLAIN" "DESCRIPTION" "ON;HEADERS" ${ARGN})
  set(target hiroba_${component}_headers)
  add_library(${target} INTERFACE)
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${component})
  set(library_CFLAGS " -std=c++20")
  set(library_BINARY "")
  if(library_PLAIN)
    set(library_CFLAGS "")
    string(APPEND library_BINARY "-Wl,--push-state,--as-needed ")
    target_link_options(${target} INTERFACE -Wl,--as-needed)
    target_include_directories(${target} INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
      $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  endif()
  while(library_ON)
    list(POP_FRONT library_ON below package)
    string(APPEND library_BINARY "-l${package} ")
    set_property(GLOBAL APPEND PROPERTY HIROBA_COMPONENTS_ON "${component}=${below}")
    if(library_PLAIN)
      # Of the C++ targets only the files: a C compiler knows no C++20.
      target_link_libraries(${target} INTERFACE $<TARGET_FILE:hiroba::${below}>)
    else()
      target_link_libraries(${target} INTERFACE hiroba::${below})
    endif()
  endwhile()
  if(library_PLAIN)
    string(APPEND library_BINARY "-Wl,--pop-state")
  endif()
  string(STRIP "${library_BINARY}" library_BINARY)
  add_library(hiroba::${component} ALIAS ${target})
  set_property(GLOBAL APPEND PROPERTY HIROBA_COMPONENTS ${component})
  install(TARGETS ${target} EXPORT hiroba-${component})
  hiroba_install_component(${component} ${library_HEADERS})
  hiroba_install_pkg_config(${name})
endfunction()

# The headers of a component, and its CMake package.
function(hiroba_install_component component)
  install(EXPORT hiroba-${component} NAMESPACE hiroba:: FILE hiroba-${component}-targets.cmake
    DESTINATION ${HIROBA_PACKAGE_DIR} COMPONENT development)
  foreach(header ${ARGN})
    get_filename_component(folder ${header} DIRECTORY)
    install(FILES ${PROJECT_SOURCE_DIR}/include/${header}
      DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/${folder} COMPONENT development)
  endforeach()
endfunction()

function(hiroba_install_pkg_config name)
  configure_file(${PROJECT_SOURCE_DIR}/packaging/library.pc.in ${CMAKE_CURRENT_BINARY_DIR}/${name}.pc @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${name}.pc
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
endfunction()

# The commands, the runtime, pages; called when all targets are there.
function(hiroba_install_product)
  install(TARGETS hiroba_command hiroba_perf DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT commands)
  if(TARGET hiroba_perf_openmp)
    install(TARGETS hiroba_perf_openmp DESTINATION ${HIROBA_PROGRAMS_DIR} COMPONENT commands)
  endif()
  if(TARGET hiroba_predict)
    install(TARGETS hiroba_predict DESTINATION ${HIROBA_PROGRAMS_DIR} COMPONENT predict)
  endif()
  install(TARGETS hiroba LIBRARY DESTINATION ${HIROBA_RUNTIME_DIR} COMPONENT commands)
  install(FILES $<TARGET_FILE_DIR:hiroba>/libgomp.so.1 DESTINATION ${HIROBA_RUNTIME_DIR} COMPONENT commands)
  # gdb reads it by itself where it finds the runtime in a process.
  install(FILES ${PROJECT_SOURCE_DIR}/.gdbinit DESTINATION ${HIROBA_RUNTIME_DIR} RENAME libhiroba.so-gdb.gdb
    COMPONENT commands)
  install(TARGETS hiroba_net_sim LIBRARY DESTINATION ${HIROBA_RUNTIME_DIR} COMPONENT commands)
  install(TARGETS ${HIROBA_STAND_INS} LIBRARY DESTINATION ${HIROBA_RUNTIME_DIR} COMPONENT commands)

  # Made by the command from its own tables.
  set(pages ${CMAKE_BINARY_DIR}/share)
  add_custom_command(OUTPUT ${pages}/man/man1/hiroba.1 DEPENDS hiroba_command
    COMMAND ${CMAKE_COMMAND} -E rm -rf ${pages}
    COMMAND hiroba_command pages ${pages} VERBATIM)
  add_custom_target(pages ALL DEPENDS ${pages}/man/man1/hiroba.1)
  add_dependencies(product pages)
  install(DIRECTORY ${pages}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT commands)
  install(DIRECTORY ${pages}/bash-completion ${pages}/zsh
    DESTINATION ${CMAKE_INSTALL_DATADIR} COMPONENT commands)
  configure_file(${PROJECT_SOURCE_DIR}/packaging/modulefile.in ${CMAKE_BINARY_DIR}/modulefile @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/modulefile DESTINATION ${CMAKE_INSTALL_DATADIR}/modulefiles/hiroba
    RENAME ${PROJECT_VERSION} COMPONENT commands)
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT commands)
  # What headers name, as they name it: docs/tutorials/net.md, examples/net_heat.cpp. Pages link to each other.
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT development)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT development
    FILES_MATCHING REGEX "\\.(c|h|cpp|f90|py)$")
  install(FILES ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/CHANGELOG.md
    ${PROJECT_SOURCE_DIR}/CONTRIBUTING.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT development)

  get_property(HIROBA_COMPONENTS GLOBAL PROPERTY HIROBA_COMPONENTS)
  get_property(HIROBA_COMPONENTS_ON GLOBAL PROPERTY HIROBA_COMPONENTS_ON)
  configure_package_config_file(${PROJECT_SOURCE_DIR}/packaging/hiroba-config.cmake.in
    ${CMAKE_BINARY_DIR}/hiroba-config.cmake INSTALL_DESTINATION ${HIROBA_PACKAGE_DIR}
    NO_SET_AND_CHECK_MACRO)
  write_basic_package_version_file(${CMAKE_BINARY_DIR}/hiroba-config-version.cmake
    COMPATIBILITY SameMinorVersion)
  install(FILES ${CMAKE_BINARY_DIR}/hiroba-config.cmake ${CMAKE_BINARY_DIR}/hiroba-config-version.cmake
    DESTINATION ${HIROBA_PACKAGE_DIR} COMPONENT development)
  # The package under the name ACP programs know.
  install(FILES ${PROJECT_SOURCE_DIR}/packaging/acp-config.cmake
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/acp COMPONENT development)
endfunction()
