# One GoogleTest executable per folder of tests, <folder>_tests; with CUDA also device_cuda_tests, which has a main of its own
# so that it runs on a machine with a GPU and nothing else.

find_package(GTest QUIET)
if(NOT GTest_FOUND AND NOT PENSTOCK_HAS_CUDA)
  message(FATAL_ERROR "the tests need GoogleTest: install libgtest-dev, or configure with -DPENSTOCK_TESTS=OFF")
endif()

set(tests_folder ${PROJECT_SOURCE_DIR}/tests)

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
  target_link_libraries(penstock_test_support ${support_scope} penstock_apps GTest::gtest)
  add_dependencies(penstock_libraries penstock_test_support)

  # The longest last, which is how ctest is to start them: first.
  set(cost 0)
  foreach(folder IN ITEMS nvme schedule contract host fault device)
    # Its threads take turns on one: there is no race that ThreadSanitizer could see.
    if(folder STREQUAL "schedule" AND PENSTOCK_SANITIZE STREQUAL "thread")
      continue()
    endif()
    file(GLOB test_sources CONFIGURE_DEPENDS ${tests_folder}/${folder}/*.cpp)
    if(test_sources)
      add_executable(${folder}_tests ${test_sources})
      target_link_libraries(${folder}_tests PRIVATE penstock_test_support GTest::gtest_main)
      penstock_warnings(${folder}_tests)
      # Those of the device take longer than all others together: in parts, so that no core waits for them.
      set(parts 1)
      if(folder STREQUAL "device")
        set(parts 4)
      endif()
      foreach(part RANGE 1 ${parts})
        math(EXPR index "${part} - 1")
        math(EXPR cost "${cost} + 1")
        add_test(NAME ${folder}_${part} COMMAND ${folder}_tests)
        set_tests_properties(
          ${folder}_${part} PROPERTIES TIMEOUT 1500 COST ${cost} ENVIRONMENT
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
  target_link_options(nvme_guest PRIVATE -static)
  penstock_warnings(nvme_guest)
endif()

# What the README shows must compile, by g++ and by nvcc.
foreach(name IN ITEMS sum copy_blocks)
  add_executable(example_${name} ${PROJECT_SOURCE_DIR}/examples/${name}.cpp)
  target_link_libraries(example_${name} PRIVATE penstock)
  penstock_warnings(example_${name})
  if(PENSTOCK_HAS_CUDA)
    configure_file(${PROJECT_SOURCE_DIR}/examples/${name}.cpp ${PROJECT_BINARY_DIR}/examples/${name}.cu COPYONLY)
    add_executable(example_${name}_cuda ${PROJECT_BINARY_DIR}/examples/${name}.cu)
    target_link_libraries(example_${name}_cuda PRIVATE penstock)
    penstock_fit_launch(example_${name}_cuda)
  endif()
endforeach()

# And run: a copy is the file.
function(penstock_test_copy target executor)
  add_test(NAME ${target} COMMAND ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:${target}> -DEXECUTOR=${executor}
                                  -DFOLDER=${PROJECT_BINARY_DIR}/${target}_test -P ${tests_folder}/examples/copy_blocks.cmake)
endfunction()
penstock_test_copy(example_copy_blocks cpu)
if(PENSTOCK_HAS_CUDA AND EXISTS /dev/nvidiactl)
  penstock_test_copy(example_copy_blocks_cuda cuda)
endif()

if(PENSTOCK_HAS_CUDA)
  file(GLOB cuda_test_sources CONFIGURE_DEPENDS ${tests_folder}/device/*.cu)
  if(cuda_test_sources)
    add_executable(device_cuda_tests ${cuda_test_sources})
    target_include_directories(device_cuda_tests PRIVATE ${tests_folder})
    penstock_fit_launch(device_cuda_tests)
    target_link_libraries(device_cuda_tests PRIVATE penstock_apps)
    if(EXISTS /dev/nvidiactl)
      add_test(NAME device_cuda COMMAND device_cuda_tests)
      set_tests_properties(device_cuda PROPERTIES TIMEOUT 900)
    endif()
  endif()
endif()
