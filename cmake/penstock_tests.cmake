# One GoogleTest executable per folder of tests, <folder>_tests; with CUDA also device_cuda_tests, which has a main of its own
# so that it runs on a machine with a GPU and nothing else.

find_package(GTest QUIET)
if(NOT GTest_FOUND AND NOT PENSTOCK_HAS_CUDA)
  message(FATAL_ERROR "the tests need GoogleTest: install libgtest-dev, or configure with -DPENSTOCK_TESTS=OFF")
endif()

set(tests_folder ${PROJECT_SOURCE_DIR}/tests)
set(PENSTOCK_TEST_FOLDERS "schedule;host;contract;fault;nvme;device" CACHE STRING "Folders whose GoogleTest programs are built")

# Compiling the tests takes longer than running them. Headers of others are read once for each program; tests are compiled for
# less speed than the libraries that they link (-O2 takes three minutes for tests/device/array_test.cpp, -O1 one).
function(penstock_quick_compile target)
  set(often_included algorithm atomic chrono deque filesystem fstream functional map memory mutex optional random set span
                     string thread vector gtest/gtest.h)
  list(TRANSFORM often_included REPLACE "(.+)" "<\\1>")
  target_precompile_headers(${target} PRIVATE ${often_included})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -fpch-preprocess)  # or ccache leaves them to the compiler
  endif()
  if(NOT PENSTOCK_SANITIZE)
    target_compile_options(${target} PRIVATE $<$<CONFIG:RelWithDebInfo>:-O1>)
  endif()
endfunction()

if(GTest_FOUND)
  file(GLOB support_sources CONFIGURE_DEPENDS ${tests_folder}/support/*.cpp)
  if(support_sources)
    add_library(penstock_test_support STATIC ${support_sources})
    penstock_warnings(penstock_test_support)
    set(support_scope PUBLIC)
  else()
    add_library(penstock_test_support INTERFACE)
    set(support_scope INTERFACE)
  endif()
  target_include_directories(penstock_test_support ${support_scope} ${tests_folder})
  target_link_libraries(penstock_test_support ${support_scope} penstock_libs GTest::gtest)
  add_dependencies(penstock_libraries penstock_test_support)

  # Each in parts, so that no core waits for the last one; the longest last, which is how ctest is to start them: first.
  set(cost 0)
  foreach(folder IN LISTS PENSTOCK_TEST_FOLDERS)
    # Its threads take turns on one: there is no race that ThreadSanitizer could see.
    if(folder STREQUAL "schedule" AND PENSTOCK_SANITIZE STREQUAL "thread")
      continue()
    endif()
    file(GLOB test_sources CONFIGURE_DEPENDS ${tests_folder}/${folder}/*.cpp)
    if(test_sources)
      add_executable(${folder}_tests ${test_sources})
      target_link_libraries(${folder}_tests PRIVATE penstock_test_support GTest::gtest_main)
      penstock_warnings(${folder}_tests)
      penstock_quick_compile(${folder}_tests)
      set(parts 4)
      foreach(part RANGE 1 ${parts})
        math(EXPR index "${part} - 1")
        math(EXPR cost "${cost} + 1")
        add_test(NAME ${folder}_${part} COMMAND ${folder}_tests)
        set_tests_properties(
          ${folder}_${part} PROPERTIES TIMEOUT 600 COST ${cost} ENVIRONMENT
                                       "GTEST_TOTAL_SHARDS=${parts};GTEST_SHARD_INDEX=${index}")
      endforeach()
    endif()
  endforeach()
else()
  message(STATUS "GoogleTest not found: only the tests for CUDA")
endif()

# What a guest runs: on its own, for it has no libraries. Sanitizers need some.
if(NOT PENSTOCK_SANITIZE AND NOT PENSTOCK_HAS_CUDA)
  add_executable(nvme_guest ${tests_folder}/guest/nvme_guest.cpp)
  target_link_libraries(nvme_guest PRIVATE penstock)
  target_include_directories(nvme_guest PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_options(nvme_guest PRIVATE -static)
  penstock_warnings(nvme_guest)
endif()

# Lanes on QEMU's drive: one program, for CPU threads, and for CUDA's where nvcc is. It carries its own half of the support.
function(penstock_add_lanes target source)
  add_executable(${target} ${source} ${tests_folder}/support/qemu_function.cpp ${tests_folder}/support/qemu_machine.cpp
                           ${tests_folder}/support/qemu_program.cpp)
  target_include_directories(${target} PRIVATE ${tests_folder} ${PROJECT_SOURCE_DIR})
  target_link_libraries(${target} PRIVATE penstock_libs)
  penstock_warnings(${target})
endfunction()
penstock_add_lanes(drive_lanes ${tests_folder}/gpu/drive_lanes.cpp)
add_test(NAME drive_lanes COMMAND drive_lanes --executor cpu --graph kron:12 --pieces 256 --sources 1)
set_tests_properties(drive_lanes PROPERTIES TIMEOUT 300 SKIP_RETURN_CODE 77)
if(PENSTOCK_HAS_CUDA)
  configure_file(${tests_folder}/gpu/drive_lanes.cpp ${PROJECT_BINARY_DIR}/gpu/drive_lanes.cu COPYONLY)
  penstock_add_lanes(drive_lanes_cuda ${PROJECT_BINARY_DIR}/gpu/drive_lanes.cu)
  penstock_fit_launch(drive_lanes_cuda)
endif()

# An example that runs: a copy is the file. CI compiles all of them, as a project outside.
function(penstock_test_copy target source executor)
  add_executable(${target} ${source})
  target_link_libraries(${target} PRIVATE penstock)
  penstock_warnings(${target})
  penstock_fit_launch(${target})
  add_test(NAME ${target} COMMAND ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:${target}> -DEXECUTOR=${executor}
                                  -DFOLDER=${PROJECT_BINARY_DIR}/${target}_test -P ${tests_folder}/examples/copy_blocks.cmake)
endfunction()
set(copy_blocks ${PROJECT_SOURCE_DIR}/examples/copy_blocks.cpp)
penstock_test_copy(example_copy_blocks ${copy_blocks} cpu)
if(PENSTOCK_HAS_CUDA AND EXISTS /dev/nvidiactl)
  configure_file(${copy_blocks} ${PROJECT_BINARY_DIR}/examples/copy_blocks.cu COPYONLY)
  penstock_test_copy(example_copy_blocks_cuda ${PROJECT_BINARY_DIR}/examples/copy_blocks.cu cuda)
endif()

if(PENSTOCK_HAS_CUDA)
  file(GLOB cuda_test_sources CONFIGURE_DEPENDS ${tests_folder}/device/*.cu)
  if(cuda_test_sources)
    add_executable(device_cuda_tests ${cuda_test_sources})
    target_include_directories(device_cuda_tests PRIVATE ${tests_folder})
    penstock_fit_launch(device_cuda_tests)
    target_link_libraries(device_cuda_tests PRIVATE penstock_libs)
    if(EXISTS /dev/nvidiactl)
      add_test(NAME device_cuda COMMAND device_cuda_tests)
      set_tests_properties(device_cuda PROPERTIES TIMEOUT 900)
    endif()
  endif()
endif()
