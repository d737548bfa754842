# Debian packages by CPack, of the components of gyre_install.cmake. tools/package.sh makes them of preset package.
#   gyre          the programs gyre and gyre-bench, their manual pages and completion
#   gyre-runtime  the shared library of the C interface, and the Python package over it
#   gyre-nats     the programs gyre-nats and gyre-ask, where they are built (GYRE_NATS)
#   gyre-dev      headers, static libraries, CMake and pkg-config files, the plugin of the schema compiler
# The CUDA driver, NVRTC and the Vulkan loader are loaded at run time where they are: no package depends on them.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "The developers of Gyre <noreply@gyre.invalid>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL runtime dev tools)
if(TARGET gyre-nats)
  list(APPEND CPACK_COMPONENTS_ALL nats)
endif()
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SECTION libs)

set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME gyre)
set(CPACK_COMPONENT_TOOLS_DESCRIPTION "Actors that live on a GPU: the programs gyre and gyre-bench
 gyre checks a machine and validates engines; gyre-bench measures round trips.")
set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION utils)
# For gyre-engine, which a launch on a GPU starts, and refuses if it is of another version.
set(CPACK_DEBIAN_TOOLS_PACKAGE_DEPENDS "gyre-runtime (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_TOOLS_PACKAGE_SUGGESTS "bash-completion, libcuda1, libvulkan1")

set(CPACK_DEBIAN_NATS_PACKAGE_NAME gyre-nats)
set(CPACK_COMPONENT_NATS_DESCRIPTION "Actors that live on a GPU: the gateway to NATS
 gyre-nats joins actors to a NATS server; gyre-ask asks them.")
set(CPACK_DEBIAN_NATS_PACKAGE_SECTION net)
set(CPACK_DEBIAN_NATS_PACKAGE_DEPENDS ${CPACK_DEBIAN_TOOLS_PACKAGE_DEPENDS})
set(CPACK_DEBIAN_NATS_PACKAGE_SUGGESTS "bash-completion, nats-server, libcuda1, libvulkan1")

set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME gyre-runtime)
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION "Actors that live on a GPU: the shared library and the Python package
 The C interface, for every language that calls C, and the Python package gyre.")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SUGGESTS "python3, python3-numpy, libcuda1, libvulkan1")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SHARED_LIBRARIES_POLICY ">=")

set(CPACK_DEBIAN_DEV_PACKAGE_NAME gyre-dev)
set(CPACK_COMPONENT_DEV_DESCRIPTION "Actors that live on a GPU: headers and libraries for programs in C++ and C
 Includes CMake functions that compile actors, pkg-config files and capnpc-gyre.")
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS
    "gyre-runtime (= ${PROJECT_VERSION}), capnproto, libcapnp-dev, libboost-dev, libfmt-dev")
set(CPACK_DEBIAN_DEV_PACKAGE_SUGGESTS "cmake, pkg-config, prometheus-cpp-dev, libnats-dev")
include(CPack)
