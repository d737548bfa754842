# Cap'n Proto, for Gyre's build and for those who find Gyre installed: CAPNP_COMPILER, CAPNP_CXX_PLUGIN (Debian:
# capnproto) and the target gyre::capnp (libcapnp-dev). Not by its CMake package, which also looks for OpenSSL and
# libatomic for parts that Gyre does not use. With GYRE_STATIC its static libraries.
find_program(CAPNP_COMPILER capnp REQUIRED)
find_program(CAPNP_CXX_PLUGIN capnpc-c++ REQUIRED)
find_path(CAPNP_INCLUDE_DIR NAMES capnp/message.h REQUIRED)
if(GYRE_STATIC)
  find_library(CAPNP_LIBRARY NAMES libcapnp.a REQUIRED)
  find_library(KJ_LIBRARY NAMES libkj.a REQUIRED)
else()
  find_library(CAPNP_LIBRARY NAMES capnp REQUIRED)
  find_library(KJ_LIBRARY NAMES kj REQUIRED)
endif()
if(NOT TARGET gyre::capnp)
  add_library(gyre::capnp INTERFACE IMPORTED GLOBAL)
  target_include_directories(gyre::capnp SYSTEM INTERFACE ${CAPNP_INCLUDE_DIR})
  target_link_libraries(gyre::capnp INTERFACE ${CAPNP_LIBRARY} ${KJ_LIBRARY} Threads::Threads)
endif()
