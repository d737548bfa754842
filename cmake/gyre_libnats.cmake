# The NATS C client (Debian: libnats-dev), for Gyre's build with GYRE_NATS and for those who link an installed gyre::nats:
# the target gyre::libnats, where it is found. Not by its CMake package, which refers to libraries that Debian's does not
# have.
find_path(NATS_INCLUDE_DIR NAMES nats/nats.h)
find_library(NATS_LIBRARY NAMES nats)
if(NATS_INCLUDE_DIR AND NATS_LIBRARY AND NOT TARGET gyre::libnats)
  add_library(gyre::libnats INTERFACE IMPORTED GLOBAL)
  target_include_directories(gyre::libnats SYSTEM INTERFACE ${NATS_INCLUDE_DIR})
  target_link_libraries(gyre::libnats INTERFACE ${NATS_LIBRARY})
endif()
