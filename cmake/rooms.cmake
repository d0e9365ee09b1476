# The house: wings, the rooms in them, and what each may use.
#
# A wing is a folder with one subject, a room a static library in it with one idea. The target of a room is WING_ROOM.
# The main room of a wing lies in the wing's own folder and has its name. Wings and rooms are added in the order in
# which data walks, so one that is not there yet cannot be used. tests/style/rooms.py reads what is noted here, and
# refuses an include of what a room does not link.

# wing(NAME [USES WING...] ROOMS ROOM...): the rooms of a wing, each of which may use rooms before it. A wing uses the
# wings that it names, and what those use.
function(wing name)
  cmake_parse_arguments(WING "" "" "USES;ROOMS" ${ARGN})
  set(reached ${name})
  foreach(used IN LISTS WING_USES)
    get_property(further GLOBAL PROPERTY PLANWRIGHT_REACHED_BY_${used})
    if(NOT further)
      message(FATAL_ERROR "wing ${name} uses ${used}, which is not a wing before it")
    endif()
    list(APPEND reached ${further})
  endforeach()
  list(REMOVE_DUPLICATES reached)
  set_property(GLOBAL PROPERTY PLANWRIGHT_REACHED_BY_${name} ${reached})
  note_in_house("wing ${name} uses ${WING_USES}")

  set(ROOM_WING ${name})
  cmake_path(GET CMAKE_CURRENT_SOURCE_DIR FILENAME folder)
  foreach(room IN LISTS WING_ROOMS)
    set(place ${name}/${room})
    set(ROOM_TARGET ${name}_${room})
    if(room STREQUAL name)
      set(place ${name})
      set(ROOM_TARGET ${name})
    elseif(folder STREQUAL name)
      set(place ${room})
    endif()
    add_subdirectory(${place})
  endforeach()
endfunction()

# declare_room(NAME LINK...): notes what the files of this folder may include. Refuses links to rooms of wings that this
# one does not use, and to what is not there yet.
function(declare_room name)
  # `plan` is the program, so the main room of the wing `plan` is `plan_ir`.
  if(NOT name STREQUAL ROOM_TARGET AND NOT name STREQUAL "${ROOM_TARGET}_ir")
    message(FATAL_ERROR "the room in this folder is called ${ROOM_TARGET}, not ${name}")
  endif()
  get_property(reached GLOBAL PROPERTY PLANWRIGHT_REACHED_BY_${ROOM_WING})
  set(rooms)
  foreach(link IN LISTS ARGN)
    get_property(wing GLOBAL PROPERTY PLANWRIGHT_WING_OF_${link})
    if(wing AND NOT wing IN_LIST reached)
      message(FATAL_ERROR "room ${name} links ${link}, but the wing ${ROOM_WING} does not use ${wing}")
    elseif(NOT wing AND NOT TARGET ${link})
      message(FATAL_ERROR "room ${name} links ${link}, which is not a room before it")
    elseif(wing)
      list(APPEND rooms ${link})
    endif()
  endforeach()
  set_property(GLOBAL PROPERTY PLANWRIGHT_WING_OF_${name} ${ROOM_WING})
  cmake_path(RELATIVE_PATH CMAKE_CURRENT_SOURCE_DIR BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE folder)
  note_in_house("room ${name} in ${folder} links ${rooms}")
endfunction()

# room(NAME [ONCE] SOURCES ... LINKS ... [CUDA_SOURCES ...] [CUDA_LINKS ...] [CPU_SOURCES ...]): the library of the room
# in this folder. A room of headers alone has no SOURCES. ONCE: its code runs a few times in a command, so it is
# compiled faster and optimized less. CUDA_: what a build for GPUs has; CPU_SOURCES: what another build has instead.
function(room name)
  cmake_parse_arguments(ROOM "ONCE" "" "SOURCES;LINKS;CUDA_SOURCES;CUDA_LINKS;CPU_SOURCES" ${ARGN})
  if(PLANWRIGHT_CUDA)
    declare_room(${name} ${ROOM_LINKS} ${ROOM_CUDA_LINKS})
    list(APPEND ROOM_LINKS ${ROOM_CUDA_LINKS})
  else()
    list(FILTER ROOM_CUDA_LINKS EXCLUDE REGEX "^torch_cuda$")  # there is none
    declare_room(${name} ${ROOM_LINKS} ${ROOM_CUDA_LINKS})
  endif()
  if(NOT ROOM_SOURCES)
    add_library(${name} INTERFACE)
    target_include_directories(${name} INTERFACE ${PROJECT_SOURCE_DIR})
    target_link_libraries(${name} INTERFACE ${ROOM_LINKS})
    pass_on_torch(${name} ${ROOM_LINKS})
    return()
  endif()
  in_batches(sources ${name} ${ROOM_SOURCES})
  if(PLANWRIGHT_CUDA)
    list(APPEND sources ${ROOM_CUDA_SOURCES})
  else()
    list(APPEND sources ${ROOM_CPU_SOURCES})
  endif()
  add_library(${name} STATIC ${sources})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PUBLIC ${ROOM_LINKS} PRIVATE warnings)
  if(ROOM_ONCE)
    use_precompiled(${name} _once ${ROOM_LINKS})
  else()
    use_precompiled(${name} "" ${ROOM_LINKS})
  endif()
endfunction()

# program(NAME SOURCE LINKS ...): a program made of rooms.
function(program name source)
  cmake_parse_arguments(PROGRAM "" "" "LINKS" ${ARGN})
  add_executable(${name} ${source})
  target_link_libraries(${name} PRIVATE ${PROGRAM_LINKS} warnings)
  cmake_path(ABSOLUTE_PATH source OUTPUT_VARIABLE source)
  cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
  note_in_house("program ${source} links ${PROGRAM_LINKS}")
endfunction()

# A line of BUILD/house.txt, which is written when all rooms are declared.
function(note_in_house line)
  get_property(house GLOBAL PROPERTY PLANWRIGHT_HOUSE)
  if(NOT house)
    cmake_language(EVAL CODE "cmake_language(DEFER DIRECTORY [[${PROJECT_SOURCE_DIR}]] CALL write_house)")
  endif()
  string(REPLACE ";" " " line "${line}")
  set_property(GLOBAL APPEND_STRING PROPERTY PLANWRIGHT_HOUSE "${line}\n")
endfunction()

function(write_house)
  get_property(house GLOBAL PROPERTY PLANWRIGHT_HOUSE)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/house.txt CONTENT "${house}" @ONLY)
endfunction()

# Seconds after which a test is ended. Only a test that hangs takes so long, even on a slow and busy machine; times are
# measured by ./dev bench.
set(TEST_PATIENCE 3600)

# room_test(NAME SOURCES ... LINKS ...): one GoogleTest binary. Each TEST is a ctest case, but where LibTorch is linked
# the binary is: each process that loads it costs more than most tests. Those with Soak in their name are for
# ./dev soak.
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
                       TEST_FILTER -*Soak*
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
