# gyre_precompile(target HEADER...): what most of the target's sources include is compiled once, by g++ and by clang. Not
# under a compiler launcher: ccache finds nothing again that was compiled so. Nor by clang with sanitizers.
# gyre_precompile_as(target other): with the headers of `other`; a source that compiles with other definitions than they
# did takes longer, and says so.
# gyre_precompile_like(target other HEADER...): where sources compile together (below), with the headers of `other`, which
# must be position-independent; elsewhere with HEADER..., or without precompiled headers where none is named. By clang a
# target with a visibility of its own has none: clang refuses headers that were precompiled with another one.
# gyre_compile_together(target [BATCH]): the target's sources compile several at a time (BATCH, or 12) where headers are
# precompiled: what all of them instantiate is then compiled once. They share a namespace without a name. Other compilers
# see each of them alone, and so do release builds, whose speed must not depend on what is compiled beside them, and projects
# that add Gyre. For an editor that wants each source's own command: -DCMAKE_CXX_COMPILER_LAUNCHER=ccache.
set(GYRE_PRECOMPILES OFF)
if(NOT CMAKE_CXX_COMPILER_LAUNCHER)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" OR (CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND NOT GYRE_SANITIZE))
    set(GYRE_PRECOMPILES ON)
  endif()
endif()
if(NOT GYRE_PRECOMPILES OR NOT PROJECT_IS_TOP_LEVEL OR CMAKE_CONFIGURATION_TYPES OR CMAKE_BUILD_TYPE MATCHES "Rel")
  set(GYRE_COMPILES_TOGETHER OFF)
else()
  set(GYRE_COMPILES_TOGETHER ON)
endif()

function(gyre_precompile target)
  if(GYRE_PRECOMPILES)
    target_precompile_headers(${target} PRIVATE ${ARGN})
  endif()
endfunction()

function(gyre_precompile_as target other)
  get_target_property(owner ${other} PRECOMPILE_HEADERS_REUSE_FROM)
  if(owner)
    gyre_precompile_like(${target} ${owner})
  elseif(GYRE_PRECOMPILES)
    target_precompile_headers(${target} REUSE_FROM ${other})
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      target_compile_options(${target} PRIVATE -Wno-error=invalid-pch)
    endif()
  endif()
endfunction()

function(gyre_precompile_like target other)
  get_target_property(visibility ${target} CXX_VISIBILITY_PRESET)
  if(GYRE_COMPILES_TOGETHER)
    if(visibility AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
      return()
    endif()
    target_precompile_headers(${target} REUSE_FROM ${other})
    # fmt's definitions are those of the headers, which include it.
    target_link_libraries(${target} PRIVATE ${GYRE_FMT})
    target_compile_options(${target} PRIVATE -fPIC)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      target_compile_options(${target} PRIVATE -fno-semantic-interposition -Wno-error=invalid-pch)
    endif()
  elseif(ARGN)
    gyre_precompile(${target} ${ARGN})
  endif()
endfunction()

function(gyre_compile_together target)
  set(batch 12)
  if(ARGC GREATER 1)
    set(batch ${ARGV1})
  endif()
  if(GYRE_COMPILES_TOGETHER)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${batch})
  endif()
endfunction()
