# The libraries Gyre is built with, by their Debian packages (tools/setup.sh installs them).

find_package(Threads REQUIRED)
find_package(Boost 1.74 CONFIG REQUIRED)          # libboost-dev: Lockfree, Outcome
find_package(fmt REQUIRED)                        # libfmt-dev
# Its library; or, in binaries that travel, what bridge/fmt.cpp compiles of its headers, in a namespace of Gyre's own.
# Of another version than that knows, the headers alone: then each source that formats compiles half of fmt.
set(GYRE_FMT_SOURCE "")
if(GYRE_STATIC AND fmt_VERSION VERSION_GREATER_EQUAL 9 AND fmt_VERSION VERSION_LESS 10)
  set(GYRE_FMT_SOURCE ${PROJECT_SOURCE_DIR}/bridge/fmt.cpp)
  add_library(gyre_fmt INTERFACE)
  target_include_directories(gyre_fmt SYSTEM INTERFACE $<TARGET_PROPERTY:fmt::fmt,INTERFACE_INCLUDE_DIRECTORIES>)
  target_compile_definitions(gyre_fmt INTERFACE "FMT_BEGIN_NAMESPACE=namespace fmt { inline namespace gyre_v9 {"
                                                "FMT_END_NAMESPACE=}}")
  set(GYRE_FMT $<BUILD_INTERFACE:gyre_fmt>)
elseif(GYRE_STATIC)
  set(GYRE_FMT $<BUILD_INTERFACE:fmt::fmt-header-only>)
else()
  set(GYRE_FMT fmt::fmt)
  # What the installed package needs: libraries of one major version fit each other.
  string(REGEX MATCH "^[0-9]+" major "${fmt_VERSION}")
  math(EXPR next "${major} + 1")
  set(GYRE_FMT_VERSIONS "${major}...<${next}")
endif()

# prometheus-cpp-dev, for gyre::telemetry. Not by its CMake package, which also looks for parts Gyre does not use.
set(GYRE_PROMETHEUS "AUTO" CACHE STRING
    "Build gyre::telemetry with prometheus-cpp: ON, OFF, or AUTO (where it is found, and GYRE_STATIC is off)")
set(GYRE_WITH_PROMETHEUS OFF)
if(GYRE_PROMETHEUS STREQUAL "ON" OR (GYRE_PROMETHEUS STREQUAL "AUTO" AND NOT GYRE_STATIC))
  find_path(PROMETHEUS_INCLUDE_DIR NAMES prometheus/exposer.h)
  find_library(PROMETHEUS_CORE_LIBRARY NAMES prometheus-cpp-core)
  find_library(PROMETHEUS_PULL_LIBRARY NAMES prometheus-cpp-pull)
  if(PROMETHEUS_INCLUDE_DIR AND PROMETHEUS_CORE_LIBRARY AND PROMETHEUS_PULL_LIBRARY)
    set(GYRE_WITH_PROMETHEUS ON)
  elseif(GYRE_PROMETHEUS STREQUAL "ON")
    message(FATAL_ERROR "GYRE_PROMETHEUS is ON, and prometheus-cpp was not found: install it (Debian: "
                        "prometheus-cpp-dev)")
  else()
    message(STATUS "Gyre: no prometheus-cpp found (Debian: prometheus-cpp-dev): building without the Prometheus endpoint")
  endif()
elseif(GYRE_PROMETHEUS STREQUAL "AUTO")
  message(STATUS "Gyre: building without the Prometheus endpoint: its libraries are shared, and GYRE_STATIC is on; "
                 "-DGYRE_PROMETHEUS=ON builds it all the same")
endif()
if(GYRE_NATS)  # libnats-dev, for gyre::nats
  include(gyre_libnats)
  if(NOT TARGET gyre::libnats)
    message(FATAL_ERROR "GYRE_NATS is ON, and the NATS C client was not found: install it (Debian: libnats-dev)")
  endif()
