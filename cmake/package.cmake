# SPDX-License-Identifier: BSD-3-Clause
# Debian packages and tarballs, by CPack, of what cmake/install.cmake installs (`make deb`, `make tarball`).
set(CPACK_PACKAGE_NAME hiroba)
set(CPACK_PACKAGE_VENDOR "the hiroba project")
set(CPACK_PACKAGE_CONTACT "the hiroba maintainers")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Runs unmodified OpenMP programs over several processes and hosts")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)

# One tarball of everything; a package for each component.
set(CPACK_GENERATOR TGZ)
set(CPACK_PACKAGE_FILE_NAME hiroba-${PROJECT_VERSION}-linux-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_COMPONENTS_ALL commands libraries development)
if(TARGET hiroba_predict)
  list(APPEND CPACK_COMPONENTS_ALL predict)
endif()
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_ARCHIVE_COMPONENT_INSTALL OFF)
set(CPACK_DEB_COMPONENT_INSTALL ON)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "${CPACK_PACKAGE_CONTACT} <maintainers@hiroba.invalid>")
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(CPACK_DEBIAN_COMMANDS_PACKAGE_NAME hiroba)
set(CPACK_DEBIAN_COMMANDS_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_COMMANDS_PACKAGE_RECOMMENDS openssh-client)
set(CPACK_COMPONENT_COMMANDS_DESCRIPTION
  "The launcher, the runtime it puts into OpenMP programs, measurements, manual pages.")
set(CPACK_DEBIAN_COMMANDS_PACKAGE_SUGGESTS hiroba-predict)
set(CPACK_DEBIAN_PREDICT_PACKAGE_NAME hiroba-predict)
set(CPACK_DEBIAN_PREDICT_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_PREDICT_PACKAGE_DEPENDS "hiroba (= ${PROJECT_VERSION})")
set(CPACK_COMPONENT_PREDICT_DESCRIPTION
  "hiroba predict: replays of recorded runs on other machines, by SimGrid.")
set(CPACK_DEBIAN_LIBRARIES_PACKAGE_NAME libhiroba${HIROBA_ABI})
set(CPACK_DEBIAN_LIBRARIES_PACKAGE_SECTION libs)
set(CPACK_COMPONENT_LIBRARIES_DESCRIPTION
  "What programs need that are linked with hiroba's shared memory, its global address space, or ACP.")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libhiroba-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "libhiroba${HIROBA_ABI} (= ${PROJECT_VERSION})")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION
  "Headers, CMake packages, pkg-config files, pages and examples for building on hiroba's layers.")
# What ldconfig has to know; CPack writes it by itself for libraries in the loader's folders.
include(CPack)
