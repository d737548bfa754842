# The package: cmake --install build/release --prefix DIR. Found by find_package(gyre CONFIG), which brings the targets
# gyre::runtime, gyre::device (the built-in actors), gyre::messages, and gyre_add_messages and gyre_add_actors.
include(CMakePackageConfigHelpers)

# Components, which are Debian packages of their own (gyre_debian_packages.cmake): runtime is what programs load, tools what
# people start, nats the programs of the gateway to NATS, dev all else.
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME dev)

set_target_properties(gyre_headers PROPERTIES EXPORT_NAME headers)
set_target_properties(gyre_messages PROPERTIES EXPORT_NAME messages)
set_target_properties(gyre_bridge PROPERTIES EXPORT_NAME bridge)
set_target_properties(gyre_device_headers PROPERTIES EXPORT_NAME device_headers)
set_target_properties(gyre_builtin_actors PROPERTIES EXPORT_NAME device)
set_target_properties(gyre_runtime PROPERTIES EXPORT_NAME runtime)
set_target_properties(gyre_testing PROPERTIES EXPORT_NAME testing)
set_target_properties(gyre_actor_library_text PROPERTIES EXPORT_NAME actor_library_text)
set(libraries gyre_headers gyre_messages gyre_bridge gyre_device_headers gyre_builtin_actors gyre_actor_library_text
              gyre_runtime gyre_testing)
if(TARGET gyre_telemetry)
  set_target_properties(gyre_telemetry PROPERTIES EXPORT_NAME telemetry)
  list(APPEND libraries gyre_telemetry)
endif()
if(GYRE_WITH_CUDA)
  set_target_properties(gyre_bridge_cuda PROPERTIES EXPORT_NAME bridge_cuda)
  list(APPEND libraries gyre_bridge_cuda)
endif()
if(TARGET gyre_c)
  set_target_properties(gyre_c PROPERTIES EXPORT_NAME c)
  list(APPEND libraries gyre_c)
  install(FILES ${PROJECT_SOURCE_DIR}/runtime/c/gyre.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/gyre)
  # The Python package: PYTHONPATH names this folder. It finds the library by a link beside it.
  set(GYRE_PYTHON_DIR lib/python3/dist-packages CACHE STRING "Where the Python package is installed, below the prefix")
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/runtime/python/gyre/ DESTINATION ${GYRE_PYTHON_DIR}/gyre COMPONENT runtime
          FILES_MATCHING PATTERN "*.py" PATTERN "py.typed")
  if(TARGET gyre_python)
    install(TARGETS gyre_python LIBRARY DESTINATION ${GYRE_PYTHON_DIR}/gyre COMPONENT runtime)
  endif()
  cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_LIBDIR
             BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX}/${GYRE_PYTHON_DIR}/gyre OUTPUT_VARIABLE to_library)
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/python)
  file(CREATE_LINK ${to_library}/libgyre.so.${PROJECT_VERSION_MAJOR} ${PROJECT_BINARY_DIR}/python/libgyre.so SYMBOLIC)
  install(FILES ${PROJECT_BINARY_DIR}/python/libgyre.so DESTINATION ${GYRE_PYTHON_DIR}/gyre COMPONENT runtime)
endif()
install(TARGETS ${libraries} capnpc-gyre EXPORT gyre_targets LIBRARY COMPONENT runtime NAMELINK_COMPONENT dev)
if(TARGET gyre-engine)  # libraries and programs look for it there
  install(TARGETS gyre-engine RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/gyre COMPONENT runtime)
  # For gyre_add_actors(… ARCHITECTURES …).
  install(TARGETS gyre-compile-ahead EXPORT gyre_targets RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/gyre
          COMPONENT dev)
endif()
set(programs "")
foreach(program gyre gyre-bench)
  if(TARGET ${program})
    install(TARGETS ${program} COMPONENT tools)
    list(APPEND programs ${program})
  endif()
endforeach()
foreach(program gyre-nats gyre-ask)
  if(TARGET ${program})
    install(TARGETS ${program} COMPONENT nats)
    list(APPEND programs ${program})
  endif()
endforeach()
if(programs)
  # Of every program one file: bash loads the completion of a command from the file of its name.
  foreach(program IN LISTS programs)
    set(component tools)
    if(program MATCHES "nats|ask")
      set(component nats)
    endif()
    install(FILES ${PROJECT_SOURCE_DIR}/tools/completion/gyre.bash RENAME ${program}
            DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT ${component})
  endforeach()
  find_program(HELP2MAN help2man)  # help2man: the manual pages, from what --help prints
  if(HELP2MAN)
    list(TRANSFORM programs REPLACE "(.+)" "$<TARGET_FILE:\\1>" OUTPUT_VARIABLE program_files)
    set(man_pages ${PROJECT_BINARY_DIR}/man)
    add_custom_command(OUTPUT ${man_pages}/gyre.1.gz
      COMMAND ${PROJECT_SOURCE_DIR}/tools/man_pages.sh ${man_pages} ${program_files}
      DEPENDS ${programs} ${PROJECT_SOURCE_DIR}/tools/man_pages.sh
      COMMENT "Writing the manual pages" VERBATIM)
    add_custom_target(gyre_man_pages DEPENDS ${man_pages}/gyre.1.gz)
    # Packages have them, and so has an installation that was asked for them: `cmake --build BUILD --target gyre_man_pages`.
    install(DIRECTORY ${man_pages}/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT tools OPTIONAL
            PATTERN "gyre-nats*" EXCLUDE PATTERN "gyre-ask*" EXCLUDE)
    if(GYRE_NATS)
      install(DIRECTORY ${man_pages}/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT nats OPTIONAL
              FILES_MATCHING PATTERN "gyre-nats*" PATTERN "gyre-ask*")
    endif()
  endif()
