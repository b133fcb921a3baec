# The Python module penstock._native.

# From 3.12 on, a wheel is for all later versions: scikit-build-core asks for the stable ABI then.
find_package(Python 3.10 REQUIRED COMPONENTS Interpreter Development.Module ${SKBUILD_SABI_COMPONENT})
if(NOT SKBUILD)
  execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir OUTPUT_STRIP_TRAILING_WHITESPACE
                  OUTPUT_VARIABLE nanobind_DIR)
endif()
find_package(nanobind CONFIG REQUIRED)

file(GLOB binding_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/python/bindings/*.cpp)
if(binding_sources)
  nanobind_add_module(_native STABLE_ABI NB_STATIC ${binding_sources})
  target_link_libraries(_native PRIVATE penstock_libs)
  target_include_directories(_native SYSTEM PRIVATE ${NB_DIR}/include)  # its warnings are not ours
  target_compile_definitions(_native PRIVATE PENSTOCK_VERSION="${PROJECT_VERSION}")
  penstock_warnings(_native)
  # Two units of the same length, which are the last to be compiled: no core waits for the other.
  set_target_properties(_native PROPERTIES UNITY_BUILD ${PENSTOCK_UNITY} UNITY_BUILD_BATCH_SIZE 8)
  foreach(library nanobind-static nanobind-static-abi3)
    if(PENSTOCK_UNITY AND TARGET ${library})
      set_target_properties(${library} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
    endif()
  endforeach()
  install(TARGETS _native LIBRARY DESTINATION penstock)
  # What kernels of the user's own are compiled with.
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/penstock/kernels DESTINATION penstock/include/penstock)
  # And queries: of these folders, what libs/columns/group_bodies.hpp and zone_bodies.hpp include.
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/libs/columns DESTINATION penstock/include/libs
          FILES_MATCHING PATTERN "*.hpp" PATTERN "nvrtc" EXCLUDE)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/libs/columns/nvrtc DESTINATION penstock/include/libs/columns PATTERN "*.md" EXCLUDE)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/penstock/core ${PROJECT_SOURCE_DIR}/include/penstock/group
          DESTINATION penstock/include/penstock)
  install(FILES ${PROJECT_SOURCE_DIR}/include/penstock/array/piece_of.hpp DESTINATION penstock/include/penstock/array)
  install(FILES ${PROJECT_SOURCE_DIR}/include/penstock/executor/grid.hpp DESTINATION penstock/include/penstock/executor)
  if(PENSTOCK_HAS_CUDA)
    install(FILES ${device_parts} DESTINATION penstock/device)
  endif()
else()
  message(STATUS "python/bindings has no sources: no penstock._native")
endif()
