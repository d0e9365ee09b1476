# Most of a file's compile time is reading headers of libraries: 5 of the 5.5 seconds of a small file of executor/ops.
# So the headers that many files include are read once for each kind of target
# (docs/decisions/0010-precompiled-headers.md). Only g++ builds have them: those by clang are few.

# precompiled(KIND HEADER OPTION LINKS...): makes cmake/precompiled/HEADER.h for files that are compiled with OPTION, as
# g++ takes what was precompiled only with the same options.
function(precompiled kind header option)
  if(PLANWRIGHT_EACH_FILE_ALONE OR NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    return()
  endif()
  # CMake wants a source in every target.
  set(source ${PROJECT_BINARY_DIR}/precompiled_${kind}.cc)
  file(CONFIGURE OUTPUT ${source} CONTENT "// Nothing but what is precompiled.\n")
  add_library(precompiled_${kind} OBJECT EXCLUDE_FROM_ALL ${source})
  target_include_directories(precompiled_${kind} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(precompiled_${kind} PRIVATE ${ARGN} warnings)
  target_compile_options(precompiled_${kind} PRIVATE ${option} -fpch-preprocess)  # the latter for ccache
  target_precompile_headers(precompiled_${kind} PRIVATE <cmake/precompiled/${header}.h>)
endfunction()

# Code that runs a few times in a command: -O2 would take a seventh to two fifths longer to compile.
set(little_optimized "$<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-O1>")
# Tests of the planner and of whole runs: with -O1 they would take a fifth longer to compile. Those that see LibTorch
# compute much themselves, and keep -O1. g++ looks for unused memory less often: that takes a tenth less time,
# and 100 MB more.
set(test_optimized "$<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-Og>")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND test_optimized "$<$<COMPILE_LANGUAGE:CXX>:SHELL:--param ggc-min-heapsize=600000>"
       "$<$<COMPILE_LANGUAGE:CXX>:SHELL:--param ggc-min-expand=300>")
endif()

# A target that sees LibTorch passes that on to those that link it.
function(pass_on_torch name)
  foreach(link IN LISTS ARGN)
    if(TARGET ${link})
      get_target_property(sees_torch ${link} PLANWRIGHT_SEES_TORCH)
      if(sees_torch)
        set_target_properties(${name} PROPERTIES PLANWRIGHT_SEES_TORCH TRUE)
      endif()
    endif()
  endforeach()
endfunction()

# use_precompiled(TARGET SUFFIX LINKS...): gives a target with these links the headers of its kind. SUFFIX is "_tests"
# or "_once", for a target that is optimized little, or "".
function(use_precompiled name suffix)
  pass_on_torch(${name} ${ARGN})
  get_target_property(sees_torch ${name} PLANWRIGHT_SEES_TORCH)
  set(kind planner)
  if(sees_torch)
    set(kind executor)
  endif()
  if(kind STREQUAL "planner" AND suffix STREQUAL "_tests")
    target_compile_options(${name} PRIVATE ${test_optimized})
  elseif(suffix)
    target_compile_options(${name} PRIVATE ${little_optimized})
  endif()
  if(TARGET precompiled_${kind}${suffix})
    target_compile_options(${name} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>")
    target_precompile_headers(${name} REUSE_FROM precompiled_${kind}${suffix})
  endif()
endfunction()