endif()

# Headers: all that users include, and what a kernel includes; none that needs CUDA's.
set(installed_headers ${CMAKE_INSTALL_INCLUDEDIR}/gyre)
foreach(folder messages bridge device runtime)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/${folder}/ DESTINATION ${installed_headers}/${folder}
          FILES_MATCHING PATTERN "*.hpp" PATTERN "*.h" PATTERN cuda EXCLUDE PATTERN compiler EXCLUDE PATTERN process EXCLUDE
          PATTERN nats EXCLUDE)
endforeach()
install(FILES ${PROJECT_SOURCE_DIR}/runtime/gyre.hpp ${PROJECT_SOURCE_DIR}/runtime/testing.hpp
        DESTINATION ${installed_headers})
install(FILES ${PROJECT_SOURCE_DIR}/messages/recording.capnp DESTINATION ${installed_headers}/messages)
get_target_property(views gyre_messages GYRE_VIEWS)
foreach(view IN LISTS views)
  get_filename_component(folder "${view}" DIRECTORY)
  string(REGEX REPLACE "\\.view\\.hpp$" "" name "${PROJECT_BINARY_DIR}/generated/${view}")
  install(FILES "${name}.view.hpp" "${name}.official.hpp" "${name}.capnp.h"
          DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/${folder})
  file(REAL_PATH "${name}.capnp" schema)
  install(FILES "${schema}" DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/${folder})
endforeach()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/gyre)
install(EXPORT gyre_targets NAMESPACE gyre:: DESTINATION ${package_dir} FILE gyre-targets.cmake)
# The gateway to NATS, in an export of its own: who has no libnats finds the rest of the package all the same.
if(GYRE_NATS)
  set_target_properties(gyre_nats PROPERTIES EXPORT_NAME nats)
  install(TARGETS gyre_nats EXPORT gyre_nats_targets)
  install(EXPORT gyre_nats_targets NAMESPACE gyre:: DESTINATION ${package_dir} FILE gyre-nats-targets.cmake)
  install(FILES ${PROJECT_SOURCE_DIR}/cmake/gyre_libnats.cmake DESTINATION ${package_dir})
  foreach(header gateway headers options subject)
    install(FILES ${PROJECT_SOURCE_DIR}/runtime/nats/${header}.hpp DESTINATION ${installed_headers}/runtime/nats)
  endforeach()
endif()
install(FILES ${PROJECT_SOURCE_DIR}/cmake/gyre_add_actors.cmake ${PROJECT_SOURCE_DIR}/cmake/embed_sources.cmake
              ${PROJECT_SOURCE_DIR}/cmake/schema_imports.cmake ${PROJECT_SOURCE_DIR}/cmake/gyre_capnp.cmake
              ${PROJECT_SOURCE_DIR}/cmake/gyre_build_type.cmake ${PROJECT_SOURCE_DIR}/cmake/gyre_static_program.cmake
        DESTINATION ${package_dir})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/gyre-config.cmake.in
                              ${PROJECT_BINARY_DIR}/gyre-config.cmake INSTALL_DESTINATION ${package_dir}
                              PATH_VARS CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/gyre-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/gyre-config.cmake ${PROJECT_BINARY_DIR}/gyre-config-version.cmake
        DESTINATION ${package_dir})

# For builds without CMake. gyre.pc: the C++ runtime and the built-in actors, static libraries; gyre-c.pc: the shared library
# with the C interface.
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig
           OUTPUT_VARIABLE GYRE_PC_PREFIX)
set(GYRE_PC_LIBRARIES "")
set(GYRE_PC_DEFINITIONS "")
foreach(library IN LISTS libraries)
  get_target_property(type ${library} TYPE)
  if(type STREQUAL "STATIC_LIBRARY" AND NOT library STREQUAL "gyre_telemetry")
    string(APPEND GYRE_PC_LIBRARIES " -l${library}")
    get_target_property(definitions ${library} INTERFACE_COMPILE_DEFINITIONS)
    if(definitions)
      list(TRANSFORM definitions PREPEND "-D")
      list(APPEND GYRE_PC_DEFINITIONS ${definitions})
    endif()
  endif()
endforeach()
list(REMOVE_DUPLICATES GYRE_PC_DEFINITIONS)
list(JOIN GYRE_PC_DEFINITIONS " " GYRE_PC_DEFINITIONS)
set(GYRE_PC_REQUIRES "")
if(NOT GYRE_STATIC)
  set(GYRE_PC_REQUIRES "fmt")
endif()
configure_file(${PROJECT_SOURCE_DIR}/cmake/gyre.pc.in ${PROJECT_BINARY_DIR}/gyre.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/gyre.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
if(TARGET gyre_c)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/gyre-c.pc.in ${PROJECT_BINARY_DIR}/gyre-c.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/gyre-c.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()

include(gyre_debian_packages)
