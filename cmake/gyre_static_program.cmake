# gyre_static_program(target): the program `target` runs on machines that have neither Cap'n Proto nor a C++ runtime.
# It links them, as Gyre itself, statically; of shared libraries it needs glibc's alone. Driver, NVRTC and Vulkan are
# loaded at run time in any case. docs/how-to/carrying.md says what the other machine must have.
function(gyre_static_program target)
  set(doing "gyre_static_program(${target})")
  set(type "")
  if(TARGET ${target})
    get_target_property(type ${target} TYPE)
  endif()
  if(NOT type STREQUAL "EXECUTABLE")
    message(FATAL_ERROR "${doing}: there is no program of this name; call add_executable(${target} …) before")
  endif()
  if(NOT GYRE_STATIC)
    message(FATAL_ERROR "${doing}: this Gyre was built with GYRE_STATIC=OFF, and needs the shared libraries of Cap'n "
                        "Proto and fmt; use one of preset release, or configure Gyre with -DGYRE_STATIC=ON")
  endif()
  target_link_options(${target} PRIVATE -static-libstdc++ -static-libgcc)
endfunction()
