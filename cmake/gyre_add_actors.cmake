# For a project's own messages and actors, in Gyre's tree, in a project that adds Gyre as a subdirectory, and in one
# that finds it installed.
#
# gyre_add_messages(target
#     SCHEMAS a.capnp …          the schemas to compile
#     [PREFIX my/messages]       what #include says before a schema's name
#     [IMPORT_DIRS dir …]        where absolute imports (import "/shop/units.capnp") are looked for as well
#     [MESSAGES target …])       messages targets whose schemas these import; linked PUBLIC
#   Makes the static library `target`: of each schema the official Cap'n Proto classes, the views for workers, and
#   which belongs to which, as <PREFIX/a.capnp.h>, <PREFIX/a.view.hpp> and <PREFIX/a.official.hpp>.
#
# gyre_add_actors(target
#     SOURCES a.hpp …            the headers that define the actors; a kernel includes each
#     [HEADERS helper.hpp …]     headers that these include
#     [SCHEMAS a.capnp …]        the actors' messages, if no other target makes them: becomes target_messages
#     [PREFIX my/actors]         what #include says before a header's or a schema's name
#     [IMPORT_DIRS dir …]        for SCHEMAS
#     [MESSAGES target …]        messages targets whose views the actors use; linked PUBLIC
#     [ARCHITECTURES 80 90 …     compute capabilities (90: 9.0) to compile the actors for when the project is built
#      [SETS "my::A, my::B" …]   the sets that are launched: the types of each ActorSet::of<…>, in its order
#      [GRID_SETS "my::C" …]     sets that are launched grid-scoped; SETS or GRID_SETS or both
#      [THREADS 32 …]            block sizes to compile for (Options::block); default: 32
#      [OPTIONAL]])              without NVRTC, for architectures that it does not know, and with a Gyre without the CUDA
#                                engine, the build goes on and says so
#   Makes the static library `target`: the text of all these headers and views, and of Gyre's own device headers,
#   embedded as `target::sources`, declared in <target_sources.hpp>. The headers are found as <PREFIX/a.hpp> in
#   kernels and on the host alike. `target` must be a C++ identifier.
#
# Compiled ahead. With ARCHITECTURES the build needs NVRTC, and no GPU. A launch of one of the sets with one of the block
# sizes needs neither NVRTC nor the toolkit, on a GPU of the same major compute capability and the same or a later minor
# one. Other sets, block sizes and GPUs are compiled for at launch. After a header has changed, the build compiles again.
#
# Files. A schema or header is named by its path from the current source (or binary) folder, behind PREFIX:
# orders/new.capnp with PREFIX shop is <shop/orders/new.view.hpp>. One that lies elsewhere is named by its file name
# alone, behind PREFIX; a schema in one of IMPORT_DIRS by its path there, as imports name it, without PREFIX.
#
# Imports. Relative ones work within a target, and between targets whose names stand to each other as the files do.
# Absolute ones say what #include says: import "/shop/orders/new.capnp" finds that schema of any target in MESSAGES,
# or of this one, without IMPORT_DIRS; Gyre's own are /gyre/messages/…, of MESSAGES gyre::messages. Imported schemas
# must be some target's, for their headers are included; a changed one compiles anew what imports it.
#
# gyre::messages has VectorAdd's and Echo's, and the handles of buffers (import "/gyre/messages/buffer.capnp"); a
# program links gyre::runtime and its actors' target; for Echo and VectorAdd, builtin_actors(), that is gyre::device.

