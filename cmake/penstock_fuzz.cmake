# Fuzz targets: every tests/fuzz/*.cpp is one program, fuzz_<file>. With clang it is libFuzzer's; else the driver in
# tests/fuzz/standalone runs it, so that every compiler with sanitizers will do, and it is a test, too.

file(GLOB fuzz_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/fuzz/*.cpp)
file(GLOB driver_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/fuzz/standalone/*.cpp)
set(PENSTOCK_FUZZ_ITERATIONS 200000 CACHE STRING "Inputs that each fuzz target tries as a test")

foreach(source IN LISTS fuzz_sources)
  get_filename_component(name ${source} NAME_WE)
  add_executable(fuzz_${name} ${source})
  target_include_directories(fuzz_${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(fuzz_${name} PRIVATE penstock_libs)
  penstock_warnings(fuzz_${name})
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    target_compile_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
  else()
    target_sources(fuzz_${name} PRIVATE ${driver_sources})
    # graph_npy has its corpus in graph_corpus/npy.
    string(REGEX REPLACE "^([^_]*)_(.*)$" "\\1_corpus/\\2" corpus ${name})
    enable_testing()
    set(iterations ${PENSTOCK_FUZZ_ITERATIONS})
    if(name STREQUAL "nvme_controller")  # waits for Aborts that a controller does not answer
      math(EXPR iterations "${iterations} / 20")
    endif()
    add_test(NAME fuzz_${name} COMMAND fuzz_${name} ${iterations} 1 ${PROJECT_SOURCE_DIR}/tests/fuzz/${corpus})
    set_tests_properties(fuzz_${name} PROPERTIES TIMEOUT 3600)
  endif()
endforeach()
