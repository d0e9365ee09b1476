# Most of a file's compile time is reading headers of libraries: 5 of the 5.5 seconds of a small file of executor/ops.
# So the headers that many files include are read once, into one of four files, and all targets of a kind share it. Only
# g++ builds use them; clang's are slower with a compiler cache, and few.
option(PLANWRIGHT_PCH "precompile headers; OFF shows that each file includes what it needs (./dev lint)" ON)

# precompiled(KIND LINKS...): makes the headers of cmake/precompiled/KIND.h.
function(precompiled kind)
  if(NOT PLANWRIGHT_PCH OR NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    return()
  endif()
  # CMake wants a source in every target.
  set(source ${PROJECT_BINARY_DIR}/precompiled_${kind}.cc)
  file(CONFIGURE OUTPUT ${source} CONTENT "// Nothing but what is precompiled.\n")
  add_library(precompiled_${kind} OBJECT EXCLUDE_FROM_ALL ${source})
  target_include_directories(precompiled_${kind} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(precompiled_${kind} PRIVATE ${ARGN} warnings)
  target_compile_options(precompiled_${kind} PRIVATE -fpch-preprocess)  # for ccache
  target_precompile_headers(precompiled_${kind} PRIVATE <cmake/precompiled/${kind}.h>)
endfunction()

# use_precompiled(TARGET SUFFIX LINKS...): gives a target with these links the headers of its kind. SUFFIX is "_tests"
# or "". A target that sees LibTorch passes that on to those that link it.
function(use_precompiled name suffix)
  set(kind planner)
  foreach(link IN LISTS ARGN)
    if(TARGET ${link})
      get_target_property(sees_torch ${link} PLANWRIGHT_SEES_TORCH)
      if(sees_torch)
        set(kind executor)
        set_target_properties(${name} PROPERTIES PLANWRIGHT_SEES_TORCH TRUE)
      endif()
    endif()
  endforeach()
  if(TARGET precompiled_${kind}${suffix})
    target_compile_options(${name} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>")
    target_precompile_headers(${name} REUSE_FROM precompiled_${kind}${suffix})
  endif()
endfunction()
