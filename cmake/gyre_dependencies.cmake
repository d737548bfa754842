# The libraries Gyre is built with, by their Debian packages (tools/setup.sh installs them).

find_package(Threads REQUIRED)
find_package(Boost 1.74 CONFIG REQUIRED)          # libboost-dev: Lockfree, Outcome
find_package(fmt REQUIRED)                 # libfmt-dev
if(GYRE_TOOLS OR GYRE_BENCH)
  find_package(CLI11 CONFIG REQUIRED)        # libcli11-dev
  find_package(nlohmann_json CONFIG REQUIRED)  # nlohmann-json3-dev
endif()
find_program(CAPNP_COMPILER capnp REQUIRED)
find_program(CAPNP_CXX_PLUGIN capnpc-c++ REQUIRED)

# libcapnp-dev. Not by its CMake package, which also looks for OpenSSL and libatomic for parts Gyre does not use.
find_path(CAPNP_INCLUDE_DIR NAMES capnp/message.h REQUIRED)
find_library(CAPNP_LIBRARY NAMES capnp REQUIRED)
find_library(KJ_LIBRARY NAMES kj REQUIRED)
set(capnp_linked ${CAPNP_LIBRARY} ${KJ_LIBRARY})
if(GYRE_STATIC)
  find_library(CAPNP_STATIC_LIBRARY NAMES libcapnp.a REQUIRED)
  find_library(KJ_STATIC_LIBRARY NAMES libkj.a REQUIRED)
  # Shared libraries cannot be made of them: their threads' variables are laid out for programs.
  set(in_program $<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>)
  set(capnp_linked "$<IF:${in_program},${CAPNP_STATIC_LIBRARY},${CAPNP_LIBRARY}>"
                   "$<IF:${in_program},${KJ_STATIC_LIBRARY},${KJ_LIBRARY}>")
endif()
add_library(gyre_capnp INTERFACE)
add_library(gyre::capnp ALIAS gyre_capnp)
target_include_directories(gyre_capnp SYSTEM INTERFACE ${CAPNP_INCLUDE_DIR})
target_link_libraries(gyre_capnp INTERFACE ${capnp_linked} Threads::Threads)
if(GYRE_C)
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
