# gyre_add_messages(target SCHEMAS a.capnp … [PREFIX gyre/messages])
#   Makes library `target`: the official Cap'n Proto classes of the schemas, and their views, as
#   <PREFIX/a.capnp.h>, <PREFIX/a.view.hpp> and <PREFIX/a.official.hpp>.
#
# gyre_add_actors(target SOURCES a.hpp … [SCHEMAS a.capnp …] [MESSAGES messages_target …] [PREFIX my/actors])
#   Makes library `target` for actors defined in headers: their messages, and their source text (with all of Gyre's
#   device headers) embedded as `<target>::sources`, declared in <target_sources.hpp>.
#   PREFIX is what #include says before the header's name.

function(gyre_add_messages target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "PREFIX" "SCHEMAS")
  set(out ${GYRE_GENERATED_DIR}/${arg_PREFIX})
  file(MAKE_DIRECTORY ${out})
  set(generated "")
  set(views "")
  foreach(schema ${arg_SCHEMAS})
    get_filename_component(schema_path ${schema} ABSOLUTE)
    get_filename_component(folder ${schema_path} DIRECTORY)
    get_filename_component(base ${schema_path} NAME_WE)
    add_custom_command(
      OUTPUT ${out}/${base}.capnp.h ${out}/${base}.capnp.c++ ${out}/${base}.view.hpp ${out}/${base}.official.hpp
      COMMAND ${CAPNP_COMPILER} compile -o${CAPNP_CXX_PLUGIN}:${out} -o$<TARGET_FILE:capnpc-gyre>:${out}
              --src-prefix=${folder} ${schema_path}
      DEPENDS ${schema_path} capnpc-gyre
      COMMENT "Compiling schema ${schema}"
      VERBATIM)
    list(APPEND generated ${out}/${base}.capnp.c++)
    list(APPEND views ${out}/${base}.view.hpp)
  endforeach()
  add_library(${target} STATIC ${generated})
  target_link_libraries(${target} PUBLIC gyre_options gyre_capnp)
  set_target_properties(${target} PROPERTIES GYRE_VIEWS "${views}" GYRE_PREFIX "${arg_PREFIX}")
endfunction()

function(gyre_add_actors target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "PREFIX" "SOURCES;SCHEMAS;MESSAGES")
  if(arg_SCHEMAS)
    gyre_add_messages(${target}_messages SCHEMAS ${arg_SCHEMAS} PREFIX ${arg_PREFIX})
    list(APPEND arg_MESSAGES ${target}_messages)
  endif()

  # Each file to embed, as name=path; the actor headers first.
  set(files "")
  set(paths "")
  set(names "")
  foreach(source ${arg_SOURCES})
    get_filename_component(path ${source} ABSOLUTE)
    get_filename_component(base ${source} NAME)
    list(APPEND files ${arg_PREFIX}/${base}=${path})
    list(APPEND names ${arg_PREFIX}/${base})
    list(APPEND paths ${path})
  endforeach()
  foreach(messages ${arg_MESSAGES})
    get_target_property(views ${messages} GYRE_VIEWS)
    get_target_property(prefix ${messages} GYRE_PREFIX)
    foreach(view ${views})
      get_filename_component(base ${view} NAME)
      list(APPEND files ${prefix}/${base}=${view})
      list(APPEND paths ${view})
    endforeach()
  endforeach()
  foreach(header ${GYRE_DEVICE_HEADERS})
    list(APPEND files gyre/${header}=${PROJECT_SOURCE_DIR}/${header})
    list(APPEND paths ${PROJECT_SOURCE_DIR}/${header})
  endforeach()

  set(cpp ${GYRE_GENERATED_DIR}/${target}_sources.cpp)
  set(hpp ${GYRE_GENERATED_DIR}/${target}_sources.hpp)
  list(LENGTH arg_SOURCES actor_headers)
  string(REPLACE ";" "," files_argument "${files}")
  add_custom_command(
    OUTPUT ${cpp} ${hpp}
    COMMAND ${CMAKE_COMMAND} -DNAMESPACE=${target} -DCPP=${cpp} -DHPP=${hpp} -DACTOR_HEADERS=${actor_headers}
            -DFILES=${files_argument} -P ${PROJECT_SOURCE_DIR}/cmake/embed_sources.cmake
    DEPENDS ${paths} ${PROJECT_SOURCE_DIR}/cmake/embed_sources.cmake
    COMMENT "Embedding the sources of ${target}"
    VERBATIM)
  add_library(${target} STATIC ${cpp} ${hpp})
  target_link_libraries(${target} PUBLIC gyre_options gyre_capnp ${arg_MESSAGES})
endfunction()

# What a kernel includes of Gyre itself, relative to the project.
set(GYRE_DEVICE_HEADERS
  messages/fixed_width.hpp messages/status.hpp messages/envelope.hpp
  messages/wire.hpp messages/reader.hpp messages/builder.hpp messages/view.hpp
  bridge/group.hpp bridge/packet.hpp bridge/ring.hpp bridge/region.hpp
  device/platform.hpp device/context.hpp device/dispatch.hpp device/worker_loop.hpp device/kernel.hpp)