# What a kernel includes of Gyre itself, below <gyre/…>.
set(GYRE_DEVICE_HEADERS
  messages/fixed_width.hpp messages/status.hpp messages/envelope.hpp
  messages/wire.hpp messages/reader.hpp messages/builder.hpp messages/view.hpp
  bridge/chunk_pool.hpp bridge/group.hpp bridge/mailbox.hpp bridge/packet.hpp bridge/placement.hpp bridge/ring.hpp bridge/slot_pages.hpp bridge/handler_counts.hpp bridge/region.hpp
  device/address.hpp device/asking.hpp device/buffer.hpp device/context.hpp device/group_of_one.hpp device/matrix.hpp device/parallel.hpp device/platform.hpp device/pool.hpp device/protocol.hpp device/sending.hpp device/team_group.hpp device/timer.hpp device/topic.hpp
  device/actor/call_handler.hpp device/actor/check.hpp device/actor/description.hpp device/actor/dispatch.hpp device/actor/ending.hpp device/actor/handlers.hpp device/actor/lookup.hpp device/actor/on_batch.hpp device/actor/on_reply.hpp device/actor/read_actors.hpp device/actor/receiver.hpp device/actor/rights.hpp
  device/actor/stopwatch.hpp device/actor/table.hpp device/actor/working_memory.hpp
  device/compiler_steering.hpp device/read/command_watch.hpp device/read/inbound_ring.hpp device/read/local_slices.hpp
  device/read/match.hpp device/read/poll_delay.hpp device/read/poll_window.hpp device/read/request_head.hpp
  device/read/request_reader.hpp
  device/worker/batch.hpp device/worker/body_pool.hpp device/worker/engine_memory.hpp device/worker/fan_out.hpp device/worker/fast_path.hpp device/worker/gathered.hpp device/worker/handler_log.hpp device/worker/handler_meter.hpp
  device/worker/kernel.hpp device/worker/mail.hpp device/worker/mail_in.hpp device/worker/mail_memory.hpp device/worker/mail_out.hpp device/worker/mail_path.hpp device/worker/mail_queues.hpp device/worker/message_memory.hpp device/worker/open_calls.hpp device/worker/reply_writer.hpp device/worker/report.hpp
  device/worker/shared.hpp device/worker/special_path.hpp device/worker/staging.hpp device/worker/timer_table.hpp device/worker/worker.hpp
  CACHE INTERNAL "What a kernel includes of Gyre itself")

# The functions know of Gyre: GYRE_INCLUDE_DIR (the folder of gyre/gyre.hpp), GYRE_DEVICE_HEADERS, CAPNP_COMPILER,
# CAPNP_CXX_PLUGIN, the targets gyre::headers, gyre::capnp, gyre::capnpc-gyre and, with the CUDA engine,
# gyre::gyre-compile-ahead, and the scripts beside this file.

define_property(TARGET PROPERTY GYRE_VIEWS BRIEF_DOCS "What #include calls the view headers of a messages target")
define_property(TARGET PROPERTY GYRE_VIEWS_DIR BRIEF_DOCS "The folder they, and links to the schemas, are below")
define_property(TARGET PROPERTY GYRE_IMPORT_DIRS BRIEF_DOCS "IMPORT_DIRS of a messages target")
define_property(TARGET PROPERTY GYRE_MESSAGES BRIEF_DOCS "MESSAGES of a messages target")

function(gyre_add_messages target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "PREFIX" "SCHEMAS;IMPORT_DIRS;MESSAGES")
  gyre_check_arguments(gyre_add_messages SCHEMAS "the .capnp files to compile")
  gyre_resolve_messages("${doing}" used all_used ${arg_MESSAGES})

  set(root ${PROJECT_BINARY_DIR}/generated)
  set(import_dirs "")
  foreach(dir IN LISTS arg_IMPORT_DIRS)
    get_filename_component(path "${dir}" ABSOLUTE)
    if(NOT IS_DIRECTORY "${path}")
      message(FATAL_ERROR "${doing}: import directory ${dir} does not exist (looked for ${path}); create it, or "
                          "correct IMPORT_DIRS")
    endif()
    list(APPEND import_dirs "${path}")
  endforeach()
  set(search ${root} ${import_dirs})
  foreach(messages IN LISTS all_used)
    get_target_property(dirs ${messages} GYRE_IMPORT_DIRS)
    get_target_property(views_dir ${messages} GYRE_VIEWS_DIR)
    list(APPEND search ${dirs} ${views_dir})
  endforeach()
  list(APPEND search ${GYRE_INCLUDE_DIR})
  list(REMOVE_DUPLICATES search)
  list(TRANSFORM search PREPEND -I OUTPUT_VARIABLE search_options)

  set(classes "")
  set(views "")
  foreach(schema IN LISTS arg_SCHEMAS)
    gyre_name_file("${doing}" "${schema}" "${arg_PREFIX}" name path ${import_dirs})
    if(NOT name MATCHES "\\.capnp$")
      message(FATAL_ERROR "${doing}: schema ${schema} does not end in .capnp; rename it")
    endif()
    gyre_claim_name("${doing}" "${name}" "${path}")
    # Compiled by a link beside its headers: import finds by a name what #include finds by it, and nothing else.
    set(link "${root}/${name}")
    gyre_link("${path}" "${link}")
    string(REGEX REPLACE "\\.capnp$" "" out "${link}")
    add_custom_command(
      OUTPUT "${out}.capnp.c++" "${out}.capnp.h" "${out}.view.hpp" "${out}.official.hpp"
      COMMAND ${CAPNP_COMPILER} compile "-o${CAPNP_CXX_PLUGIN}:${root}" "-o$<TARGET_FILE:gyre::capnpc-gyre>:${root}"
              "--src-prefix=${root}" ${search_options} "${link}"
      COMMAND ${CMAKE_COMMAND} -P "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/schema_imports.cmake"
              "${link}" "${out}.capnp.c++" "${out}.capnp.d" ${search}
      DEPENDS "${path}" gyre::capnpc-gyre
      DEPFILE "${out}.capnp.d"
      COMMENT "Compiling schema ${name}"
      VERBATIM)
    list(APPEND classes "${out}.capnp.c++")
    string(REGEX REPLACE "\\.capnp$" ".view.hpp" view "${name}")
    list(APPEND views "${view}")
  endforeach()

  add_library(${target} STATIC ${classes})
  set_source_files_properties(${classes} PROPERTIES COMPILE_OPTIONS -w)  # Cap'n Proto's, whatever the flags here
  gyre_use_generated(${target} ${root})
  gyre_position_independent(${target})
  target_link_libraries(${target} PUBLIC gyre::headers gyre::capnp ${used})
  set_target_properties(${target} PROPERTIES GYRE_VIEWS "${views}" GYRE_VIEWS_DIR "${root}"
                        GYRE_IMPORT_DIRS "${import_dirs}" GYRE_MESSAGES "${used}")
