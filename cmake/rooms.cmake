# Half of a planner room's compile time is reading other people's headers. Where no compiler cache remembers it (the first build on a bare
# machine) the planner's rooms read them once. The other builds show that no file leans on this for its includes.
function(precompile_headers name)
  if(CCACHE OR NOT CMAKE_CURRENT_SOURCE_DIR MATCHES "^${PROJECT_SOURCE_DIR}/planner(/|$)")
    return()
  endif()
  if(name STREQUAL "diagnostics")  # the first room; the others share its file
    target_precompile_headers(${name} PRIVATE <algorithm> <functional> <map> <memory> <optional> <set> <string> <string_view> <variant> <vector>
                              <absl/status/statusor.h> <absl/strings/str_cat.h> <absl/strings/str_join.h> <nlohmann/json.hpp>)
  else()
    target_precompile_headers(${name} REUSE_FROM diagnostics)
  endif()
endfunction()

# A room is one static library with one idea. room(NAME SOURCES ... LINKS ...) declares it and refuses to link a room that
# comes later in the walk: rooms are added in walking order, so a backward link names a target that does not exist yet.
function(room name)
  cmake_parse_arguments(ROOM "" "" "SOURCES;LINKS" ${ARGN})
  foreach(link IN LISTS ROOM_LINKS)
    if(NOT TARGET ${link})
      message(FATAL_ERROR "room ${name} links ${link}, which is not a room before it")
    endif()
  endforeach()
  add_library(${name} STATIC ${ROOM_SOURCES})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PUBLIC ${ROOM_LINKS} PRIVATE warnings)
  precompile_headers(${name})
endfunction()

# Seconds after which a test is ended. Machines may be slow and busy, and no test judges that (seconds are for ./dev bench): only what hangs takes
# so long.
set(TEST_PATIENCE 3600)

# room_test(NAME SOURCES ... LINKS ...): one GoogleTest binary, one ctest case per TEST.
function(room_test name)
  cmake_parse_arguments(TEST "" "" "SOURCES;LINKS" ${ARGN})
  add_executable(${name} ${TEST_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_definitions(${name} PRIVATE PLANWRIGHT_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                             PLANWRIGHT_BINARY_DIR="${PROJECT_BINARY_DIR}")
  target_link_libraries(${name} PRIVATE ${TEST_LINKS} GTest::gmock GTest::gtest_main warnings)
  # Binaries for GPUs may be built where they cannot run: their tests are listed when they are asked for.
  set(mode POST_BUILD)
  if(PLANWRIGHT_CUDA)
    set(mode PRE_TEST)
  endif()
  gtest_discover_tests(${name} TEST_PREFIX "${name}." DISCOVERY_TIMEOUT ${TEST_PATIENCE} DISCOVERY_MODE ${mode}
                       PROPERTIES TIMEOUT ${TEST_PATIENCE})
endfunction()
