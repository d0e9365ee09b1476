# A room is a static library with one idea. room(NAME [ONCE] SOURCES ... LINKS ...) declares it and refuses links to
# later rooms. ONCE: its code runs a few times in a command, so it is compiled faster and optimized less.
# Rooms are added in the order in which data walks, so a link to a later room names a target that does not exist yet.
function(room name)
  cmake_parse_arguments(ROOM "ONCE" "" "SOURCES;LINKS" ${ARGN})
  foreach(link IN LISTS ROOM_LINKS)
    if(NOT TARGET ${link})
      message(FATAL_ERROR "room ${name} links ${link}, which is not a room before it")
    endif()
  endforeach()
  in_batches(sources ${name} ${ROOM_SOURCES})
  add_library(${name} STATIC ${sources})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PUBLIC ${ROOM_LINKS} PRIVATE warnings)
  if(ROOM_ONCE)
    use_precompiled(${name} _once ${ROOM_LINKS})
  else()
    use_precompiled(${name} "" ${ROOM_LINKS})
  endif()
endfunction()

# Seconds after which a test is ended. Only a test that hangs takes so long, even on a slow and busy machine; times are
# measured by ./dev bench.
set(TEST_PATIENCE 3600)

# room_test(NAME SOURCES ... LINKS ...): one GoogleTest binary. Each TEST is a ctest case, but where LibTorch is linked
# the binary is: each process that loads it costs more than most tests.
function(room_test name)
  cmake_parse_arguments(TEST "" "" "SOURCES;LINKS" ${ARGN})
  in_batches(sources ${name} ${TEST_SOURCES})
  add_executable(${name} ${sources})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${TEST_LINKS} test_main GTest::gmock warnings)
  use_precompiled(${name} _tests ${TEST_LINKS})
  if("${TEST_LINKS}" MATCHES "executor_")
    whole_test(${name})
    return()
  endif()
  # Names stay as tests give them. CMake would put the printed parameter in.
  gtest_discover_tests(${name} TEST_PREFIX "${name}." NO_PRETTY_VALUES DISCOVERY_TIMEOUT ${TEST_PATIENCE}
                       PROPERTIES TIMEOUT ${TEST_PATIENCE})
endfunction()

# test_library(NAME SOURCES ... LINKS ...): what several tests share.
function(test_library name)
  cmake_parse_arguments(SHARED "" "" "SOURCES;LINKS" ${ARGN})
  in_batches(sources ${name} ${SHARED_SOURCES})
  add_library(${name} STATIC ${sources})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PUBLIC ${SHARED_LINKS} PRIVATE warnings)
  use_precompiled(${name} _once ${SHARED_LINKS})
endfunction()

# whole_test(NAME [COST SECONDS] [PROCESSORS N]): a GoogleTest binary as one ctest case, without its tests for ./dev
# soak. COST: its processor seconds, roughly; those that cost most begin first. If all of its tests are skipped, so is
# the case.
function(whole_test name)
  cmake_parse_arguments(CASE "" "COST;PROCESSORS" "" ${ARGN})
  add_test(NAME ${name} COMMAND ${name} --gtest_filter=-*Soak*)
  set_tests_properties(${name} PROPERTIES TIMEOUT ${TEST_PATIENCE} SKIP_RETURN_CODE 77)
  # Threads of OpenMP that wait for each other on a busy machine would burn ten times what the test computes.
  set_tests_properties(${name} PROPERTIES ENVIRONMENT OMP_WAIT_POLICY=passive)
  if(CASE_COST)
    set_tests_properties(${name} PROPERTIES COST ${CASE_COST})
  endif()
  if(CASE_PROCESSORS)
    set_tests_properties(${name} PROPERTIES PROCESSORS ${CASE_PROCESSORS})
  endif()
endfunction()
