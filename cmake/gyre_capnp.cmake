# Cap'n Proto, for Gyre's build and for those who find Gyre installed: CAPNP_COMPILER, CAPNP_CXX_PLUGIN (Debian:
# capnproto) and the target gyre::capnp (libcapnp-dev). Not by its CMake package, which also looks for OpenSSL and
# libatomic for parts that Gyre does not use. With GYRE_STATIC programs get its static libraries; shared libraries
# cannot be made of those: their threads' variables are laid out for programs.
find_program(CAPNP_COMPILER capnp REQUIRED)
find_program(CAPNP_CXX_PLUGIN capnpc-c++ REQUIRED)
find_path(CAPNP_INCLUDE_DIR NAMES capnp/message.h REQUIRED)
find_library(CAPNP_LIBRARY NAMES capnp REQUIRED)
find_library(KJ_LIBRARY NAMES kj REQUIRED)
if(NOT TARGET gyre::capnp)
  set(capnp_linked ${CAPNP_LIBRARY} ${KJ_LIBRARY})
  if(GYRE_STATIC)
    find_library(CAPNP_STATIC_LIBRARY NAMES libcapnp.a REQUIRED)
    find_library(KJ_STATIC_LIBRARY NAMES libkj.a REQUIRED)
    set(in_program $<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>)
    set(capnp_linked "$<IF:${in_program},${CAPNP_STATIC_LIBRARY},${CAPNP_LIBRARY}>"
                     "$<IF:${in_program},${KJ_STATIC_LIBRARY},${KJ_LIBRARY}>")
  endif()
  add_library(gyre::capnp INTERFACE IMPORTED GLOBAL)
  target_include_directories(gyre::capnp SYSTEM INTERFACE ${CAPNP_INCLUDE_DIR})
  target_link_libraries(gyre::capnp INTERFACE ${capnp_linked} Threads::Threads)
endif()
