# gyre_optimise_by_default(target): what links `target` is compiled with -O2 where the project names no build type, and
# configuring warns of it. Without this the CPU engine's workers, which a program compiles itself, take 3.5 times as
# long. A build type, or an optimisation level in CMAKE_CXX_FLAGS, decides for itself.
function(gyre_optimise_by_default target)
  get_property(several_configurations GLOBAL PROPERTY GENERATOR_IS_MULTI_CONFIG)
  if(several_configurations OR CMAKE_BUILD_TYPE OR CMAKE_CXX_FLAGS MATCHES "(^| )-O")
    return()
  endif()
  message(WARNING "Gyre: CMAKE_BUILD_TYPE is empty, which optimises nothing. What links Gyre is compiled with -O2; "
                  "configure with -DCMAKE_BUILD_TYPE=Release to optimise the rest of the project, or with "
                  "-DCMAKE_BUILD_TYPE=Debug to optimise nothing.")
  # Asked again when building files are generated: the project may set a build type later.
  target_compile_options(${target} INTERFACE "$<BUILD_INTERFACE:$<$<STREQUAL:$<CONFIG>,>:-O2>>")
endfunction()