endif()
if(GYRE_TOOLS OR GYRE_BENCH)
  find_package(CLI11 CONFIG REQUIRED)        # libcli11-dev
  find_package(nlohmann_json CONFIG REQUIRED)  # nlohmann-json3-dev
endif()
include(gyre_capnp)

if(GYRE_TOOLS)  # messages given as JSON, in programs
  if(GYRE_STATIC)
    find_library(CAPNP_JSON_STATIC_LIBRARY NAMES libcapnp-json.a REQUIRED)
    set(json_library ${CAPNP_JSON_STATIC_LIBRARY})
  else()
    find_library(CAPNP_JSON_LIBRARY NAMES capnp-json REQUIRED)
    set(json_library ${CAPNP_JSON_LIBRARY})
  endif()
  add_library(gyre_capnp_json INTERFACE)
  target_link_libraries(gyre_capnp_json INTERFACE ${json_library} gyre::capnp)
endif()
if(GYRE_C)  # and in the shared library
  find_library(CAPNPC_LIBRARY NAMES capnpc REQUIRED)
  find_library(CAPNP_JSON_LIBRARY NAMES capnp-json REQUIRED)
endif()

# The CUDA toolkit: only its headers; driver and NVRTC are loaded at run time.
if(GYRE_CUDA STREQUAL "OFF")
  set(GYRE_WITH_CUDA OFF)
else()
  find_path(GYRE_CUDA_INCLUDE_DIR NAMES nvrtc.h HINTS ENV CUDA_HOME PATHS /usr/local/cuda PATH_SUFFIXES include)
  if(GYRE_CUDA_INCLUDE_DIR)
    set(GYRE_WITH_CUDA ON)
  elseif(GYRE_CUDA STREQUAL "ON")
    message(FATAL_ERROR "GYRE_CUDA is ON, and cuda.h and nvrtc.h were not found: install the CUDA toolkit (12 or 13), "
                        "or set CUDA_HOME")
  else()
    set(GYRE_WITH_CUDA OFF)
    message(STATUS "Gyre: no CUDA toolkit found: building with the CPU engine alone")
  endif()
endif()
if(GYRE_WITH_CUDA)
  message(STATUS "Gyre: building with the CUDA engine (headers in ${GYRE_CUDA_INCLUDE_DIR}) and the CPU engine")
endif()

# libelf-dev: cubins are ELF files. Its static library needs what it uncompresses sections by.
if(GYRE_WITH_CUDA AND (GYRE_TOOLS OR GYRE_FUZZ))
  find_path(ELF_INCLUDE_DIR NAMES gelf.h REQUIRED)
  if(GYRE_STATIC)
    find_library(ELF_STATIC_LIBRARY NAMES libelf.a REQUIRED)
    find_library(Z_STATIC_LIBRARY NAMES libz.a REQUIRED)
    find_library(ZSTD_STATIC_LIBRARY NAMES libzstd.a)  # from libelf 0.189 on
    set(GYRE_ELF ${ELF_STATIC_LIBRARY} ${Z_STATIC_LIBRARY} $<$<BOOL:${ZSTD_STATIC_LIBRARY}>:${ZSTD_STATIC_LIBRARY}>)
  else()
    find_library(ELF_LIBRARY NAMES elf REQUIRED)
    set(GYRE_ELF ${ELF_LIBRARY})
  endif()
endif()

# libvulkan-dev: only its headers, for the BAR transport; the loader is loaded at run time.
set(GYRE_WITH_VULKAN OFF)
if(GYRE_WITH_CUDA)
  find_path(GYRE_VULKAN_INCLUDE_DIR NAMES vulkan/vulkan_core.h)
  if(GYRE_VULKAN_INCLUDE_DIR)
    set(GYRE_WITH_VULKAN ON)
  else()
    message(STATUS "Gyre: no Vulkan headers found (Debian: libvulkan-dev): building without the BAR transport")
  endif()
endif()
