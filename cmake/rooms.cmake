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
  add_library(${name} STATIC ${ROOM_SOURCES})
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

# room_test(NAME SOURCES ... LINKS ...): one GoogleTest binary, one ctest case per TEST.
function(room_test name)
  cmake_parse_arguments(TEST "" "" "SOURCES;LINKS" ${ARGN})
  add_executable(${name} ${TEST_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_definitions(${name} PRIVATE PLANWRIGHT_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                             PLANWRIGHT_BINARY_DIR="${PROJECT_BINARY_DIR}")
  target_link_libraries(${name} PRIVATE ${TEST_LINKS} GTest::gmock GTest::gtest_main warnings)
  use_precompiled(${name} _tests ${TEST_LINKS})
  # GPU binaries may be built on a machine that cannot run them, so their tests are listed only when ctest starts.
  set(mode POST_BUILD)
  if(PLANWRIGHT_CUDA)
    set(mode PRE_TEST)
  endif()
  gtest_discover_tests(${name} TEST_PREFIX "${name}." DISCOVERY_TIMEOUT ${TEST_PATIENCE} DISCOVERY_MODE ${mode}
                       PROPERTIES TIMEOUT ${TEST_PATIENCE})
endfunction()