endfunction()

function(gyre_add_actors target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "OPTIONAL" "PREFIX"
                        "SOURCES;HEADERS;SCHEMAS;IMPORT_DIRS;MESSAGES;ARCHITECTURES;SETS;GRID_SETS;THREADS")
  gyre_check_arguments(gyre_add_actors SOURCES "the headers that define the actors")
  if(NOT target MATCHES "^[A-Za-z_][A-Za-z0-9_]*$")
    message(FATAL_ERROR "${doing}: the sources are embedded in a C++ namespace of the target's name, and ${target} is "
                        "not an identifier; use letters, digits and _ alone")
  endif()
  gyre_check_ahead("${doing}" "${arg_ARCHITECTURES}" "${arg_SETS}${arg_GRID_SETS}" "${arg_THREADS}" "${arg_OPTIONAL}")
  if(arg_ARCHITECTURES AND NOT GYRE_WITH_CUDA AND NOT TARGET gyre::gyre-compile-ahead)  # then they are optional
    message(STATUS "${doing}: this Gyre was built without the CUDA toolkit: nothing is compiled ahead")
    set(arg_ARCHITECTURES "")
  endif()
  gyre_resolve_messages("${doing}" used all_used ${arg_MESSAGES})
  if(arg_SCHEMAS)
    gyre_add_messages(${target}_messages SCHEMAS ${arg_SCHEMAS} PREFIX "${arg_PREFIX}"
                      IMPORT_DIRS ${arg_IMPORT_DIRS} MESSAGES ${used})
    list(APPEND used ${target}_messages)
    list(APPEND all_used ${target}_messages)
  endif()

  set(links ${PROJECT_BINARY_DIR}/actor_headers)
  set(paths "")
  set(embed "")  # a script: one call for each file
  foreach(kind SOURCES HEADERS)
    foreach(header IN LISTS arg_${kind})
      gyre_name_file("${doing}" "${header}" "${arg_PREFIX}" name path)
      gyre_link("${path}" "${links}/${name}")
      list(APPEND paths "${path}")
      string(APPEND embed "embed(${kind} [==[${name}]==] [==[${path}]==])\n")
    endforeach()
  endforeach()
  foreach(messages IN LISTS all_used)
    get_target_property(views ${messages} GYRE_VIEWS)
    get_target_property(views_dir ${messages} GYRE_VIEWS_DIR)
    foreach(view IN LISTS views)
      list(APPEND paths "${views_dir}/${view}")
      string(APPEND embed "embed(HEADERS [==[${view}]==] [==[${views_dir}/${view}]==])\n")
    endforeach()
  endforeach()
  foreach(header IN LISTS GYRE_DEVICE_HEADERS)
    list(APPEND paths "${GYRE_INCLUDE_DIR}/gyre/${header}")
    string(APPEND embed "embed(HEADERS [==[gyre/${header}]==] [==[${GYRE_INCLUDE_DIR}/gyre/${header}]==])\n")
  endforeach()

  set(root ${PROJECT_BINARY_DIR}/generated)
  set(sources ${root}/${target}_sources)
  set(script ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/embed_sources.cmake)
  set(bundle "")
  set(compiled "")
  if(arg_ARCHITECTURES)
    set(bundle ${sources}.bundle)
    set(options "")
    foreach(set IN LISTS arg_SETS)
      list(APPEND options --set "${set}")
    endforeach()
    foreach(set IN LISTS arg_GRID_SETS)
      list(APPEND options --grid-set "${set}")
    endforeach()
    if(NOT arg_THREADS)
      set(arg_THREADS 32)
    endif()
    foreach(threads IN LISTS arg_THREADS)
      list(APPEND options --threads ${threads})
    endforeach()
    if(arg_OPTIONAL)
      list(APPEND options --optional)
    endif()
    foreach(architecture IN LISTS arg_ARCHITECTURES)
      set(file ${root}/${target}_ahead_${architecture}.inc)
      string(APPEND embed "ahead([==[${target}_ahead_${architecture}.inc]==])\n")
      # A command for each: they run side by side.
      add_custom_command(
        OUTPUT ${file}
        COMMAND $<TARGET_FILE:gyre::gyre-compile-ahead> --name ${target} --bundle ${bundle} --architecture ${architecture}
                ${options} --out ${file}
        DEPENDS ${bundle} gyre::gyre-compile-ahead
        COMMENT "Compiling ${target} ahead for compute capability ${architecture}"
        VERBATIM)
      list(APPEND compiled ${file})
    endforeach()
  endif()
  gyre_write_changed(${sources}.cmake "${embed}")
  add_custom_command(
    OUTPUT ${sources}.cpp ${sources}.hpp ${bundle}
    COMMAND ${CMAKE_COMMAND} -P "${script}" ${target} "${sources}"
    DEPENDS ${paths} ${all_used} ${sources}.cmake "${script}"
    COMMENT "Embedding the sources of ${target}"
    VERBATIM)
  add_library(${target} STATIC ${sources}.cpp ${sources}.hpp ${compiled})
  if(compiled)
    set_source_files_properties(${sources}.cpp PROPERTIES OBJECT_DEPENDS "${compiled}")
  endif()
  gyre_use_generated(${target} ${root})
  gyre_position_independent(${target})
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${links}>)
  target_link_libraries(${target} PUBLIC gyre::headers gyre::capnp ${used})
