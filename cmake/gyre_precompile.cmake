# gyre_precompile(target HEADER...): what most of the target's sources include is compiled once, by g++ alone. Not under a
# compiler launcher: ccache finds nothing again that was compiled so.
# gyre_precompile_as(target other): with the headers of `other`; a source that compiles with other definitions than they
# did takes longer, and says so.
# gyre_precompile_like(target other HEADER...): where sources compile together (below), with the headers of `other`, which
# must be position-independent; elsewhere with HEADER..., or without precompiled headers where none is named.
# gyre_compile_together(target [BATCH]): the target's sources compile several at a time (BATCH, or 12) where headers are
# precompiled: what all of them instantiate is then compiled once. They share a namespace without a name. Other compilers
# see each of them alone, and so do release builds, whose speed is not to hang on their neighbours, and projects that add
# Gyre. For an editor that wants each source's own command: -DCMAKE_CXX_COMPILER_LAUNCHER=ccache.
if(CMAKE_CXX_COMPILER_LAUNCHER OR NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(GYRE_PRECOMPILES OFF)
else()
  set(GYRE_PRECOMPILES ON)
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
    target_compile_options(${target} PRIVATE -Wno-error=invalid-pch)
  endif()
endfunction()

function(gyre_precompile_like target other)
  if(GYRE_COMPILES_TOGETHER)
    target_precompile_headers(${target} REUSE_FROM ${other})
    # fmt's definitions are those of the headers, which include it.
    target_link_libraries(${target} PRIVATE ${GYRE_FMT})
    target_compile_options(${target} PRIVATE -fPIC -fno-semantic-interposition -Wno-error=invalid-pch)
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
