# gyre_precompile(target HEADER...): what most of the target's sources include is compiled once. Not under a compiler
# launcher: ccache finds nothing again that was compiled so.
# gyre_precompile_as(target other): with the headers of `other`; both must compile with the same definitions.
if(CMAKE_CXX_COMPILER_LAUNCHER)
  set(GYRE_PRECOMPILES OFF)
else()
  set(GYRE_PRECOMPILES ON)
endif()

function(gyre_precompile target)
  if(GYRE_PRECOMPILES)
    target_precompile_headers(${target} PRIVATE ${ARGN})
  endif()
endfunction()

function(gyre_precompile_as target other)
  if(GYRE_PRECOMPILES)
    target_precompile_headers(${target} REUSE_FROM ${other})
  endif()
endfunction()