endfunction()

# What follows is for the two functions above.

# In their scope: sets `doing`, and ends with an error for arguments that cannot be right.
macro(gyre_check_arguments function files meaning)
  set(doing "${function}(${target})")
  if(arg_UNPARSED_ARGUMENTS)
    list(JOIN arg_UNPARSED_ARGUMENTS " " unknown)
    message(FATAL_ERROR "${doing}: unknown arguments: ${unknown}; ${CMAKE_CURRENT_FUNCTION_LIST_FILE} documents what "
                        "it takes")
  endif()
  if(NOT arg_${files})
    message(FATAL_ERROR "${doing}: no ${files}; name ${meaning} after ${files}")
  endif()
  if(TARGET ${target})
    message(FATAL_ERROR "${doing}: there is a target of this name already; choose another")
  endif()
endmacro()

# Ends with an error where what is to be compiled ahead is not said right. `sets`: of both kinds.
function(gyre_check_ahead doing architectures sets threads optional)
  if(NOT architectures)
    if(sets OR threads OR optional)
      message(FATAL_ERROR "${doing}: SETS, GRID_SETS, THREADS and OPTIONAL say what to compile ahead, and ARCHITECTURES "
                          "are missing; say for which compute capabilities, as ARCHITECTURES 80 90")
    endif()
    return()
  endif()
  foreach(architecture IN LISTS architectures)
    if(NOT architecture MATCHES "^[1-9][0-9]+$")
      message(FATAL_ERROR "${doing}: ARCHITECTURES ${architecture}: a compute capability is a number, 90 for 9.0")
    endif()
  endforeach()
  foreach(block IN LISTS threads)
    math(EXPR rest "${block} % 32")
    if(NOT block MATCHES "^[1-9][0-9]*$" OR NOT rest EQUAL 0)
      message(FATAL_ERROR "${doing}: THREADS ${block}: a block has a multiple of 32 threads")
    endif()
  endforeach()
  if(NOT sets)
    message(FATAL_ERROR "${doing}: ARCHITECTURES without SETS; say which sets of actors are launched, each as "
                        "ActorSet::of<…> says it: SETS \"my::Counter, my::Sum\"")
  endif()
  if(NOT optional AND NOT GYRE_WITH_CUDA AND NOT TARGET gyre::gyre-compile-ahead)
    message(FATAL_ERROR "${doing}: ARCHITECTURES need a Gyre with the CUDA engine, and this one was built without the "
                        "CUDA toolkit; install the toolkit and build Gyre again, or say OPTIONAL")
  endif()
