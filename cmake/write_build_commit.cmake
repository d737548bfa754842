# Writes the header OUT with the commit of SOURCE, and does not touch it where it already says so: an unchanged commit
# compiles nothing. "unknown" outside git, without git, and where SOURCE lies in the repository of another project.
# Use: cmake -DSOURCE=FOLDER -DOUT=FILE -P write_build_commit.cmake
set(commit unknown)
set(dirty false)
find_program(git NAMES git)
if(git)
  execute_process(COMMAND ${git} -C ${SOURCE} rev-parse --show-toplevel
                  OUTPUT_VARIABLE top ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  file(REAL_PATH "${SOURCE}" source)
  if(top STREQUAL source)
    execute_process(COMMAND ${git} -C ${SOURCE} rev-parse --short=12 HEAD RESULT_VARIABLE failed
                    OUTPUT_VARIABLE head ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(NOT failed)
      set(commit ${head})
      execute_process(COMMAND ${git} --no-optional-locks -C ${SOURCE} status --porcelain --untracked-files=no
                      OUTPUT_VARIABLE changes ERROR_QUIET)
      if(NOT changes STREQUAL "")
        set(dirty true)
      endif()
    endif()
  endif()
endif()
set(text "#define GYRE_BUILD_COMMIT \"${commit}\"\n#define GYRE_BUILD_DIRTY ${dirty}\n")
set(before "")
if(EXISTS ${OUT})
  file(READ ${OUT} before)
endif()
if(NOT text STREQUAL before)
  file(WRITE ${OUT} "${text}")
endif()