endfunction()

# What #include (or import) calls `file`, and its absolute path. `roots` are folders that PREFIX is not for.
function(gyre_name_file doing file prefix name_variable path_variable)
  get_filename_component(path "${file}" ABSOLUTE)
  if(NOT EXISTS "${path}" OR IS_DIRECTORY "${path}")
    message(FATAL_ERROR "${doing}: file ${file} does not exist (looked for ${path}); create it, or correct its name")
  endif()
  set(${path_variable} "${path}" PARENT_SCOPE)
  foreach(root IN LISTS ARGN)
    cmake_path(IS_PREFIX root "${path}" NORMALIZE inside)
    if(inside)
      file(RELATIVE_PATH name "${root}" "${path}")
      set(${name_variable} "${name}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
  get_filename_component(name "${path}" NAME)
  foreach(root "${CMAKE_CURRENT_BINARY_DIR}" "${CMAKE_CURRENT_SOURCE_DIR}")
    cmake_path(IS_PREFIX root "${path}" NORMALIZE inside)
    if(inside)
      file(RELATIVE_PATH name "${root}" "${path}")
      break()
    endif()
  endforeach()
  string(REGEX REPLACE "/+$" "" prefix "${prefix}")
  if(prefix)
    set(name "${prefix}/${name}")
  endif()
  set(${name_variable} "${name}" PARENT_SCOPE)
endfunction()

# Ends with an error where another schema of the project has the name.
function(gyre_claim_name doing name path)
  set(key "gyre schema ${PROJECT_BINARY_DIR} ${name}")
  get_property(other GLOBAL PROPERTY "${key}")
  if(other)
    message(FATAL_ERROR "${doing}: schema ${path} would be included as <${name}.h>, as is ${other}; give one of them "
                        "another PREFIX or name, or put the target that has it into MESSAGES")
  endif()
  set_property(GLOBAL PROPERTY "${key}" "${path}")
endfunction()

# Whatever was at `link` before, it is a link to `path` now.
function(gyre_link path link)
  get_filename_component(folder "${link}" DIRECTORY)
  file(MAKE_DIRECTORY "${folder}")
  file(CREATE_LINK "${path}" "${link}" SYMBOLIC)
endfunction()

function(gyre_write_changed path text)
  set(before "")
  if(EXISTS "${path}")
    file(READ "${path}" before)
  endif()
  if(NOT before STREQUAL text)
    file(WRITE "${path}" "${text}")
  endif()
endfunction()

# `used`: the messages targets by their own names. `all`: with those that they use themselves, each once.
function(gyre_resolve_messages doing used_variable all_variable)
  set(used "")
  set(all "")
  foreach(messages IN LISTS ARGN)
    if(NOT TARGET ${messages})
      message(FATAL_ERROR "${doing}: MESSAGES ${messages}: there is no such target; call gyre_add_messages(${messages} "
                          "…) before")
    endif()
    get_target_property(views ${messages} GYRE_VIEWS)
    if(NOT views)
      message(FATAL_ERROR "${doing}: MESSAGES ${messages}: this target was not made by gyre_add_messages; name one "
                          "that was, and link others by target_link_libraries")
    endif()
    get_target_property(original ${messages} ALIASED_TARGET)
    if(original)
      set(messages ${original})
    endif()
    get_target_property(theirs ${messages} GYRE_MESSAGES)
    gyre_resolve_messages("${doing}" ignored all_theirs ${theirs})
    list(APPEND used ${messages})
    list(APPEND all ${all_theirs} ${messages})
  endforeach()
  list(REMOVE_DUPLICATES used)
  list(REMOVE_DUPLICATES all)
  set(${used_variable} "${used}" PARENT_SCOPE)
  set(${all_variable} "${all}" PARENT_SCOPE)
endfunction()

# Shared libraries are made of `target` too: the C interface, and actors that it loads. Functions are inlined all the
# same, for nobody replaces them.
function(gyre_position_independent target)
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fno-semantic-interposition>)
endfunction()

# Generated headers below `root`, for `target` and who links it. Only Gyre itself can fix their warnings.
function(gyre_use_generated target root)
  set(system SYSTEM)
  if(GYRE_WARN_OF_GENERATED)
    set(system "")
  endif()
  target_include_directories(${target} ${system} PUBLIC $<BUILD_INTERFACE:${root}>)
endfunction()
